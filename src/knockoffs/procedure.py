"""The whole procedure: a Plan says what is done, ``run`` does it: P^X -> knockoffs -> Z -> W -> selection, or tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.diagnostics.rows import warn_of_dependent_rows
from knockoffs.draws import Draw, Resolution, Streams, decide, draw_many, feature_statistics, regroup, resolution_note
from knockoffs.errors import InputError
from knockoffs.features import Conditional
from knockoffs.features.fixed import FixedDesign, known_rows
from knockoffs.features.source import FittedSampler, KnockoffSource, is_fixed
from knockoffs.filter import ErrorControl, Rule, check_antisymmetric, check_fdr, check_offset, difference
from knockoffs.filter.environments import join_environments
from knockoffs.importance.scores import mean_of
from knockoffs.importance.statistic import Statistic
from knockoffs.machine.parallel import worthwhile_threads
from knockoffs.progress import stage
from knockoffs.sampling.pair import Pair, stack_pairs
from knockoffs.selection import Selection
from knockoffs.table.columns import design
from knockoffs.table.dependent_rows import rows_with_target
from knockoffs.table.table import Table
from knockoffs.table.target import Target, as_target
from knockoffs.trials.verdict import verdict_by, verdict_of_knockoffs, verdict_of_tests

if TYPE_CHECKING:
    from knockoffs.conditional_tests.tests import GroupTests
    from knockoffs.streaming.rest import RestOfTable


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the work."""

    source: KnockoffSource  # P^X, and so the knockoffs: ``knockoff_source("gaussian")``, ``GivenModel(model)``, ...
    statistic: Statistic | None = None  # how features and knockoffs are scored. Conditional tests need none
    method: str = "knockoffs"  # "knockoffs" or "conditional_test"
    test_model: object = "best"  # "best", "lasso" or "boosting": model of y without the feature, for conditional tests
    # "columns" or "auto": for tests. "auto": of a tree of groups, whose finest rejections are the discoveries
    resolution: str = "auto"
    # for knockoffs. Groups that are judged besides the features; discoveries are then features or groups
    coarser: tuple[Resolution, ...] = ()
    rule: Rule = difference  # W from Z and Z_tilde, antisymmetric
    control: ErrorControl = ErrorControl()
    # whether it is tried how often features that do not matter are called; "full" takes four times as many trials
    verdict: bool | str = False
    notes: Mapping[str, str] = field(default_factory=dict)  # what was chosen by default, in words, kept with the answer

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        m = self.control.n_knockoffs
        if self.method != "knockoffs":
            if m > 1:
                raise InputError(f"n_knockoffs={m}: conditional tests draw none. Use method='knockoffs'.")
            return
        check_antisymmetric(self.rule)
        if m > 1 and self.rule is not difference:
            raise InputError(
                f"n_knockoffs={m} and another rule: a feature that is compared with several knockoffs at once has "
                "W = the largest score less the median of the others. Leave one out."
            )


@dataclass(frozen=True)
class Data:
    """The rows of a selection."""

    # the rows in memory: all, or a sample of a table that is larger than memory
    table: Table
    target: Target
    rest: RestOfTable | None = None  # the other rows of such a table, which are read in batches
    # shape (n,): cluster of each row, where rows belong together; its place in a block of rows in order, if ``spaced``
    clusters: NDArray[np.intp] | None = None
    spaced: bool = False
    rows: NDArray[np.intp] | None = None  # which rows of a table with clusters, or of a fixed design, these are

    def one_row_each(self, rng: Generator) -> Data:
        """One row of each cluster, or of each block, drawn at random among those whose target is known."""
        assert self.clusters is not None
        rows = rows_with_target(self.clusters, self.target, rng, spaced=self.spaced)
        return Data(self.table.rows(rows), replace(self.target.at(rows), observed=None), rows=rows)


def run(plan: Plan, data: Data, *, rng: Generator, n_jobs: int | None = None) -> Selection:
    """Select by a plan, from rows in memory or from a sample in memory and batches."""
    data = replace(data, target=data.target.centred)
    with worthwhile_threads(data.table.X.size):
        if data.clusters is None and data.rest is None and not is_fixed(plan.source):
            warn_of_dependent_rows(data.table, data.target)
        if data.clusters is None:
            fits = [_fit(plan, data, rng, n_jobs)]
        else:
            streams = [stream.spawn(2) for stream in rng.spawn(plan.control.n_draws)]
            whole = _fit(plan, data, rng.spawn(1)[0], n_jobs).fitted if data.spaced else None  # all rows in order
            fits = [_fit(plan, data.one_row_each(rows), stream, n_jobs, whole) for rows, stream in streams]
        return (_run_tests if plan.method == "conditional_test" else _run_knockoffs)(plan, fits, n_jobs)


@dataclass(frozen=True)
class FittedRows:
    """P^X fitted to rows, and the streams of what follows. Rows with clusters are fitted once for each draw."""

    data: Data
    fitted: FittedSampler
    streams: Streams


