"""A draw of knockoffs, scored: the random swap, and the only one, stands here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.scores import NamedScores, Scores
from knockoffs.importance.several import score_copies
from knockoffs.importance.statistic import ModelScore, Scored, Statistic
from knockoffs.machine.malloc import trim_memory
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import stage, track
from knockoffs.sampling.copies import Copies
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.sampling.several import draw_copies
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.table.target import Target

Swappable = TypeVar("Swappable", Scored, Scores, NamedScores)


@dataclass(frozen=True)
class Draw:
    """One draw of knockoffs, and what the statistic said of it.

    Of several knockoffs a feature ``pair`` holds the first, ``scores`` the largest score of any as Z_tilde, and
    ``several`` the scores of all, shape (m + 1, n_features).
    """

    pair: Pair
    scores: Scores
    notes: Mapping[str, str]
    used: ModelScore | None
    several: NDArray = field(default_factory=lambda: np.empty((0, 0)))


def draw_many(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    streams: Sequence[Generator],
    n_jobs: int | None,
    n_knockoffs: int = 1,
) -> list[Draw]:
    """Several draws, at the same time where jobs allow; knockoffs are kept of the first alone."""
    one = draw_and_score if n_knockoffs == 1 else partial(draw_several, m=n_knockoffs)
    if len(streams) == 1:
        return [one(sampler, table, target, statistic, rng=streams[0], n_jobs=n_jobs)]
    tasks = (delayed(_draw)(one, sampler, table, target, statistic, stream, i == 0) for i, stream in enumerate(streams))
    return list(track(parallel_map(tasks, n_jobs), "draws of knockoffs", total=len(streams)))


def _draw(
    one: Callable[..., Draw],
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    stream: Generator,
    keep: bool,
) -> Draw:
    draw = one(sampler, table, target, statistic, rng=stream)
    return draw if keep else replace(draw, pair=draw.pair.rows(slice(0)))


def draw_and_score(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    *,
    rng: Generator,
    n_jobs: int | None = None,
) -> Draw:
    """Draw knockoffs, and score features and knockoffs."""
    draw_stream, swap_stream, score_stream = rng.spawn(3)
    stage("drawing knockoffs")
    trim_memory()
    drawn = sampler.sample(table.X, draw_stream)
    refuse_gaps(drawn.X_tilde, table)
    pair = Pair(drawn.X, drawn.X_tilde, check_swaps(drawn.feature_of, table.feature_of))
    known = pair.rows(target.known_rows)  # P^X uses the rows without a target too
    seen = known.map(design(table.columns, table.feature_of))
    stage("scoring features and knockoffs")
    trim_memory()
    score = partial(statistic, target=target, rng=score_stream, n_jobs=n_jobs)
    scored = score_swapped([seen], lambda pairs: [score(pairs[0])], [swap_stream])[0]
    return Draw(pair, scored.scores, scored.notes, scored.used)


def draw_several(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    *,
    m: int,
    rng: Generator,
    n_jobs: int | None = None,
) -> Draw:
    """Draw m knockoffs of every feature, let them change places with it at random, and score all of them."""
    if not isinstance(statistic, ModelScore | BestOf):
        raise InputError(f"n_knockoffs={m}: a statistic of one's own compares a feature with one knockoff.")
    draw_stream, swap_stream, score_stream = rng.spawn(3)
    stage("drawing knockoffs")
    trim_memory()
    drawn = draw_copies(sampler, table.X, m, draw_stream)
    for copy in drawn.parts[1:]:
        refuse_gaps(copy, table)
    copies = Copies(drawn.parts, check_swaps(drawn.feature_of, table.feature_of))
    seen = copies.rows(target.known_rows).map(design(table.columns, table.feature_of))
    stage("scoring features and knockoffs")
    trim_memory()
    place = random_places(m, copies.n_features, swap_stream)
    found, notes, used = score_copies(statistic, seen.permute(place), target, rng=score_stream, n_jobs=n_jobs)
    Z = np.empty_like(found)
    np.put_along_axis(Z, place, found, axis=0)  # every score back to the copy it is of
    Z[:, seen.copied] = Z.mean(axis=0)[seen.copied]  # rounding may tell columns by where they stand
    return Draw(copies.first, Scores(Z[0], Z[1:].max(axis=0)), notes, used, Z)


def random_places(m: int, n_features: int, rng: Generator) -> NDArray[np.intp]:
    """Random order of each feature and its m knockoffs, shape (m + 1, n_features)."""
    return rng.permuted(np.tile(np.arange(m + 1), (n_features, 1)), axis=1).T


def score_swapped(
    pairs: Sequence[Pair], score: Callable[[list[Pair]], Sequence[Swappable]], rngs: Sequence[Generator]
) -> list[Swappable]:
    """Score pairs, one or a batch, on randomly swapped columns, and swap the scores back.

    The only place with a random swap of one knockoff: flip-sign then holds in distribution for every statistic, even
    one that minds the order of its columns.

    Parameters
    ----------
    pairs : sequence of Pair
    score : callable
        Pairs -> what knows how to swap its scores, for each: ``Scored``, or ``Scores``.
    rngs : sequence of numpy.random.Generator
        One for each pair.
    """
    swaps = [rng.random(pair.n_features) < 0.5 for pair, rng in zip(pairs, rngs, strict=True)]
    scored = score([pair.swap(S) for pair, S in zip(pairs, swaps, strict=True)])
    return [one.swap(S).tie(pair.copied) for one, pair, S in zip(scored, pairs, swaps, strict=True)]


def check_swaps(exchangeable: NDArray[np.intp], feature_of: NDArray[np.intp]) -> NDArray[np.intp]:
    """Features of the table, where its knockoffs can be swapped so: a group of P^X must not be split."""
    first = np.unique(exchangeable, return_index=True)[1][exchangeable]
    bad = np.flatnonzero(feature_of != feature_of[first])
    if bad.size:
        raise InputError(
            f"columns {first[bad[0]]} and {bad[0]} are one feature of P^X (its feature_of) and two of the table: their "
            "knockoffs cannot be swapped one by one. Make them one of the table too: groups=, a label for each column."
        )
    return feature_of


def refuse_gaps(X_tilde: NDArray, table: Table) -> None:
    """Refuse knockoffs that are no numbers, as a law of one's own may draw: some models of y would take them."""
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
