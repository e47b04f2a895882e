"""The whole procedure: table -> P^X -> knockoffs -> Z -> W -> selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.diagnostics.verdict import Budget, Verdict, small_budget
from knockoffs.diagnostics.verdict import verdict as give_verdict
from knockoffs.draws import Draw, draw_and_score, draw_many
from knockoffs.errors import InputError
from knockoffs.features.family import Conditional
from knockoffs.features.gaussian import GaussianFeatures
from knockoffs.features.source import FittedSampler, KnockoffSource
from knockoffs.filter import check_fdr, check_offset, difference
from knockoffs.filter.e_values import check_draws, join_draws
from knockoffs.filter.several import filter_several, several_statistics
from knockoffs.importance.model_choice import BestOf
from knockoffs.importance.paths.lambda_path import LambdaPath
from knockoffs.importance.paths.moves import Fake
from knockoffs.importance.scores import mean_of
from knockoffs.importance.several import SEVERAL
from knockoffs.importance.statistic import ModelScore, Statistic
from knockoffs.machine.malloc import trim_memory
from knockoffs.machine.threads import threads_by_table
from knockoffs.progress import stage
from knockoffs.sampling.pair import Pair
from knockoffs.selection import Selection
from knockoffs.table.columns import Column, design
from knockoffs.table.table import Table
from knockoffs.table.target import Target, as_target

FEWEST_JUDGED = 50  # rows, below which a verdict could see nothing
Rule = Callable[[NDArray, NDArray], NDArray]


def select_features(
    X: object,
    y: object,
    *,
    knockoffs: KnockoffSource,
    statistic: Statistic,
    rule: Rule = difference,
    fdr: float = 0.1,
    offset: int = 1,
    n_draws: int = 1,
    n_knockoffs: int = 1,
    level: str = "fixed",
    verdict: bool = False,
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
        P^X, and so the knockoffs: ``knockoff_source("gaussian")``, ``GivenModel(model)``, ...
    statistic : Statistic
        How features and knockoffs are scored: ``ModelScore(estimator, score)``, ``BestOf(candidates, loss)``, or any
        function of the pair and the target whose Z and Z_tilde change places where features do.
    rule : callable
        W from Z and Z_tilde, antisymmetric.
    fdr : float
        Target false discovery rate.
    offset : {1, 0}
        1 is knockoff+, which controls the FDR.
    n_draws : int
        Draws of knockoffs, joined by their e-values.
    n_knockoffs : int
        Knockoffs of every feature at once, of which it must beat all: one, or several where P^X has them.
    level : {"fixed", "post_hoc"}
        "post_hoc" chooses the level after looking, and states it.
    verdict : bool
        Whether the knockoffs are checked against the features.
    notes : mapping, optional
        What was chosen by default before, in words, to be kept with the answer.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Jobs at a time; the answer does not depend on it.

    Returns
    -------
    Selection
    """
    promise = ErrorControl(check_fdr(fdr), check_offset(offset), n_draws, level, n_knockoffs)
    check_antisymmetric(rule)
    check_several(promise, rule)
    table = knockoffs.read(X)
    return select_from(
        table,
        as_target(y, table),
        knockoffs=knockoffs,
        statistic=statistic,
        rule=rule,
        promise=promise,
        verdict=verdict,
        notes=notes,
        rng=rng,
        n_jobs=n_jobs,
    )


@dataclass(frozen=True)
class ErrorControl:
    """The level to hold and how: the offset of the threshold, the draws that are joined, fixed or chosen later.

    ``n_knockoffs`` is how many of them a feature is compared with in a draw.
    """

    fdr: float = 0.1
    offset: int = 1
    n_draws: int = 1
    level: str = "fixed"
    n_knockoffs: int = 1