def _fit(plan: Plan, data: Data, rng: Generator, n_jobs: int | None, known: FittedSampler | None = None) -> FittedRows:
    streams = Streams(*rng.spawn(4))
    stage("modelling the features")
    if data.rest is None:
        if is_fixed(plan.source) and data.rows is None:
            table, target, rows = known_rows(data.table, data.target)
            data = Data(table, target, rows=rows)
        fitted = known or plan.source(data.table, rng=streams.fit, n_jobs=n_jobs)
        if isinstance(fitted.model, FixedDesign):
            data = replace(data, target=fitted.model.pad(data.target, streams.test))
        return FittedRows(data, fitted, streams)
    rest = data.rest.fit(plan.source, rng=streams.fit, n_jobs=n_jobs)
    return FittedRows(replace(data, rest=rest), rest.fitted, streams)


def _run_knockoffs(plan: Plan, fits: Sequence[FittedRows], n_jobs: int | None) -> Selection:
    """Draw knockoffs, score, and filter: all draws of one fit, or one draw of each."""
    control, statistic = plan.control, plan.statistic
    table, rest, fitted, streams = fits[0].data.table, fits[0].data.rest, fits[0].fitted, fits[0].streams
    n_draws = control.n_draws // len(fits)
    if statistic is None:
        raise InputError("a plan for knockoffs needs a statistic: ModelScore(estimator, score), for instance.")
    draws: list[Draw] = []
    for fit in fits:
        what = (fit.fitted.sampler, fit.data.table, fit.data.target, statistic, fit.streams.draw.spawn(n_draws))
        draws += draw_many(*what, n_jobs, m=control.n_knockoffs, rest=rest)
    W = np.stack([feature_statistics(draw.scores, plan.rule) for draw in draws])
    of_groups = [
        np.concatenate([_draw_groups(plan, one, fit, n_draws, n_jobs) for fit in fits]) for one in plan.coarser
    ]
    pair, found = draws[0].pair.rows(slice(len(table))), None  # a fixed design may have added rows
    if plan.verdict and rest is not None:
        found = verdict_by(None, pair, table, streams.verdict)
    elif plan.verdict:
        found = verdict_of_knockoffs(
            *(fitted, table, fits[0].data.target, draws[0].used or statistic, pair),
            partial(feature_statistics, rule=plan.rule),
            control.fdr,
            m=control.n_knockoffs,
            rng=streams.verdict,
            n_jobs=n_jobs,
            full=plan.verdict == "full",
        )
    return Selection(
        feature_names=table.feature_names,
        covariates=table.covariates,
        rows=fits[0].data.rows,
        fdr=control.fdr,
        method="knockoffs",
        offset=control.offset,
        pair=pair,
        feature_model=fitted.model,
        scores=mean_of([draw.scores.against_largest() for draw in draws]),
        draws=W,
        n_knockoffs=control.n_knockoffs,
        verdict=found,
        notes={**plan.notes, **fitted.notes, **draws[0].notes, **resolution_note(plan.coarser, table)},
        **decide(W, control, list(zip(plan.coarser, of_groups, strict=True)), table),
    )


def _draw_groups(plan: Plan, one: Resolution, fit: FittedRows, n_draws: int, n_jobs: int | None) -> NDArray:
    """W of the groups of a resolution, shape (n_draws, n_groups); P^X stays as it was fitted to the table."""
    streams, table = fit.streams.draw.spawn(n_draws), replace(fit.data.table, groups=one.groups)
    sampler = regroup(plan.source, fit.fitted, table, rng=streams[0], n_jobs=n_jobs).sampler
    draws = draw_many(sampler, table, fit.data.target, one.statistic, streams, n_jobs, m=one.n_knockoffs)
    return np.stack([feature_statistics(draw.scores, plan.rule) for draw in draws])


def _tests(plan: Plan, fit: FittedRows) -> tuple[GroupTests, Pair, dict[str, str]]:
    """Conditional randomization tests of groups of columns; X, complete, beside knockoffs; and notes."""
    from knockoffs.conditional_tests.tests import group_tests  # compiled code, which an import need not wait for

    table, target, streams = fit.data.table, fit.data.target, fit.streams
    law = fit.fitted.model
    if not isinstance(law, Conditional):
        raise InputError("this P^X cannot draw a feature given all the others: use method='knockoffs'.")
    fixed = np.random.default_rng(0)  # the seed moves the draws that p-values count, and nothing else
    pair = fit.fitted.sampler.sample(table.X, fixed)  # which also fills the missing cells
    rows = np.arange(len(table)) if target.observed is None else np.flatnonzero(target.observed)
    said: dict[str, str] = {}
    if len(rows) > MOST_TESTED:  # drawn without a look at either side
        some = np.sort(fixed.choice(len(rows), MOST_TESTED, replace=False))
        rows, target = rows[some], target.rows(some)
        said["rows"] = f"{MOST_TESTED:,} of the rows, drawn at random, are tested: more would take too long"
    tests = group_tests(
        law,
        pair.X[rows],
        target.values,
        kind=target.kind,
        rng=streams.test,
        nominal=[j for j, kind in enumerate(table.kinds) if kind == "nominal"],
        response_model=plan.test_model,
        encode=partial(_encode_without, table.rows(rows)),
    )
    return tests, pair, said


