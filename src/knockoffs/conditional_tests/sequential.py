"""Randomization p-values by as many draws as needed (Besag and Clifford, 1991)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Randomization(NamedTuple):
    """A p-value, the number of draws behind it, and where the observed statistic lies among them.

    ``score`` is the observed statistic in standard deviations of the draws from their mean. It has no part in the error
    rate: it orders features whose p-value is the smallest possible.
    """

    p_value: float
    n_draws: int
    score: float


def sequential_p_value(
    observed: float, draw: Callable[[int], NDArray], *, max_draws: int, enough: int = 20, batch: int = 100
) -> Randomization:
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
        The standard error of a p-value that stops early is about p / sqrt(enough).
    batch : int
        Most draws made at a time; fewer at first, since most null features need few. The p-value is that of draws made
        one by one.

    >>> sequential_p_value(1.0, np.zeros, max_draws=99)[:2]
    (0.01, 99)
    >>> sequential_p_value(1.0, np.ones, max_draws=99, enough=5)[:2]
    (1.0, 5)
    """
    drawn: list[NDArray] = []
    done = reached = 0
    while done < max_draws:
        drawn.append(draw(min(batch, 2 * enough + done, max_draws - done)))
        larger = drawn[-1] >= observed
        if reached + larger.sum() >= enough:
            last = done + 1 + int(np.flatnonzero(larger)[enough - reached - 1])
            return Randomization(enough / last, last, _score(observed, drawn))
        reached += int(larger.sum())
        done += len(larger)
    return Randomization((1 + reached) / (1 + max_draws), max_draws, _score(observed, drawn))


def _score(observed: float, drawn: list[NDArray]) -> float:
    values = np.concatenate(drawn)
    spread = values.std()
    return float((observed - values.mean()) / spread) if spread > 0 else 0.0
