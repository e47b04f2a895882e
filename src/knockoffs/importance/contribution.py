"""What a feature adds to the prediction of a linear model: one number for a group of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.importance.coefficients import coefficients_of, in_units_of_y
from knockoffs.importance.scores import Scores


def contribution(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator | None = None,
    sample_weight: NDArray | None = None,
    more: Sequence[NDArray] = (),
) -> Scores:
    """Deviation of X_g b_g, the part of a feature in a linear prediction: sqrt(b_g' S_g b_g).

    For a feature of one column that is its absolute coefficient in standard deviations, as ``coefficient_magnitude``
    has it. Coefficients of columns that say nearly the same are large and of either sign, and nearly cancel: their sum
    of magnitudes is noise, their contribution is not. S_g is the covariance of the rows of X_g and X_tilde_g together,
    one and the same for both, so swapping a feature and its knockoff swaps their scores. Nothing is drawn.

    Parameters
    ----------
    model, X, X_tilde, y, feature_of, rng, sample_weight, more
        As in ``coefficient_magnitude``; parts of several classes are added up.
    """
    parts = (X, X_tilde, *more)
    coef = in_units_of_y(coefficients_of(model, len(parts) * X.shape[1]), model, y, sample_weight)
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    Z = np.empty((len(parts), int(feature_of.max()) + 1))
    for g in range(Z.shape[1]):
        columns = np.flatnonzero(feature_of == g)
        S = sum(_covariance(part[:, columns], w) for part in parts) / len(parts)
        for scores, own in zip(Z, np.split(coef, len(parts), axis=1), strict=True):
            half = own[:, columns]
            scores[g] = np.sqrt(np.maximum(np.einsum("ka,ab,kb->k", half, S, half), 0.0)).sum()
    return Scores(Z[0], Z[1], more=tuple(Z[2:]))


def _covariance(X: NDArray, weights: NDArray) -> NDArray:
    centred = X - np.average(X, axis=0, weights=weights)
    return (centred * weights[:, None]).T @ centred / weights.sum()
