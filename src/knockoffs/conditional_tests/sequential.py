"""Randomization p-values by as many draws as needed (Besag and Clifford, 1991)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln


class Randomization(NamedTuple):
    """A p-value, the number of draws behind it, and where the observed statistic lies among them.

    ``score`` is the observed statistic in standard deviations of the draws from their mean. It has no part in the error
    rate: it orders features whose p-value is the smallest possible.
    """

    p_value: float
    n_draws: int
    score: float


def sequential_p_value(
    observed: float,
    draw: Callable[[int], NDArray],
    *,
    max_draws: int,
    enough: int = 20,
    sure: int | None = None,
    batch: int = 100,
) -> Randomization:
    """p-value of a statistic against draws from its null law, stopped early where it is large or surely small.

    Draws are made until ``enough`` of them are at least as large as the observed one; or until there are ``sure`` of
    them and none is as large; or until there are max_draws. p is the probability of an end that speaks as much against
    the null hypothesis: 1 / (1 + sure) for the second; enough / L for the first, at the L-th draw, if L <= sure. If the
    observed statistic and the draws are exchangeable, P(p <= a) <= a for every a, whatever the three numbers are.

    Parameters
    ----------
    observed : float
    draw : callable
        Number of draws to statistics of as many fresh draws, shape (m,).
    max_draws : int
    enough : int
        The standard error of a p-value that stops early is about p / sqrt(enough).
    sure : int, optional
        By default max_draws.
    batch : int
        Most draws made at a time; fewer at first, since most null features need few. The p-value is that of draws made
        one by one.

    >>> sequential_p_value(1.0, np.zeros, max_draws=99)[:2], sequential_p_value(1.0, np.zeros, max_draws=99, sure=9)[:2]
    ((0.01, 99), (0.1, 9))
    >>> sequential_p_value(1.0, np.ones, max_draws=99, enough=5)[:2]
    (1.0, 5)
    """
    sure = max_draws if sure is None else min(sure, max_draws)
    drawn: list[NDArray] = []
    done = reached = 0
    while done < max_draws:
        end = sure if done < sure else max_draws
        drawn.append(draw(min(batch, 2 * enough + done, end - done)))
        larger = drawn[-1] >= observed
        if reached + larger.sum() >= enough:
            last = done + 1 + int(np.flatnonzero(larger)[enough - reached - 1])
            p = _probability(enough - 1, sure, last - 1) if last > sure else enough / last
            return Randomization(p, last, _score(observed, drawn))
        reached += int(larger.sum())
        done += len(larger)
        if done == sure and not reached:
            return Randomization(1 / (1 + sure), sure, _score(observed, drawn))
    return Randomization(_probability(reached, sure, max_draws), max_draws, _score(observed, drawn))


def _probability(reached: int, sure: int, n: int) -> float:
    """Probability that none of the first ``sure`` of n draws is as large as the observed one, or few of all n.

    The number as large is uniform on 0 .. n; given that it is k, none is among the first with probability
    C(n - sure, k) / C(n, k).
    """
    k = np.arange(min(reached, n - sure) + 1)
    none = np.exp(gammaln(n - sure + 1) - gammaln(n - sure - k + 1) - gammaln(n + 1) + gammaln(n - k + 1))
    return 1 / (1 + sure) + (1 + reached - none.sum()) / (1 + n)


def _score(observed: float, drawn: list[NDArray]) -> float:
    values = np.concatenate(drawn)
    spread = values.std()
    return float((observed - values.mean()) / spread) if spread > 0 else 0.0
