"""Correlations of few rows, of which only those that stand out from chance are kept: where most are none.

Shrinking all of them alike takes as much from the few that are there as from the noise in all the others, and knockoffs
then hang together less than their columns do. Where held-out rows are clearly likelier by it, small correlations are
taken for none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

THRESHOLDS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0)  # in standard errors of a correlation that is none
LEFT = (1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)  # what is left of the correlations that are kept
N_LEFT = 3  # of them are tried: the largest that are positive definite
LEAST = 0.02  # smallest eigenvalue
N_FOLDS = 4
CLEARLY = 2.0  # standard errors of the gain, in log-likelihood of a held-out row
MOST_COLUMNS = 1000  # beyond which the comparison costs more than everything else


class Sparse(NamedTuple):
    """Correlations up to a threshold are none, and a share of the others is left."""

    threshold: float
    left: float

    def __str__(self) -> str:
        some = f", the others shrunk by {1 - self.left:.2g}" if self.left < 1 else ""
        return f"correlations up to {self.threshold:.2g} taken for none, by which held-out rows are likelier{some}"

    def factors(self, R: NDArray) -> NDArray:
        """Factors of the correlations R, shape (d, d), and of the variances, which are one."""
        return np.where(np.eye(len(R), dtype=bool), 1.0, self.left * (np.abs(R) > self.threshold))


def choose_sparse(Z: NDArray, intensity: float, *, rng: Generator) -> Sparse | None:
    """Threshold and share by which held-out rows are likeliest; None where they are not clearly so.

    Parameters
    ----------
    Z : array, shape (n, d)
        Rows in units of their standard deviations, with means zero.
    intensity : float
        How far all correlations would be shrunk alike.
    rng : numpy.random.Generator
        Deals the rows out to folds.
    """
    n, d = Z.shape
    if d > MOST_COLUMNS or n < 2 * N_FOLDS:
        return None
    fold_of = rng.permutation(n) % N_FOLDS
    alike = np.empty(n)
    gains: dict[tuple[float, float], NDArray] = {}
    for fold in range(N_FOLDS):
        held = fold_of == fold
        R, rows = correlations(Z[~held]), Z[held]
        shrunk = log_likelihoods((1 - intensity) * R + intensity * np.eye(d), rows)
        if shrunk is None:
            return None
        alike[held] = shrunk
        error = 1 / np.sqrt(n - held.sum())
        for c in THRESHOLDS:
            for left in feasible(R, c * error):
                found = log_likelihoods(R * Sparse(c * error, left).factors(R), rows)
                gains.setdefault((c, left), np.full(n, -np.inf))[held] = found
    R = correlations(Z)
    for (c, left), values in sorted(gains.items(), key=lambda item: -item[1].mean()):
        gain = values - alike
        if not np.isfinite(gain).all():  # not positive definite in every fold
            continue
        if gain.mean() <= CLEARLY * gain.std() / np.sqrt(n):
            return None
        chosen = Sparse(float(c / np.sqrt(n)), float(left))
        if _is_definite(R * chosen.factors(R)):
            return chosen
    return None


def feasible(R: NDArray, threshold: float) -> list[float]:
    """Shares of the correlations beyond a threshold that leave them positive definite, the largest few."""
    able: list[float] = []
    for left in LEFT:
        if able or _is_definite(R * Sparse(threshold, left).factors(R)):
            able.append(left)  # smaller ones are nearer to the identity, and positive definite too
        if len(able) == N_LEFT:
            break
    return able


def log_likelihoods(R: NDArray, rows: NDArray) -> NDArray | None:
    """Log density of each row under N(0, R), without its constant; None where R is not positive definite."""
    factor, failed = dpotrf(R, lower=1)
    if failed:
        return None
    white = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    return -np.log(np.diagonal(factor)).sum() - 0.5 * (white**2).sum(axis=0)


def _is_definite(R: NDArray) -> bool:
    return bool(dpotrf(R - LEAST * np.eye(len(R)), lower=1)[1] == 0)


def correlations(Z: NDArray) -> NDArray:
    """Correlations of rows with means zero, shape (d, d)."""
    S = Z.T @ Z / len(Z)
    sd = np.sqrt(np.maximum(np.diagonal(S), 1e-12))
    return S / np.outer(sd, sd)
