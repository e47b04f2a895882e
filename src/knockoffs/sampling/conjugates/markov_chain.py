"""Conjugates of a Markov chain: sequential conditional independent pairs, one pass along the chain.

For a chain u_1, ..., u_T with P_j(k | l) the law of step j, put w_1 = P_1 and, going along,

    w_j(l) = P_j(l | u_{j-1}) P_j(l | u_tilde_{j-1}) / N_{j-1}(l),    N_j(k) = sum_l w_j(l) P_{j+1}(k | l).

Then u_tilde_j is drawn with weights w_j(l) P_{j+1}(u_{j+1} | l), whose sum is N_j(u_{j+1}). In the product
P(u) Q(u_tilde | u) the N cancel against the next w, and what is left is symmetric in (u_j, u_tilde_j) for every j.

Steps may be swapped in groups, runs of neighbouring steps. Then w belongs to the first step of a group, and the law of
the group given what was drawn before is w times its own transitions, times the step into the group after it: one draw
of a chain, filtered forward and drawn backward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.categorical import check_probabilities
from knockoffs.sampling.factors import log
from knockoffs.sampling.network import Blanket
from knockoffs.sampling.pair import check_features


class Chain(ABC):
    """Conjugate of a chain of T steps on K states: the law is fixed and the blanket is not used.

    As the conjugate of an observed node, u is X itself. As the conjugate of a hidden chain it is the choice of Sesia
    et al.: (H, X) and (H_tilde, X_tilde) can then be exchanged in every step, whatever the emissions. What lies below
    one step changes places as a whole: two leaves of a step are one feature. To swap them one by one, keep the
    chain (``Identity``).
    """

    n_jobs: int

    @property
    @abstractmethod
    def start(self) -> NDArray:
        """P(u_1 = k), shape (K,)."""

    @property
    @abstractmethod
    def n_steps(self) -> int:
        """T."""

    @abstractmethod
    def forward(self, j: int, law: NDArray, axis: int = 1) -> NDArray:
        """Law of the state after step j (from 0) from that before it, shape (n, K); other axes stay as they are."""

    @abstractmethod
    def step(self, j: int, before: NDArray, after: NDArray) -> NDArray:
        """P(state after step j | state before it), in the shape that the two have together."""

    @abstractmethod
    def compiled(self) -> tuple[Callable[..., int], tuple[NDArray, NDArray]]:
        """Loop that draws, and the arrays of the law that it takes."""

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde for every row of u, shape (n, T), states written 0, ..., K - 1."""
        draw, law = self.compiled()
        states = self._encode(u)
        u_tilde, key = np.empty_like(states), draw_key(rng)

        def work(rows: slice) -> None:
            place = draw(states[rows], *law, key, u_tilde[rows], rows.start)
            if place >= 0:
                row, step = divmod(place, self.n_steps)
                raise InputError(
                    f"row {rows.start + row} has probability zero under the chain, first at step {step}: its law does "
                    "not fit."
                )

        over_rows(work, len(states), self.n_jobs)
        return u_tilde.astype(u.dtype, copy=False)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        u = self._encode(u)
        total = log(self.start[u[:, 0]])
        for j in range(self.n_steps - 1):
            total += log(self.step(j, u[:, j], u[:, j + 1]))
        return total

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        return self.log_pairs(u_tilde, u, np.arange(self.n_steps))

    def _encode(self, u: NDArray) -> NDArray:
        if np.ndim(u) != 2 or np.shape(u)[1] != self.n_steps:
            raise InputError(f"u has shape {np.shape(u)}: the chain has {self.n_steps} steps, one for each column.")
        return encode_states(u, len(self.start))

    def log_pairs(self, u_tilde: NDArray, u: NDArray, begins: NDArray[np.intp]) -> NDArray:
        """Log probability that pairs of groups, which begin at these steps, turn u into u_tilde, shape (n,)."""
        new, rows, log_q = self._encode(u_tilde), np.arange(len(u)), np.zeros(len(u))

        def follow(j: int, weights: NDArray) -> NDArray:
            total = weights.sum(axis=1)
            with np.errstate(divide="ignore"):
                log_q[:] += np.log(weights[rows, new[:, j]] / np.where(total > 0, total, 1.0))
            return new[:, j]

        self._walk(self._encode(u).astype(np.intp), begins, follow)
        return log_q

    def sample_pairs(self, u: NDArray, begins: NDArray[np.intp], uniforms: NDArray) -> NDArray:
        """Pairs of groups from given uniform numbers, shape (n, T): the definition of the draw, written out."""

        def draw(j: int, weights: NDArray) -> NDArray:
            cumulated = weights.cumsum(axis=1)
            bad = np.flatnonzero(~(cumulated[:, -1] > 0))
            if bad.size:
                raise InputError(f"row {bad[0]} has probability zero under the chain, at step {j} or before.")
            return (cumulated[:, :-1] <= (uniforms[:, j] * cumulated[:, -1])[:, None]).sum(axis=1)

        return self._walk(u.astype(np.intp), begins, draw)

    def _walk(self, u: NDArray, begins: NDArray[np.intp], visit: Callable[[int, NDArray], NDArray]) -> NDArray:
        """Go along the groups; ``visit(j, weights)`` gets the weights of u_tilde_j, (n, K), and returns u_tilde_j."""
        new, every = np.empty_like(u), np.arange(len(self.start))
        w = np.broadcast_to(self.start, (len(u), len(self.start)))
        for begin, end in zip(begins, [*begins[1:], self.n_steps], strict=True):
            laws = [w]
            for j in range(begin, end - 1):
                laws.append(_rescale(self.forward(j, laws[-1])))
            for j in range(end - 1, begin - 1, -1):
                ahead = u[:, end] if j == end - 1 and end < self.n_steps else new[:, j + 1] if j < end - 1 else None
                weights = laws[j - begin] if ahead is None else laws[j - begin] * self.step(j, every, ahead[:, None])
                new[:, j] = visit(j, weights)
            if end < self.n_steps:
                j = end - 1
                N = self.forward(j, laws[-1])  # of the pair's first member, summed over the group
                both = self.step(j, u[:, j, None], every) * self.step(j, new[:, j, None], every)
                w = _rescale(np.divide(both, N, out=np.zeros_like(N), where=N > 0))
        return new


