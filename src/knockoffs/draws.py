"""Draws of knockoffs, scored, of features and of groups of them: the one random swap is here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.errors import InputError
from knockoffs.features import Groupable
from knockoffs.features.given import Covariance, GivenKnockoffs
from knockoffs.features.source import Fitted, FittedSampler, KnockoffSource, settled
from knockoffs.filter import ErrorControl, Rule, check_draws, filter_statistics, several_statistics
from knockoffs.filter.e_values import ROUNDING, Combined, join_draws
from knockoffs.filter.localise import localise
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.importance.paths.moves import Fake
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Statistic
from knockoffs.machine.parallel import parallel_map, trim_memory, worthwhile_threads
from knockoffs.progress import stage, track
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.columns import design
from knockoffs.table.groups import Groups
from knockoffs.table.table import Table
from knockoffs.table.target import Target

if TYPE_CHECKING:
    from knockoffs.streaming.rest import RestOfTable


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


@dataclass(frozen=True)
class Resolution:
    """Groups of features that are judged besides the features themselves."""

    groups: Groups
    statistic: Statistic
    n_knockoffs: int  # knockoffs that a group is compared with
    weight: float  # share of the level


def draw_many(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    streams: Sequence[Generator],
    n_jobs: int | None,
    *,
    m: int = 1,
    rest: RestOfTable | None = None,
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


def coarser_resolutions(
    table: Table,
    source: KnockoffSource,
    control: ErrorControl | None,
    statistic: Callable[[int], Statistic],
    *,
    weight: float = 1 / 3,
    n_knockoffs: int = 5,
    few: float = 4.0,
) -> tuple[Resolution, ...]:
    """Resolutions of the table's own tree of columns, or that of near copies.

    A first discovery needs k >= 1 / (fdr m w) of them, m being the knockoffs and w the share of the level. So groups
    have a small share and several knockoffs, which are far from their columns still. Where P^X or the model of y takes
    one knockoff only, the resolutions of a tree have equal shares, and near copies are not looked for.

    ``control`` is None where single features are asked for, or must be. ``statistic`` gives that of groups for a number
    of knockoffs, or InputError where it takes one only. All coarser resolutions together have the share ``weight`` of
    the level. Near copies are looked for from ``few / fdr`` features on; fewer are better tested.
    """
    given = table.groups is not None and bool(table.groups.tree or table.groups.coarser)
    if control is None or control.level != "fixed" or control.offset != 1 or isinstance(source, GivenKnockoffs):
        if given:
            raise InputError("groups is a tree, which knockoffs use with resolution='auto' and level='fixed' alone.")
        return ()
    several = isinstance(source, Covariance) or isinstance(getattr(source, "model", None), Groupable)
    several |= isinstance(source, Fitted) and "groups" in source.family.takes and "fixed" not in source.family.takes
    several &= given or len(table.feature_names) * control.fdr >= few
    partitions = table.coarser_groups() if given or (several and not table.grouped) else ()
    if not partitions:
        return ()
    try:
        m = n_knockoffs if several else 1
        scored = statistic(m)
    except InputError:  # not a linear model
        if not given:
            return ()
        m, scored = 1, statistic(1)
    share = weight / len(partitions) if m > 1 else 1 / (len(partitions) + 1)
    return tuple(Resolution(groups, scored, m, share) for groups in partitions)


def regroup(
    source: KnockoffSource, fitted: FittedSampler, table: Table, *, rng: Generator, n_jobs: int | None = None
) -> FittedSampler:
    """P^X as it was fitted, with knockoffs for other groups of the same columns: those of ``table``."""
    model, how = fitted.model, source.how(n_jobs) if isinstance(source, Fitted) else {}
    if isinstance(model, Groupable):
        diagonal = getattr(source, "options", {}).get("diagonal", DEFAULT_DIAGONAL)
        return settled(model.regroup(table.feature_of, diagonal), how, table)
    if isinstance(source, Fitted) and not table.covariates:
        return settled(model, how, table)
    return source(table, rng=rng, n_jobs=n_jobs)  # a law that was given is not fitted


def feature_statistics(scores: Scores, rule: Rule) -> NDArray:
    """W, shape (n_features,): by the rule from one knockoff, or from the scores of several."""
    return several_statistics(scores.parts) if scores.more else rule(scores.Z, scores.Z_tilde)


def decide(
    W: NDArray,
    control: ErrorControl,
    coarser: Sequence[tuple[Resolution, NDArray]] = (),
    table: Table | None = None,
) -> dict[str, Any]:
    """Fields of a Selection that W decides: by one draw, by e-values of several, or by those of several resolutions.

    ``coarser`` has each coarser resolution, the finest first, and W of its groups, shape (n_draws, n_groups).
    """
    check_draws(W)
    if coarser and table is not None:
        return _discover(W, control, coarser, table)
    if len(W) == 1 and control.level == "fixed":
        return {"W": W[0], **vars(filter_statistics(W[0], control.fdr, control.offset, control.n_knockoffs))}
    joined = join_draws(W, control.fdr, control.level, control.offset, m=control.n_knockoffs)
    return {"W": W.mean(axis=0), "evidence": joined, "q_values": joined.levels, "selected": joined.selected}


def resolution_note(coarser: Sequence[Resolution], table: Table) -> dict[str, str]:
    """Note on the resolutions that were joined, under "resolution"; empty if there is one."""
    if not coarser:
        return {}
    sizes = " and ".join(f"{len(one.groups)} groups" for one in coarser)
    said = f"{len(table.feature_names)} features and {sizes} are judged, and joined by their e-values"
    alone = ": some columns are near copies; resolution='columns' judges single features alone"
    return {"resolution": said + ("" if table.grouped else alone)}


def _discover(
    W: NDArray, control: ErrorControl, coarser: Sequence[tuple[Resolution, NDArray]], table: Table
) -> dict[str, object]:
    """Disjoint discoveries, features or groups, by e-values of all resolutions."""
    d, fdr, groups = W.shape[1], control.fdr, [one for one, _ in coarser]
    columns = np.argsort(table.feature_of, kind="stable")[:d]  # of the features; covariates are numbered last
    found = localise(
        [W, *(w for _, w in coarser)],
        [np.arange(d), *(replace(table, groups=one.groups).feature_of[columns] for one in groups)],
        fdr,
        weights=[1 - sum(one.weight for one in groups), *(one.weight for one in groups)],
        n_knockoffs=[control.n_knockoffs, *(one.n_knockoffs for one in groups)],
    )
    selected = found.levels <= fdr * ROUNDING
    alone = [filter_statistics(w, fdr, control.offset, control.n_knockoffs).selected for w in W]
    promise = f"FDR <= {fdr:g}: the expected share of discoveries in which nothing matters is at most {fdr:g}."
    evidence = Combined(selected, d * found.e_values, np.mean(alone, axis=0), found.levels, fdr, promise)
    discoveries = [
        Discovery(
            tuple(table.feature_names[j] for j in group), float("nan"), float(found.levels[group[0]]), d * float(e)
        )
        for group, e in zip(found.groups, found.group_e_values, strict=True)
    ]
    largest = dict(zip(table.feature_names, W.mean(axis=0), strict=True))
    discoveries = sorted(discoveries, key=lambda one: (one.level, -max(largest[name] for name in one.features)))
    decided = {"selected": selected, "q_values": found.levels, "evidence": evidence, "discoveries": tuple(discoveries)}
    return {"W": W.mean(axis=0), **decided}


def draw_and_score(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    m: int = 1,
    rest: RestOfTable | None = None,
    keep: bool = False,
) -> Draw:
    """Draw of m knockoffs of each feature, with the scores of features and knockoffs.

    ``rest`` has the rows that are not in memory; their knockoffs may be written if ``keep``.
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
    scores = scored.scores.put_back(place).tie(copied).first(len(table.feature_names))  # covariates are numbered last
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


def follow_lambda(
    sampler: KnockoffSampler,
    table: Table,
    target: Target,
    statistic: ModelScore | BestOf,
    *,
    lams: NDArray,
    fake: Fake,
    rng: Generator,
    n_jobs: int | None = None,
) -> LambdaPath:
    """W of every feature along lambda, as a selection from a generator in the same state would follow it.

    The knockoffs, the fits and so W at lambda = 1 are those of a selection with the score Swap.
    """
    along = statistic.along_lambda(lams=lams, fake=fake)
    stream = Streams(*rng.spawn(4)).draw.spawn(1)[0]
    with worthwhile_threads(table.X.size):
        draw = draw_and_score(sampler, table, target.centred, along, rng=stream, n_jobs=n_jobs)
    loss = "" if draw.used is None else str(draw.used.options["loss"])
    return LambdaPath(lams, draw.scores.Z - draw.scores.Z_tilde, table.feature_names, loss)
