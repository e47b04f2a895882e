"""Compiled loops of the Markov chain conjugates: a block of rows side by side, one random stream a row.

Arrays of a block have the rows in the last axis, (..., LANES), so that every inner loop runs over rows and is
turned into vector instructions, and a transition matrix is read once for the whole block.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit

LANES = 64  # rows side by side: 33, 71 and 294 ns a site at K = 10, 20 and 50, against 55, 142 and 732 with 16
contract = {"contract"}  # fused multiply-add is the only liberty taken with the arithmetic


@njit(cache=True, nogil=True)
def seed_row(key: NDArray, row: int, state: NDArray) -> None:
    """Start a row's xoshiro256++ stream from a key of two 64-bit words.

    Its four words are outputs of SplitMix64 at places of their own for every row, so a row draws the same numbers
    whatever block or thread it is worked in.
    """
    for i in range(4):
        z = key[0] + np.uint64(4 * row + i + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = (z ^ (z >> np.uint64(31))) ^ (key[1] if i == 0 else np.uint64(0))


@njit(cache=True, nogil=True)
def seed_streams(key: NDArray, first_row: int, state: NDArray) -> None:
    """Start the streams of the rows first_row, first_row + 1, ..."""
    for r in range(LANES):
        seed_row(key, first_row + r, state[:, r])


@njit(cache=True, nogil=True)
def draw_uniforms(state: NDArray, uniform: NDArray) -> None:
    """One number in [0, 1) a row, on the grid of 2^-53 (Blackman and Vigna's xoshiro256++)."""
    for r in range(LANES):
        s0, s1, s2, s3 = state[0, r], state[1, r], state[2, r], state[3, r]
        x = s0 + s3
        x = ((x << np.uint64(23)) | (x >> np.uint64(41))) + s0
        uniform[r] = np.float64(x >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        t = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
        state[0, r], state[1, r], state[2, r], state[3, r] = s0, s1, s2, s3


@njit(cache=True, nogil=True)
def first_impossible_step(block: NDArray, rows: int, landing: NDArray, step: NDArray) -> int:
    """First place where a row of a block takes a step of probability zero, as row * T + step, or -1."""
    T = len(block)
    for r in range(rows):
        for j in range(T):
            now = block[j, r]
            if j == 0:
                p = landing[0, now]
            elif step.ndim == 3:
                p = step[j - 1, block[j - 1, r], now]
            else:
                p = step[j - 1] * landing[j, now] + (1.0 - step[j - 1] if block[j - 1, r] == now else 0.0)
            if p <= 0.0:
                return r * T + j
    return -1


@njit(cache=True, nogil=True)
def load_block(values: NDArray, start: int, block: NDArray) -> int:
    """Rows start, start + 1, ... as (T, LANES); places beyond the last row repeat it. Returns the rows in use."""
    rows = min(LANES, len(values) - start)
    for j0 in range(0, values.shape[1], 64):
        for r in range(LANES):
            row = start + min(r, rows - 1)
            for j in range(j0, min(j0 + 64, values.shape[1])):
                block[j, r] = values[row, j]
    return rows


@njit(cache=True, nogil=True)
def store_block(block: NDArray, start: int, rows: int, values: NDArray) -> None:
    """Write a block of shape (T, LANES) back to its rows."""
    for j0 in range(0, values.shape[1], 64):
        for r in range(rows):
            for j in range(j0, min(j0 + 64, values.shape[1])):
                values[start + r, j] = block[j, r]


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def propagate(weight: NDArray, transition: NDArray, out: NDArray) -> None:
    """out[k] = sum_l weight[l] transition[l, k] for every row of the block, four l at a time."""
    K = len(weight)
    out[:] = 0.0
    l = 0  # noqa: E741
    while l + 4 <= K:
        w0, w1, w2, w3 = weight[l], weight[l + 1], weight[l + 2], weight[l + 3]
        for k in range(K):
            p0, p1, p2, p3 = transition[l, k], transition[l + 1, k], transition[l + 2, k], transition[l + 3, k]
            target = out[k]
            for r in range(LANES):
                target[r] += w0[r] * p0 + w1[r] * p1 + w2[r] * p2 + w3[r] * p3
        l += 4  # noqa: E741
    while l < K:
        w0 = weight[l]
        for k in range(K):
            p0, target = transition[l, k], out[k]
            for r in range(LANES):
                target[r] += w0[r] * p0
        l += 1  # noqa: E741


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def cumulate(weight: NDArray, cumulated: NDArray) -> None:
    """Write the running sums of weights (K, LANES) into ``cumulated``."""
    running = np.zeros(LANES)
    for k in range(len(weight)):
        w, level = weight[k], cumulated[k]
        for r in range(LANES):
            running[r] += w[r]
            level[r] = running[r]


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def normalise(law: NDArray, total: NDArray) -> None:
    """Divide a law (K, LANES) by its sum, ``total``, which becomes its reciprocal; 0 where the sum is 0."""
    for r in range(LANES):
        total[r] = 1.0 / total[r] if total[r] > 0.0 else 0.0
    for k in range(len(law)):
        f = law[k]
        for r in range(LANES):
            f[r] *= total[r]


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def choose(cumulated: NDArray, uniform: NDArray, chosen: NDArray) -> None:
    """First k with cumulated[k] > uniform * cumulated[-1]: never a state of probability zero, for uniform < 1."""
    K = len(cumulated)
    count, bound = np.zeros(LANES, np.int64), np.empty(LANES)
    for r in range(LANES):
        bound[r] = uniform[r] * cumulated[K - 1, r]
    for k in range(K - 1):
        level = cumulated[k]
        for r in range(LANES):
            count[r] += 1 if level[r] <= bound[r] else 0
    for r in range(LANES):
        chosen[r] = count[r]


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def sample_chain(u: NDArray, landing: NDArray, transitions: NDArray, key: NDArray, u_tilde: NDArray, first: int) -> int:
    """Sequential conditional independent pairs on a chain, for rows first, first + 1, ... of the random streams.

    Returns the first place that is impossible under the law, as row * T + step, or -1. ``landing``, shape (1, K), is
    the law of the first state.

    w and N are those at the head of markov_chain.py. A factor common to w_j cancels in the draw, so N is divided by the
    sum of the w it came from, and any length of chain is safe.
    """
    n, T = u.shape
    K = landing.shape[1]
    here, there = np.empty((T, LANES), u.dtype), np.empty((T, LANES), u.dtype)
    state, uniform = np.empty((4, LANES), np.uint64), np.empty(LANES)
    weight, normaliser, cumulated = np.empty((K, LANES)), np.empty((K, LANES)), np.empty((K, LANES))
    total, running = np.empty(LANES), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(u, start, here)
        bad = first_impossible_step(here, rows, landing, transitions)
        if bad >= 0:
            return start * T + bad
        seed_streams(key, first + start, state)
        for k in range(K):
            weight[k] = landing[0, k]
        total[:] = 1.0
        for j in range(T):
            if j > 0:
                transition, a, b = transitions[j - 1], here[j - 1], there[j - 1]
                running[:] = 0.0
                for k in range(K):
                    w, N = weight[k], normaliser[k]
                    for r in range(LANES):
                        p = transition[b[r], k]  # N = 0 only where p = 0
                        value = transition[a[r], k] * (p * total[r] / N[r]) if p > 0.0 else 0.0
                        w[r] = value
                        running[r] += value
                total[:] = running
            draw_uniforms(state, uniform)
            running[:] = 0.0
            if j + 1 < T:
                transition, a = transitions[j], here[j + 1]
                for k in range(K):
                    w, level = weight[k], cumulated[k]
                    for r in range(LANES):
                        running[r] += w[r] * transition[k, a[r]]
                        level[r] = running[r]
                propagate(weight, transition, normaliser)
            else:
                cumulate(weight, cumulated)
            choose(cumulated, uniform, there[j])
        store_block(there, start, rows, u_tilde)
    return -1


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def sample_jump_chain(u: NDArray, alpha: NDArray, jump: NDArray, key: NDArray, u_tilde: NDArray, first: int) -> int:
    """Do as sample_chain where P_j(k | l) = (1 - jump_j) [k = l] + jump_j alpha_j(k): O(K) a site, not O(K^2)."""
    n, T = u.shape
    K = alpha.shape[1]
    here, there = np.empty((T, LANES), u.dtype), np.empty((T, LANES), u.dtype)
    state, uniform = np.empty((4, LANES), np.uint64), np.empty(LANES)
    weight, cumulated = np.empty((K, LANES)), np.empty((K, LANES))
    total, kept, running, reach = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    a, b = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for start in range(0, n, LANES):
        rows = load_block(u, start, here)
        bad = first_impossible_step(here, rows, alpha, jump)
        if bad >= 0:
            return start * T + bad
        seed_streams(key, first + start, state)
        for k in range(K):
            weight[k] = alpha[0, k]
        total[:] = 1.0
        for j in range(T):
            if j > 0:
                stay = 1.0 - jump[j - 1]
                before, before_tilde = here[j - 1], there[j - 1]
                for r in range(LANES):
                    a[r], b[r] = before[r], before_tilde[r]
                    kept[r] = stay / total[r]
                    total[r] = 0.0
                for k in range(K):
                    w, leap = weight[k], jump[j - 1] * alpha[j, k]
                    for r in range(LANES):
                        N = kept[r] * w[r] + leap  # of weights divided by their sum
                        p = leap + (stay if b[r] == k else 0.0)
                        value = leap + (stay if a[r] == k else 0.0)
                        value = value * (p / N) if p > 0.0 else 0.0
                        w[r] = value
                        total[r] += value
            draw_uniforms(state, uniform)
            running[:] = 0.0
            if j + 1 < T:
                stay, ahead = 1.0 - jump[j], here[j + 1]
                for r in range(LANES):
                    a[r] = ahead[r]
                    reach[r] = jump[j] * alpha[j + 1, a[r]]
                for k in range(K):
                    w, level = weight[k], cumulated[k]
                    for r in range(LANES):
                        running[r] += w[r] * (reach[r] + (stay if a[r] == k else 0.0))
                        level[r] = running[r]
            else:
                cumulate(weight, cumulated)
            choose(cumulated, uniform, there[j])
        store_block(there, start, rows, u_tilde)
    return -1
