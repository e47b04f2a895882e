"""The lasso on Gram matrices of folds, which is that of their rows.

A fold trains on the sum of the others, and its held-out loss is a quadratic form. Other losses enter by their quadratic
approximation (``quadratic.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.response.gram import FoldGrams, Gram, total
from knockoffs.response.l1_path import (
    CrossValidation,
    SquaredErrors,
    Standardised,
    check_path,
    cross_validate,
    kept_columns,
    penalties,
    polish,
)
from knockoffs.response.squared_error import GAP_TOL, MAX_SWEEPS

EQUAL = 1e-12  # 1 - |correlation| of columns that are taken for the same one: what rounding leaves
WARM = 10  # penalties on the way down to the one that is asked for


@dataclass(frozen=True)
class LinearFit:
    """Lasso on Grams."""

    coef: NDArray  # shape (n_outputs, p): in the units of the columns
    intercept: NDArray  # shape (n_outputs,)
    alpha: float  # penalty, for columns of variance 1 and responses whose variances add up to 1
    cross_validation: CrossValidation | None


def fit_lasso(
    grams: FoldGrams, *, alpha: float | None = None, n_alphas: int = 100, alpha_ratio: float = 1e-3
) -> LinearFit:
    """Lasso of the rows behind the Grams, with the penalty of the smallest cross-validated loss, solved exactly.

    The same answer as ``LassoPathCV`` with these folds, to rounding; its penalties are those of that.
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
            rows = np.array([gram.rows for gram in grams.plain])
            alphas = penalties(largest, n_alphas, alpha_ratio)
            found, _ = cross_validate(sets, alphas, rows, lambda residuals: residuals)  # which are gradients already
            used = found.alpha
        beta = solve_quadratics(problem, used)
    coef = columns.spread(beta) * (y_scale or 1.0)
    intercept = np.array([gram.mean[-1] - row @ gram.mean[:-1] for gram, row in zip(outputs, coef, strict=True)])
    return LinearFit(coef, intercept, used, found)


def aic_penalty(gram: Gram, n_alphas: int = 100, alpha_ratio: float = 1e-3) -> float:
    """Penalty with the smallest corrected AIC, n log RSS + 2 n k / (n - k - 1), of a lasso with k columns in the model.

    It depends on the rows through their products alone, and not on the order of the columns.
    """
    n, kept = gram.rows, np.flatnonzero(_is_first(standardise_columns(gram)))
    if not kept.size or gram.deviations[-1] == 0:
        return 0.0
    problem = Quadratic.of(gram, n, kept, gram.deviations[kept], float(gram.deviations[-1]))
    alphas = penalties(float(np.abs(problem.c).max()), n_alphas, alpha_ratio)
    path = _walk(problem, alphas, np.zeros(len(kept)), GAP_TOL)
    k, left = (path != 0).sum(axis=1), problem.loss(path, problem.mean, problem.y_mean)
    room = n - k - 1
    with np.errstate(divide="ignore"):
        aic = n * np.log(np.maximum(left, 0.0)) + 2 * n * k / np.maximum(room, 1)
    return float(alphas[np.argmin(np.where(room > 0, aic, np.inf))])


def standardise_columns(whole: Gram) -> Standardised:
    """Which columns are constant and which are repeated, by their correlations."""
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
    """b'Gb/2 - c'b + y2/2 of one response, columns standardised."""

    G: NDArray  # shape (d, d)
    c: NDArray  # shape (d,)
    y2: float
    # shape (d,): what the intercept takes up, and the weight of the rows behind it; without rows there is no intercept
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
    return polish(ErrorsOfGrams(problem), beta, alpha)


class ErrorsOfGrams(SquaredErrors):
    """Squared errors of responses by their Grams."""

    def __init__(self, problem: Sequence[Quadratic]) -> None:
        super().__init__()
        self.problem = problem

    def gradient(self, beta: NDArray) -> NDArray:
        """C - G beta, shape (n_outputs, d)."""
        return np.stack([one.c - one.G @ row for one, row in zip(self.problem, beta, strict=True)])

    def gram(self, k: int, columns: NDArray[np.intp]) -> NDArray:
        """G of some columns."""
        return self.problem[k].G[np.ix_(columns, columns)]
