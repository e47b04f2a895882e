"""Held-out log density, the one criterion by which the default P^X is chosen; and covariances of few rows by it.

Row i is in fold i mod 4, in every choice. A candidate is fitted to three folds and judged by the log density of the
rows of the fourth, for each fold in turn. Candidates are ordered from simple to complex, and the simplest one within
one standard error of the best is chosen. A needless class or correlation costs power, for it explains a column by
others that it has nothing to do with. What held-out rows cannot tell from the best costs the level next to nothing.

Covariances of few rows are estimated by what held-out rows ask for.
They are shrunk towards their diagonal; or correlations below a threshold are taken for none, since shrinking all of
them alike takes as much from the few that are there as from the noise in all the others; or each column is linked to
the few that are nearest to it (chains, trees, neighbours on a map), a precision matrix of few entries. One chooser for
the three.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import KnockoffWarning

Estimator = Callable[[NDArray, int], NDArray]  # sample correlations, and of how many rows -> correlations
FEW = 2  # rows a column, under which the user is told that the covariance rests on little
PLENTY = 50  # rows a column, from which on a covariance is kept as it is
MOVED = 0.25  # a correlation that shrinkage takes more than this from is worth a warning
INTENSITIES = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 61)])
ROWS_AT_ONCE = 2048  # a block, whitened for one component, stays in the cache; memory does not grow with n
NEGLIGIBLE = 1e-16  # responsibility under which a row is left out of a component's sums: less than their rounding
N_FOLDS = 4  # three quarters of the rows fit, and every row is held out once


def fold_of(n: int) -> NDArray[np.intp]:
    """Fold of each of n rows: 0, 1, 2, 3, 0, 1, ... so that a sorted table does no harm.

    >>> fold_of(6)
    array([0, 1, 2, 3, 0, 1])
    """
    return np.arange(n) % N_FOLDS


def is_behind(log_density: NDArray, best: NDArray) -> bool:
    """Whether rows are less likely than by another candidate, by more than one standard error of the differences."""
    gains = best - log_density
    return bool(gains.mean() > gains.std() / np.sqrt(len(gains)))


def simplest(log_densities: Sequence[NDArray]) -> int:
    """Place of the first candidate, in order from simple to complex, that is not behind the best one.

    Each is given by the log densities of the same held-out rows, shape (n,).

    >>> noise = np.array([0.5, -0.5, 0.4, -0.4])
    >>> simplest([np.full(4, -9.0), np.zeros(4), 0.01 + noise])
    1
    """
    best = max(log_densities, key=np.mean)
    return next(i for i, values in enumerate(log_densities) if values is best or not is_behind(values, best))


def bounded(log_density: NDArray, Z: NDArray, *, elsewhere: float = 0.01) -> NDArray:
    """Log densities of rows, shape (n,), an ``elsewhere`` share of which come from independent Cauchy variables.

    Where columns nearly determine one another, a single row off their relation has a density of exp(-1e6) or less. It
    would outweigh all others, and as the standard error of a mean is then as large as the mean, hide what they say. Z
    are the rows, standardised, shape (n, d).

    >>> bounded(np.array([-2.0, -1e6]), np.zeros((2, 1))).round(2)
    array([-1.99, -5.75])
    """
    anywhere = -np.log(np.pi * (1 + Z**2)).sum(axis=1)
    return np.logaddexp(np.log(1 - elsewhere) + log_density, np.log(elsewhere) + anywhere)


class Correlations(NamedTuple):
    """Estimated correlations, shape (d, d), and in words how they were estimated."""

    R: NDArray
    how: str


def choose_correlations(
    Z: NDArray, *, errors: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0), most_columns: int = 1000
) -> Correlations:
    """Correlations by the simplest estimator that held-out rows do not find behind the best one.

    In order: shrunk towards none by the intensity that held-out rows ask for; those below a threshold taken for none,
    by the threshold that held-out rows ask for among ``errors``, in standard errors of a correlation that is none; and
    links to the nearest columns. Beyond ``most_columns`` they are shrunk, and nothing else is tried: the comparison
    would cost more than the rest of the fit. Rows, shape (n, d), have means zero and deviations one.
    """
    n, d = Z.shape
    R = correlations_of(Z)
    a = held_out_intensity(Z, np.ones(n))
    if a == 0:
        return Correlations(R, "")

    def shrunk(C: NDArray, rows: int) -> NDArray:
        return (1 - a) * C + a * np.eye(d)

    def cut(c: float) -> Estimator:
        return lambda C, rows: thresholded(C, c / np.sqrt(rows))

    if not 1 < d <= most_columns or n < 2 * N_FOLDS:
        return Correlations(shrunk(R, n), f"correlations shrunk by {a:.2g}")
    densities = [_held_out(Z, cut(c)) for c in errors]
    best = int(np.argmax([values.mean() for values in densities]))
    c = errors[best]
    n_links = np.count_nonzero(np.triu(linked_precision(R, n), 1))
    estimators: dict[str, Estimator] = {
        f"shrunk by {a:.2g}": shrunk,
        f"up to {c / np.sqrt(n):.2g} taken for none": cut(c),
        f"through {n_links} links between {d} columns": linked_correlations,
    }
    chosen = simplest([_held_out(Z, shrunk), densities[best], _held_out(Z, linked_correlations)])
    how, estimator = list(estimators.items())[chosen]
    return Correlations(estimator(R, n), f"correlations {how}")


def _held_out(Z: NDArray, estimator: Estimator) -> NDArray:
    """Log density of each row under the correlations of the other folds, shape (n,)."""
    folds, value = fold_of(len(Z)), np.empty(len(Z))
    for fold in range(N_FOLDS):
        held = folds == fold
        value[held] = log_densities(estimator(correlations_of(Z[~held]), int((~held).sum())), Z[held])
    return bounded(value, Z)


def log_densities(R: NDArray, rows: NDArray) -> NDArray:
    """Log density of each row under N(0, R); minus infinity where R is not positive definite."""
    factor, failed = dpotrf(R, lower=1)
    if failed:
        return np.full(len(rows), -np.inf)
    white = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    constant = np.log(np.diagonal(factor)).sum() + 0.5 * len(R) * np.log(2 * np.pi)
    return -constant - 0.5 * (white**2).sum(axis=0)


def correlations_of(Z: NDArray) -> NDArray:
    """Correlations of rows with means zero, shape (d, d)."""
    S = Z.T @ Z / len(Z)
    sd = np.sqrt(np.maximum(np.diagonal(S), 1e-12))
    return S / np.outer(sd, sd)


def thresholded(R: NDArray, threshold: float, *, least: float = 0.1) -> NDArray:
    """Correlations beyond a threshold, shrunk as far as a positive definite matrix needs; the others are zero.

    The smallest eigenvalue is ``least``: half of it, or twice it, makes held-out rows of chains and blocks less
    likely.

    >>> thresholded(np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.0]]), 0.2)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    eye = np.eye(len(R))
    return definite(np.where(np.abs(R) > threshold, R, 0.0) * (1 - eye) + eye, least=least)


