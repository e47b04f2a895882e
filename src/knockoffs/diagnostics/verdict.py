"""Verdict: one word about a selection, good, doubtful or broken, with its reasons and what was tried.

It rests on a trial: how often features that do not matter were called on the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.errors import name_some
from knockoffs.table.types import Json

if TYPE_CHECKING:
    from knockoffs.trials.remedies import Remedy

WORDS = ("good", "doubtful", "broken")

HARMLESS, HARMFUL = 1.2, 2.0  # rates of false calls in units of the level: the borders of the words


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
    worst: tuple[Called, ...] = ()  # features called most often, a few, the most often first

    @property
    def borders(self) -> tuple[float, float]:
        """Rates from which on it is doubtful and broken: 1.2 times the level, and twice the level."""
        harmless, harmful = (min(round(times * self.level, 6), (1 + self.level) / 2) for times in (HARMLESS, HARMFUL))
        return harmless, harmful

    @property
    def word(self) -> str:
        """Word by the figures that the sentence shows: good unless the interval lies above the first border.

        >>> [Trial("conditional_test", 0.1, 120, *shown).word for shown in ((0.17, 0.12, 0.24), (0.17, 0.121, 0.24))]
        ['good', 'doubtful']
        """
        harmless, harmful = self.borders
        return "good" if self.low <= harmless else "doubtful" if self.rate < harmful else "broken"

    @property
    def sentence(self) -> str:
        """What was measured, and what the word follows from.

        >>> Trial("conditional_test", 0.1, 120, 0.092, 0.057, 0.145).sentence.partition(" (")[2]
        '10 % allowed; 5.7 to 14.5 %).'
        """
        rate = percent(self.rate)
        what = f"columns that do not matter were picked in {rate} of {self.n} trials"
        if self.method == "knockoffs":
            what = (
                f"features that do not matter beat their knockoffs so often that {rate} of discoveries would be false"
            )
        harmless, harmful = (percent(border) for border in self.borders)
        by_word = {
            "good": f", not clearly above {harmless}" if self.low > self.level else "",
            "doubtful": f", clearly above {harmless}, and less than {harmful}",
            "broken": f", clearly above {harmless}, and {harmful} or more",
        }
        compared = f" in {self.n} comparisons" if self.method == "knockoffs" else ""
        interval = f"{percent(self.level)} allowed; {self.interval}{compared}{by_word[self.word]}"
        named = ""
        if self.word != "good" and self.worst:
            first = self.worst[0]
            named = f" Most often {first.name!r}, in {first.called} of {first.n} trials in which it does not matter."
        return f"On this table, {what} ({interval}).{named}"

    @property
    def interval(self) -> str:
        """Interval of the rate, in words."""
        return f"{100 * self.low:.3g} to {percent(self.high)}"

    @property
    def brief(self) -> str:
        """Word, rate and interval.

        >>> Trial("knockoffs", 0.1, 120, 0.09, 0.05, 0.15).brief
        'good, 9 % (5 to 15 %)'
        """
        return f"{self.word}, {percent(self.rate)} ({self.interval})"

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

    def evidence(self, level: float) -> float:
        """Log likelihood ratio of a harmful rate of false calls to a harmless one: twice and 1.2 times the level."""
        p, q = self.share(level, HARMLESS), self.share(level, HARMFUL)
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

    def judge(self, level: float, names: Sequence[str]) -> Trial:
        """Trial with its rate and interval, as they are shown: in tenths of a percent.

        ``names`` has the null feature of each value.
        """
        share, n = float(self.values.mean()), len(self.values)
        ends = wilson(share, n / self.dispersion)
        rate, low, high = (round(self.rate(level, each), 3) for each in (share, *ends))
        method = "knockoffs" if self.m else "conditional_test"
        return Trial(method, level, n, rate, low, high, most_called(list(zip(names, self.values, strict=True))))


def percent(share: float) -> str:
    """Share in words.

    >>> percent(0.145), percent(0.1)
    ('14.5 %', '10 %')
    """
    return f"{100 * share:.3g} %"


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
    return max(float((middle - half) / (1 + z**2 / n)), 0.0), float((middle + half) / (1 + z**2 / n))


@dataclass(frozen=True)
class Verdict:
    """What the trials and the checks found.

    Parameters
    ----------
    word : {"good", "doubtful", "broken"}
    n_rows : int
        Rows that were checked.
    trial : Trial, optional
        How often features that do not matter were called on this table: the word is by it. Without a target there is
        none, and the word is by the checks.
    rows : tuple of str
        How rows depend on each other, and what to type; empty where no dependence was seen.
    row_trial : Trial, optional
        The trial with that dependence kept in the labels: if it is clearly worse, the word is by it.
    p_value : float, optional
        Smallest p-value of the checks times their number: below a level with at most that probability if rows are
        independent and knockoffs exchangeable, for any number of rows.
    checks : tuple of Check
        Whether knockoffs can be told from features; empty where the trial is good.
    failed : tuple of Check
        Those that failed, the smallest p-value first.
    twins : tuple of Twin
        Features that cannot be found, because their knockoffs are nearly copies. Not part of the word.
    remedies : tuple of Remedy
        What was tried, with the rate of false calls that it reached; empty if nothing was tried.
    """

    word: str
    n_rows: int
    trial: Trial | None = None
    rows: tuple[str, ...] = ()
    row_trial: Trial | None = None
    p_value: float | None = None
    checks: tuple[Check, ...] = ()
    failed: tuple[Check, ...] = ()
    twins: tuple[Twin, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The worst columns, a few."""
        return tuple(dict.fromkeys(name for check in self.failed for name in check.columns))[:5]

    @property
    def rows_cost(self) -> bool:
        """Whether the trial that keeps the dependence of rows is not good, and clearly worse than the other."""
        if self.row_trial is None or self.trial is None:
            return False
        return self.row_trial.word != "good" and self.row_trial.low > self.trial.rate

    @property
    def headline(self) -> str:
        """What the word rests on, in one sentence or two."""
        if self.row_trial is not None and self.trial is not None and self.rows_cost:
            alone = f"If rows were independent, it would be {100 * self.trial.rate:.0f} %."
            return f"{self.row_trial.sentence} Rows depend on one another. {alone}"
        if self.trial is not None:
            return self.trial.sentence
        what = {
            "good": "no check failed",
            "doubtful": "a check failed: read the selection with care",
            "broken": "knockoffs are distinguishable from the features: the level is not guaranteed",
        }[self.word]
        chance = f"p = {self.p_value:.2g}" if (self.p_value or 1.0) > 1e-16 else "p < 1e-16"
        said = f"The knockoffs look {self.word}: {what} ({chance})."
        few = self.word == "good" and self.n_rows < 500  # from which the faults of docs/verdict.md are seen
        return f"{said}\nIn {self.n_rows} rows only gross faults can be seen." if few else said

    @property
    def next_step(self) -> str:
        """What to do about a word that is not good, what the trial named first."""
        if self.rows_cost:
            return self.rows[-1]
        return f"{self._remedy} Second, the rows: {self.rows[-1]}" if self.rows else self._remedy

    @property
    def _remedy(self) -> str:
        """The best of what was tried, or how to have it tried for the feature that was called most often."""
        name = "".join(repr(one.name) for one in self.trial.worst[:1]) if self.trial is not None else ""
        if not self.remedies or self.trial is None:
            what = f" for {name}" if name else ""
            return f"Try remedies{what}: knockoffs check TABLE --target TARGET, or KnockoffSelector(verdict='full')."
        best = min(self.remedies, key=lambda one: (WORDS.index(one.trial.word), one.trial.rate))
        if best.trial.word == "good":
            return f"Use {best.python} ({best.flags}): {best.trial.brief}."
        nearer = best.trial.rate < self.trial.rate
        nearest = f" The nearest is {best.python} ({best.flags}): {best.trial.brief}." if nearer else ""
        least = f"Trust {name} least, read the rest" if name else "Read the selection"
        return f"No remedy that was tried is good.{nearest} {least} as a ranking, and confirm it on new rows."

    def say(self) -> str:
        """Plain sentences: the word, what failed, what was tried, and what to do."""
        lines = [self.headline if self.trial is None else f"Verdict: {self.word}. {self.headline}"]
        lines += [" ".join(self.rows)] if self.rows else []
        lines += [check.sentence for check in self.failed]
        if self.twins:
            names = [name for twin in self.twins for name in twin.columns]
            lines.append(
                f"Nearly copies of their knockoffs (correlation {self.twins[-1].correlation:.2f} or more), so they are "
                f"unlikely to be selected: {name_some(names)}."
            )
        if self.remedies and self.trial is not None:
            lines += as_table(self.remedies, self.trial)
        if self.trial is not None and self.word != "good":
            lines.append(f"What to do: {self.next_step}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Json]:
        """Values for json."""
        return {
            "word": self.word,
            "n_rows": self.n_rows,
            "sentence": self.headline,
            "trial": None if self.trial is None else self.trial.to_dict(),
            "rows": list(self.rows),
            "row_trial": None if self.row_trial is None else self.row_trial.to_dict(),
            "p_value": self.p_value,
            "columns": list(self.columns),
            "checks": [asdict(check) for check in self.checks],
            "twins": [asdict(twin) for twin in self.twins],
            "remedies": [remedy.to_dict() for remedy in self.remedies],
        }


def as_table(remedies: Sequence[Remedy], trial: Trial) -> list[str]:
    """Lines of a table: what was tried, its word, rate and interval, and what to type."""
    rows = [("as it is", trial.brief, "")]
    rows += [(one.python, one.trial.brief, f"{one.flags}  {one.why}") for one in remedies]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    title = f"Tried, with the rate of wrong picks in trials ({percent(trial.level)} allowed):"
    return [title, *(f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)]
