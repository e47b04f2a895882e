"""Normal scores of the columns: what a linear model of y sees of heavy tails and skewed shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.pair import Pair

NEARLY_NORMAL = 0.97  # correlation with their normal scores from which values stay as they are
FEWEST_VALUES = 3  # of a column; scores of two values are the values in other units


def normal_scores(pair: Pair) -> Pair:
    """Columns by their normal scores, but those that are nearly normal; the pair itself where all are.

    A feature and its knockoff are ranked together, so the scores do not know which is which, and a swap of the columns
    is a swap of their scores.

    Parameters
    ----------
    pair : Pair

    >>> pair = Pair(np.array([[0.0], [1e6]]), np.array([[1.0], [2.0]]), np.array([0]))
    >>> normal_scores(pair).stacked.round(2)
    array([[-1.15, -0.32],
           [ 1.15,  0.32]])
    """
    n, changed = len(pair), {}
    for j in range(pair.n_columns):
        both = np.concatenate([pair.X[:, j], pair.X_tilde[:, j]])
        scores = _scores(both)
        if scores is not None:
            changed[j] = scores
    if not changed:
        return pair
    X, X_tilde = pair.X.astype(float), pair.X_tilde.astype(float)
    for j, scores in changed.items():
        X[:, j], X_tilde[:, j] = scores[:n], scores[n:]
    return Pair(X, X_tilde, pair.feature_of)


def _scores(values: NDArray) -> NDArray | None:
    """Return the normal scores of a column, ties in the middle; none where the values are as good."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ordered = np.sort(values)
    if (np.diff(ordered) > 0).sum() < FEWEST_VALUES - 1:
        return None
    scores = ndtri((rankdata(values) - 0.5) / len(values))
    spread = values / np.abs(values).max()  # squares of very large numbers would be infinite
    return None if np.corrcoef(spread, scores)[0, 1] > NEARLY_NORMAL else scores
