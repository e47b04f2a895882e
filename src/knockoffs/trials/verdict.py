"""The verdict on a selection: a trial on the table's own columns, and where it is not good what is wrong with P^X."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.diagnostics.comparison import verdict as compare
from knockoffs.diagnostics.rows import find_dependence
from knockoffs.diagnostics.verdict import WORDS, Trial, Verdict
from knockoffs.errors import KnockoffWarning
from knockoffs.features.source import FittedSampler
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Statistic, is_linear
from knockoffs.machine.parallel import trim_memory
from knockoffs.progress import quietly, stage
from knockoffs.response import task_of
from knockoffs.response.linear import make_lasso
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.trials.knockoffs import some_rows, trial_of_knockoffs
from knockoffs.trials.labels import by_sets, shifted

if TYPE_CHECKING:
    from knockoffs.conditional_tests.tests import GroupTests

FEWEST_ROWS = 50  # of fewer a verdict could show nothing


def verdict_of_tests(
    tests: GroupTests,
    fitted: FittedSampler,
    table: Table,
    target: Target,
    pair: Pair,
    level: float,
    *,
    grouped: bool,
    rng: Generator,
    n_jobs: int | None = None,
    full: bool = False,
) -> Verdict | None:
    """Verdict on conditional tests; None with few rows.

    Parameters
    ----------
    tests : GroupTests
        Those of the selection.
    fitted : FittedSampler
        P^X.
    pair : Pair
        X, complete, beside knockoffs, which are compared with it where the trial is not good.
    grouped : bool
        Whether groups of features are tested.
    rng : numpy.random.Generator
        Of that comparison; the trial is the same for every seed.
    full : bool
        Whether a trial may take four times the usual number of tests.
    """
    from knockoffs.trials.tests import trial_groups, trial_of_tests, trial_tests  # compiled code

    if len(pair) < FEWEST_ROWS:
        return None
    stage("trials with labels for which a column does not matter")
    gaps = np.isnan(table.X).any()
    X = fitted.sampler.sample(table.X, np.random.default_rng(0)).X if gaps else pair.X
    with silently():
        own, rows = trial_tests(tests, fitted.model, X, target, most_rows=MOST_TESTED)  # type: ignore[arg-type]
        groups = trial_groups(own, table.feature_names, table.feature_of, grouped=grouped)
        attempt = partial(trial_of_tests, own, groups, level, n_jobs)
        attempt = partial(attempt, budget=480, visits=12) if full else attempt
        found = judge_rows(attempt(), attempt, table.rows(rows), replace(target.at(rows), observed=None))
    return verdict_by(found, pair, table, rng)


def verdict_of_knockoffs(
    fitted: FittedSampler,
    table: Table,
    target: Target,
    statistic: Statistic,
    pair: Pair,
    statistics: Callable[[Scores], NDArray],
    level: float,
    *,
    m: int = 1,
    rng: Generator,
    n_jobs: int | None = None,
    full: bool = False,
) -> Verdict | None:
    """Verdict on a selection by knockoffs; None with few rows. See ``trial_of_knockoffs`` and ``verdict_of_tests``."""
    if len(pair) < FEWEST_ROWS:
        return None
    stage("trials with labels for which a quarter of the features do not matter")
    sampler = None if fitted.model is None else fitted.sampler
    tried, n_rounds = affordable_statistic(statistic, target.kind)
    with silently():
        own = some_rows(pair, table, target)
        n_rounds = 4 * n_rounds if full else n_rounds
        attempt = partial(trial_of_knockoffs, sampler, *own, tried, statistics, level, n_jobs, m=m, n_rounds=n_rounds)
        found = judge_rows(attempt(), attempt, *own[1:])
    return verdict_by(found, pair, table, rng)


def judge_rows(trial: Trial, again: Callable[..., Trial], table: Table, target: Target) -> Verdict:
    """Verdict by a trial, and where rows depend on each other by ``again(shuffle=...)``, whose labels keep that."""
    seen = find_dependence(table, target)
    if seen is None or target.kind == "survival":  # whose labels are drawn in one way only
        return Verdict(trial.word, len(table), trial)
    kept = again(shuffle=shifted(len(target.values)) if seen.set_of is None else by_sets(seen.set_of))
    found = Verdict(trial.word, len(table), trial, (seen.seen, seen.advice), kept)
    return replace(found, word=max(trial.word, kept.word, key=WORDS.index)) if found.rows_cost else found


def affordable_statistic(statistic: Statistic, kind: str) -> tuple[Statistic, int]:
    """Statistic of a trial, and its rounds, each of a few fits.

    That of the selection if it reads the coefficients of a linear model, whose fits cost little; for one round if it is
    boosting; else those of the lasso: a forest or a user's model would take many times as long as the selection.
    """
    if isinstance(statistic, ModelScore) and is_linear(statistic):
        return statistic, 10
    boosting = ("HistGradientBoosting", "CoxBoosting")
    if isinstance(statistic, ModelScore) and type(statistic.estimator).__name__.startswith(boosting):
        return statistic, 1
    return ModelScore(make_lasso(task_of(kind), random_state=0), coefficient_magnitude), 10


@contextmanager
def silently() -> Iterator[None]:
    """Show no steps and no warnings of a trial, which are those of many selections."""
    with quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        yield


def verdict_by(found: Verdict | None, pair: Pair, table: Table, rng: Generator) -> Verdict:
    """Verdict by trials; knockoffs are compared with features where P^X does not pass them, or where there are none."""
    if found is not None and found.trial is not None and found.trial.word == "good":
        return found
    stage("comparing knockoffs with features")
    trim_memory()
    checked = compare(pair, names=table.names, kinds=table.kinds, rng=rng)
    if found is None:
        return checked
    return replace(checked, word=found.word, trial=found.trial, rows=found.rows, row_trial=found.row_trial)
