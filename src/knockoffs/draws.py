"""A draw of knockoffs, scored: the one random swap is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, Self

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.features.source import FittedSampler, KnockoffSource
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Scored, Statistic
from knockoffs.machine.parallel import parallel_map
from knockoffs.machine.threads import trim_memory
from knockoffs.progress import stage, track
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.table.target import Target


@dataclass(frozen=True)
class Draw:
    """One draw of knockoffs (the first of several), its scores, notes, and the model score that was used."""

    pair: Pair
    scores: Scores
    notes: Mapping[str, str]
    used: ModelScore | None


@dataclass(frozen=True)
class Streams:
    """Random streams of one selection: what is drawn for one purpose never changes what is drawn for another."""

    fit: Generator
    draw: Generator
    verdict: Generator
    test: Generator

    def draws(self, n: int) -> list[Generator]:
        """One stream for each draw of knockoffs."""
        return self.draw.spawn(n)


class Rest(Protocol):
    """The rows of a table that are not in memory: they are read in batches, and scores are sums over these."""

    @property
    def fitted(self) -> FittedSampler:
        """P^X, after ``fit``."""
        ...

    def fit(self, source: KnockoffSource, *, rng: Generator, n_jobs: int | None = None) -> Self:
        """Return the same rows with P^X fitted."""
        ...

    def score(
        self,
        statistic: Statistic,
        swapped: Pair,
        target: Target,
        place: NDArray[np.intp],
        *,
        rng: Generator,
        batches: Generator,
        n_jobs: int | None = None,
    ) -> tuple[Scored, NDArray[np.bool_]]:
        """Scores of all rows after the swap, and which features equal their knockoffs in every row.

        ``swapped`` and ``target`` are those of the rows in memory; other rows are swapped by the same ``place``, and
        batch number k has its knockoffs from stream number k of ``batches``.
        """
        ...

    def keep_knockoffs(self, pair: Pair, *, batches: Generator, n_jobs: int | None = None) -> None:
        """Write the knockoffs of all rows, if that is asked for; ``pair`` is that of the rows in memory."""
        ...


def draw_many(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    streams: Sequence[Generator],
    n_jobs: int | None,
    *,
    m: int = 1,
    rest: Rest | None = None,
) -> list[Draw]:
    """Several draws; only the first keeps its knockoffs.

    Draws of rows in memory run in parallel. With other rows each draw reads them once, and its batches run in parallel.
    """
    work = partial(draw_and_score, sampler, table, target, statistic, m=m, rest=rest)
    if len(streams) == 1:
        return [work(rng=streams[0], n_jobs=n_jobs, keep=True)]
    if rest is not None:
        return [_first_alone(work, stream, i, n_jobs) for i, stream in enumerate(streams)]
    tasks = (delayed(_first_alone)(work, stream, i) for i, stream in enumerate(streams))
    return list(track(parallel_map(tasks, n_jobs), "draws of knockoffs", total=len(streams)))


def _first_alone(work: Callable[..., Draw], stream: Generator, i: int, n_jobs: int | None = None) -> Draw:
    draw = work(rng=stream, n_jobs=n_jobs, keep=i == 0)
    return draw if i == 0 else replace(draw, pair=draw.pair.rows(slice(0)))


def draw_and_score(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    m: int = 1,
    rest: Rest | None = None,
    keep: bool = False,
) -> Draw:
    """Draw of m knockoffs of each feature, with the scores of features and knockoffs.

    Parameters
    ----------
    sampler : KnockoffSampler
    table, target : Table, Target
        Of the rows in memory.
    statistic : Statistic
    rng : numpy.random.Generator
    n_jobs : int, optional
    m : int
        Knockoffs of each feature.
    rest : Rest, optional
        Other rows, which are read in batches.
    keep : bool
        Whether the knockoffs of other rows may be written.
    """
    if m > 1 and not isinstance(statistic, ModelScore | BestOf):
        raise InputError(f"n_knockoffs={m}: a user-defined statistic compares a feature with one knockoff.")
    draw_stream, swap_stream, score_stream, batch_stream = rng.spawn(4)
    stage("drawing knockoffs")
    trim_memory()
    drawn = draw_pair(sampler, table.X, draw_stream, m)
    for knockoffs in drawn.parts[1:]:
        refuse_gaps(knockoffs, table)
    pair = replace(drawn, feature_of=check_swaps(drawn.feature_of, table.feature_of))
    known = pair.rows(target.known_rows)  # P^X uses the rows without a target too
    seen = known.without_knockoffs(table.covariate_columns).map(design(table.columns, table.feature_of))
    stage("scoring features and knockoffs")
    trim_memory()
    swapped, place = swap_at_random(seen, swap_stream)
    if rest is None:
        scored, copied = statistic(swapped, target, rng=score_stream, n_jobs=n_jobs), seen.copied
    else:
        streams = {"rng": score_stream, "batches": batch_stream}
        scored, copied = rest.score(statistic, swapped, target, place, **streams, n_jobs=n_jobs)
        if keep:
            rest.keep_knockoffs(pair, batches=batch_stream, n_jobs=n_jobs)
    scored = scored.put_back(place).tie(copied)
    scores = scored.scores.first(len(table.feature_names))  # covariates are numbered last
    return Draw(replace(pair, more=()), scores, scored.notes, scored.used)


def swap_at_random(pair: Pair, rng: Generator) -> tuple[Pair, NDArray[np.intp]]:
    """Pair after a random swap of each feature with its knockoffs, and the place of each, for ``Scores.put_back``.

    The only random swap there is. With it flip-sign holds in distribution for every statistic, even one that depends
    on the order of its columns.
    """
    place = random_places(pair.m, pair.n_features, rng)
    return pair.permute(place), place


def random_places(m: int, n_features: int, rng: Generator) -> NDArray[np.intp]:
    """Random order of each feature and its m knockoffs, shape (m + 1, n_features)."""
    if m == 1:
        S = rng.random(n_features) < 0.5
        return np.stack([S, ~S]).astype(np.intp)
    return rng.permuted(np.tile(np.arange(m + 1), (n_features, 1)), axis=1).T


def check_swaps(exchangeable: NDArray[np.intp], feature_of: NDArray[np.intp]) -> NDArray[np.intp]:
    """Features of the table, if its knockoffs can be swapped so: a group of P^X must not be split."""
    first = np.unique(exchangeable, return_index=True)[1][exchangeable]
    bad = np.flatnonzero(feature_of != feature_of[first])
    if bad.size:
        raise InputError(
            f"columns {first[bad[0]]} and {bad[0]} are one feature of P^X (its feature_of) and two of the table: their "
            "knockoffs cannot be swapped one by one. Make them one of the table too: groups=, a label for each column."
        )
    return feature_of


def refuse_gaps(X_tilde: NDArray, table: Table) -> None:
    """Refuse knockoffs that are not finite, as a user-defined P^X may draw: some models of y would accept them."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X_tilde.sum()):  # a finite sum has finite terms
            return
    bad = np.argwhere(~np.isfinite(X_tilde))
    if len(bad):
        row, column = bad[0]
        raise InputError(
            f"the knockoff of column {table.names[column]!r} is {X_tilde[row, column]} in row {row}: P^X, or a "
            "conjugate of its network, must draw numbers."
        )
