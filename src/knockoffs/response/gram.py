"""Sufficient statistics of linear models: a Gram matrix of [X, X_tilde] and y, which adds up over batches of rows.

It holds means and centred products, so that adding batches loses no digits where a column lies far from zero. The lasso
on the Grams of the folds is that of the rows: a fold trains on the sum of the others, and its held-out loss is a
quadratic form. Other losses enter by their quadratic approximation (``quadratic.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from knockoffs.errors import InputError
from knockoffs.response.active_set import polish
from knockoffs.response.l1_path import (
    CrossValidation,
    Standardised,
    check_path,
    cross_validate,
    kept_columns,
    penalties,
)
from knockoffs.response.squared_error import GAP_TOL, MAX_SWEEPS

EQUAL = 1e-12  # 1 - |correlation| of columns that are taken for the same one: what rounding leaves
ROWS_AT_ONCE = 4096
WARM = 10  # penalties on the way down to the one that is asked for


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

    def arrays(self) -> dict[str, NDArray]:
        """Everything as arrays by name, for a file."""
        folds = [self.plain, *self.working]
        return {
            "rows": np.array([[gram.rows for gram in grams] for grams in folds]),
            "weight": np.array([[gram.weight for gram in grams] for grams in folds]),
            "mean": np.array([[gram.mean for gram in grams] for grams in folds]),
            "scatter": np.array([[gram.scatter for gram in grams] for grams in folds]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray]) -> FoldGrams:
        """Undo ``arrays``, to the last bit."""
        parts = (arrays["rows"], arrays["weight"], arrays["mean"], arrays["scatter"])
        grams = [
            tuple(
                Gram(float(rows), float(weight), mean, scatter)
                for rows, weight, mean, scatter in zip(*fold, strict=True)
            )
            for fold in zip(*parts, strict=True)
        ]
        return cls(grams[0], tuple(grams[1:]))

    @property
    def outputs(self) -> tuple[tuple[Gram, ...], ...]:
        """What is minimised, of each response, then of each fold."""
        return self.working or (self.plain,)

    @cached_property
    def whole(self) -> Gram:
        """All rows, without curvature."""
        return total(self.plain)


@dataclass(frozen=True)
class LinearFit:
    """Lasso on Grams.

    Attributes
    ----------
    coef : array, shape (n_outputs, p)
        In the units of the columns.
    intercept : array, shape (n_outputs,)
    alpha : float
        Penalty, for columns of variance 1 and responses whose variances add up to 1.
    cross_validation : CrossValidation or None
    """

    coef: NDArray
    intercept: NDArray
    alpha: float
    cross_validation: CrossValidation | None


def fit_lasso(
    grams: FoldGrams, *, alpha: float | None = None, n_alphas: int = 100, alpha_ratio: float = 1e-3
) -> LinearFit:
    """Lasso of the rows behind the Grams, with the penalty of the smallest cross-validated loss, solved exactly.

    The same answer as ``LassoPathCV`` with these folds, to rounding.

    Parameters
    ----------
    grams : FoldGrams
    alpha, n_alphas, alpha_ratio
        As for ``LassoPathCV``.
    """
    check_path(alpha, n_alphas, alpha_ratio)
    if not all(np.isfinite(gram.scatter).all() for gram in grams.plain):
        raise InputError("the products of some columns are infinite: divide columns of very large numbers by a unit.")
    whole, outputs = grams.whole, [total(folds) for folds in grams.outputs]
    columns = standardise_columns(whole)
    kept = np.flatnonzero(_is_first(columns))
    unit = whole.deviations[kept]
    y2 = sum(float(gram.scatter[-1, -1]) for gram in outputs) / whole.rows
    y_scale = np.sqrt(y2) if all(gram.deviations[-1] > 0 for gram in outputs) else 0.0
    problem = [Quadratic.of(gram, gram.rows, kept, unit, y_scale or 1.0) for gram in outputs]
    beta, found = np.zeros((len(outputs), len(kept))), None
    used = 0.0 if alpha is None else float(alpha)
    if y_scale > 0 and len(kept):
        if alpha is None:
            sets = [GramSet(grams, fold, kept, unit, y_scale) for fold in range(len(grams.plain))]
            largest = max(float(np.abs(one.c).max()) for one in problem)
            folds = GramFolds(np.array([gram.rows for gram in grams.plain]))
            found, _ = cross_validate(folds, sets, penalties(largest, n_alphas, alpha_ratio))
            used = found.alpha
        beta = solve_quadratics(problem, used)
    coef = columns.spread(beta) * (y_scale or 1.0)
    intercept = np.array([gram.mean[-1] - row @ gram.mean[:-1] for gram, row in zip(outputs, coef, strict=True)])
    return LinearFit(coef, intercept, used, found)


def standardise_columns(whole: Gram) -> Standardised:
    """Which columns are constant and which are repeated, told by their correlations."""
    sd = whole.deviations[:-1]
    varies = sd > 0
    scale = np.where(varies, sd, 1.0)
    R = whole.scatter[:-1, :-1] / max(whole.weight, 1e-300) / scale / scale[:, None]
    same = np.triu(np.abs(R) > 1 - EQUAL)
    first = np.where(varies, np.argmax(same, axis=0), -1)
    sign = np.where(R[np.maximum(first, 0), np.arange(len(sd))] < 0, -1.0, 1.0)
    return Standardised(kept_columns(first)[1], sign, whole.mean[:-1], scale)


def _is_first(columns: Standardised) -> NDArray[np.bool_]:
    """Whether each column is the one that stands for its equals."""
    _, first = np.unique(columns.column_of, return_index=True)
    is_first = np.zeros(columns.column_of.size, dtype=bool)
    is_first[first] = True
    return is_first & (columns.column_of >= 0)


@dataclass(frozen=True)
class Quadratic:
    """b'Gb/2 - c'b + y2/2 of one response, columns standardised.

    Attributes
    ----------
    G : array, shape (d, d)
    c : array, shape (d,)
    y2 : float
    mean, y_mean, weight : array, shape (d,), and floats
        What the intercept takes up, and the weight of the rows behind it; without rows there is no intercept.
    """

    G: NDArray
    c: NDArray
    y2: float
    mean: NDArray | float = 0.0
    y_mean: float = 0.0
    weight: float = 0.0

    @classmethod
    def of(cls, gram: Gram, rows: float, kept: NDArray[np.intp], unit: NDArray, y_scale: float) -> Quadratic:
        """Make it of a Gram: some of its columns, in their units."""
        rows = max(rows, 1e-300)
        G = gram.scatter[np.ix_(kept, kept)] / rows / unit / unit[:, None]
        c = gram.scatter[kept, -1] / rows / unit / y_scale
        y2 = float(gram.scatter[-1, -1]) / rows / y_scale**2
        return cls(G, c, y2, gram.mean[kept] / unit, float(gram.mean[-1]) / y_scale, gram.weight / rows)

    def loss(self, path: NDArray, centre: NDArray | float, y_centre: float) -> NDArray:
        """Mean squared error at the rows of ``path`` of a fit whose intercept puts ``centre`` at ``y_centre``."""
        error = self.y_mean - y_centre - path @ (self.mean - centre)
        return self.y2 - 2 * path @ self.c + np.einsum("aj,aj->a", path @ self.G, path) + self.weight * error**2


@dataclass(frozen=True)
class GramFolds:
    """What the walk down a path asks of a design (``Folds``): residuals of a Gram are gradients already."""

    fold_weights: NDArray

    def gradients(self, residuals: NDArray) -> NDArray:
        """Return them as they are."""
        return residuals


class GramSet:
    """The lasso on the Grams of all folds but one (a ``TrainingSet``); every column is in play from the start."""

    def __init__(self, grams: FoldGrams, fold: int, kept: NDArray[np.intp], unit: NDArray, y_scale: float) -> None:
        def others(folds: Sequence[Gram]) -> Gram:
            return total([gram for f, gram in enumerate(folds) if f != fold])

        self.columns = np.arange(len(kept))
        rows, held_rows = others(grams.plain).rows, grams.plain[fold].rows
        self.train = [Quadratic.of(others(folds), rows, kept, unit, y_scale) for folds in grams.outputs]
        self.held = [Quadratic.of(folds[fold], held_rows, kept, unit, y_scale) for folds in grams.outputs]
        self.any_held = held_rows > 0
        self.beta = np.zeros((len(self.train), len(kept)))

    def null_residual(self) -> NDArray:
        """Gradients at zero, shape (n_outputs, d)."""
        return np.stack([one.c for one in self.train])

    def add(self, columns: NDArray[np.intp]) -> None:
        """Do nothing: all columns are there."""

    def save(self) -> NDArray:
        """Copy the coefficients."""
        return self.beta.copy()

    def restore(self, state: NDArray) -> None:
        """Set the coefficients back."""
        self.beta = state.copy()

    def support(self) -> NDArray[np.intp]:
        """Columns with a nonzero coefficient."""
        return np.flatnonzero(self.beta.any(axis=0))

    def solve(self, alphas: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Lasso at several penalties: gradients, held-out loss, share of the null loss explained."""
        gradients, held_out, left = [], np.zeros(alphas.size), np.zeros(alphas.size)
        for train, held, beta in zip(self.train, self.held, self.beta, strict=True):
            path = _walk(train, alphas, beta, GAP_TOL)
            held_out += held.loss(path, train.mean, train.y_mean)
            gradients.append(train.c - path @ train.G)
            left += train.loss(path, train.mean, train.y_mean)
        if not self.any_held:
            held_out[:] = np.nan
        null = sum(train.y2 for train in self.train)
        return np.stack(gradients, axis=1), held_out, 1 - left / (null if null > 0 else 1.0)


