"""Sufficient statistics of linear models: a Gram matrix of [X, X_tilde] and y, which adds up over batches of rows.

It holds means and centred products, so that adding batches loses no digits where a column lies far from zero. Logistic
and Poisson regression have one by the quadratic approximation of their loss at a ``Pilot``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from knockoffs.response.likelihood import indicator, probabilities

ROWS_AT_ONCE = 4096
SMALLEST_CURVATURE = 1e-5  # of a variance: where the pilot is certain, a working response would have no bounds


@dataclass(frozen=True)
class Gram:
    """Weighted means and centred products of columns and a response, the response last."""

    rows: float  # sum of the sample weights; the number of rows without them
    weight: float  # sum of the weights of the products: sample weights times curvatures
    mean: NDArray  # shape (p + 1,)
    scatter: NDArray  # shape (p + 1, p + 1): sum of weight times (v - mean)(v - mean)^T over the rows v = [x, y]

    @classmethod
    def of(
        cls,
        X: NDArray,
        y: NDArray,
        weights: NDArray | None = None,
        curvature: NDArray | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> Gram:
        """Gram of the rows of X, shape (n, p), and y, shape (n,), or of some of them.

        >>> gram = Gram.of(np.array([[1.0], [3.0]]), np.array([0.0, 4.0]))
        >>> gram.mean, gram.scatter
        (array([2., 2.]), array([[2., 4.],
               [4., 8.]]))
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is refused where it is used
            if rows is None:
                V = np.empty((len(X), X.shape[1] + 1))
                V[:, :-1], V[:, -1] = X, y
                return cls._of(V, weights, curvature)
            V = np.empty((len(rows), X.shape[1] + 1))
            for start in range(0, len(rows), ROWS_AT_ONCE):  # the rows are copied once
                some = slice(start, start + ROWS_AT_ONCE)
                V[some, :-1] = X[rows[some]]
            V[:, -1] = y[rows]
            parts = (None if one is None else one[rows] for one in (weights, curvature))
            return cls._of(V, *parts)

    @classmethod
    def _of(cls, V: NDArray, weights: NDArray | None, curvature: NDArray | None) -> Gram:
        """Gram of the rows [x, y] of V, which is used up."""
        rows = float(len(V)) if weights is None else float(weights.sum())
        w = weights if curvature is None else curvature if weights is None else weights * curvature
        if w is None:
            mean = V.sum(axis=0) / max(len(V), 1)
            V -= mean
            return cls(rows, rows, mean, V.T @ V)
        weight = float(w.sum())
        mean = w @ V / weight if weight > 0 else np.zeros(V.shape[1])
        V -= mean
        V *= np.sqrt(w)[:, None]
        return cls(rows, weight, mean, V.T @ V)

    @classmethod
    def empty(cls, p: int) -> Gram:
        """Gram of no rows of p columns."""
        return cls(0.0, 0.0, np.zeros(p + 1), np.zeros((p + 1, p + 1)))

    def __add__(self, other: Gram) -> Gram:
        """Gram of the rows of both."""
        weight = self.weight + other.weight
        if other.weight == 0 or self.weight == 0:
            one = self if other.weight == 0 else other
            return Gram(self.rows + other.rows, weight, one.mean, one.scatter)
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.weight / weight)
        between = np.outer(apart, apart) * (self.weight * (other.weight / weight))
        return Gram(self.rows + other.rows, weight, mean, self.scatter + other.scatter + between)

    @property
    def n_columns(self) -> int:
        """Columns without the response."""
        return len(self.mean) - 1

    @cached_property
    def deviations(self) -> NDArray:
        """Standard deviations of the columns and of the response, 0 where rounding is all there is."""
        mean_square = np.diag(self.scatter) / max(self.weight, 1e-300)
        size = np.maximum(np.abs(self.mean), 1.0) if self.weight <= 0 else np.abs(self.mean)
        sd = np.sqrt(np.maximum(mean_square, 0.0))
        # a constant leaves rounding errors of 1e-16 of its size, times the square root of the rows that are added up
        return np.where(sd > 1e-13 * np.sqrt(max(self.rows, 1.0)) * size, sd, 0.0)


def total(grams: Sequence[Gram]) -> Gram:
    """Gram of the rows of all, added in their order."""
    return reduce(add, grams)


