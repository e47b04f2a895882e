"""The hidden chain given the observations: forward filtering and backward sampling, in scaled arithmetic.

What is observed enters through a table of likelihoods and a code for every cell: ``likelihood[j, c, k]`` is
P(X_j = what code c stands for | H_j = k) up to a factor that does not depend on k, and the code of a missing cell has
a row of ones. Rows are worked in blocks of LANES (see markov_chain_kernels). The filtered laws are kept for one
segment of the sites of one block; a longer chain keeps the law at the start of every segment and filters it again on
the way back, so memory does not grow with n x p x K.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knockoffs.sampling.conjugates.markov_chain_kernels import (
    LANES,
    choose,
    contract,
    draw_uniforms,
    load_block,
    propagate,
    seed_streams,
    store_block,
)

SEGMENT_BYTES = 1 << 25  # filtered laws kept at once, a share of a usual last-level cache


def segment_length(T: int, n_values: int, limit: int = SEGMENT_BYTES) -> int:
    """Sites whose filtered laws are kept at once, for n_values numbers a row and site."""
    return int(max(2, min(T, limit // (n_values * LANES * 8))))


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
    for r in range(LANES):
        total[r] = 1.0 / total[r] if total[r] > 0.0 else 0.0
    for k in range(K):
        f = law[k]
        for r in range(LANES):
            f[r] *= total[r]


@njit(cache=True, nogil=True)
def _first_impossible(total: NDArray, rows: int) -> int:
    for r in range(rows):
        if total[r] == 0.0:
            return r
    return -1


@njit(cache=True, nogil=True, fastmath=contract, error_model="numpy")
def sample_states(
    codes: NDArray,
    initial: NDArray,
    transitions: NDArray,
    likelihood: NDArray,
    key: NDArray,
    first: int,
    segment: int,
    states: NDArray,
) -> int:
    """Draw H given X for every row, O(T K^2); returns row * T + site of an impossible observation, or -1."""
    n, T = codes.shape
    K = len(initial)
    n_segments = (T + segment - 1) // segment
    block, drawn = np.empty((T, LANES), codes.dtype), np.empty((T, LANES), states.dtype)
    laws, starts = np.empty((segment, K, LANES)), np.empty((n_segments, K, LANES))
    state, uniform, total = np.empty((4, LANES), np.uint64), np.empty(LANES), np.empty(LANES)
    cumulated, running = np.empty((K, LANES)), np.empty(LANES)
    for start in range(0, n, LANES):
        rows = load_block(codes, start, block)
        seed_streams(key, first + start, state)
        for k in range(K):
            laws[0, k] = initial[k]
        for j in range(T):
            law = laws[j % segment]
            if j > 0:
                propagate(laws[(j - 1) % segment], transitions[j - 1], law)
            _observe(law, likelihood[j], block[j], total)
            bad = _first_impossible(total, rows)
            if bad >= 0:
                return (start + bad) * T + j
            if j % segment == 0:
                starts[j // segment] = law
        for s in range(n_segments - 1, -1, -1):
            begin, end = s * segment, min((s + 1) * segment, T)
            if s < n_segments - 1:  # the segment was overwritten: filter it again
                laws[0] = starts[s]
                for j in range(begin + 1, end):
                    propagate(laws[j - 1 - begin], transitions[j - 1], laws[j - begin])
                    _observe(laws[j - begin], likelihood[j], block[j], total)
            for j in range(end - 1, begin - 1, -1):
                law = laws[j - begin]
                draw_uniforms(state, uniform)
                running[:] = 0.0
                if j == T - 1:
                    for k in range(K):
                        f, level = law[k], cumulated[k]
                        for r in range(LANES):
                            running[r] += f[r]
                            level[r] = running[r]
                else:
                    transition, ahead = transitions[j], drawn[j + 1]
                    for k in range(K):
                        f, level = law[k], cumulated[k]
                        for r in range(LANES):
                            running[r] += f[r] * transition[k, ahead[r]]
                            level[r] = running[r]
                choose(cumulated, uniform, drawn[j])
        store_block(drawn, start, rows, states)
    return -1


@njit(cache=True, nogil=True)
def _filter_in_logs(
    log_likelihood: NDArray, log_initial: NDArray, log_transitions: NDArray, laws: NDArray, total: NDArray
) -> None:
    """Fill laws with log P(H_j = k, X_1, ..., X_j) of one row, and total with log P(X)."""
    T, K = log_likelihood.shape
    for j in range(T):
        for k in range(K):
            if j == 0:
                laws[j, k] = log_initial[k] + log_likelihood[j, k]
                continue
            top = -np.inf
            for l in range(K):  # noqa: E741
                top = max(top, laws[j - 1, l] + log_transitions[j - 1, l, k])
            ways = 0.0
            if top > -np.inf:
                for l in range(K):  # noqa: E741
                    ways += np.exp(laws[j - 1, l] + log_transitions[j - 1, l, k] - top)
            laws[j, k] = (top + np.log(ways) if ways > 0.0 else -np.inf) + log_likelihood[j, k]
    top = laws[T - 1].max()
    total[0] = top + np.log(np.exp(laws[T - 1] - top).sum()) if top > -np.inf else -np.inf


@njit(cache=True, nogil=True)
def log_evidence_in_logs(
    log_likelihood: NDArray, log_initial: NDArray, log_transitions: NDArray, evidence: NDArray
) -> None:
    """Log P(X) of every row from log likelihoods (T, n, K), where scaled arithmetic would lose a state."""
    T, n, K = log_likelihood.shape
    laws = np.empty((T, K))
    for i in range(n):
        _filter_in_logs(log_likelihood[:, i], log_initial, log_transitions, laws, evidence[i : i + 1])


@njit(cache=True, nogil=True)
def sample_states_in_logs(
    log_likelihood: NDArray,
    log_initial: NDArray,
    log_transitions: NDArray,
    key: NDArray,
    row_numbers: NDArray,
    states: NDArray,
) -> int:
    """Do as sample_states, from log likelihoods (T, n, K) of the rows numbered so, where that would lose a state."""
    T, n, K = log_likelihood.shape
    laws, cumulated, total = np.empty((T, K)), np.empty(K), np.empty(1)
    state, uniform = np.empty((4, LANES), np.uint64), np.empty(LANES)
    for i in range(n):
        _filter_in_logs(log_likelihood[:, i], log_initial, log_transitions, laws, total)
        if not total[0] > -np.inf:
            return i * T
        seed_streams(key, row_numbers[i], state)  # the row's own stream is the first of the block
        for j in range(T - 1, -1, -1):
            draw_uniforms(state, uniform)
            if j < T - 1:
                laws[j] += log_transitions[j, :, states[i, j + 1]]
            top, running = laws[j].max(), 0.0
            for k in range(K):
                running += np.exp(laws[j, k] - top)
                cumulated[k] = running
            chosen = 0
            while chosen < K - 1 and cumulated[chosen] <= uniform[0] * running:
                chosen += 1
            states[i, j] = chosen
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
    for r in range(LANES):
        total[r] = 1.0 / total[r] if total[r] > 0.0 else 0.0
    for k in range(K):
        f = law[k]
        for r in range(LANES):
            f[r] *= total[r]


@njit(cache=True, nogil=True)
def _pick(column: NDArray, r: int, target: float) -> int:
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
            bad = _first_impossible(total, rows)
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
                        now[r] = _pick(law, r, uniform[r])
                    continue
                stay, ahead = 1.0 - jump[j], drawn[j + 1]
                for r in range(LANES):
                    # the next state came by staying, or by a jump from any state at all
                    stayed, jumped = stay * law[ahead[r], r], jump[j] * alpha[j + 1, ahead[r]]
                    target = uniform[r] * (stayed + jumped)
                    now[r] = ahead[r] if target < stayed else _pick(law, r, (target - stayed) / jumped)
        store_block(drawn, start, rows, states)
    return -1


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
    a = _pick(sums, r, target)
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
            bad = _first_impossible(totals, rows)
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
