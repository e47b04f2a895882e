"""Ghost knockoffs: knockoffs of the z-scores of a study, where its rows cannot be had."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.diagonal import check_covariance


def sample_ghost_knockoffs(z: ArrayLike, correlation: ArrayLike, D: ArrayLike, rng: Generator) -> NDArray[np.float64]:
    """Z_tilde = (I - D S^-1) Z + N(0, 2D - D S^-1 D), shape (d,): what X_tilde^T y / sqrt(n) would have been.

    With X_tilde the Gaussian knockoffs of X, standardised, X^T y / sqrt(n) and X_tilde^T y / sqrt(n) are jointly as Z
    and Z_tilde given y. Z is one row, and its knockoff is that of the Gaussian conjugate with mean 0. The correlation
    S of the columns is the population's, or that of a reference panel; D is as ``solve_diagonal`` gives it.

    >>> sample_ghost_knockoffs([3.0, -1.0], np.eye(2), np.eye(2), np.random.default_rng(0)).shape
    (2,)
    """
    S, z, D = check_covariance(correlation, "correlation"), check_z(z), np.asarray(D, dtype=float)
    if not len(z) == len(S) == len(D):
        raise InputError(f"z has {len(z)} scores, correlation {len(S)} columns and D {len(D)}: they must agree.")
    return GaussianLaw(np.zeros(len(S)), S, D).sample(z[None], rng)[0]


def check_z(z: ArrayLike) -> NDArray[np.float64]:
    """Z-scores as a vector of finite floats."""
    scores = np.asarray(z, dtype=float)
    if scores.ndim != 1 or not scores.size:
        raise InputError(f"z has shape {scores.shape}: expected one score for each column.")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise InputError(f"z is {scores[bad[0]]} at column {bad[0]}: drop the column, or give its score.")
    return scores