def _walk(problem: Quadratic, alphas: NDArray, beta: NDArray, tol: float) -> NDArray:
    """Solutions at several penalties, shape (len(alphas), d); ``beta`` is the start and becomes the last of them."""
    from knockoffs.response.coordinate_descent import lasso_path  # numba takes a while to import

    d = len(beta)
    path = np.zeros((alphas.size, d))
    if problem.y2 > 0:
        lasso_path(problem.G, problem.c, alphas, beta, path, d, problem.y2, tol, MAX_SWEEPS)
    return path


def solve_quadratics(problem: Sequence[Quadratic], alpha: float) -> NDArray:
    """Minimise their sum plus alpha |b|_1, to rounding; shape (n_outputs, d)."""
    beta = np.zeros((len(problem), len(problem[0].c)))
    for one, row in zip(problem, beta, strict=True):
        start = max(float(np.abs(one.c).max()), alpha)
        _walk(one, np.geomspace(start, alpha, WARM) if alpha > 0 else np.zeros(1), row, 1e-10)
    return polish(_Smooth(problem), beta, alpha)


class _Smooth:
    """The quadratics for ``polish``: responses do not touch one another."""

    def __init__(self, problem: Sequence[Quadratic]) -> None:
        self.problem = problem
        self._factors: list[tuple[NDArray, object] | None] = [None] * len(problem)

    def gradient(self, beta: NDArray) -> NDArray:
        """Minus the gradient, shape (n_outputs, d)."""
        return np.stack([one.c - one.G @ row for one, row in zip(self.problem, beta, strict=True)])

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve with the Gram matrices of the active columns; factors are kept while they stay the same."""
        steps, start = [], 0
        for k, (one, which) in enumerate(zip(self.problem, active, strict=True)):
            columns = np.flatnonzero(which)
            part, start = right[start : start + columns.size], start + columns.size
            if not columns.size:
                continue
            held = self._factors[k]
            if held is None or not np.array_equal(held[0], columns):
                G = one.G[np.ix_(columns, columns)]
                scale = np.sqrt(np.diag(G))
                if not (scale > 0).all():
                    return None
                try:
                    factor = cho_factor(G / scale / scale[:, None], check_finite=False)
                except LinAlgError:
                    return None
                if np.diag(factor[0]).min() < 1e-6:  # what the others leave of a column is below 1e-12 of it
                    return None
                held = self._factors[k] = (columns, (factor, scale))
            factor, scale = held[1]  # type: ignore[misc]
            steps.append(cho_solve(factor, part / scale, check_finite=False) / scale)
        return np.concatenate(steps) if steps else right
