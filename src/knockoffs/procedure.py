"""The whole procedure: table -> P^X -> knockoffs -> Z -> W -> selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.features.source import KnockoffSource
from knockoffs.filter import check_fdr, check_offset, difference, knockoff_filter, knockoff_threshold, q_values
from knockoffs.importance.best import BestOf
from knockoffs.importance.lambda_path import Fake, LambdaPath
from knockoffs.importance.scores import NamedScores, Scores
from knockoffs.importance.statistic import ModelScore, Scored, Statistic
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.selection import Selection
from knockoffs.table.columns import design
from knockoffs.table.table import Table
from knockoffs.table.target import Target, as_target

Swappable = TypeVar("Swappable", Scored, Scores, NamedScores)


def select_features(
    X: Any,
    y: Any,
    *,
    knockoffs: KnockoffSource,
    statistic: Statistic,
    rule: Callable[[NDArray, NDArray], NDArray] = difference,
    fdr: float = 0.1,
    offset: int = 1,
    notes: Mapping[str, str] | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> Selection:
    """Select the features that matter given all the others, with the FDR held at the level asked for.

    Parameters
    ----------
    X : array, data frame or Table, shape (n, n_columns)
    y : array, series or Target, shape (n,)
    knockoffs : KnockoffSource
        P^X, and so the knockoffs: ``knockoff_source("gaussian")``, ``Given(model)``, ``Brought(X_tilde)``, ...
    statistic : Statistic
        How features and knockoffs are scored: ``ModelScore(estimator, score)``, ``BestOf(candidates, loss)``, or any
        function of the pair and the target whose Z and Z_tilde change places where features do.
    rule : callable
        W from Z and Z_tilde, antisymmetric.
    fdr : float
        Target false discovery rate.
    offset : {1, 0}
        1 is knockoff+, which controls the FDR.
    notes : mapping, optional
        What was chosen by default before, in words, to be kept with the answer.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Jobs at a time; the answer does not depend on it.

    Returns
    -------
    Selection
    """
    fdr, offset = check_fdr(fdr), check_offset(offset)
    table = knockoffs.read(X)
    target = as_target(y, table)
    fit_stream, draw_stream = rng.spawn(2)
    settled = knockoffs(table, rng=fit_stream, n_jobs=n_jobs)  # P^X, without a look at y
    draw = draw_and_score(settled.sampler, table, target, statistic, rng=draw_stream, n_jobs=n_jobs)
    W = rule(draw.scores.Z, draw.scores.Z_tilde)
    return Selection(
        feature_names=table.feature_names,
        scores=draw.scores,
        W=W,
        threshold=knockoff_threshold(W, fdr, offset=offset),
        q_values=q_values(W, offset=offset),
        selected=knockoff_filter(W, fdr, offset=offset),
        fdr=fdr,
        offset=offset,
        pair=draw.pair,
        feature_model=settled.model,
        notes={**(notes or {}), **settled.notes, **draw.notes},
    )


def follow_lambda(
    X: Any,
    y: Any,
    *,
    knockoffs: KnockoffSource,
    statistic: ModelScore | BestOf,
    lams: NDArray,
    fake: Fake,
    rng: Generator,
    n_jobs: int | None = None,
) -> tuple[LambdaPath, Draw]:
    """W of every feature along lambda, as a selection with the same arguments would follow it; and the draw.

    From a generator in the same state the knockoffs, the fits and so W at lambda = 1 are those of
    ``select_features`` with the score Swap.
    """
    table = knockoffs.read(X)
    target = as_target(y, table)
    fit_stream, draw_stream = rng.spawn(2)
    settled = knockoffs(table, rng=fit_stream, n_jobs=n_jobs)
    along = statistic.along_lambda(lams=lams, fake=fake)
    draw = draw_and_score(settled.sampler, table, target, along, rng=draw_stream, n_jobs=n_jobs)
    loss = "" if draw.used is None else str(draw.used.options["loss"])
    return LambdaPath(lams, draw.scores.Z - draw.scores.Z_tilde, None, table.feature_names, loss), draw


@dataclass(frozen=True)
class Draw:
    """One draw of knockoffs, and what the statistic said of it."""

    pair: Pair
    scores: Scores
    notes: Mapping[str, str]
    used: ModelScore | None


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
    drawn = sampler.sample(table.X, draw_stream)
    pair = Pair(drawn.X, drawn.X_tilde, check_swaps(drawn.feature_of, table.feature_of))
    known = pair if target.observed is None else pair.rows(target.observed)  # P^X uses the rows without a target too
    seen = known.map(design(table.columns, table.feature_of))
    score = partial(statistic, target=target, rng=score_stream, n_jobs=n_jobs)
    scored = score_swapped([seen], lambda pairs: [score(pairs[0])], [swap_stream])[0]
    return Draw(pair, scored.scores, scored.notes, scored.used)


def score_swapped(
    pairs: Sequence[Pair], score: Callable[[list[Pair]], Sequence[Swappable]], rngs: Sequence[Generator]
) -> list[Swappable]:
    """Score pairs, one or a batch, on randomly swapped columns, and swap the scores back.

    The only place with a random swap: flip-sign then holds in distribution for every statistic, even one that minds
    the order of its columns.

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
            f"columns {first[bad[0]]} and {bad[0]} are one feature of P^X and two of feature_of: their knockoffs "
            "cannot be swapped one by one. Pass the same feature_of to both."
        )
    return feature_of
