"""verdict: one word about a selection, good, doubtful or broken, with its reasons and what was tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.classifier import check_classifier
from knockoffs.diagnostics.margins import check_margins
from knockoffs.diagnostics.moments import check_moments
from knockoffs.diagnostics.near_duplicates import Twin, find_twins
from knockoffs.diagnostics.remedies import Remedy, as_table
from knockoffs.diagnostics.scores import link_scores, pooled_ranks
from knockoffs.diagnostics.sign_tests import Check
from knockoffs.diagnostics.support import check_support, round_alike
from knockoffs.diagnostics.trial import Trial
from knockoffs.errors import InputError, name_some
from knockoffs.sampling.pair import Pair
from knockoffs.table.types import Json

WORDS = ("good", "doubtful", "broken")


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


def verdict(
    pair: Pair,
    *,
    names: Sequence[str],
    kinds: Sequence[str] | None = None,
    rng: Generator,
    most_rows: int = 5000,
    most_columns: int = 300,
    most_rows_of_trees: int = 3000,
) -> Verdict:
    """Check whether X_tilde is exchangeable with X, without the target.

    Parameters
    ----------
    pair : Pair
        X and the knockoffs that the selection uses.
    names : sequence of str
        Of the columns, or of the features.
    kinds : sequence of str, optional
        "continuous", "count", "ordinal", "binary" or "nominal" for each column; numbers if left out.
    rng : numpy.random.Generator
    most_rows : int
        Rows that are looked at, drawn at random.
    most_columns : int
        Columns whose pairs are looked at, drawn at random. Support, margins and twins are of all columns, the trees of
        the 100 whose margins differ most.
    most_rows_of_trees : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> verdict(Pair(X, rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'good'
    >>> verdict(Pair(X, X + rng.standard_normal((500, 5)), np.arange(5)), names="abcde", rng=rng).word
    'broken'
    """
    named, sorts = check_columns(pair, names, kinds)
    row_rng, column_rng, half_rng, tree_rng = rng.spawn(4)
    some = some_rows(pair, most_rows, row_rng)
    columns, feature_of = some_columns(pair, most_columns, column_rng)
    support, twins = check_support(some, named, sorts), find_twins(some, named, sorts)
    rounded = round_alike(some, sorts)
    ranked = pooled_ranks(rounded)
    margins = check_margins(rounded, named, sorts, ranked)
    few = rounded
    if len(columns) < pair.n_columns:
        few = Pair(rounded.X[:, columns], rounded.X_tilde[:, columns], feature_of)
        ranked = ranked[0][:, columns], ranked[1][:, columns]
    scores = link_scores(few, tuple(sorts[j] for j in columns), ranked)
    n_checked = len(some)
    del some, ranked  # as soon as they are not needed: each is as large as the table
    pairs = check_moments(few, scores, tuple(named[j] for j in columns), half_rng)
    for_trees = rounded.rows(row_rng.permutation(n_checked)[:most_rows_of_trees])
    trees = check_classifier(for_trees, sorts, tree_rng)
    checks = (support, margins, pairs, trees)
    word, p, failed = combine(checks)
    return Verdict(word, n_checked, p_value=p, checks=checks, failed=failed, twins=twins)


def combine(
    checks: Sequence[Check], *, doubtful: float = 0.05, broken: float = 0.01, matters: float = 0.1
) -> tuple[str, float, tuple[Check, ...]]:
    """Word, p-value (Bonferroni over the checks) and the checks that failed, the surest first.

    ``doubtful`` and ``broken`` are levels of the p-value, so the rates of false alarms; ``matters`` is the effect from
    which on a sure difference breaks the guarantee: 55 signs in 100 the same.
    """
    n = len(checks)
    found = sorted((one for one in checks if one.p_value * n < doubtful), key=lambda one: (one.p_value, -one.effect))
    breaks = any(one.p_value * n < broken and one.effect >= matters for one in found)
    p = min(1.0, n * min(one.p_value for one in checks))
    return ("broken" if breaks else "doubtful" if found else "good"), p, tuple(found)


def check_columns(
    pair: Pair, names: Sequence[str], kinds: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name and kind of every column."""
    if pair.X.shape != pair.X_tilde.shape:
        raise InputError(f"X has shape {pair.X.shape}, its knockoffs {pair.X_tilde.shape}: expected the same.")
    if len(pair) < 6:
        raise InputError(f"the pair has {len(pair)} rows: nothing can be checked with fewer than 6.")
    named = [str(name) for name in names]
    if len(named) == pair.n_features != pair.n_columns:
        named = [named[feature] for feature in pair.feature_of]
    if len(named) != pair.n_columns:
        raise InputError(f"names has {len(named)} entries: expected {pair.n_columns}, one for each column.")
    sorts = ["continuous"] * pair.n_columns if kinds is None else [str(kind) for kind in kinds]
    if len(sorts) != pair.n_columns:
        raise InputError(f"kinds has {len(sorts)} entries: expected {pair.n_columns}, one for each column.")
    return tuple(named), tuple(sorts)


def some_rows(pair: Pair, most: int, rng: Generator) -> Pair:
    """Random part of the rows, in random order, as floats: codes and truth values cannot be subtracted."""
    some = pair.rows(rng.permutation(len(pair))[:most])
    return Pair(np.asarray(some.X, dtype=float), np.asarray(some.X_tilde, dtype=float), some.feature_of)


def some_columns(pair: Pair, most: int, rng: Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose features at random, at most ``most`` columns of them (or one feature): their columns, and their owners."""
    if pair.n_columns <= most:
        return np.arange(pair.n_columns), pair.feature_of
    features = rng.permutation(pair.n_features)
    sizes = np.bincount(pair.feature_of)[features].cumsum()
    chosen = np.sort(features[: max(int((sizes <= most).sum()), 1)])
    columns = np.flatnonzero(np.isin(pair.feature_of, chosen))
    return columns, np.searchsorted(chosen, pair.feature_of[columns])
