"""Conjugates of a Markov chain: sequential conditional independent pairs, one pass along the chain.

For a chain u_1, ..., u_T with P_j(k | l) the law of step j, put w_1 = P_1 and, going along,

    w_j(l) = P_j(l | u_{j-1}) P_j(l | u_tilde_{j-1}) / N_{j-1}(l),    N_j(k) = sum_l w_j(l) P_{j+1}(k | l).

Then u_tilde_j is drawn with weights w_j(l) P_{j+1}(u_{j+1} | l), whose sum is N_j(u_{j+1}). In the product
P(u) Q(u_tilde | u) the N cancel against the next w, and what is left is symmetric in (u_j, u_tilde_j) for every j.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.sampling.network import Blanket

SUM_TOLERANCE = 1e-6  # a row of probabilities may miss one by this much (float32); it is then divided by its sum


@dataclass(frozen=True)
class MarkovChain:
    """Conjugate of a chain of T steps on K states, in O(T K^2) a row: the law is fixed and the blanket not looked at.

    As the conjugate of an observed node, u is X itself. As the conjugate of a hidden chain it is the choice of Sesia
    et al.: (H, X) and (H_tilde, X_tilde) can then be exchanged in every step, whatever the emissions. What lies below
    one step changes places as a whole: two leaves of a step are one feature. To swap them one by one, keep the
    chain (``Identity``).

    Parameters
    ----------
    initial : array, shape (K,)
        P(u_1 = k).
    transitions : array, shape (T - 1, K, K)
        ``transitions[j, l, k]`` is P(u_{j+2} = k | u_{j+1} = l), in the paper's numbering from one.
    n_jobs : int
        Threads that share the rows. The draws do not depend on it: every row has its own random stream.

    >>> chain = MarkovChain(np.array([0.5, 0.5]), np.array([[[0.9, 0.1], [0.1, 0.9]]]))
    >>> chain.sample(np.array([[0, 0], [1, 1]]), {}, np.random.default_rng(0)).shape
    (2, 2)
    >>> chain.log_conditional(np.array([[0, 1]]), {})  # log(0.5 * 0.1)
    array([-2.99573227])
    """

    initial: NDArray
    transitions: NDArray
    n_jobs: int = 1

    def __post_init__(self) -> None:
        initial, transitions = np.asarray(self.initial, dtype=float), np.asarray(self.transitions, dtype=float)
        K = initial.size
        if initial.ndim != 1 or transitions.ndim != 3 or transitions.shape[1:] != (K, K):
            raise InputError(
                f"initial has shape {initial.shape} and transitions {transitions.shape}: "
                "expected (K,) and (T - 1, K, K)."
            )
        object.__setattr__(self, "initial", check_probabilities("initial", initial))
        object.__setattr__(self, "transitions", check_probabilities("transitions", transitions))

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde for every row of u, shape (n, T), states written 0, ..., K - 1."""
        from knockoffs.sampling.conjugates import markov_chain_kernels as kernels

        states = self.states(u)
        u_tilde, key = np.empty_like(states), draw_key(rng)

        def work(rows: slice) -> None:
            kernels.sample_chain(states[rows], self.initial, self.transitions, key, u_tilde[rows], rows.start)

        over_rows(work, len(states), self.n_jobs)
        return u_tilde.astype(u.dtype, copy=False)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        return log_chain(encode_states(u, len(self.initial)), self.initial, self.transitions)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        K = len(self.initial)
        return log_pairs(encode_states(u_tilde, K), encode_states(u, K), self.initial, self.transitions)

    def states(self, u: NDArray) -> NDArray:
        """States of the rows of u as small integers; a row that the chain cannot take is refused."""
        from knockoffs.sampling.conjugates import markov_chain_kernels as kernels

        _check_length(u, len(self.transitions) + 1)
        states = encode_states(u, len(self.initial))
        place = kernels.find_impossible(states, self.initial, self.transitions)
        if place >= 0:
            raise _impossible(*divmod(place, u.shape[1]))
        return states


