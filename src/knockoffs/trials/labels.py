"""Labels y* for which some columns do not matter: drawn from a model of y on the other columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.distil import cross_fit, responses, standardised
from knockoffs.response import Estimator
from knockoffs.response.linear import PenaltyPath
from knockoffs.table.target_kind import split_times

LabelSampler = Callable[[Generator], NDArray]
Shuffle = Callable[[Generator], NDArray[np.intp]]  # row whose residual each row gets


def label_sampler(
    rest: NDArray,
    y: NDArray,
    kind: str,
    estimator: Estimator,
    rng: Generator,
    *,
    shuffle: Shuffle | None = None,
    n_folds: int = 2,
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
    shuffle : callable, optional
        Row whose residual each row gets, if not any row: it may keep together what depends on each other. The residual
        of a class is where it lies in the distribution function of its row, at random within its step.
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
        if shuffle is None:
            return lambda rng: classes[(rng.random((n, 1)) > upto).sum(axis=1)]
        ends = np.hstack([np.zeros((n, 1)), upto, np.ones((n, 1))])
        place = np.arange(n), np.searchsorted(classes, y)
        low, high = ends[place], ends[place[0], place[1] + 1]

        def kept(rng: Generator) -> NDArray:
            u = low + (high - low) * rng.random(n)
            return classes[(u[shuffle(rng), None] > upto).sum(axis=1)]

        return kept
    if kind == "survival":
        earliest = np.argsort(split_times(y)[0], kind="stable")

        def times(rng: Generator) -> NDArray:
            found = np.empty_like(y)
            found[np.argsort(np.log(rng.exponential(size=n)) - predicted[:, 0])] = y[earliest]
            return found

        return times
    residuals = (Y - predicted)[:, 0]

    def numbers(rng: Generator) -> NDArray:
        drawn = predicted[:, 0] + (rng.permutation(residuals) if shuffle is None else residuals[shuffle(rng)])
        if kind == "number":
            return drawn
        found = np.empty(n, dtype=y.dtype)
        found[np.lexsort((rng.random(n), drawn))] = np.sort(y)
        return found

    return numbers


def shifted(n: int) -> Shuffle:
    """Shuffle by a shift along the rows, the last followed by the first: rows keep their order, and so what is serial.

    >>> shifted(4)(np.random.default_rng(0))
    array([3, 0, 1, 2])
    """
    return lambda rng: (np.arange(n) + rng.integers(1, n)) % n


def by_sets(set_of: NDArray[np.intp]) -> Shuffle:
    """Shuffle of sets of rows, numbered: rows of a set get residuals of the rows of another set of about its size.

    Within a set they are in any order. In the order of the visits they would keep what a column of the visits, such as
    the age at each, has to do with y, though labels are drawn for which it does not matter.

    >>> by_sets(np.array([0, 0, 1, 1]))(np.random.default_rng(0))
    array([2, 3, 0, 1])
    """
    size = np.bincount(set_of)

    def draw(rng: Generator) -> NDArray[np.intp]:
        any_order = rng.random(len(set_of))
        laid = np.lexsort((any_order, set_of, rng.random(len(size))[set_of], size[set_of]))
        starts = np.flatnonzero(np.diff(set_of[laid])) + 1
        found = np.empty_like(laid)
        found[laid] = np.roll(laid, -rng.choice(starts))
        return found

    return draw


def with_squares(X: NDArray) -> NDArray:
    """Columns in standard deviations, and the squares of those with more than two values, within 3 deviations."""
    Z = standardised(X)
    many = np.array([len(np.unique(column)) > 2 for column in X.T], dtype=bool)
    return np.hstack([Z, standardised(Z[:, many].clip(-3, 3) ** 2)])
