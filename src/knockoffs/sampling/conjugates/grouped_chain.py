"""The conjugate of a Markov chain whose steps are swapped in groups: sequential pairs, a group of steps at a time.

Groups are runs of neighbouring steps. With w the weights of a group's first step as in markov_chain.py, the law of the
group given what was drawn before is w times its own transitions, times the step into the group after it. Only the
steps over a boundary pay for exchangeability: the new values of a group are one draw of a chain (filtered forward,
drawn backward), and lie further from the old ones than if every step had to be exchangeable on its own (Sesia et al.,
"False discovery rate control in genome-wide association studies with population structure").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.conjugates.markov_chain import JumpChain, MarkovChain, encode_states
from knockoffs.sampling.network import Blanket
from knockoffs.sampling.swap import check_features


@dataclass(frozen=True)
class GroupedChain:
    """Conjugate of a chain under swaps of whole groups, O(T K^2) a row, and O(T K) where the chain stays or jumps.

    Parameters
    ----------
    chain : MarkovChain or JumpChain
    feature_of : array of int, shape (T,)
        The group of each step: 0, ..., 0, 1, ..., 1, 2, ...

    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.tile([[0.9, 0.1], [0.1, 0.9]], (3, 1, 1)))
    >>> grouped = GroupedChain(chain, np.array([0, 0, 1, 1]))
    >>> grouped.sample(np.zeros((2, 4), dtype=int), {}, np.random.default_rng(0)).shape
    (2, 4)
    """

    chain: MarkovChain | JumpChain
    feature_of: NDArray[np.intp]

    def __post_init__(self) -> None:
        groups = check_features(self.feature_of, self.n_steps)
        parted = np.flatnonzero(np.diff(groups) < 0)
        if parted.size:
            raise InputError(
                f"feature_of goes from group {groups[parted[0]]} at site {parted[0]} back to group "
                f"{groups[parted[0] + 1]}: the groups of a chain are runs of neighbouring sites, in their order."
            )
        object.__setattr__(self, "feature_of", groups)

    @property
    def n_steps(self) -> int:
        """T."""
        return len(self.chain.alpha) if isinstance(self.chain, JumpChain) else len(self.chain.transitions) + 1

    @cached_property
    def _initial(self) -> NDArray:
        return self.chain.alpha[0] if isinstance(self.chain, JumpChain) else self.chain.initial

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde for every row of u, shape (n, T)."""
        states = self.chain.states(u).astype(np.intp)
        uniforms = rng.random(states.shape)

        def draw(j: int, weights: NDArray) -> NDArray:
            cumulated = weights.cumsum(axis=1)
            bad = np.flatnonzero(~(cumulated[:, -1] > 0))
            if bad.size:
                raise InputError(f"row {bad[0]} has probability zero under the chain, at step {j} or before.")
            return (cumulated[:, :-1] <= (uniforms[:, j] * cumulated[:, -1])[:, None]).sum(axis=1)

        return self._walk(states, draw).astype(u.dtype)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        return self.chain.log_conditional(u, blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        states, new = self._states(u), self._states(u_tilde)
        log_q, rows = np.zeros(len(u)), np.arange(len(u))

        def follow(j: int, weights: NDArray) -> NDArray:
            total = weights.sum(axis=1)
            with np.errstate(divide="ignore"):
                log_q[:] += np.log(weights[rows, new[:, j]] / np.where(total > 0, total, 1.0))
            return new[:, j]

        self._walk(states, follow)
        return log_q

    def _states(self, u: NDArray) -> NDArray[np.intp]:
        if np.ndim(u) != 2 or np.shape(u)[1] != self.n_steps:
            raise InputError(f"u has shape {np.shape(u)}: the chain has {self.n_steps} steps, one for each column.")
        return encode_states(u, len(self._initial)).astype(np.intp)

    def _walk(self, u: NDArray, choose: Callable[[int, NDArray], NDArray]) -> NDArray:
        """Go along the groups; ``choose`` is shown the weights of u_tilde_j, (n, K), and says what it becomes."""
        new = np.empty_like(u)
        w = np.broadcast_to(self._initial, (len(u), len(self._initial)))
        begins = np.flatnonzero(np.diff(self.feature_of, prepend=-1))
        for begin, end in zip(begins, [*begins[1:], self.n_steps], strict=True):
            laws = [w]
            for j in range(begin, end - 1):
                laws.append(_rescale(self._forward(j, laws[-1])))
            for j in range(end - 1, begin - 1, -1):
                ahead = u[:, end] if j == end - 1 and end < self.n_steps else new[:, j + 1] if j < end - 1 else None
                weights = laws[j - begin] if ahead is None else laws[j - begin] * self._arrive(j, ahead)
                new[:, j] = choose(j, weights)
            if end < self.n_steps:
                j = end - 1
                N = self._forward(j, laws[-1])  # of the pair's first member, summed over the group
                both = self._leave(j, u[:, j]) * self._leave(j, new[:, j])
                w = _rescale(np.divide(both, N, out=np.zeros_like(N), where=N > 0))
        return new

    def _forward(self, j: int, law: NDArray) -> NDArray:
        """Sum over the states of step j: law @ P, shape (n, K)."""
        if isinstance(self.chain, JumpChain):
            jump = self.chain.jump[j]
            return (1 - jump) * law + jump * self.chain.alpha[j + 1] * law.sum(axis=1, keepdims=True)
        return law @ self.chain.transitions[j]

    def _leave(self, j: int, state: NDArray) -> NDArray:
        """P(. | state at step j), shape (n, K)."""
        if isinstance(self.chain, JumpChain):
            jump, alpha = self.chain.jump[j], self.chain.alpha[j + 1]
            return jump * alpha + (1 - jump) * (np.arange(len(alpha)) == state[:, None])
        return self.chain.transitions[j][state]

    def _arrive(self, j: int, state: NDArray) -> NDArray:
        """P(state at step j + 1 | .), shape (n, K)."""
        if isinstance(self.chain, JumpChain):
            jump, alpha = self.chain.jump[j], self.chain.alpha[j + 1]
            return jump * alpha[state][:, None] + (1 - jump) * (np.arange(len(alpha)) == state[:, None])
        return self.chain.transitions[j][:, state].T


def _rescale(weights: NDArray) -> NDArray:
    """Divide by the largest of each row, which cancels in every draw."""
    top = weights.max(axis=1, keepdims=True)
    return weights / np.where(top > 0, top, 1.0)
