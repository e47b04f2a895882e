"""The conjugate of a Markov chain whose steps are swapped in groups: sequential pairs, a group of steps at a time.

Groups are runs of neighbouring steps. Only the steps over a boundary pay for exchangeability: the new values of a group
are one draw of a chain, and lie further from the old ones than if every step had to be exchangeable on its own (Sesia
et al., "False discovery rate control in genome-wide association studies with population structure").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.markov_chain import Chain
from knockoffs.sampling.network import Blanket
from knockoffs.sampling.swap import check_features


@dataclass(frozen=True)
class GroupedChain:
    """Conjugate of a chain under swaps of whole groups, O(T K^2) a row, and O(T K) where the chain stays or jumps.

    Parameters
    ----------
    chain : Chain
    feature_of : array of int, shape (T,)
        The group of each step: 0, ..., 0, 1, ..., 1, 2, ...

    >>> from knockoffs.sampling.conjugates.markov_chain import MarkovChain
    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.tile([[0.9, 0.1], [0.1, 0.9]], (3, 1, 1)))
    >>> grouped = GroupedChain(chain, np.array([0, 0, 1, 1]))
    >>> grouped.sample(np.zeros((2, 4), dtype=int), {}, np.random.default_rng(0)).shape
    (2, 4)
    """

    chain: Chain
    feature_of: NDArray[np.intp]

    def __post_init__(self) -> None:
        groups = check_features(self.feature_of, self.chain.n_steps)
        parted = np.flatnonzero(np.diff(groups) < 0)
        if parted.size:
            raise InputError(
                f"feature_of goes from group {groups[parted[0]]} at site {parted[0]} back to group "
                f"{groups[parted[0] + 1]}: the groups of a chain are runs of neighbouring sites, in their order."
            )
        object.__setattr__(self, "feature_of", groups)

    @property
    def begins(self) -> NDArray[np.intp]:
        """First step of each group."""
        return np.flatnonzero(np.diff(self.feature_of, prepend=-1))

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde for every row of u, shape (n, T)."""
        states = self.chain.states(u)
        return self.chain.sample_pairs(states, self.begins, rng.random(states.shape)).astype(u.dtype)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        return self.chain.log_conditional(u, blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        return self.chain.log_pairs(u_tilde, u, self.begins)
