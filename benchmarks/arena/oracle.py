"""Knockoffs by who knows P^X: what a design has to give, and what a peer with another P^X may find beyond it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.arena.designs import DEGREES, equal, fading, in_blocks

# laws that are Gaussian, in their logarithm or given the width of a row, and their correlations
CORRELATIONS: dict[str, Callable[[int], NDArray]] = {
    "ar": fading,
    "equicorrelated": equal,
    "blocks": in_blocks,
    "t": fading,
    "log_normal": fading,
}


def draw_exact(features: str, X: NDArray, rng: Generator) -> NDArray:
    """Knockoffs of rows of a law of ``designs.FEATURES``, shape (n, d).

    The precision of a row of the multivariate t, whose squared length is r in units of its correlations, is a Gamma
    variable of shape (df + d) / 2 and rate (df + r) / 2; given it the row is Gaussian.
    """
    if features not in CORRELATIONS:
        raise ValueError(f"no exact knockoffs of {features!r}: only of {', '.join(CORRELATIONS)}.")
    from knockoffs.sampling.diagonal import solve_diagonal

    R = CORRELATIONS[features](X.shape[1])
    D = solve_diagonal(R)
    slope = np.linalg.solve(R, D)
    root = np.linalg.cholesky(2 * D - D @ slope)
    L = np.log(X) if features == "log_normal" else X
    noise = rng.standard_normal(X.shape) @ root.T
    if features == "t":
        lengths = np.einsum("ij,ij->i", X, np.linalg.solve(R, X.T).T)
        noise /= np.sqrt(rng.gamma((DEGREES + X.shape[1]) / 2, 2 / (DEGREES + lengths)))[:, None]
    L_tilde = L - L @ slope + noise
    return np.exp(L_tilde) if features == "log_normal" else L_tilde
