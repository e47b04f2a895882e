"""Compiled draws of the class K and the coordinates L given the cells: blocked Gibbs, a row at a time.

One sweep of a row draws (K, L_free) given the other coordinates, exactly and at once, then every coordinate that its
cell leaves an interval, one by one. Where no cell is an interval, one sweep is a draw from the posterior.
"""

from __future__ import annotations

from math import exp, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.latent.margins import FREE, POINT, LatentCells
from knockoffs.features.latent.normals import draw_normal, draw_truncated, draw_uniform, log_interval
from knockoffs.machine.compiled import njit
from knockoffs.sampling.conjugates.markov_chain_kernels import seed_row


class Classes(NamedTuple):
    """Proportions, means and precisions P = W^T W of the classes, shapes (l,), (l, D) and (l, D, D)."""

    log_weights: NDArray
    means: NDArray
    precisions: NDArray
    whiteners: NDArray
    half_log_det: NDArray


reals = {"contract", "nsz", "reassoc"}  # sums may be taken in any order; infinities and NaN keep their meaning


@njit(cache=True, nogil=True, fastmath=reals)
def _slope(P: NDArray, centred: NDArray, i: int) -> float:
    """Coordinate i of P (l - mean)."""
    row, value = P[i], 0.0
    for j in range(len(centred)):
        value += row[j] * centred[j]
    return value


@njit(cache=True, nogil=True, fastmath=reals)
def _square(W: NDArray, centred: NDArray) -> float:
    """(l - mean)^T P (l - mean) = |W (l - mean)|^2, W lower triangular."""
    total = 0.0
    for i in range(len(centred)):
        row, value = W[i], 0.0
        for j in range(i + 1):
            value += row[j] * centred[j]
        total += value * value
    return total


@njit(cache=True, nogil=True, fastmath=reals)
def _move(P: NDArray, j: int, step: float, q: NDArray) -> None:
    """Keep q = P (l - mean) when l_j moves by step."""
    row = P[j]  # P is symmetric and a row is contiguous
    for i in range(len(q)):
        q[i] += step * row[i]


@njit(cache=True, nogil=True, fastmath=reals)
def _factor(P: NDArray, free: NDArray, m: int | np.int64, C: NDArray) -> float:
    """Cholesky factor of P over the free coordinates into C, lower; returns half its log determinant."""
    half = 0.0
    for a in range(m):
        for b in range(a + 1):
            value = P[free[a], free[b]]
            for c in range(b):
                value -= C[a, c] * C[b, c]
            if a == b:
                C[a, a] = sqrt(max(value, 1e-300))
                half += log(C[a, a])
            else:
                C[a, b] = value / C[b, b]
    return half


@njit(cache=True, nogil=True, fastmath=reals)
def _solve_lower(C: NDArray, q: NDArray, free: NDArray, m: int | np.int64, w: NDArray) -> float:
    """Set w to C^-1 q over the free coordinates; return its squared length."""
    total = 0.0
    for a in range(m):
        value = q[free[a]]
        for b in range(a):
            value -= C[a, b] * w[b]
        w[a] = value / C[a, a]
        total += w[a] * w[a]
    return total


@njit(cache=True, nogil=True, fastmath=reals)
def _draw_free(
    P: NDArray,
    C: NDArray,
    free: NDArray,
    m: int | np.int64,
    l: NDArray,  # noqa: E741
    q: NDArray,
    w: NDArray,
    state: NDArray,  # noqa: E741
) -> None:
    """L_free ~ N(l_free - P_ff^-1 q_f, P_ff^-1), the law given all other coordinates."""
    _solve_lower(C, q, free, m, w)
    for a in range(m):
        w[a] = draw_normal(state) - w[a]
    for a in range(m - 1, -1, -1):  # C^T step = z - C^-1 q
        value = w[a]
        for b in range(a + 1, m):
            value -= C[b, a] * w[b]
        w[a] = value / C[a, a]
    for a in range(m):
        l[free[a]] += w[a]
        _move(P, free[a], w[a], q)