def _rescale(weights: NDArray) -> NDArray:
    """Divide by the largest of each row, which cancels in every draw."""
    top = weights.max(axis=1, keepdims=True)
    return weights / np.where(top > 0, top, 1.0)


@dataclass(frozen=True)
class MarkovChain(Chain):
    """Conjugate of a chain with any transition matrices, O(T K^2) a row.

    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.1, 0.9]]]))
    >>> chain.sample(np.array([[0, 0], [1, 1]]), {}, np.random.default_rng(0)).shape
    (2, 2)
    >>> chain.log_conditional(np.array([[0, 1]]), {})  # log(0.5 * 0.1)
    array([-2.99573227])
    """

    initial: NDArray  # shape (K,): P(u_1 = k)
    # shape (T - 1, K, K): ``transitions[j, l, k]`` is P(u_{j+2} = k | u_{j+1} = l), in the paper's numbering from one
    transitions: NDArray
    n_jobs: int = 1  # threads that share the rows. The draws do not depend on it: every row has its own random stream

    def __post_init__(self) -> None:
        initial, transitions = np.asarray(self.initial, dtype=float), np.asarray(self.transitions, dtype=float)
        K = initial.size
        if initial.ndim != 1 or transitions.ndim != 3 or transitions.shape[1:] != (K, K):
            raise InputError(
                f"initial has shape {initial.shape} and transitions {transitions.shape}: "
                "expected (K,) and (T - 1, K, K)."
            )
        object.__setattr__(self, "initial", as_probabilities("initial", initial))
        object.__setattr__(self, "transitions", as_probabilities("transitions", transitions))

    @property
    def start(self) -> NDArray:
        """P(u_1 = k), shape (K,)."""
        return self.initial

    @property
    def n_steps(self) -> int:
        """T."""
        return len(self.transitions) + 1

    def forward(self, j: int, law: NDArray, axis: int = 1) -> NDArray:
        """Law @ P_j, along one axis."""
        return np.moveaxis(np.moveaxis(law, axis, -1) @ self.transitions[j], -1, axis)

    def step(self, j: int, before: NDArray, after: NDArray) -> NDArray:
        """Entries of P_j."""
        return self.transitions[j][before, after]

    def compiled(self) -> tuple[Callable[..., int], tuple[NDArray, NDArray]]:
        """Loop over any transition matrices."""
        from knockoffs.sampling.conjugates.markov_chain_kernels import sample_chain

        return sample_chain, (self.initial[None], self.transitions)


