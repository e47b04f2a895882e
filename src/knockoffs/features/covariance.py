"""Correlations of few rows: all of them shrunk alike, small ones taken for none, or links to the nearest columns.

One chooser for the three, by held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from knockoffs.features.held_out import N_FOLDS, bounded, fold_of, simplest
from knockoffs.features.neighbour_precision import linked_correlations, linked_precision
from knockoffs.features.shrinkage import held_out_intensity
from knockoffs.features.thresholding import thresholded

Estimator = Callable[[NDArray, int], NDArray]  # sample correlations, and of how many rows -> correlations


class Correlations(NamedTuple):
    """Estimated correlations, shape (d, d), and in words how they were estimated."""

    R: NDArray
    how: str


def choose_correlations(
    Z: NDArray, *, errors: tuple[float, ...] = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0), most_columns: int = 1000
) -> Correlations:
    """Correlations by the simplest estimator that held-out rows do not find behind the best one.

    In order: shrunk towards none by the intensity that held-out rows ask for; those below a threshold taken for none,
    by the threshold that held-out rows ask for; and links to the nearest columns.

    Parameters
    ----------
    Z : array, shape (n, d)
        Rows in units of their standard deviations, with means zero.
    errors : tuple of float
        Thresholds, in standard errors of a correlation that is none.
    most_columns : int
        Beyond so many columns correlations are shrunk, and nothing else is tried: the comparison would cost more than
        the rest of the fit.
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
