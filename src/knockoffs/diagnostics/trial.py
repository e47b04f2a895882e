"""Trial: how often features that do not matter were called on a table, and the word that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from knockoffs.table.types import Json


@dataclass(frozen=True)
class Called:
    """How often a feature, or a group of features, was called in trials in which it does not matter."""

    name: str
    called: int
    n: int


@dataclass(frozen=True)
class Trial:
    """Share of false calls over many trials with labels for which it is known what does not matter.

    Of tests the rate is the share of tests of null features with p <= level. Of knockoffs it is the level times how
    often null features beat their knockoffs for each time they are beaten, which bounds the false discovery rate.
    """

    method: str  # "conditional_test" or "knockoffs"
    level: float  # share of false calls that is allowed
    n: int  # trials
    rate: float
    low: float  # of the 90 % interval of the rate
    high: float
    word: str  # "good", "doubtful" or "broken"
    worst: tuple[Called, ...] = ()  # features called most often, a few, the most often first

    @property
    def sentence(self) -> str:
        """What was measured.

        >>> Trial("conditional_test", 0.1, 120, 0.09, 0.05, 0.15, "good").sentence
        'On this table, columns that do not matter were picked in 9 % of 120 trials (10 % allowed; 5 to 15 %).'
        """
        rate = f"{100 * self.rate:.0f} %"
        what = f"columns that do not matter were picked in {rate} of {self.n} trials"
        if self.method == "knockoffs":
            what = (
                f"features that do not matter beat their knockoffs so often that {rate} of discoveries would be false"
            )
        interval = f"{100 * self.level:.3g} % allowed; {100 * self.low:.0f} to {100 * self.high:.0f} %"
        if self.method == "knockoffs":
            interval += f"; {self.n} comparisons"
        named = ""
        if self.word != "good" and self.worst:
            first = self.worst[0]
            named = f" Most often {first.name!r}, in {first.called} of {first.n} trials in which it does not matter."
        return f"On this table, {what} ({interval}).{named}"

    @property
    def brief(self) -> str:
        """Word, rate and interval.

        >>> Trial("knockoffs", 0.1, 120, 0.09, 0.05, 0.15, "good").brief
        'good, 9 % (5 to 15 %)'
        """
        return f"{self.word}, {100 * self.rate:.0f} % ({100 * self.low:.0f} to {100 * self.high:.0f} %)"

    def to_dict(self) -> dict[str, Json]:
        """Values for json."""
        return {
            "method": self.method,
            "level": self.level,
            "n": self.n,
            "rate": self.rate,
            "interval": [self.low, self.high],
            "worst": [{"name": one.name, "called": one.called, "n": one.n} for one in self.worst],
        }


@dataclass(frozen=True)
class Outcomes:
    """Share of false calls of each trial so far."""

    values: NDArray  # shape (n,): 1 where a null feature was called by its test, or beat its knockoff; else 0
    # variance of the sum of the values where the level holds, in units of that of as many independent ones
    dispersion: float = 1.0
    m: int = 0  # knockoffs that a feature is compared with; 0 for tests

    def share(self, level: float, times: float) -> float:
        """Share of ones by which false calls are so many times as frequent as the level allows.

        >>> Outcomes(np.zeros(1)).share(0.1, 2.0), Outcomes(np.zeros(1), m=1).share(0.1, 1.0)
        (0.2, 0.5)
        """
        return times / (times + self.m) if self.m else min(times * level, (1 + level) / 2)

    def rate(self, level: float, share: float) -> float:
        """Rate of false calls by a share of ones."""
        return min(level * self.m * share / max(1 - share, 1e-9), 1.0) if self.m else share

    def evidence(self, level: float, *, harmless: float = 1.2, harmful: float = 2.0) -> float:
        """Log likelihood ratio of a harmful rate of false calls to a harmless one, both in units of the level."""
        p, q = self.share(level, harmless), self.share(level, harmful)
        calls = self.values.sum() * np.log(q / p) + (1 - self.values).sum() * np.log((1 - q) / (1 - p))
        return float(calls / self.dispersion)

    def decided(self, level: float, *, false_alarm: float = 0.05, miss: float = 0.1) -> bool:
        """Whether they decide for or against the level (Wald's sequential test).

        ``false_alarm`` and ``miss`` are the probabilities of a wrong word at a rate of 1.2 and of 2 times the level.

        >>> [Outcomes(np.array(tests)).decided(0.1) for tests in ([0] * 60, [0, 0, 0, 0, 0, 0, 1] * 9, [1, 0] * 10)]
        [True, False, True]
        """
        found = self.evidence(level)
        return not np.log(miss / (1 - false_alarm)) < found < np.log((1 - miss) / false_alarm)

    def judge(self, level: float, names: Sequence[str], *, clear: float = 1.0) -> Trial:
        """Trial with its rate, interval and word: doubtful from ``clear`` evidence on, broken from twice the level on.

        ``names`` has the null feature of each value.
        """
        share, n = float(self.values.mean()), len(self.values)
        rate, low, high = (self.rate(level, each) for each in (share, *wilson(share, n / self.dispersion)))
        word = "good" if self.evidence(level) <= clear else "broken" if rate >= 2 * level else "doubtful"
        method = "knockoffs" if self.m else "conditional_test"
        return Trial(method, level, n, rate, low, high, word, most_called(list(zip(names, self.values, strict=True))))


def most_called(called: Sequence[tuple[str, float]], most: int = 5) -> tuple[Called, ...]:
    """Features that were called at all, the highest share first; one trial more, not called, weighs down small numbers.

    >>> most_called([("a", 1), ("a", 1), ("b", 1), ("c", 0)])
    (Called(name='a', called=2, n=2), Called(name='b', called=1, n=1))
    """
    counts: dict[str, list[float]] = {}
    for name, one in called:
        count = counts.setdefault(name, [0.0, 0.0])
        count[0] += one
        count[1] += 1
    found = sorted(counts.items(), key=lambda item: -item[1][0] / (1 + item[1][1]))
    return tuple(Called(name, int(k), int(n)) for name, (k, n) in found if k)[:most]


def wilson(rate: float, n: float, confidence: float = 0.9) -> tuple[float, float]:
    """Wilson's interval of a share of n independent trials.

    >>> [round(end, 2) for end in wilson(0.1, 100)]
    [0.06, 0.16]
    """
    z = norm.ppf((1 + confidence) / 2)
    middle, half = rate + z**2 / (2 * n), z * np.sqrt(rate * (1 - rate) / n + (z / (2 * n)) ** 2)
    return float((middle - half) / (1 + z**2 / n)), float((middle + half) / (1 + z**2 / n))