@dataclass(frozen=True)
class JumpChain(Chain):
    """Conjugate of a chain that stays, or jumps and forgets where it was: O(T K) a row.

    P_j(k | l) = (1 - jump_j) [k = l] + jump_j alpha_j(k): the identity plus a matrix of rank one, which every sum
    over states uses.
    """

    alpha: NDArray  # shape (T, K): where the chain starts (row 0) and where it lands after a jump into step j
    jump: NDArray  # shape (T - 1,): probability of a jump before steps 2, ..., T
    n_jobs: int = 1  # threads that share the rows; the draws do not depend on it

    def __post_init__(self) -> None:
        alpha, jump = np.asarray(self.alpha, dtype=float), np.asarray(self.jump, dtype=float)
        if alpha.ndim != 2 or jump.shape != (len(alpha) - 1,):
            raise InputError(f"alpha has shape {alpha.shape} and jump {jump.shape}: expected (T, K) and (T - 1,).")
        bad = np.flatnonzero(~((jump >= 0) & (jump <= 1)))
        if bad.size:
            raise InputError(f"jump[{bad[0]}] = {jump[bad[0]]} is not a probability.")
        object.__setattr__(self, "alpha", as_probabilities("alpha", alpha))
        object.__setattr__(self, "jump", jump)

    @property
    def start(self) -> NDArray:
        """P(u_1 = k), shape (K,)."""
        return self.alpha[0]

    @property
    def n_steps(self) -> int:
        """T."""
        return len(self.alpha)

    def forward(self, j: int, law: NDArray, axis: int = 1) -> NDArray:
        """Law @ P_j, along one axis, in O(K)."""
        landed = self.alpha[j + 1].reshape([-1 if i == axis else 1 for i in range(law.ndim)])
        return (1 - self.jump[j]) * law + self.jump[j] * landed * law.sum(axis=axis, keepdims=True)

    def step(self, j: int, before: NDArray, after: NDArray) -> NDArray:
        """Entries of P_j."""
        return self.jump[j] * self.alpha[j + 1][after] + (1 - self.jump[j]) * (before == after)

    def compiled(self) -> tuple[Callable[..., int], tuple[NDArray, NDArray]]:
        """Loop in O(K) a step."""
        from knockoffs.sampling.conjugates.markov_chain_kernels import sample_jump_chain

        return sample_jump_chain, (self.alpha, self.jump)


def as_probabilities(name: str, table: NDArray) -> NDArray:
    """Table whose last axis holds probabilities, contiguous and with sums of one: float32 misses it by 1e-7."""
    check_probabilities(name, table, tolerance=1e-6)
    return np.ascontiguousarray(table / table.sum(axis=-1)[..., None])


def encode_states(u: NDArray, K: int, *, missing: bool = False, flagged: bool = False, name: str = "state") -> NDArray:
    """Write states as small integers; K where missing, if allowed: NaN, and if ``flagged`` negative numbers and 9."""
    u = np.asarray(u)
    if u.ndim != 2:
        raise InputError(f"{name}s have shape {u.shape}: expected one row a sample and one column a site.")
    if u.dtype.kind not in "biuf":
        raise InputError(f"{name}s have dtype {u.dtype}: expected the numbers 0, ..., {K - 1}.")
    kind = np.dtype(np.uint8 if K < 256 else np.int32)
    with np.errstate(invalid="ignore"):
        codes = u.astype(kind, copy=False)
    known: NDArray[np.bool_] = np.less(codes, K)
    if u.dtype != kind:
        known &= codes == u
    if missing and not known.all():
        gone = ~known & (np.isnan(u) | (flagged & ((u < 0) | (u == 9))))
        codes, known = np.where(gone, kind.type(K), codes), known | gone
    if not known.all():
        row, site = np.argwhere(~known)[0]
        raise InputError(f"row {row}, site {site}: {u[row, site]} is not a known {name}; known are 0, ..., {K - 1}.")
    return codes


def draw_key(rng: Generator) -> NDArray[np.uint64]:
    """Two 64-bit words from which the random streams of all rows are started."""
    return rng.integers(0, 2**64, size=2, dtype=np.uint64)


def over_rows(work: Callable[[slice], None], n: int, n_jobs: int) -> None:
    """Do the work on slices of the rows, in as many threads as asked for."""
    if n_jobs == 1 or n < 2:
        return work(slice(0, n))
    from joblib import effective_n_jobs

    from knockoffs.sampling.conjugates.markov_chain_kernels import LANES

    n_jobs = effective_n_jobs(n_jobs)
    size = -(-n // (n_jobs * LANES)) * LANES
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work, [slice(start, min(start + size, n)) for start in range(0, n, size)]))


@dataclass(frozen=True)
class GroupedChain:
    """Conjugate of a chain under swaps of whole groups, O(T K^2) a row, and O(T K) where the chain stays or jumps.

    >>> from knockoffs.sampling.conjugates.markov_chain import MarkovChain
    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.tile([[0.9, 0.1], [0.1, 0.9]], (3, 1, 1)))
    >>> grouped = GroupedChain(chain, np.array([0, 0, 1, 1]))
    >>> grouped.sample(np.zeros((2, 4), dtype=int), {}, np.random.default_rng(0)).shape
    (2, 4)
    """

    chain: Chain
    feature_of: NDArray[np.intp]  # shape (T,): the group of each step: 0, ..., 0, 1, ..., 1, 2, ...

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
        states = encode_states(u, len(self.chain.start))
        impossible = np.flatnonzero(np.isneginf(self.log_conditional(u, blanket)))
        if impossible.size:
            raise InputError(f"row {impossible[0]} has probability zero under the chain: its law does not fit.")
        return self.chain.sample_pairs(states, self.begins, rng.random(states.shape)).astype(u.dtype)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        return self.chain.log_conditional(u, blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        return self.chain.log_pairs(u_tilde, u, self.begins)
