"""Randomization p-values by as many draws as needed: a group-sequential test whose p-value is exact."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import poisson


class Randomization(NamedTuple):
    """A p-value, the number of draws behind it, and where the observed statistic lies among them.

    ``score`` is the observed statistic in standard deviations of the draws from their mean. It has no part in the error
    rate: it orders features whose p-value is the smallest possible.
    """

    p_value: float
    n_draws: int
    score: float


class Looks(NamedTuple):
    """After how many draws those as large as the observed statistic are counted, and which counts end the draws.

    Attributes
    ----------
    n : tuple of int
        Draws made by each look, increasing. The last look is the end.
    low, high : tuple of int
        Draws end where the count is at most ``low`` or at least ``high``.
    """

    n: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


def fixed_looks(n_draws: int) -> Looks:
    """One look after n_draws draws: p = (1 + count) / (1 + n_draws)."""
    return Looks((n_draws,), (-1,), (0,))


@lru_cache(maxsize=256)
def plan_looks(
    levels: tuple[float, float], enough: int, *, doubt: float = 1e-3, first: int = 50, few: int = 30
) -> Looks:
    """Plan looks that end where p is surely below both levels, or surely above both, or known well enough.

    Parameters
    ----------
    levels : tuple of float
        Smallest and largest level that p may be compared with.
    enough : int
        Draws as large as the observed statistic that suffice: the standard error of p is then p / sqrt(enough). At most
        ``enough / levels[0]`` draws are made.
    doubt : float
        Probability of a count as small, or as large, where p equals the level.
    first : int
        Draws by the first look; their number doubles from look to look.
    few : int
        A count below this says little about the size of p, so draws end there only if it is 0.

    >>> looks = plan_looks((0.1, 0.1), 400)
    >>> looks.n, looks.low
    ((50, 100, 200, 400, 800, 1600, 3200, 4000), (-1, 0, 0, 0, 53, 121, 265, 339))
    """
    smallest, largest = levels
    end, n = max(int(np.ceil(enough / smallest)), first), [first]
    while n[-1] < end:
        n.append(min(2 * n[-1], end))
    low = [int(poisson.ppf(doubt, smallest * at)) - 1 for at in n]
    low = [most if most >= few else min(most, 0) for most in low]
    high = [min(max(int(poisson.isf(doubt, largest * at)) + 1, few), enough) for at in n]
    return Looks(tuple(n), tuple(low), tuple(high))


def sequential_p_value(
    observed: float, draw: Callable[[int], NDArray], looks: Looks, *, batch: int = 1000
) -> Randomization:
    """p-value of a statistic against draws from its null law, which end early where the answer is clear.

    p is the probability, if the observed statistic and the draws are exchangeable, of an end that is as extreme: a low
    count at an earlier look, or a count as low at this one. So P(p <= a) <= a for every a, whatever the looks are.

    Parameters
    ----------
    draw : callable
        Number of draws to statistics of as many fresh draws, shape (m,).
    batch : int
        Most draws made at a time.

    >>> sequential_p_value(1.0, np.zeros, fixed_looks(99))[:2]
    (0.01, 99)
    >>> sequential_p_value(1.0, np.zeros, plan_looks((0.1, 0.1), 400))[1:]
    (100, 0.0)
    """
    drawn: list[NDArray] = []
    done = count = 0
    for i, n in enumerate(looks.n):
        while done < n:
            drawn.append(draw(min(batch, n - done)))
            done += len(drawn[-1])
            count += int((drawn[-1] >= observed).sum())
        if not looks.low[i] < count < looks.high[i]:
            break
    return Randomization(probability(looks, i, count), done, _score(observed, drawn))


def probability(looks: Looks, i: int, count: int) -> float:
    """P(an end with a low count before look i, or a count of at most ``count`` at look i) under exchangeability.

    After n draws the count is uniform on 0 .. n. Given that it is k, that of m further draws is beta-binomial, with
    parameters k + 1 and n - k + 1.
    """
    if i == 0:
        return (1 + count) / (1 + looks.n[0])
    ended_low, going_on = _before(looks, i)
    return float(min(ended_low + going_on @ _transition(looks, i, len(going_on), count + 1).sum(axis=1), 1.0))


@lru_cache(maxsize=4096)
def _before(looks: Looks, i: int) -> tuple[float, NDArray]:
    """Probability of a low end before look i, and of going on past look i - 1 with each count."""
    if i == 1:
        ended_low, at = 0.0, np.full(max(min(looks.high[0], looks.n[0] + 1), 0), 1 / (1 + looks.n[0]))
    else:
        ended_low, going_on = _before(looks, i - 1)
        at = going_on @ _transition(looks, i - 1, len(going_on), looks.high[i - 1])
    lowest = max(looks.low[i - 1] + 1, 0)
    ended_low += at[:lowest].sum()
    return float(ended_low), np.append(np.zeros(min(lowest, len(at))), at[lowest:])


def _transition(looks: Looks, i: int, rows: int, columns: int) -> NDArray:
    """Probabilities of the counts 0 .. columns - 1 at look i, given each of 0 .. rows - 1 at the look before."""
    n, m = looks.n[i - 1], looks.n[i] - looks.n[i - 1]
    k, more = np.arange(rows)[:, None], np.arange(columns) - np.arange(rows)[:, None]
    j = np.clip(more, 0, m)
    ways = gammaln(m + 1) - gammaln(j + 1) - gammaln(m - j + 1) + gammaln(n + 2) - gammaln(n + m + 2)
    log_p = ways + gammaln(k + j + 1) + gammaln(n + m - k - j + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.where(more == j, np.exp(log_p), 0.0)


def _score(observed: float, drawn: list[NDArray]) -> float:
    values = np.concatenate(drawn)
    spread = values.std()
    return float((observed - values.mean()) / spread) if spread > 0 else 0.0
