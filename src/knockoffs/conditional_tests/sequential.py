"""Randomization p-values by as many draws as needed (Besag and Clifford, 1991)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ENOUGH = 20  # draws at least as large as the observed one after which a p-value is settled: error p / sqrt(20)


def sequential_p_value(
    observed: float, draw: Callable[[int], NDArray], *, max_draws: int, enough: int = ENOUGH, batch: int = 100
) -> tuple[float, int]:
    """p-value of a statistic against draws from its null law, stopped early where it is large.

    Draws are made until ``enough`` of them are at least as large as the observed one, at the L-th, and p = enough /
    L; or until there are max_draws, and p = (1 + those at least as large) / (1 + max_draws). If the observed
    statistic and the draws are exchangeable, P(p <= a) <= a for every a, whatever ``enough`` is.

    Parameters
    ----------
    observed : float
    draw : callable
        Number of draws to statistics of as many fresh draws, shape (m,).
    max_draws : int
    enough : int
    batch : int
        Most draws made at a time; fewer at first, since most null features need few. The p-value is that of draws made
        one by one.

    Returns
    -------
    p : float
    n_draws : int
        L or max_draws.

    >>> sequential_p_value(1.0, np.zeros, max_draws=99)
    (0.01, 99)
    >>> sequential_p_value(1.0, np.ones, max_draws=99, enough=5)
    (1.0, 5)
    """
    done = reached = 0
    while done < max_draws:
        larger = draw(min(batch, 2 * enough + done, max_draws - done)) >= observed
        if reached + larger.sum() >= enough:
            last = done + 1 + int(np.flatnonzero(larger)[enough - reached - 1])
            return enough / last, last
        reached += int(larger.sum())
        done += len(larger)
    return (1 + reached) / (1 + max_draws), max_draws
