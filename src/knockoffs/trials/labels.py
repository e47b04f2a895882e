"""Labels y* for which some columns do not matter: drawn from a model of y on the other columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.distil import cross_fit, responses, standardised
from knockoffs.response.clone import Estimator
from knockoffs.response.linear_parts import PenaltyPath
from knockoffs.table.survival import split_times

LabelSampler = Callable[[Generator], NDArray]


def label_sampler(
    rest: NDArray, y: NDArray, kind: str, estimator: Estimator, rng: Generator, n_folds: int = 2
) -> LabelSampler:
    """Sampler of labels y* that depend on the columns ``rest`` alone.

    Predictions are of held-out rows: a model that had seen a row's y would pass on what other columns have to do with
    it. A lasso has the squares of the columns too: labels must bend where y does. Numbers are predictions with their
    residuals permuted over the rows, classes are drawn from their predicted probabilities. Counts and ordered
    categories are drawn as numbers, whose ranks then get the values of y. Survival times are drawn with the predicted
    hazards, and their ranks get the times of y, with their events.

    Parameters
    ----------
    rest : array, shape (n, c)
    y : array, shape (n,)
        Numbers, or codes 0 .. K - 1 of classes.
    kind : str
        What y is.
    estimator : Estimator
        Unfitted.
    rng : numpy.random.Generator
        Of the folds.
    n_folds : int
    """
    Y, n = responses(y, kind), len(y)
    if isinstance(estimator, PenaltyPath):
        rest = with_squares(rest)
    predicted = np.empty(Y.shape)
    for held, found in cross_fit(estimator, rest, y, kind, rng.permutation(np.arange(n) % n_folds)):
        predicted[held] = found
    if kind in ("binary", "classes"):
        classes = np.unique(y)
        shares = predicted if len(classes) > 2 else np.hstack([1 - predicted, predicted])
        upto = np.cumsum(shares, axis=1)[:, :-1]
        return lambda rng: classes[(rng.random((n, 1)) > upto).sum(axis=1)]
    if kind == "survival":
        earliest = np.argsort(split_times(y)[0], kind="stable")

        def times(rng: Generator) -> NDArray:
            found = np.empty_like(y)
            found[np.argsort(np.log(rng.exponential(size=n)) - predicted[:, 0])] = y[earliest]
            return found

        return times
    residuals = (Y - predicted)[:, 0]

    def numbers(rng: Generator) -> NDArray:
        drawn = predicted[:, 0] + rng.permutation(residuals)
        if kind == "number":
            return drawn
        found = np.empty(n, dtype=y.dtype)
        found[np.lexsort((rng.random(n), drawn))] = np.sort(y)
        return found

    return numbers


def with_squares(X: NDArray) -> NDArray:
    """Columns in standard deviations, and the squares of those with more than two values, within 3 deviations."""
    Z = standardised(X)
    many = np.array([len(np.unique(column)) > 2 for column in X.T], dtype=bool)
    return np.hstack([Z, standardised(Z[:, many].clip(-3, 3) ** 2)])
