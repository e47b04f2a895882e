"""The hidden chain given the observations: forward filtering and backward sampling, in scaled arithmetic.

What is observed enters through a table of likelihoods and a code for every cell: ``likelihood[j, c, k]`` is
P(X_j = what code c stands for | H_j = k) up to a factor that does not depend on k, and the code of a missing cell has
a row of ones. Rows are worked in blocks of LANES (see markov_chain_kernels). The filtered laws are kept for one
segment of the sites of one block; a longer chain keeps the law at the start of every segment and filters it again on
the way back, so memory does not grow with n x p x K. A chain that stays or jumps (see JumpChain) is filtered in O(K) a
site. What the chains show, symbols and genotypes, is drawn with one random stream a row as well.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit
from knockoffs.sampling.conjugates.markov_chain_kernels import (
    LANES,
    choose,
    contract,
    cumulate,
    draw_uniforms,
    load_block,
    normalise,
    propagate,
    seed_streams,
    store_block,
)

SEGMENT_BYTES = 1 << 25  # filtered laws kept at once, a share of a usual last-level cache
FEW_BYTES = 1 << 23  # the same where a law costs little more than to write it down: then it is sooner filtered twice
OWN_CACHE = 1 << 20  # of a core, which the laws of a segment should not leave


def segment_length(T: int, n_values: int, whole: int = SEGMENT_BYTES) -> int:
    """Sites whose filtered laws are kept at once, for n_values numbers a row and site.

    All, where they take ``whole`` bytes at most. Otherwise nearly every law is filtered twice, and segments are as
    short as a core's own cache, but not so short that the laws at their starts would fill the memory instead.

    >>> segment_length(500, 10), segment_length(20_000, 65), segment_length(20_000, 1325)
    (500, 35, 35)
    """
    site = n_values * LANES * 8
    if T * site <= whole:
        return T
    return min(T, max(2, OWN_CACHE // site, min(isqrt(T) // 4, SEGMENT_BYTES // site)))


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def _observe(law: NDArray, likelihood: NDArray, codes: NDArray, total: NDArray) -> None:
    """Multiply a law (K, LANES) by the likelihood of the codes and divide by its sum, which is left in total."""
    K = len(law)
    total[:] = 0.0
    for k in range(K):
        f = law[k]
        for r in range(LANES):
            f[r] *= likelihood[codes[r], k]
            total[r] += f[r]
    normalise(law, total)


@njit(cache=True, nogil=True)
def first_impossible(total: NDArray, rows: int) -> int:
    """Return the first row of a block whose law adds up to zero, or -1."""
    for r in range(rows):
        if total[r] == 0.0:
            return r
    return -1


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


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def _advance(
    before: NDArray,
    landing: NDArray,
    step: NDArray,
    j: int,
    likelihood: NDArray,
    codes: NDArray,
    law: NDArray,
    total: NDArray,
) -> None:
    """Filter the law at site j from that at the site before it, by a step of either kind (see sample_states)."""
    if j > 0 and step.ndim == 1:
        _filter_jump(before, 1.0 - step[j - 1], step[j - 1], landing[j], likelihood, codes, law, total)
        return
    if step.ndim == 3 and j > 0:
        propagate(before, step[j - 1], law)
    else:
        for k in range(len(law)):
            law[k] = landing[0, k]
    _observe(law, likelihood, codes, total)


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def sample_states(
    codes: NDArray,
    landing: NDArray,
    step: NDArray,
    likelihood: NDArray,
    key: NDArray,
    first: int,
    segment: int,
    states: NDArray,
) -> int:
    """Draw H given X for every row; returns row * T + site of an impossible observation, or -1.

    ``step`` are transition matrices, shape (T - 1, K, K), and ``landing``, shape (1, K), the law of the first state:
    O(K^2) a site. Or the chain stays or jumps (see JumpChain): ``step``, shape (T - 1,), are probabilities of a jump,
    and ``landing``, shape (T, K), where it lands: O(K) a site.
    """
    n, T = codes.shape
    K = landing.shape[1]
    n_segments = (T + segment - 1) // segment
    block, drawn = np.empty((T, LANES), codes.dtype), np.empty((T, LANES), states.dtype)
    laws, starts = np.empty((segment, K, LANES)), np.empty((n_segments, K, LANES))
    state, uniform, total = np.empty((4, LANES), np.uint64), np.empty(LANES), np.empty(LANES)
    cumulated, running, reach = np.empty((K, LANES)), np.empty(LANES), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(codes, start, block)
        seed_streams(key, first + start, state)
        for j in range(T):
            law = laws[j % segment]
            _advance(laws[(j - 1) % segment], landing, step, j, likelihood[j], block[j], law, total)
            bad = first_impossible(total, rows)
            if bad >= 0:
                return (start + bad) * T + j
            if j % segment == 0:
                starts[j // segment] = law
        for s in range(n_segments - 1, -1, -1):
            begin, end = s * segment, min((s + 1) * segment, T)
            if s < n_segments - 1:  # the segment was overwritten: filter it again
                laws[0] = starts[s]
                for j in range(begin + 1, end):
                    _advance(laws[j - 1 - begin], landing, step, j, likelihood[j], block[j], laws[j - begin], total)
            for j in range(end - 1, begin - 1, -1):
                law = laws[j - begin]
                draw_uniforms(state, uniform)
                running[:] = 0.0
                if j == T - 1:
                    cumulate(law, cumulated)
                else:
                    ahead = drawn[j + 1]
                    if step.ndim == 1:
                        for r in range(LANES):
                            reach[r] = step[j] * landing[j + 1, ahead[r]]
                    for k in range(K):
                        f, level = law[k], cumulated[k]
                        for r in range(LANES):
                            if step.ndim == 3:
                                running[r] += f[r] * step[j, k, ahead[r]]
                            else:
                                running[r] += f[r] * (reach[r] + (1.0 - step[j] if ahead[r] == k else 0.0))
                            level[r] = running[r]
                choose(cumulated, uniform, drawn[j])
        store_block(drawn, start, rows, states)
    return -1


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


@njit(cache=True, nogil=True)
def draw_symbols(states: NDArray, cumulated: NDArray, key: NDArray, first: int, symbols: NDArray) -> None:
    """Draw X_j given H_j from running sums of the emission tables, shape (T, K, M)."""
    n, T = states.shape
    M = cumulated.shape[2]
    block, drawn = np.empty((T, LANES), states.dtype), np.empty((T, LANES), symbols.dtype)
    state, uniform, count = np.empty((4, LANES), np.uint64), np.empty(LANES), np.empty(LANES, np.int64)
    for start in range(0, n, LANES):
        rows = load_block(states, start, block)
        seed_streams(key, first + start, state)
        for j in range(T):
            table, h, now = cumulated[j], block[j], drawn[j]
            draw_uniforms(state, uniform)
            count[:] = 0
            for m in range(M - 1):
                for r in range(LANES):
                    count[r] += 1 if table[h[r], m] <= uniform[r] * table[h[r], M - 1] else 0
            for r in range(LANES):
                now[r] = count[r]
        store_block(drawn, start, rows, symbols)


@njit(cache=True, nogil=True)
def draw_genotypes(
    first_states: NDArray, second_states: NDArray, theta: NDArray, key: NDArray, first: int, genotypes: NDArray
) -> None:
    """Draw X_j = Bernoulli(theta[j, a]) + Bernoulli(theta[j, b]) given the two hidden chains."""
    n, T = genotypes.shape
    A, B = np.empty((T, LANES), first_states.dtype), np.empty((T, LANES), first_states.dtype)
    drawn = np.empty((T, LANES), genotypes.dtype)
    state, uniform = np.empty((4, LANES), np.uint64), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(first_states, start, A)
        load_block(second_states, start, B)
        seed_streams(key, first + start, state)
        for j in range(T):
            draw_uniforms(state, uniform)
            table, a, b, now = theta[j], A[j], B[j], drawn[j]
            for r in range(LANES):
                x, y = table[a[r]], table[b[r]]
                none = (1.0 - x) * (1.0 - y)
                some = none + (x * (1.0 - y) + (1.0 - x) * y)
                target = uniform[r] * (some + x * y)
                now[r] = (1 if none <= target else 0) + (1 if some <= target else 0)
        store_block(drawn, start, rows, genotypes)