@dataclass(frozen=True)
class JumpChain:
    """Conjugate of a chain that stays, or jumps and forgets where it was: O(T K) a row.

    P_j(k | l) = (1 - jump_j) [k = l] + jump_j alpha_j(k): the identity plus a matrix of rank one, which every sum
    over states uses.

    Parameters
    ----------
    alpha : array, shape (T, K)
        Where the chain starts (row 0) and where it lands after a jump into step j.
    jump : array, shape (T - 1,)
        Probability of a jump before steps 2, ..., T.
    n_jobs : int
        Threads that share the rows; the draws do not depend on it.
    """

    alpha: NDArray
    jump: NDArray
    n_jobs: int = 1

    def __post_init__(self) -> None:
        alpha, jump = np.asarray(self.alpha, dtype=float), np.asarray(self.jump, dtype=float)
        if alpha.ndim != 2 or jump.shape != (len(alpha) - 1,):
            raise InputError(f"alpha has shape {alpha.shape} and jump {jump.shape}: expected (T, K) and (T - 1,).")
        bad = np.flatnonzero(~((jump >= 0) & (jump <= 1)))
        if bad.size:
            raise InputError(f"jump[{bad[0]}] = {jump[bad[0]]} is not a probability.")
        object.__setattr__(self, "alpha", check_probabilities("alpha", alpha))
        object.__setattr__(self, "jump", jump)

    @cached_property
    def dense(self) -> MarkovChain:
        """The same chain with its transition matrices written out."""
        K = self.alpha.shape[1]
        jump = self.jump[:, None, None]
        return MarkovChain(self.alpha[0], (1 - jump) * np.eye(K) + jump * self.alpha[1:, None, :])

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde for every row of u, shape (n, T)."""
        from knockoffs.sampling.conjugates import markov_chain_kernels as kernels

        states = self.states(u)
        u_tilde, key = np.empty_like(states), draw_key(rng)

        def work(rows: slice) -> None:
            kernels.sample_jump_chain(states[rows], self.alpha, self.jump, key, u_tilde[rows], rows.start)

        over_rows(work, len(states), self.n_jobs)
        return u_tilde.astype(u.dtype, copy=False)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u), shape (n,)."""
        return self.dense.log_conditional(u, blanket)

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u), shape (n,)."""
        return self.dense.log_kernel(u_tilde, u, blanket)

    def states(self, u: NDArray) -> NDArray:
        """States of the rows of u as small integers; a row that the chain cannot take is refused."""
        from knockoffs.sampling.conjugates import markov_chain_kernels as kernels

        _check_length(u, len(self.alpha))
        states = encode_states(u, self.alpha.shape[1])
        place = kernels.find_impossible_jump(states, self.alpha, self.jump)
        if place >= 0:
            raise _impossible(*divmod(place, u.shape[1]))
        return states


def log_chain(u: NDArray, initial: NDArray, transitions: NDArray) -> NDArray:
    """Log probability of every row of u, shape (n, T), under one chain or under a chain for every row."""
    rows = np.arange(len(u))
    probabilities = np.empty(u.shape)
    probabilities[:, 0] = np.broadcast_to(initial, (len(u), initial.shape[-1]))[rows, u[:, 0]]
    for j in range(1, u.shape[1]):
        probabilities[:, j] = _leave(transitions[..., j - 1, :, :], u[:, j - 1])[rows, u[:, j]]
    with np.errstate(divide="ignore"):
        return np.log(probabilities).sum(axis=1)


def log_pairs(u_tilde: NDArray, u: NDArray, initial: NDArray, transitions: NDArray) -> NDArray:
    """Log probability that sequential conditional independent pairs turn u into u_tilde, shape (n,) each."""
    log_kernel, rows = np.zeros(len(u)), np.arange(len(u))

    def follow(j: int, weights: NDArray) -> NDArray:
        total = weights.sum(axis=1)
        chosen = weights[rows, u_tilde[:, j]] / np.where(total > 0, total, 1.0)
        with np.errstate(divide="ignore"):
            log_kernel[:] += np.log(chosen)
        return u_tilde[:, j]

    _walk(u, initial, transitions, follow)
    return log_kernel


def sample_pairs(u: NDArray, initial: NDArray, transitions: NDArray, uniforms: NDArray) -> NDArray:
    """Sequential conditional independent pairs from given uniform numbers, shape (n, T), one chain or one a row."""
    u_tilde = np.empty_like(u)

    def draw(j: int, weights: NDArray) -> NDArray:
        cumulated = weights.cumsum(axis=1)
        bound = uniforms[:, j] * cumulated[:, -1]
        u_tilde[:, j] = (cumulated[:, :-1] <= bound[:, None]).sum(axis=1)
        return u_tilde[:, j]

    _walk(u, initial, transitions, draw)
    return u_tilde


def _walk(u: NDArray, initial: NDArray, transitions: NDArray, visit: Callable[[int, NDArray], NDArray]) -> None:
    """Go along the chain; ``visit(j, weights)`` is shown the weights of u_tilde_j, (n, K), and says what it became."""
    n, T = u.shape
    w = np.broadcast_to(initial, (n, initial.shape[-1]))
    for j in range(T):
        last = j + 1 == T
        P = None if last else transitions[..., j, :, :]
        state = visit(j, w if P is None else w * _arrive(P, u[:, j + 1]))
        if P is None:
            return
        N = w @ P if P.ndim == 2 else np.einsum("nl,nlk->nk", w, P)
        p = _leave(P, state)
        w = _leave(P, u[:, j]) * np.divide(p, N, out=np.zeros((n, N.shape[1])), where=N > 0)
        largest = w.max(axis=1, keepdims=True)  # a common factor cancels in every draw
        w = w / np.where(largest > 0, largest, 1.0)


def _leave(P: NDArray, state: NDArray) -> NDArray:
    """P(. | state), shape (n, K), for one matrix (K, K) or one for every row (n, K, K)."""
    return P[state] if P.ndim == 2 else P[np.arange(len(state)), state]


def _arrive(P: NDArray, state: NDArray) -> NDArray:
    """P(state | .), shape (n, K)."""
    return P[:, state].T if P.ndim == 2 else P[np.arange(len(state)), :, state]


def check_probabilities(name: str, table: NDArray) -> NDArray:
    """Check that the last axis of a table holds probabilities, and return it contiguous with sums of one.

    >>> check_probabilities("initial", np.array([0.5, 0.4]))
    Traceback (most recent call last):
        ...
    knockoffs.errors.InputError: initial adds up to 0.9, not to 1.
    """
    sums = table.sum(axis=-1)
    bad = np.argwhere(~(np.abs(sums - 1) <= SUM_TOLERANCE) | (table < 0).any(axis=-1))
    if len(bad):
        row = tuple(bad[0])
        where = f"{name}[{', '.join(map(str, row))}]" if row else name
        if (table[row] < 0).any():
            raise InputError(f"{where} has a negative probability, {table[row].min():g}.")
        raise InputError(f"{where} adds up to {sums[row]:.9g}, not to 1.")
    return np.ascontiguousarray(table / sums[..., None])


def encode_states(u: NDArray, K: int, *, missing: bool = False, flagged: bool = False, name: str = "state") -> NDArray:
    """Write states as small integers; K where missing, if allowed: NaN, and if ``flagged`` negative numbers and 9."""
    from knockoffs.sampling.conjugates import markov_chain_kernels as kernels

    u = np.asarray(u)
    if u.ndim != 2:
        raise InputError(f"{name}s have shape {u.shape}: expected one row a sample and one column a site.")
    if u.dtype.kind not in "biuf":
        raise InputError(f"{name}s have dtype {u.dtype}: expected the numbers 0, ..., {K - 1}.")
    codes = np.empty(u.shape, np.uint8 if K < 256 else np.int32)
    place = kernels.encode(u, K, K if missing else -1, flagged, codes)
    if place >= 0:
        row, site = divmod(place, u.shape[1])
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


def _check_length(u: NDArray, T: int) -> None:
    if u.ndim != 2 or u.shape[1] != T:
        raise InputError(f"u has shape {u.shape}: the chain has {T} steps, one for each column.")


def _impossible(row: int, site: int) -> InputError:
    return InputError(f"row {row} has probability zero under the chain, first at step {site}: its law does not fit.")
