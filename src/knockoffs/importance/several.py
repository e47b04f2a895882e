"""Scores of a feature and of several knockoffs of it, by one linear model of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from sklearn.base import clone

from knockoffs.errors import InputError
from knockoffs.importance.coefficients import coefficients_of


def score_several(
    model: Any, X: NDArray, copies: Sequence[NDArray], y: NDArray, *, feature_of: NDArray[np.intp], rng: Generator
) -> NDArray:
    """Parts of the features and of their copies in a linear prediction, shape (m + 1, n_features).

    The part of a feature is sqrt(b_g' S_g b_g), S_g being the covariance of all copies together, as ``contribution``
    has it. Before the fit X and its copies change places at random, feature by feature, so that a null feature is as
    likely as any of its copies to have the largest score, whatever the model makes of the order of its columns.

    Parameters
    ----------
    model : estimator
        Linear; a clone is fitted.
    X : array, shape (n, n_columns)
    copies : sequence of arrays, shape (n, n_columns)
    y : array, shape (n,)
    feature_of : array of int, shape (n_columns,)
    rng : numpy.random.Generator
    """
    stack = np.stack([X, *copies])
    m, d = len(stack), int(feature_of.max()) + 1
    if m < 2:
        raise InputError("copies is empty: at least one knockoff is needed.")
    place = rng.permuted(np.tile(np.arange(m), (d, 1)), axis=1).T  # place[l, g]: which copy stands l-th
    shuffled = np.take_along_axis(stack, place[:, feature_of][:, None, :], axis=0)
    fitted = clone(model).fit(np.hstack(list(shuffled)), y)
    coef = coefficients_of(fitted, m * X.shape[1]).reshape(-1, m, X.shape[1])
    Z = np.empty((m, d))
    for g in range(d):
        columns = np.flatnonzero(feature_of == g)
        S = np.mean([np.cov(part[:, columns], rowvar=False).reshape(len(columns), -1) for part in stack], axis=0)
        part = np.einsum("kla,ab,klb->kl", coef[:, :, columns], S, coef[:, :, columns])
        Z[place[:, g], g] = np.sqrt(np.maximum(part, 0.0)).sum(axis=0)
    return Z