@njit(cache=True, nogil=True, fastmath=reals)
def sweep_rows(
    L: NDArray,
    K: NDArray,
    cells: LatentCells,
    law: Classes,
    key: NDArray,
    first_row: int,
    n_sweeps: int,
    backward: bool,
) -> None:
    """Move L, shape (n, D), and K, shape (n,), by n_sweeps sweeps in place.

    A row draws the same numbers whatever block it is worked in: ``key`` and ``first_row`` are those of the random
    streams. With ``backward``, intervals are visited from the last to the first. An even number of such sweeps is the
    time reversal of as many in order, for the coordinates that are not free: a sweep starts with (K, L_free) given
    these.
    """
    status, low, high, _ = cells
    log_weights, means, P, W, half_log_det = law
    n, D = L.shape
    n_classes = len(log_weights)
    most = 0
    for i in range(n):
        n_free = 0
        for j in range(D):
            n_free += 1 if status[i, j] == FREE else 0
        most = max(most, n_free)
    C = np.empty((n_classes, most, most))
    q, centred, w = np.empty(D), np.empty(D), np.empty(D)
    free, open_cells = np.empty(D, np.int64), np.empty(D, np.int64)
    half_free, score, state = np.zeros(n_classes), np.empty(n_classes), np.empty(4, np.uint64)
    for i in range(n):
        seed_row(key, first_row + i, state)
        l, s = L[i], status[i]  # noqa: E741
        m = n_open = D * 0  # not the literal 0, for which what takes it would be compiled once more
        for j in range(D):
            if s[j] == FREE:
                free[m] = j
                m += 1
            elif s[j] != POINT:
                open_cells[n_open] = j
                n_open += 1
        for k in range(n_classes):
            half_free[k] = _factor(P[k], free, m, C[k])
        k = 0
        for turn in range(n_sweeps):
            if n_classes > 1 and turn % 2 == 0:  # the classes are the dear part, and L the slow one to forget
                top = -inf
                for c in range(n_classes):
                    # log N(l_rest; c) = log N(l; c) - log N(l_free | l_rest; c), whatever the value of l_free
                    for j in range(D):
                        centred[j] = l[j] - means[c, j]
                    for f in range(m):
                        q[free[f]] = _slope(P[c], centred, free[f])
                    square = _square(W[c], centred) - _solve_lower(C[c], q, free, m, w)
                    score[c] = log_weights[c] + half_log_det[c] - half_free[c] - 0.5 * square
                    top = max(top, score[c])
                total = 0.0
                for c in range(n_classes):
                    score[c] = exp(score[c] - top)
                    total += score[c]
                level = draw_uniform(state) * total
                k = 0
                while k < n_classes - 1 and level >= score[k]:
                    level -= score[k]
                    k += 1
            Pk = P[k]
            if m == 0 and n_open == 0:
                break  # L is known: K was all there was to draw
            if turn == 0 or (n_classes > 1 and turn % 2 == 0):
                for j in range(D):
                    centred[j] = l[j] - means[k, j]
                for j in range(D):
                    q[j] = _slope(Pk, centred, j)
            if m > 0:
                _draw_free(Pk, C[k], free, m, l, q, w, state)
            for o in range(n_open):
                j = open_cells[n_open - 1 - o] if backward else open_cells[o]
                a, b = low[i, j], high[i, j]
                sd = 1.0 / sqrt(Pk[j, j])
                centre = l[j] - q[j] * sd * sd
                drawn = centre + sd * draw_truncated((a - centre) / sd, (b - centre) / sd, state)
                drawn = min(max(drawn, a), b)  # rounding must not leave the cell
                _move(Pk, j, drawn - l[j], q)
                l[j] = drawn
        K[i] = k


# Coordinates drawn in order, each given those before it and its cell: for densities, starts and jumps of chains