@threads_by_table
def select_from(
    table: Table,
    target: Target,
    *,
    knockoffs: KnockoffSource,
    statistic: Statistic,
    rule: Rule,
    promise: ErrorControl,
    verdict: bool,
    notes: Mapping[str, str] | None,
    rng: Generator,
    n_jobs: int | None,
) -> Selection:
    """Select as ``select_features`` does, from what its source has read: nothing is checked again in here."""
    fdr, offset = promise.fdr, promise.offset
    settled, streams = fit_sampler(table, knockoffs, rng, n_jobs)
    rngs, m = streams.draws(promise.n_draws), promise.n_knockoffs
    draws = draw_many(settled.sampler, table, target, statistic, rngs, n_jobs, m)
    if m > 1:
        W = np.stack([several_statistics(draw.several) for draw in draws])
    else:
        W = np.stack([rule(draw.scores.Z, draw.scores.Z_tilde) for draw in draws])
    common = dict(
        feature_names=table.feature_names,
        fdr=fdr,
        method="knockoffs",
        offset=offset,
        pair=draws[0].pair,
        feature_model=settled.model,
        scores=mean_of([draw.scores for draw in draws]),
        draws=W,
        n_knockoffs=promise.n_knockoffs,
        verdict=judge(draws[0].pair, table, streams.verdict, verdict_budget(settled, statistic, table))
        if verdict
        else None,
        notes={**(notes or {}), **settled.notes, **draws[0].notes},
    )
    return Selection(**common, **decide(W, promise))  # type: ignore[arg-type]


def decide(W: NDArray, promise: ErrorControl) -> dict[str, Any]:
    """Fields of a Selection that W, shape (n_draws, n_features), decides: by one draw, or by e-values of several."""
    check_draws(W)
    if len(W) == 1 and promise.level == "fixed":
        return {"W": W[0], **vars(filter_several(W[0], promise.n_knockoffs, promise.fdr, promise.offset))}
    joined = join_draws(W, promise.fdr, promise.level, promise.offset, m=promise.n_knockoffs)
    return {"W": W.mean(axis=0), "evidence": joined, "q_values": joined.levels, "selected": joined.selected}


