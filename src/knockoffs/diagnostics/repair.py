"""Repair: the remedies of a verdict are done one after the other until the knockoffs look good; y is not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from knockoffs.diagnostics.remedies import FEW_CODES, Remedy
from knockoffs.diagnostics.verdict import WORDS, Verdict, verdict
from knockoffs.errors import InputError, name_some
from knockoffs.sampling.pair import Pair
from knockoffs.table.columns import recognise_kind
from knockoffs.table.groups import join_groups
from knockoffs.table.table import Kinds, Table

if TYPE_CHECKING:
    from knockoffs.features.source import FittedSampler, KnockoffSource

MOST_TRIED = 20  # fits of P^X, each with a verdict
FEWEST_ROWS = 50  # below, a verdict could see nothing
FEWEST_LEFT = 0.5  # share of the columns that is never left out


@dataclass(frozen=True)
class Ways:
    """Other sources of knockoffs that a repair may turn to; what they are is not known here.

    Parameters
    ----------
    any_table : KnockoffSource
        One that heeds the kind of every column.
    more_classes : mapping
        What to call it -> KnockoffSource, from the plainest to the richest.
    transform : callable
        (source, table, columns) -> the source fitted to normal scores of those columns, or None where it cannot be.
    """

    any_table: KnockoffSource
    more_classes: Mapping[str, KnockoffSource]
    transform: Callable[[KnockoffSource, Table, tuple[str, ...]], KnockoffSource | None]


@dataclass(frozen=True)
class Attempt:
    """A table and a source of knockoffs, what was settled with them, and the verdict."""

    table: Table
    source: KnockoffSource
    settled: FittedSampler
    found: Verdict

    @property
    def rank(self) -> tuple[int, float, float]:
        """The smaller the better: the word, how far the failed checks are off, and the p-value."""
        off = sum(check.effect for check in self.found.failed)
        return WORDS.index(self.found.word), round(off, 3), -self.found.p_value


@dataclass(frozen=True)
class Change:
    """A remedy that can be done: what to call it, and the table and the source after it.

    Parameters
    ----------
    for_power : bool
        Whether it is for features that could not be found, and not for the word.
    """

    what: str
    table: Table
    source: KnockoffSource
    for_power: bool = False


@dataclass(frozen=True)
class Ready:
    """A source that is settled already, for the table it was settled with."""

    settled: FittedSampler

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Give back the table."""
        assert isinstance(X, Table)
        return X

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Give back what was settled."""
        return self.settled


def repair(
    table: Table, source: KnockoffSource, ways: Ways, *, rng: Generator, n_jobs: int | None = None
) -> tuple[Table, KnockoffSource]:
    """Do what the verdict says, remedy by remedy, and keep each that makes it milder, until the knockoffs look good.

    Remedies are done in the order in which the verdict names them: another kind for a column, a transformation, another
    family and more classes, a group of columns whose knockoffs are twins, fewer columns, one at a time. What is kept
    depends on X and on random numbers alone, so the promise is that of the P^X, the groups and the columns that are
    kept: given these, and about these.

    Returns
    -------
    table : Table
        With other kinds, groups or fewer columns where that was done.
    source : KnockoffSource
        Settled; its notes say under "repair" what was done, or that it could not be.
    """
    if len(table) < FEWEST_ROWS:
        return table, source
    streams = iter(rng.spawn(1 + MOST_TRIED))
    best = judged(table, source, next(streams), n_jobs)
    story, done, tried = [f"as asked for: {best.found.word}"], [], set()
    for stream in streams:
        change = next((one for one in changes(best, ways, len(table.columns)) if one.what not in tried), None)
        if change is None:
            break
        tried.add(change.what)
        try:
            attempt = judged(change.table, change.source, stream, n_jobs)
        except InputError:
            story.append(f"{change.what}: not possible")
            continue
        gain = len(attempt.found.twins) < len(best.found.twins) if change.for_power else attempt.rank < best.rank
        kept = gain and attempt.rank[0] <= best.rank[0]
        story.append(f"{change.what}: {attempt.found.word}{'' if kept else ', undone'}")
        if kept:
            best = attempt
            done.append(change.what)
    return best.table, Ready(replace(best.settled, notes={**best.settled.notes, "repair": tell(story, done, best)}))


def judged(table: Table, source: KnockoffSource, rng: Generator, n_jobs: int | None) -> Attempt:
    """Settle P^X, draw knockoffs once, and give a verdict on them."""
    fit_stream, draw_stream, verdict_stream = rng.spawn(3)
    settled = source(table, rng=fit_stream, n_jobs=n_jobs)
    drawn = settled.sampler.sample(table.X, draw_stream)
    pair = Pair(drawn.X, drawn.X_tilde, table.feature_of)
    found = verdict(pair, names=table.names, kinds=table.kinds, rng=verdict_stream)
    return Attempt(table, source, settled, found)


def tell(story: list[str], done: list[str], best: Attempt) -> str:
    """Say what was tried, what was done, and whether it has helped."""
    tried = f"what was tried to repair the knockoffs, in turn: {'; '.join(story)}"
    if best.found.word == "good":
        return f"{tried}. Done: {', '.join(done) if done else 'nothing, they look good'}"
    return f"{tried}. Nothing makes them look good: read the selection with care"


# Changes


def changes(best: Attempt, ways: Ways, n_columns: int) -> Iterator[Change]:
    """Everything that the verdict's remedies ask for, in their order."""
    table, source = best.table, best.source
    for remedy in best.found.remedies:
        if remedy.action == "other_kind":
            yield from other_kinds(table, source, remedy, ways)
        elif remedy.action == "transformation":
            changed = ways.transform(source, table, remedy.columns)
            if changed is not None:
                yield Change(f"normal scores of {name_some(remedy.columns)}", table, changed)
        elif remedy.action == "more_classes":
            for name, other in ways.more_classes.items():
                yield Change(name, table, other)
        elif remedy.action == "group":
            joined = replace(table, groups=join_groups(table.groups, table.names, remedy.columns))
            yield Change(f"a group of {name_some(remedy.columns)}", joined, source, for_power=True)
        elif remedy.action == "fewer_columns" and len(table.columns) - 1 >= FEWEST_LEFT * n_columns:
            for column in remedy.columns:
                yield Change(f"without {column!r}", table.without([column]), source)


def other_kinds(table: Table, source: KnockoffSource, remedy: Remedy, ways: Ways) -> Iterator[Change]:
    """Kinds that the values of these columns suggest, together; then labels in place of numbers, one by one."""
    heeds = "kinds" in getattr(getattr(source, "family", None), "takes", ())
    family, said = (source, "") if heeds else (ways.any_table, ", by a family that heeds kinds")
    place = {name: j for j, name in enumerate(table.names)}
    kinds = {}
    for name in remedy.columns:
        column = table.columns[place[name]]
        looks = recognise_kind(table.X[:, place[name]], column.dtype, column.levels)[0]
        if looks != column.kind and column.levels is None:
            kinds[name] = looks
    if kinds:
        words = ", ".join(f"{name!r} is {kind}" for name, kind in kinds.items())
        yield Change(words + said, table.with_kinds(kinds), family)
    elif not heeds:
        yield Change(f"a family that heeds kinds, for {name_some(remedy.columns)}", table, family)
    for name in remedy.columns:
        j = place[name]
        few = len(np.unique(table.X[~np.isnan(table.X[:, j]), j])) <= FEW_CODES
        if few and table.columns[j].levels is None and table.columns[j].kind in ("count", "ordinal"):
            yield Change(f"{name!r} is nominal{said}", table.with_kinds({name: "nominal"}), family)