def definite(R: NDArray, *, least: float = 0.02) -> NDArray:
    """Correlations shrunk until their smallest eigenvalue is at least ``least``: (1 - a) R + a I, a as small as can be.

    That is room for the rounding of what is solved with the matrix, and for a knockoff that differs from its column.

    >>> definite(np.array([[1.0, 2.0], [2.0, 1.0]]), least=0.1)
    array([[1. , 0.9],
           [0.9, 1. ]])
    """
    smallest = np.linalg.eigvalsh(R)[0]
    if smallest >= least:
        return R
    left = (1 - least) / (1 - smallest)  # the smallest eigenvalue of left R + (1 - left) I is then ``least``
    return np.where(np.eye(len(R), dtype=bool), 1.0, left * R)


def linked_precision(
    R: NDArray, n: int, *, n_nearest: int = 8, stands_out: float = 2.0, least_own: float = 0.05, ridge: float = 1e-6
) -> NDArray:
    """Precision matrix in which a column has a link to the few others that it is correlated with most.

    A column is regressed on its ``n_nearest`` at most. Correlations of ``stands_out * sqrt(log(d) / n)`` or less are
    no links: the largest of d that are none. Its neighbours leave a column at least the share ``least_own`` of its
    variance; ``ridge`` is added to the correlations that are inverted. R are correlations of n rows, shape (d, d).
    """
    d = len(R)
    strength = np.abs(R)
    np.fill_diagonal(strength, 0.0)
    strength[strength <= stands_out * np.sqrt(np.log(d) / n)] = 0.0
    P = np.eye(d)
    for j in range(d):
        near = np.argsort(-strength[j])[:n_nearest]
        near = near[strength[j, near] > 0]
        if near.size:
            slope = np.linalg.solve(R[np.ix_(near, near)] + ridge * np.eye(near.size), R[near, j])
            own = max(1 - slope @ R[near, j], least_own)
            P[j, j], P[j, near] = 1 / own, -slope / own
    scale = np.sqrt(np.diagonal(P))
    partial = P / np.outer(scale, scale)
    partial = np.where(np.abs(partial) < np.abs(partial.T), partial, partial.T)  # the weaker of two opinions of a link
    return definite(partial) * np.outer(scale, scale)


