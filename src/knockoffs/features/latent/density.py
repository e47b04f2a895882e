"""Coordinates drawn in order, each given those before it and its cell: for densities, starts and jumps of chains."""

from __future__ import annotations

from math import exp, log, pi

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.latent.margins import FREE, POINT, LatentCells
from knockoffs.features.latent.normals import draw_normal, draw_truncated, draw_uniform, log_interval, seed_row
from knockoffs.machine.compiled import njit


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
        kept[:] = L[i]
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
                    kept[:] = l
                    chosen = k
        L[i] = kept
        K[i] = chosen