@dataclass(frozen=True)
class FoldGrams:
    """Grams of every fold, for one response or several that share a penalty."""

    plain: tuple[Gram, ...]  # of each fold, without curvature: what the columns are standardised by
    # with curvature, of each response, then of each fold; none for squared error
    working: tuple[tuple[Gram, ...], ...] = ()

    @classmethod
    def of_numbers(cls, X: NDArray, y: NDArray, fold_of: NDArray, n_folds: int, weights: NDArray | None) -> FoldGrams:
        """Grams of the folds of some rows, for squared error."""
        parts = [np.flatnonzero(fold_of == fold) for fold in range(n_folds)]
        return cls(tuple(Gram.of(X, y, weights, rows=part) for part in parts))

    def __add__(self, other: FoldGrams) -> FoldGrams:
        """Grams of the rows of both, fold by fold."""
        plain = tuple(map(add, self.plain, other.plain))
        pairs = zip(self.working, other.working, strict=True)
        return FoldGrams(plain, tuple(tuple(map(add, mine, theirs)) for mine, theirs in pairs))

    @property
    def outputs(self) -> tuple[tuple[Gram, ...], ...]:
        """What is minimised, of each response, then of each fold."""
        return self.working or (self.plain,)

    @cached_property
    def whole(self) -> Gram:
        """All rows, without curvature."""
        return total(self.plain)


@dataclass(frozen=True)
class Pilot:
    """A fit to some of the rows, at which the loss of all rows is approximated.

    At a pilot fit, -log-likelihood is to second order a weighted least-squares loss, of the working response
    eta + (y - mu) / v with the weights v (the variance of y under the pilot): one step of iteratively reweighted least
    squares. Its Gram adds up over batches, so one pass over a table gives the whole path. With more than two classes
    every class has a Gram of its own, and what couples them is left out, as in a step of glmnet's partial Newton
    method. The pilot treats features and knockoffs alike, and so does the step: swapping columns for both swaps the
    coefficients.
    """

    coef: NDArray  # shape (n_outputs, p)
    intercept: NDArray  # shape (n_outputs,)
    classes: NDArray | None = None  # sorted labels, of a classification
    # poisson regression; a number, for which the squared error is exact, where there are no classes either
    counts: bool = False

    @classmethod
    def of(cls, model: Any) -> Pilot:
        """Pilot of a fitted lasso, logistic or Poisson regression."""
        coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        return cls(coef, intercept, getattr(model, "classes_", None), get_tags(model).target_tags.positive_only)

    @property
    def squared_error(self) -> bool:
        """Whether nothing is approximated."""
        return self.classes is None and not self.counts

    def numbers(self, y: NDArray) -> NDArray:
        """Responses, shape (n_outputs, n): y itself, or indicators of classes."""
        if self.classes is None:
            return np.asarray(y, dtype=float)[None]
        return indicator(np.searchsorted(self.classes, y), len(self.classes))

    def working(self, X: NDArray, Y: NDArray) -> tuple[NDArray, NDArray]:
        """Working responses and their weights at the pilot, shape (n_outputs, n) each."""
        eta = self.coef @ X.T + self.intercept[:, None]
        if self.counts:
            mean = np.exp(np.clip(eta, -30.0, 30.0))
            variance = mean
        else:
            mean = probabilities(eta)
            variance = mean * (1 - mean)
        variance = np.maximum(variance, SMALLEST_CURVATURE)
        return eta + (Y - mean) / variance, variance


def fold_grams(
    pilot: Pilot, X: NDArray, y: NDArray, fold_of: NDArray, n_folds: int, weights: NDArray | None = None
) -> FoldGrams:
    """Grams of the folds of some rows: exact for squared error, else the approximation at the pilot."""
    Y = pilot.numbers(y)
    if pilot.squared_error:
        return FoldGrams.of_numbers(X, Y[0], fold_of, n_folds, weights)
    response, curvature = pilot.working(X, Y)
    plain, outputs = [], []
    for fold in range(n_folds):
        rows = np.flatnonzero(fold_of == fold)
        part, w = X[rows], None if weights is None else weights[rows]
        plain.append(Gram.of(part, Y[0, rows], w))
        outputs.append([Gram.of(part, z[rows], w, v[rows]) for z, v in zip(response, curvature, strict=True)])
    return FoldGrams(tuple(plain), tuple(zip(*outputs, strict=True)))