def linked_correlations(R: NDArray, n: int) -> NDArray:
    """Correlations that follow from the links, shape (d, d)."""
    C = np.linalg.inv(linked_precision(R, n))
    sd = np.sqrt(np.diagonal(C))
    return (C + C.T) / 2 / np.outer(sd, sd)


class Estimate(NamedTuple):
    """A mean, a covariance, and how far it was shrunk towards its diagonal: 0 not at all, 1 all the way."""

    mean: NDArray
    covariance: NDArray
    intensity: float


def estimate_covariance(X: NDArray, weights: NDArray | None = None, *, what: str) -> Estimate:
    """Mean and covariance of weighted rows, shrunk towards the diagonal where that predicts held-out rows better.

    The likelihood of held-out rows estimates the divergence of the fitted P^X from the true one, which is what the
    FDR's robustness rests on. It sees what the squared error of Ledoit and Wolf does not: near-collinear columns,
    whose smallest eigenvalues any shrinkage would hide. Weights, shape (n,), lie in [0, 1], as EM's responsibilities
    do. A warning, which says ``what`` the covariance is of, is given where shrinkage takes more than ``MOVED`` from a
    correlation, or rows are fewer than ``FEW`` a column.
    """
    w = np.ones(len(X)) if weights is None else weights
    if (w <= NEGLIGIBLE).any():  # components far apart share few rows
        X, w = X[w > NEGLIGIBLE], w[w > NEGLIGIBLE]
    return shrink_covariance(X, w, *weighted_moments(X, w), what=what)


def shrink_covariance(X: NDArray, weights: NDArray, mean: NDArray, covariance: NDArray, *, what: str) -> Estimate:
    """Shrink as ``estimate_covariance`` does, where mean and covariance of the weighted rows are known."""
    rows, d = weights.sum(), X.shape[1]
    if rows >= PLENTY * d:
        return Estimate(mean, covariance, 0.0)
    scale = np.sqrt(np.diag(covariance))
    intensity = held_out_intensity((X - mean) / scale, weights)
    off_diagonal = ~np.eye(d, dtype=bool)
    largest = np.abs(covariance / scale / scale[:, None])[off_diagonal].max(initial=0.0)
    shrunk = np.where(off_diagonal, (1 - intensity) * covariance, covariance)
    if rows < FEW * d or intensity * largest > MOVED:
        warnings.warn(
            f"{what} rests on {rows:.0f} rows for {d} columns: its covariance was shrunk towards the diagonal by "
            f"{intensity:.2g}, which reduces correlations by up to {intensity * largest:.2g}. The FDR may exceed the "
            "level. Use more rows or fewer components.",
            KnockoffWarning,
            stacklevel=4,
        )
    return Estimate(mean, shrunk, intensity)