def _run_tests(plan: Plan, fits: Sequence[FittedRows], n_jobs: int | None) -> Selection:
    """Test features or groups of them: no knockoffs, no smallest number of discoveries."""
    from knockoffs.conditional_tests.resolution import discover
    from knockoffs.conditional_tests.tests import MergedTests, single_feature_tests

    fdr, first = plan.control.fdr, fits[0]
    table, fitted = first.data.table, first.fitted
    made = [_tests(plan, fit) for fit in fits]
    _, pair, notes = made[0]
    tests = made[0][0] if len(made) == 1 else MergedTests(tuple(one for one, _, _ in made))
    what = (tests, table.feature_names, table.feature_of, fdr, n_jobs)
    discoveries, judged = None, None
    grouped = plan.resolution == "auto" and hasattr(fitted.model, "resampler")
    if grouped:
        found = discover(*what, tree=None if table.groups is None else table.groups.tree)
        discoveries, q_values = found.discoveries, found.levels
        p_values, scores, notes = found.p_values, found.scores, notes | found.notes
    else:
        tested = single_feature_tests(*what)
        q_values, p_values, scores, notes = tested.q_values, tested.p_values, tested.scores, notes | tested.notes
        if plan.resolution == "auto":
            notes["resolution"] = "single features are tested: this P^X cannot draw groups of them"
    if plan.verdict:
        where, rng = (fitted, table, first.data.target, pair, fdr), first.streams.verdict
        full = plan.verdict == "full"
        judged = verdict_of_tests(made[0][0], *where, grouped=grouped, rng=rng, n_jobs=n_jobs, full=full)
    return Selection(
        feature_names=table.feature_names,
        covariates=table.covariates,
        rows=first.data.rows,
        selected=q_values <= fdr,
        q_values=q_values,
        discoveries=discoveries,
        fdr=fdr,
        method="conditional_test",
        pair=pair,
        feature_model=fitted.model,
        notes={**plan.notes, **fitted.notes, **notes},
        W=np.full(len(p_values), np.nan),
        p_values=p_values,
        test_scores=scores,
        verdict=judged,
    )


def _encode_without(table: Table, rest: NDArray, own: NDArray[np.intp]) -> NDArray:
    """Columns other than its own for a model of y, and derived columns that these determine."""
    others = design([column for i, column in enumerate(table.columns) if i not in own])(rest)
    return np.hstack([others, table.derived_without(own)])


def run_environments(
    plan: Plan,
    data: Data,
    sites: Mapping[str, NDArray[np.intp]],
    at_least: int,
    *,
    rng: Generator,
    n_jobs: int | None = None,
) -> Selection:
    """Select what matters in at least so many environments, whose rows ``sites`` holds by name: P^X and W of each."""
    *streams, coins = rng.spawn(len(sites) + 1)
    found: dict[str, Selection] = {}
    for (name, rows), stream in zip(sites.items(), streams, strict=True):
        stage(f"environment {name}")
        try:
            found[name] = run(plan, Data(data.table.rows(rows), data.target.at(rows)), rng=stream, n_jobs=n_jobs)
        except InputError as error:
            raise InputError(f"environment {name!r}: {error}") from None
    every = list(found.values())
    rows = np.concatenate(
        [at if one.rows is None else at[one.rows] for at, one in zip(sites.values(), every, strict=True)]
    )
    order = np.argsort(rows)
    W, odds = join_environments([one.W for one in every], at_least, coins)
    verdicts = [one.verdict for one in every if one.verdict is not None]
    return replace(
        every[0],
        pair=stack_pairs([one.pair for one in every]).rows(order),
        rows=rows[order] if len(rows) < len(data.table) else None,
        scores=mean_of([one.scores for one in every if one.scores is not None]),
        verdict=min(verdicts, key=lambda one: ("broken", "doubtful", "good").index(one.word), default=None),
        environments={name: one.W for name, one in found.items()},
        at_least=at_least,
        draws=None,
        **decide(W[None], replace(plan.control, n_knockoffs=odds)),
    )


# ---- doors -------------------------------------------------------------------------------------------------------


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
    """Select the features that matter given all the others, and control the FDR at a given level.

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
        Knockoffs that every feature is compared with at once: one, or several if P^X has them.
    level : {"fixed", "post_hoc"}
        "post_hoc" chooses the level after looking, and states it.
    verdict : bool
        Whether the knockoffs are compared with the features.
    notes : mapping, optional
        What was chosen by default before, in words, kept with the answer.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Jobs at a time; the answer does not depend on it.
    """
    control = ErrorControl(check_fdr(fdr), check_offset(offset), n_draws, level, n_knockoffs)
    plan = Plan(knockoffs, statistic, rule=rule, control=control, verdict=verdict, notes=notes or {})
    table = knockoffs.read(X)
    return run(plan, Data(table, as_target(y, table)), rng=rng, n_jobs=n_jobs)
