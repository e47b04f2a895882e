"""What the hidden chains show: symbols and genotypes, drawn with one random stream a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit
from knockoffs.sampling.conjugates.markov_chain_kernels import (
    LANES,
    draw_uniforms,
    load_block,
    seed_streams,
    store_block,
)


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