def held_out_intensity(Z: NDArray, weights: NDArray) -> float:
    """Intensity a for which (1 - a) C + a I, C from the other folds, gives held-out rows the largest likelihood.

    Rows Z, shape (n, d), are in units of their deviations. It is between 0 and 1, and vanishes as rows grow.
    """
    folds, held_out = fold_of(len(Z)), []
    for fold in range(N_FOLDS):
        held = folds == fold
        total = weights[held].sum()
        if total == 0 or weights[~held].sum() == 0:
            continue
        mean, eigenvalues, vectors = _axes(Z[~held], weights[~held])
        centred = Z[held] - mean
        squares = weights[held] @ (centred @ vectors) ** 2
        beyond = Z.shape[1] - len(eigenvalues)  # axes on which the other rows have no spread
        if beyond:
            eigenvalues = np.append(eigenvalues, 0.0)
            squares = np.append(squares, max(weights[held] @ (centred**2).sum(axis=1) - squares.sum(), 0.0))
        held_out.append((total, eigenvalues, squares, beyond))
    return _most_likely(held_out)


def intensity_of_moments(rows: NDArray, means: NDArray, scatters: NDArray) -> float:
    """``held_out_intensity`` of rows that are known by the moments of their folds alone.

    ``means`` and ``scatters``, shape (n_folds, d) and (n_folds, d, d), are the mean of each fold, and the sum of (x -
    mean)(x - mean)^T over its rows.
    """
    unit = np.sqrt(np.diagonal(join_moments(rows, means, scatters)[1]))
    means, scatters = means / unit, scatters / np.outer(unit, unit)
    held_out = []
    for fold in np.flatnonzero(rows):
        others = np.flatnonzero(rows * (np.arange(len(rows)) != fold))
        if not others.size:
            continue
        mean, covariance = join_moments(rows[others], means[others], scatters[others])
        eigenvalues, vectors = np.linalg.eigh(covariance)
        apart = means[fold] - mean
        held = scatters[fold] + rows[fold] * np.outer(apart, apart)
        held_out.append((rows[fold], eigenvalues, np.einsum("ij,ij->j", vectors, held @ vectors), 0))
    return _most_likely(held_out)


def join_moments(rows: NDArray, means: NDArray, scatters: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and covariance of the rows of all folds, from the moments of each.

    >>> join_moments(np.array([1, 3]), np.array([[0.0], [4.0]]), np.array([[[0.0]], [[2.0]]]))
    (array([3.]), array([[3.5]]))
    """
    mean = rows @ means / rows.sum()
    apart = means - mean
    return mean, (scatters.sum(axis=0) + (rows[:, None] * apart).T @ apart) / rows.sum()


def _most_likely(held_out: Iterable[tuple[float, NDArray, NDArray, int]]) -> float:
    """Intensity under which held-out rows have the largest likelihood.

    Of each fold there are: its rows, eigenvalues of the covariance of the others, the sum of its squares along their
    axes, and on how many axes the others have no spread (the last eigenvalue is then that of all of these).
    """
    log_likelihood = np.zeros(len(INTENSITIES))
    for total, eigenvalues, squares, beyond in held_out:
        times = np.ones(len(eigenvalues))
        times[-1] = max(beyond, 1)
        moved = (1 - INTENSITIES[:, None]) * eigenvalues.clip(0) + INTENSITIES[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = -0.5 * (times * total * np.log(moved) + squares / moved)
        log_likelihood += np.where((moved <= 1e-12).any(axis=1), -np.inf, terms.sum(axis=1))
    return float(INTENSITIES[np.argmax(log_likelihood)])


def _axes(Z: NDArray, weights: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Mean, and eigenvalues and vectors of the covariance; with fewer rows than columns, those that are not zero alone.

    A table of 200 rows and 5000 columns then costs 200^2 x 5000 and not 5000^3.
    """
    if len(Z) >= Z.shape[1]:
        mean, C = weighted_moments(Z, weights)
        return mean, *np.linalg.eigh(C)
    mean = weights @ Z / weights.sum()
    _, s, vectors = np.linalg.svd((Z - mean) * np.sqrt(weights / weights.sum())[:, None], full_matrices=False)
    return mean, s**2, vectors.T


def weighted_moments(X: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and covariance of weighted rows."""
    total = weights.sum()
    mean = weights @ X / total
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), ROWS_AT_ONCE):  # blocks: no copy of X
        rows = slice(start, start + ROWS_AT_ONCE)
        weighted = (X[rows] - mean) * np.sqrt(weights[rows, None])
        covariance += weighted.T @ weighted
    return mean, covariance / total
