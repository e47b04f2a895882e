"""Sufficient statistics of linear models: a Gram matrix of [X, X_tilde] and y, which adds up over batches of rows.

It holds means and centred products, so that adding batches loses no digits where a column lies far from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Gram:
    """Weighted means and centred products of columns and a response, the response last.

    Attributes
    ----------
    rows : float
        Sum of the sample weights; the number of rows without them.
    weight : float
        Sum of the weights of the products: sample weights times curvatures.
    mean : array, shape (p + 1,)
    scatter : array, shape (p + 1, p + 1)
        Sum of weight times (v - mean)(v - mean)^T over the rows v = [x, y].
    """

    rows: float
    weight: float
    mean: NDArray
    scatter: NDArray

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
    """Grams of every fold, for one response or several that share a penalty.

    Attributes
    ----------
    plain : tuple of Gram
        Of each fold, without curvature: what the columns are standardised by.
    working : tuple of tuple of Gram
        With curvature, of each response, then of each fold; none for squared error.
    """

    plain: tuple[Gram, ...]
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
