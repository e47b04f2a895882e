"""The "poor" conjugate: a node is its own knockoff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import Blanket


@dataclass(frozen=True)
class Identity:
    """Q(u_tilde | u, v) = [u_tilde = u]: always valid, and without power for an observed node.

    For a hidden node nothing is lost: drawn from P(H | O), it is already a fresh draw given X.
    """

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Return u."""
        return u

    def several(self, u: NDArray, blanket: Blanket, m: int, rng: Generator) -> NDArray:
        """Return u, m times."""
        return np.stack([u] * m)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Zero: phi(u, u_tilde) lives on the diagonal, where any P(u | v) is symmetric."""
        return np.zeros(len(u))

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """0 where u_tilde = u in every coordinate, else -inf."""
        same = np.asarray(u_tilde == u).reshape(len(u), -1).all(axis=1)
        return np.where(same, 0.0, -np.inf)
