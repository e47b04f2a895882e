"""The hidden chain given the observations where it stays or jumps: filtering in O(K) a site (see JumpChain)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.posterior.forward_backward import first_impossible
from knockoffs.machine.compiled import njit
from knockoffs.sampling.conjugates.markov_chain_kernels import (
    LANES,
    contract,
    draw_uniforms,
    load_block,
    normalise,
    seed_streams,
    store_block,
)


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def _filter_jump(
    before: NDArray,
    stay: float,
    jump: float,
    alpha: NDArray,
    likelihood: NDArray,
    codes: NDArray,
    law: NDArray,
    total: NDArray,
) -> None:
    """law(k) proportional to likelihood(k) (stay before(k) + jump alpha(k)); before adds up to one."""
    K = len(law)
    total[:] = 0.0
    for k in range(K):
        f, g, leap = law[k], before[k], jump * alpha[k]
        for r in range(LANES):
            f[r] = likelihood[codes[r], k] * (stay * g[r] + leap)
            total[r] += f[r]
    normalise(law, total)


@njit(cache=True, nogil=True)
def pick(column: NDArray, r: int, target: float) -> int:
    """First k at which the running sum of column[:, r] exceeds target; the last with mass if rounding leaves none."""
    running, last = 0.0, 0
    for k in range(len(column)):
        p = column[k, r]
        if p > 0.0:
            running += p
            last = k
            if running > target:
                return k
    return last


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def sample_jump_states(
    codes: NDArray,
    alpha: NDArray,
    jump: NDArray,
    likelihood: NDArray,
    key: NDArray,
    first: int,
    segment: int,
    states: NDArray,
) -> int:
    """Draw H given X where the chain stays or jumps (see JumpChain), O(T K); returns as sample_states does."""
    n, T = codes.shape
    K = alpha.shape[1]
    n_segments = (T + segment - 1) // segment
    block, drawn = np.empty((T, LANES), codes.dtype), np.empty((T, LANES), states.dtype)
    laws, starts = np.empty((segment, K, LANES)), np.empty((n_segments, K, LANES))
    nothing = np.zeros((K, LANES))
    state, uniform, total = np.empty((4, LANES), np.uint64), np.empty(LANES), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(codes, start, block)
        seed_streams(key, first + start, state)
        for j in range(T):
            law = laws[j % segment]
            if j == 0:
                _filter_jump(nothing, 0.0, 1.0, alpha[0], likelihood[0], block[0], law, total)
            else:
                leap, before = jump[j - 1], laws[(j - 1) % segment]
                _filter_jump(before, 1.0 - leap, leap, alpha[j], likelihood[j], block[j], law, total)
            bad = first_impossible(total, rows)
            if bad >= 0:
                return (start + bad) * T + j
            if j % segment == 0:
                starts[j // segment] = law
        for s in range(n_segments - 1, -1, -1):
            begin, end = s * segment, min((s + 1) * segment, T)
            if s < n_segments - 1:
                laws[0] = starts[s]
                for j in range(begin + 1, end):
                    leap, before = jump[j - 1], laws[j - 1 - begin]
                    _filter_jump(before, 1.0 - leap, leap, alpha[j], likelihood[j], block[j], laws[j - begin], total)
            for j in range(end - 1, begin - 1, -1):
                law, now = laws[j - begin], drawn[j]
                draw_uniforms(state, uniform)
                if j == T - 1:
                    for r in range(LANES):
                        now[r] = pick(law, r, uniform[r])
                    continue
                stay, ahead = 1.0 - jump[j], drawn[j + 1]
                for r in range(LANES):
                    # the next state came by staying, or by a jump from any state at all
                    stayed, jumped = stay * law[ahead[r], r], jump[j] * alpha[j + 1, ahead[r]]
                    target = uniform[r] * (stayed + jumped)
                    now[r] = ahead[r] if target < stayed else pick(law, r, (target - stayed) / jumped)
        store_block(drawn, start, rows, states)
    return -1
