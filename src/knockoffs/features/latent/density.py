"""The density of a row under the latent model: L is integrated over the cells by importance sampling."""

from __future__ import annotations

from math import inf, log, pi

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knockoffs.features.latent.cells import FREE, INTERVAL, LOSER, POINT, WINNER
from knockoffs.features.latent.normals import draw_normal, draw_truncated, log_interval, seed_row


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
    """Log sum_k weights_k N(cells; mean_k, F_k F_k^T), shape (n,), by the sampler of Geweke, Hajivassiliou and Keane.

    Coordinates are drawn in order, each given those before it and its cell; the product of the probabilities of the
    cells (densities at points) is an unbiased estimate. It is exact where every cell is a point, and where the only
    other cells come last and are one.
    """
    n, D = start.shape
    value = np.empty(n)
    z, l, state = np.empty(D), np.empty(D), np.empty(4, np.uint64)  # noqa: E741
    terms = np.empty(len(log_weights) * n_draws)
    for i in range(n):
        seed_row(key, i, state)
        t = 0
        for k in range(len(log_weights)):
            F, mean = factors[k], means[k]
            for _ in range(n_draws):
                total = log_weights[k] - log(n_draws)
                winner = -1
                for j in range(D):
                    if j == first[j]:
                        winner = -1
                    centre = mean[j]
                    for b in range(j):
                        centre += F[j, b] * z[b]
                    sd, s = F[j, j], status[i, j]
                    if s == POINT:
                        z[j] = (start[i, j] - centre) / sd
                        total -= 0.5 * z[j] * z[j] + 0.5 * log(2 * pi) + log(sd)
                        l[j] = start[i, j]
                        continue
                    a, b_ = -inf, inf
                    if s == INTERVAL:
                        a, b_ = low[i, j], high[i, j]
                    elif s == WINNER:
                        best = 0.0
                        for b in range(first[j], j):
                            best = max(best, l[b] + offset[b])
                        a, winner = best - offset[j], j
                    elif s == LOSER and winner >= 0:
                        b_ = l[winner] + offset[winner] - offset[j]
                    if s == FREE or (a == -inf and b_ == inf):
                        z[j] = draw_normal(state)
                    else:
                        a, b_ = (a - centre) / sd, (b_ - centre) / sd
                        total += log_interval(a, b_)
                        z[j] = draw_truncated(a, b_, state)
                    l[j] = centre + sd * z[j]
                terms[t] = total
                t += 1
        top = terms.max()
        value[i] = top + np.log(np.exp(terms - top).sum())
    return value