@njit(cache=True, nogil=True)
def _draw_in_order(
    status: NDArray,
    low: NDArray,
    high: NDArray,
    start: NDArray,
    mean: NDArray,
    F: NDArray,
    z: NDArray,
    l: NDArray,  # noqa: E741
    state: NDArray,
    given: bool = False,
) -> float:
    """Fill l = mean + F z, shape (D,), inside the cells of one row; return the log probability of the cells so met.

    The exponential of what is returned has the density of the cells as its mean (Geweke, Hajivassiliou, Keane): it is
    the density of l, given the cells, over that with which l is drawn here, times that of the cells. Of an l that is
    given, it is the same.
    """
    total = 0.0
    for j in range(len(mean)):
        centre = mean[j]
        for b in range(j):
            centre += F[j, b] * z[b]
        sd, s = F[j, j], status[j]
        if s == POINT:
            z[j] = (start[j] - centre) / sd
            total -= 0.5 * z[j] * z[j] + 0.5 * log(2 * pi) + log(sd)
            l[j] = start[j]
            continue
        free, least, most = s == FREE, low[j], high[j]
        a, b_ = (least - centre) / sd, (most - centre) / sd
        if not free:
            total += log_interval(a, b_)
        if given:
            z[j] = (l[j] - centre) / sd
        elif free:
            z[j] = draw_normal(state)
            l[j] = centre + sd * z[j]
        else:
            z[j] = draw_truncated(a, b_, state)
            l[j] = min(max(centre + sd * z[j], least), most)  # rounding must not leave the cell
    return total


@njit(cache=True, nogil=True)
def log_densities(
    cells: LatentCells, log_weights: NDArray, means: NDArray, factors: NDArray, key: NDArray, n_draws: int
) -> NDArray:
    """Log sum_k weights_k N(cells; mean_k, F_k F_k^T), shape (n,), by n_draws draws of each class.

    It is exact where every cell is a point, and where the only other one comes last.
    """
    status, low, high, start = cells
    n, D = start.shape
    value = np.empty(n)
    z, l, state = np.empty(D), np.empty(D), np.empty(4, np.uint64)  # noqa: E741
    terms = np.empty(len(log_weights) * n_draws)
    for i in range(n):
        seed_row(key, i, state)
        t = 0
        for k in range(len(log_weights)):
            for _ in range(n_draws):
                terms[t] = (
                    log_weights[k]
                    - log(n_draws)
                    + _draw_in_order(status[i], low[i], high[i], start[i], means[k], factors[k], z, l, state)
                )
                t += 1
        top = terms.max()
        value[i] = top + np.log(np.exp(terms - top).sum())
    return value


@njit(cache=True, nogil=True)
def draw_starts(cells: LatentCells, mean: NDArray, F: NDArray, key: NDArray) -> NDArray:
    """L inside the cells of every row, shape (n, D), nearly as correlated as L is: where Gibbs sampling starts."""
    status, low, high, start = cells
    L = np.empty(start.shape)
    z, state = np.empty(start.shape[1]), np.empty(4, np.uint64)
    for i in range(len(L)):
        seed_row(key, i, state)
        _draw_in_order(status[i], low[i], high[i], start[i], mean, F, z, L[i], state)
    return L


@njit(cache=True, nogil=True)
def jump_rows(
    L: NDArray,
    K: NDArray,
    cells: LatentCells,
    log_weights: NDArray,
    means: NDArray,
    factors: NDArray,
    key: NDArray,
    first_row: int,
    n_draws: int,
) -> None:
    """Move (K, L) of every row to one of n_draws draws of each class, itself one of its own class, in place.

    Each is taken in proportion to the density of (K, L) and the cells over that with which it is drawn: a step of
    iterated importance resampling, which leaves the law of (K, L) given the cells as it is, whatever n_draws. Gibbs
    sampling changes one coordinate at a time and can be held in a class for ever; this changes all of them.
    """
    status, low, high, start = cells
    D = L.shape[1]
    z, l, kept, state = np.empty(D), np.empty(D), np.empty(D), np.empty(4, np.uint64)  # noqa: E741
    for i in range(len(L)):
        seed_row(key, first_row + i, state)
        for j in range(D):
            kept[j] = L[i, j]
        own = chosen = K[i]
        top = log_weights[own] + _draw_in_order(
            status[i], low[i], high[i], start[i], means[own], factors[own], z, kept, state, True
        )
        total = 1.0  # of the weights so far, in units of the exponential of top
        for k in range(len(log_weights)):
            for _ in range(n_draws - 1 if k == own else n_draws):
                weight = log_weights[k] + _draw_in_order(
                    status[i], low[i], high[i], start[i], means[k], factors[k], z, l, state
                )
                if weight > top:
                    total = total * exp(top - weight)
                    top = weight
                share = exp(weight - top)
                total += share
                if draw_uniform(state) * total < share:
                    for j in range(D):
                        kept[j] = l[j]
                    chosen = k
        for j in range(D):
            L[i, j] = kept[j]
        K[i] = chosen
