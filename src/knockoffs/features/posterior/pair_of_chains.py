"""Two hidden chains given the genotype that they add up to: filtering an unordered pair in O(K^2) a site."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.posterior.forward_backward import first_impossible, pick
from knockoffs.machine.compiled import njit
from knockoffs.sampling.conjugates.markov_chain_kernels import (
    LANES,
    contract,
    draw_uniforms,
    load_block,
    seed_streams,
    store_block,
)


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def _filter_pair(
    before: NDArray, jump: float, alpha: NDArray, theta: NDArray, genotype: NDArray, law: NDArray, fresh: bool
) -> None:
    """Filter the law F(a, b) of an unordered pair of chains, one array (LANES) for every a <= b, then K row sums.

    F is symmetric in (a, b), and only a <= b is kept, as the probability of the ordered pair. Each chain stays or
    jumps, so that with the row sums of F no sum over pairs of pairs is left:
    F'(a, b) = P(g | a, b) [stay^2 F(a, b) + alpha_a v(b) + alpha_b v(a)], v = stay jump rowsum + jump^2 alpha / 2.
    """
    K = len(alpha)
    n_pairs = K * (K + 1) // 2
    stay = 1.0 - jump
    zero, one, two = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    total, keep = np.zeros(LANES), np.zeros(LANES)
    v = np.empty((K, LANES))
    for r in range(LANES):
        g = genotype[r]  # a missing genotype, 3, has all three: its likelihood is one
        zero[r] = 1.0 if g == 0 or g == 3 else 0.0
        one[r] = 1.0 if g == 1 or g == 3 else 0.0
        two[r] = 1.0 if g == 2 or g == 3 else 0.0
    if fresh:
        for a in range(K):
            v[a] = 0.5 * alpha[a]
    else:
        for a in range(K):
            s = before[n_pairs + a]
            for r in range(LANES):
                total[r] += s[r]
        for r in range(LANES):
            total[r] = 1.0 / total[r] if total[r] > 0.0 else 0.0
            keep[r] = stay * stay * total[r]
        for a in range(K):
            s, va, x, y = before[n_pairs + a], v[a], stay * jump, 0.5 * jump * jump * alpha[a]
            for r in range(LANES):
                va[r] = x * s[r] * total[r] + y
    for a in range(K):
        law[n_pairs + a] = 0.0
    i = 0
    for a in range(K):
        ta, pa, va, sa = theta[a], alpha[a], v[a], law[n_pairs + a]
        for b in range(a, K):
            tb, pb, vb, sb = theta[b], alpha[b], v[b], law[n_pairs + b]
            e0, e1, e2 = (1.0 - ta) * (1.0 - tb), ta * (1.0 - tb) + (1.0 - ta) * tb, ta * tb
            f, old = law[i], before[i]
            if fresh:
                for r in range(LANES):
                    f[r] = (zero[r] * e0 + one[r] * e1 + two[r] * e2) * (pa * vb[r] + pb * va[r])
            else:
                for r in range(LANES):
                    f[r] = (zero[r] * e0 + one[r] * e1 + two[r] * e2) * (keep[r] * old[r] + pa * vb[r] + pb * va[r])
            for r in range(LANES):
                sa[r] += f[r]
            if b > a:
                for r in range(LANES):
                    sb[r] += f[r]
            i += 1


@njit(cache=True, nogil=True)
def _add_up(parts: NDArray, total: NDArray) -> None:
    total[:] = 0.0
    for k in range(len(parts)):
        part = parts[k]
        for r in range(LANES):
            total[r] += part[r]


@njit(cache=True, nogil=True)
def _pair_index(a: int, b: int, K: int) -> int:
    low, high = min(a, b), max(a, b)
    return low * K - low * (low - 1) // 2 + high - low


@njit(cache=True, nogil=True)
def _pick_partner(law: NDArray, a: int, K: int, r: int, target: float) -> int:
    """First b at which the running sum of F(a, b) exceeds target."""
    running, last = 0.0, 0
    for b in range(K):
        p = law[_pair_index(a, b, K), r]
        if p > 0.0:
            running += p
            last = b
            if running > target:
                return b
    return last


@njit(cache=True, nogil=True)
def _pick_pair(law: NDArray, K: int, r: int, target: float) -> tuple[int, int]:
    """Pick (a, b) by the running sum of F, row after row."""
    sums = law[K * (K + 1) // 2 :]
    a = pick(sums, r, target)
    for c in range(a):
        target -= sums[c, r]
    return a, _pick_partner(law, a, K, r, target)


@njit(cache=True, nogil=True)
def sample_pair_states(
    genotypes: NDArray,
    alpha: NDArray,
    jump: NDArray,
    theta: NDArray,
    key: NDArray,
    first: int,
    segment: int,
    first_states: NDArray,
    second_states: NDArray,
) -> int:
    """Draw the two hidden chains given the genotype (0, 1, 2; 3 is missing), O(T K^2); returns as sample_states."""
    n, T = genotypes.shape
    K = alpha.shape[1]
    n_pairs = K * (K + 1) // 2
    n_segments = (T + segment - 1) // segment
    block = np.empty((T, LANES), genotypes.dtype)
    A, B = np.empty((T, LANES), first_states.dtype), np.empty((T, LANES), first_states.dtype)
    laws, starts = np.empty((segment, n_pairs + K, LANES)), np.empty((n_segments, n_pairs + K, LANES))
    state, uniform, totals = np.empty((4, LANES), np.uint64), np.empty(LANES), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(genotypes, start, block)
        seed_streams(key, first + start, state)
        for j in range(T):
            law, before = laws[j % segment], laws[(j - 1) % segment]
            _filter_pair(before, jump[j - 1] if j > 0 else 1.0, alpha[j], theta[j], block[j], law, j == 0)
            _add_up(law[n_pairs:], totals)
            bad = first_impossible(totals, rows)
            if bad >= 0:
                return (start + bad) * T + j
            if j % segment == 0:
                starts[j // segment] = law
        for s in range(n_segments - 1, -1, -1):
            begin, end = s * segment, min((s + 1) * segment, T)
            if s < n_segments - 1:
                laws[0] = starts[s]
                for j in range(begin + 1, end):
                    before, law = laws[j - 1 - begin], laws[j - begin]
                    _filter_pair(before, jump[j - 1], alpha[j], theta[j], block[j], law, False)
            for j in range(end - 1, begin - 1, -1):
                law = laws[j - begin]
                sums = law[n_pairs:]
                draw_uniforms(state, uniform)
                _add_up(sums, totals)
                for r in range(LANES):
                    total = totals[r]
                    if j == T - 1:
                        A[j, r], B[j, r] = _pick_pair(law, K, r, uniform[r] * total)
                        continue
                    a, b, leap = int(A[j + 1, r]), int(B[j + 1, r]), jump[j]
                    stay, to_a, to_b = 1.0 - leap, leap * alpha[j + 1, a], leap * alpha[j + 1, b]
                    # both chains stayed, only the first, only the second, or neither
                    both, one = stay * stay * law[_pair_index(a, b, K), r], stay * to_b * sums[a, r]
                    other, neither = stay * to_a * sums[b, r], to_a * to_b * total
                    target = uniform[r] * (both + one + other + neither)
                    if target < both:
                        A[j, r], B[j, r] = a, b
                    elif target < both + one:
                        A[j, r] = a
                        B[j, r] = _pick_partner(law, a, K, r, (target - both) / (stay * to_b))
                    elif target < both + one + other:
                        A[j, r] = _pick_partner(law, b, K, r, (target - both - one) / (stay * to_a))
                        B[j, r] = b
                    else:
                        A[j, r], B[j, r] = _pick_pair(law, K, r, (target - both - one - other) / (to_a * to_b))
        store_block(A, start, rows, first_states)
        store_block(B, start, rows, second_states)
    return -1
