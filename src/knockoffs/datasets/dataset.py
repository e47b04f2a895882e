"""DataSet: numeric features, target, and what was done to them; and the two preparations the loaders share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class DataSet:
    """A table that is ready for the procedure.

    Attributes
    ----------
    name : str
    X : array, shape (n, d)
    y : array, shape (n,)
    feature_names : tuple of str
    notes : tuple of str
        What was done to the source, one sentence each.
    columns : dict
        The source as it is, name -> array (strings where the source has words), for those who want the rest.
    """

    name: str
    X: NDArray
    y: NDArray
    feature_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    columns: dict[str, NDArray] = field(default_factory=dict, repr=False)


def fill_median(X: NDArray) -> NDArray:
    """X with the missing cells of each column set to its median.

    >>> fill_median(np.array([[1.0], [np.nan], [3.0], [2.0]])).ravel()
    array([1., 2., 3., 2.])
    """
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X)


def normal_scores(X: NDArray) -> NDArray:
    """Each column by its ranks on the scale of a standard normal; ties share their mean rank, missing stays missing.

    Monotone in each column, so which features are null does not change; extreme tails are gone.

    >>> normal_scores(np.array([[-1e9], [0.0], [1e12]])).ravel().round(3)
    array([-0.967,  0.   ,  0.967])
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    scores = np.full(X.shape, np.nan)
    for j, column in enumerate(X.T):
        seen = ~np.isnan(column)
        scores[seen, j] = ndtri((rankdata(column[seen]) - 0.5) / max(seen.sum(), 1))
    return scores
