"""Other models of the features, tried in turn until the knockoffs look good; the target is not looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numpy.random import Generator

from knockoffs.errors import InputError
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import Table
from knockoffs.validity.verdict import WORDS, Verdict, verdict

if TYPE_CHECKING:
    from knockoffs.features.source import KnockoffSource, Settled


@dataclass(frozen=True)
class Repaired:
    """A source of knockoffs that tries several, in order, and keeps the first whose knockoffs look good.

    Where none does, the one with the mildest verdict is kept, of the same the one with the largest p-value. Which one
    it is depends on X and on random numbers alone, so the promise is that of the P^X that is kept.

    Parameters
    ----------
    sources : mapping
        What to call it -> KnockoffSource; the first is what was asked for.
    """

    sources: Mapping[str, KnockoffSource]

    def read(self, X: Any, **options: Any) -> Table:
        """Read a table as the first source takes it."""
        return next(iter(self.sources.values())).read(X, **options)

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> Settled:
        """Settle P^X by the first source whose knockoffs look good."""
        tried: list[tuple[str, Settled, Verdict]] = []
        for (name, source), stream in zip(self.sources.items(), rng.spawn(len(self.sources)), strict=True):
            fit_stream, draw_stream, verdict_stream = stream.spawn(3)
            try:
                settled = source(table, rng=fit_stream, n_jobs=n_jobs)
            except InputError:
                if not tried and name == list(self.sources)[-1]:
                    raise
                continue
            drawn = settled.sampler.sample(table.X, draw_stream)
            pair = Pair(drawn.X, drawn.X_tilde, table.feature_of)
            found = verdict(pair, names=table.names, kinds=table.kinds, rng=verdict_stream, n_jobs=n_jobs)
            tried.append((name, settled, found))
            if found.word == "good":
                break
        name, settled, best = min(tried, key=lambda one: (WORDS.index(one[2].word), -one[2].p_value))
        words = "; ".join(f"{how}: {found.word}" for how, _, found in tried)
        ending = "" if best.word == "good" else ", and none of them looks good: read the selection with care"
        said = f"of the models of the features that were tried ({words}) {name!r} is used{ending}"
        return replace(settled, notes={**settled.notes, "repair": said})
