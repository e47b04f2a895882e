"""Coordinates drawn in order, each given those before it and its cell: for densities, and for where chains start."""

from __future__ import annotations

from math import inf, log, pi

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.latent.cells import FREE, INTERVAL, LOSER, POINT, WINNER
from knockoffs.features.latent.normals import draw_normal, draw_truncated, log_interval, seed_row
from knockoffs.machine.compiled import njit


@njit(cache=True, nogil=True)
def _draw_in_order(
    status: NDArray,
    low: NDArray,
    high: NDArray,
    start: NDArray,
    offset: NDArray,
    first: NDArray,
    mean: NDArray,
    F: NDArray,
    z: NDArray,
    l: NDArray,  # noqa: E741
    state: NDArray,
) -> float:
    """Fill l = mean + F z, shape (D,), inside the cells of one row; return the log probability of the cells so met.

    The exponential of what is returned has the density of the cells as its mean (Geweke, Hajivassiliou, Keane).
    """
    total, winner = 0.0, -1
    for j in range(len(mean)):
        if j == first[j]:
            winner = -1
        centre = mean[j]
        for b in range(j):
            centre += F[j, b] * z[b]
        sd, s = F[j, j], status[j]
        if s == POINT:
            z[j] = (start[j] - centre) / sd
            total -= 0.5 * z[j] * z[j] + 0.5 * log(2 * pi) + log(sd)
            l[j] = start[j]
            continue
        least, most = -inf, inf
        if s == INTERVAL:
            least, most = low[j], high[j]
        elif s == WINNER:
            best = 0.0
            for b in range(first[j], j):
                best = max(best, l[b] + offset[b])
            least, winner = best - offset[j], j
        elif s == LOSER and winner >= 0:
            most = l[winner] + offset[winner] - offset[j]
        if s == FREE or (least == -inf and most == inf):
            z[j] = draw_normal(state)
            l[j] = centre + sd * z[j]
        else:
            a, b_ = (least - centre) / sd, (most - centre) / sd
            total += log_interval(a, b_)
            z[j] = draw_truncated(a, b_, state)
            l[j] = min(max(centre + sd * z[j], least), most)  # rounding must not leave the cell
    return total


@njit(cache=True, nogil=True)
def log_densities(
    status: NDArray,
    low: NDArray,
    high: NDArray,
    start: NDArray,
    offset: NDArray,
    first: NDArray,
    log_weights: NDArray,
    means: NDArray,
    factors: NDArray,
    key: NDArray,
    n_draws: int,
) -> NDArray:
    """Log sum_k weights_k N(cells; mean_k, F_k F_k^T), shape (n,), by n_draws draws of each class.

    It is exact where every cell is a point, and where the only other one comes last.
    """
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
                    + _draw_in_order(
                        status[i], low[i], high[i], start[i], offset, first, means[k], factors[k], z, l, state
                    )
                )
                t += 1
        top = terms.max()
        value[i] = top + np.log(np.exp(terms - top).sum())
    return value


@njit(cache=True, nogil=True)
def draw_starts(
    status: NDArray,
    low: NDArray,
    high: NDArray,
    start: NDArray,
    offset: NDArray,
    first: NDArray,
    mean: NDArray,
    F: NDArray,
    key: NDArray,
) -> NDArray:
    """L inside the cells of every row, shape (n, D), nearly as correlated as L is: where Gibbs sampling starts."""
    L = np.empty(start.shape)
    z, state = np.empty(start.shape[1]), np.empty(4, np.uint64)
    for i in range(len(L)):
        seed_row(key, i, state)
        _draw_in_order(status[i], low[i], high[i], start[i], offset, first, mean, F, z, L[i], state)
    return L
