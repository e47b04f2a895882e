"""The conjugate of a univariate or coordinate-independent node: draw again from P(u | v)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.sampling.network import Blanket


@dataclass(frozen=True)
class Independent:
    """Q(u_tilde | u, v) = P(u_tilde | v), valid when the features of u are independent given v."""

    # ``(blanket, n, rng) -> u``, a draw from P(u | v) for each of n rows
    draw: Callable[[Blanket, int, Generator], NDArray]
    log_prob: Callable[[NDArray, Blanket], NDArray]  # ``(u, blanket) -> (n,)``, log P(u | v)

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw from P(. | v), without a look at u."""
        return self.draw(blanket, len(u), rng)

    def several(self, u: NDArray, blanket: Blanket, m: int, rng: Generator) -> NDArray:
        """Draw m times from P(. | v), shape (m, ...): u and they are independent and alike given v."""
        return np.stack([self.sample(u, blanket, rng) for _ in range(m)])

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u | v)."""
        return self.log_prob(u, blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u_tilde | v)."""
        return self.log_prob(u_tilde, blanket)