def select_by_tests(
    X: object,
    y: object,
    *,
    knockoffs: KnockoffSource,
    estimator: object = "best",
    fdr: float = 0.1,
    verdict: bool = False,
    notes: Mapping[str, str] | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> Selection:
    """Test every feature by the conditional randomization test: no knockoffs, no smallest number of discoveries.

    Parameters
    ----------
    X, y, fdr, verdict, notes, rng, n_jobs
        As in ``select_features``.
    knockoffs : KnockoffSource
        P^X, which must be able to draw a column given all the others.
    estimator : {"best", "lasso", "boosting"} or estimator
        Model of y without the feature.
    """
    table = knockoffs.read(X)
    return run_tests(
        table,
        as_target(y, table),
        knockoffs=knockoffs,
        estimator=estimator,
        fdr=fdr,
        verdict=verdict,
        notes=notes,
        rng=rng,
        n_jobs=n_jobs,
    )


@threads_by_table
def run_tests(
    table: Table,
    target: Target,
    *,
    knockoffs: KnockoffSource,
    estimator: object,
    fdr: float,
    verdict: bool,
    notes: Mapping[str, str] | None,
    rng: Generator,
    n_jobs: int | None,
) -> Selection:
    """Test as ``select_by_tests`` does, what its source has read."""
    from knockoffs.conditional_tests.tests import tested_features  # compiled code, which an import need not wait for

    settled, streams = fit_sampler(table, knockoffs, rng, n_jobs)
    law = settled.model
    if not isinstance(law, Conditional):
        raise InputError("this P^X cannot draw a feature given all the others: use method='knockoffs'.")
    pair = settled.sampler.sample(table.X, streams.draws(1)[0])  # which also fills the missing cells
    rows = np.arange(len(table)) if target.observed is None else np.flatnonzero(target.observed)
    said: dict[str, str] = {}
    if len(rows) > MOST_TESTED:  # drawn without a look at either side
        some = np.sort(streams.test.choice(len(rows), MOST_TESTED, replace=False))
        rows, target = rows[some], target.rows(some)
        said["rows"] = f"{MOST_TESTED:,} of the rows, drawn at random, are tested: more would take too long"
    tested = tested_features(
        law,
        pair.X[rows],
        target.values,
        kind=target.kind,
        fdr=fdr,
        rng=streams.test,
        n_jobs=n_jobs,
        names=table.feature_names,
        feature_of=table.feature_of,
        nominal=[j for j, kind in enumerate(table.kinds) if kind == "nominal"],
        response_model=estimator,
        encode=partial(_encode_without, table.columns),
    )
    return Selection(
        feature_names=table.feature_names,
        selected=tested.selected,
        q_values=tested.q_values,
        fdr=fdr,
        method="conditional_test",
        pair=pair,
        feature_model=settled.model,
        notes={**(notes or {}), **settled.notes, **said, **tested.notes},
        W=np.full(len(tested.p_values), np.nan),
        p_values=tested.p_values,
        test_scores=tested.scores,
        verdict=judge(pair, table, streams.verdict, Budget()) if verdict else None,
    )


def _encode_without(columns: Sequence[Column], rest: NDArray, own: NDArray[np.intp]) -> NDArray:
    """Columns other than its own for a model of y."""
    return design([column for i, column in enumerate(columns) if i not in own])(rest)


@dataclass(frozen=True)
class Streams:
    """Random streams of one selection: what is drawn for one purpose never moves what is drawn for another."""

    fit: Generator
    draw: Generator
    verdict: Generator
    test: Generator

    def draws(self, n: int) -> list[Generator]:
        """One stream for each draw of knockoffs."""
        return self.draw.spawn(n)


def fit_sampler(
    table: Table, knockoffs: KnockoffSource, rng: Generator, n_jobs: int | None
) -> tuple[FittedSampler, Streams]:
    """P^X, which is settled without a look at y, and the streams for what follows."""
    streams = Streams(*rng.spawn(4))
    stage("fitting P^X")
    return knockoffs(table, rng=streams.fit, n_jobs=n_jobs), streams


def verdict_budget(settled: FittedSampler, statistic: Statistic, table: Table) -> Budget:
    """Set what a verdict may cost: little where the selection itself does.

    That is a Gaussian P^X, or knockoffs that were brought along, with one linear model of y.
    """
    simple = settled.model is None or isinstance(settled.model, GaussianFeatures)
    linear = isinstance(statistic, ModelScore) and statistic.score in SEVERAL and statistic.rows == "in_sample"
    return small_budget(len(table.columns)) if simple and linear else Budget()


def judge(pair: Pair, table: Table, rng: Generator, budget: Budget) -> Verdict | None:
    """Verdict on the knockoffs; none of a table too small to tell."""
    if len(pair) < FEWEST_JUDGED:
        return None
    stage("comparing knockoffs with features")
    trim_memory()
    return give_verdict(pair, names=table.names, kinds=table.kinds, rng=rng, budget=budget)


def check_antisymmetric(rule: Rule) -> None:
    """Refuse a rule whose W does not change its sign where Z and Z_tilde change places, tried on random numbers."""
    Z, Z_tilde = np.random.default_rng(0).standard_normal((2, 64))
    W, back = np.asarray(rule(Z, Z_tilde)), np.asarray(rule(Z_tilde, Z))
    if W.shape != Z.shape or not np.allclose(W, -back, rtol=1e-9, atol=1e-12):
        raise InputError(
            "rule is not antisymmetric: rule(Z_tilde, Z) must be -rule(Z, Z_tilde), one number for each feature, or "
            "null features are not fair coins and the false discovery rate is not held."
        )


def check_several(promise: ErrorControl, rule: Rule) -> None:
    """Refuse what several knockoffs of a feature do not go together with."""
    if promise.n_knockoffs > 1 and rule is not difference:
        raise InputError(
            f"n_knockoffs={promise.n_knockoffs} and another rule: a feature that is compared with several knockoffs at "
            "once has W = the largest score less the median of the others. Leave one out."
        )


@threads_by_table
def follow_lambda(
    X: object,
    y: object,
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
    settled, streams = fit_sampler(table, knockoffs, rng, n_jobs)
    along = statistic.along_lambda(lams=lams, fake=fake)
    draw = draw_and_score(settled.sampler, table, target, along, rng=streams.draws(1)[0], n_jobs=n_jobs)
    loss = "" if draw.used is None else str(draw.used.options["loss"])
    return LambdaPath(lams, draw.scores.Z - draw.scores.Z_tilde, None, table.feature_names, loss), draw
