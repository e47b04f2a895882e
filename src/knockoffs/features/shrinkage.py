"""Covariances, shrunk towards their diagonal as far as held-out rows ask for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning
from knockoffs.features.em_steps import NEGLIGIBLE, ROWS_AT_ONCE
from knockoffs.features.held_out import N_FOLDS, fold_of

FEW = 2  # rows a column, under which the user is told that the covariance rests on little
PLENTY = 50  # rows a column, from which on a covariance is kept as it is
MOVED = 0.25  # a correlation that shrinkage takes more than this from is worth a warning
INTENSITIES = np.concatenate([[0.0], np.geomspace(1e-6, 1.0, 61)])


class Estimate(NamedTuple):
    """A mean, a covariance, and how far it was shrunk towards its diagonal: 0 not at all, 1 all the way."""

    mean: NDArray
    covariance: NDArray
    intensity: float


def estimate_covariance(X: NDArray, weights: NDArray | None = None, *, what: str) -> Estimate:
    """Mean and covariance of weighted rows, shrunk towards the diagonal where that predicts held-out rows better.

    The likelihood of held-out rows estimates the divergence of the fitted P^X from the true one, which is what the
    FDR's robustness rests on. It sees what the squared error of Ledoit and Wolf does not: near-collinear columns,
    whose smallest eigenvalues any shrinkage would hide.

    Parameters
    ----------
    X : array, shape (n, d)
    weights : array, shape (n,), optional
        Weight of each row in [0, 1], as EM's responsibilities; all one if left out.
    what : str
        What the covariance is of, for the warning.

    Returns
    -------
    Estimate
        Mean, shape (d,), covariance, shape (d, d), and the intensity of the shrinkage.

    Warns
    -----
    KnockoffWarning
        Where shrinkage takes more than ``MOVED`` from a correlation, or rows are fewer than ``FEW`` a column.
    """
    w = np.ones(len(X)) if weights is None else weights
    if (w <= NEGLIGIBLE).any():  # components far apart share few rows
        X, w = X[w > NEGLIGIBLE], w[w > NEGLIGIBLE]
    return shrink_covariance(X, w, *_moments(X, w), what=what)


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
            f"{intensity:.2g}, which takes up to {intensity * largest:.2g} from a correlation. P^X, and with it the "
            "FDR, is less sure; more rows or fewer components make it surer.",
            KnockoffWarning,
            stacklevel=4,
        )
    return Estimate(mean, shrunk, intensity)


def held_out_intensity(Z: NDArray, weights: NDArray) -> float:
    """Intensity a for which (1 - a) C + a I, C from the other folds, gives held-out rows the largest likelihood.

    Parameters
    ----------
    Z : array, shape (n, d)
        Rows in units of their standard deviations.
    weights : array, shape (n,)

    Returns
    -------
    float
        Between 0 and 1; it vanishes as rows grow.
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

    Parameters
    ----------
    rows : array, shape (n_folds,)
    means, scatters : array, shape (n_folds, d), (n_folds, d, d)
        Mean of each fold, and the sum of (x - mean)(x - mean)^T over its rows.
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

    Parameters
    ----------
    held_out : iterable
        Of each fold: its rows, eigenvalues of the covariance of the others, the sum of its squares along their axes,
        and on how many axes the others have no spread (the last eigenvalue is then that of all of these).
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
        mean, C = _moments(Z, weights)
        return mean, *np.linalg.eigh(C)
    mean = weights @ Z / weights.sum()
    _, s, vectors = np.linalg.svd((Z - mean) * np.sqrt(weights / weights.sum())[:, None], full_matrices=False)
    return mean, s**2, vectors.T


def _moments(X: NDArray, weights: NDArray) -> tuple[NDArray, NDArray]:
    total = weights.sum()
    mean = weights @ X / total
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(X), ROWS_AT_ONCE):  # blocks: no copy of X
        rows = slice(start, start + ROWS_AT_ONCE)
        weighted = (X[rows] - mean) * np.sqrt(weights[rows, None])
        covariance += weighted.T @ weighted
    return mean, covariance / total
