"""The verdict on a selection: a trial on the table's own columns, and where it is not good what is wrong with P^X."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.conditional_tests import MOST_TESTED
from knockoffs.diagnostics.trial import Trial
from knockoffs.diagnostics.verdict import Budget, Verdict
from knockoffs.diagnostics.verdict import verdict as compare
from knockoffs.errors import KnockoffWarning
from knockoffs.features.source import FittedSampler
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Statistic, is_linear
from knockoffs.machine.threads import trim_memory
from knockoffs.progress import quietly, stage
from knockoffs.response.linear import make_lasso
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.trials.knockoffs import trial_of_knockoffs

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
) -> Verdict | None:
    """Verdict on conditional tests; None with few rows.

    Parameters
    ----------
    tests : GroupTests
        Those of the selection.
    fitted : FittedSampler
        P^X.
    table, target : Table, Target
    pair : Pair
        X, complete, beside knockoffs, which are compared with it where the trial is not good.
    level : float
    grouped : bool
        Whether groups of features are tested.
    rng : numpy.random.Generator
        Of that comparison; the trial is the same for every seed.
    n_jobs : int, optional
    """
    from knockoffs.trials.tests import trial_groups, trial_of_tests, trial_tests  # compiled code

    if len(pair) < FEWEST_ROWS:
        return None
    stage("trials with labels for which a column does not matter")
    gaps = np.isnan(table.X).any()
    X = fitted.sampler.sample(table.X, np.random.default_rng(0)).X if gaps else pair.X
    with _apart():
        own = trial_tests(tests, fitted.model, X, target, most_rows=MOST_TESTED)  # type: ignore[arg-type]
        groups = trial_groups(own, table.feature_names, table.feature_of, grouped=grouped)
        trial = trial_of_tests(own, groups, level, n_jobs)
    return verdict_by(trial, pair, table, rng)


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
) -> Verdict | None:
    """Verdict on a selection by knockoffs; None with few rows. See ``trial_of_knockoffs`` and ``verdict_of_tests``."""
    if len(pair) < FEWEST_ROWS:
        return None
    stage("trials with labels for which half of the features do not matter")
    sampler = None if fitted.model is None else fitted.sampler
    tried, n_rounds = affordable_statistic(statistic, target.kind)
    with _apart():
        where = (sampler, pair, table, target, tried, statistics, level, n_jobs)
        trial = trial_of_knockoffs(*where, m=m, n_rounds=n_rounds)
    return verdict_by(trial, pair, table, rng)


def affordable_statistic(statistic: Statistic, kind: str) -> tuple[Statistic, int]:
    """Statistic of a trial, and its rounds, each of a few fits.

    That of the selection if it reads the coefficients of a linear model, whose fits cost little; for one round if it is
    boosting; else those of the lasso: a forest or a user's model would take many times as long as the selection.
    """
    if isinstance(statistic, ModelScore) and is_linear(statistic):
        return statistic, 6
    boosting = ("HistGradientBoosting", "CoxBoosting")
    if isinstance(statistic, ModelScore) and type(statistic.estimator).__name__.startswith(boosting):
        return statistic, 1
    task = {"binary": "classification", "classes": "classification", "survival": "survival"}.get(kind, "regression")
    return ModelScore(make_lasso(task, random_state=0), coefficient_magnitude), 6


@contextmanager
def _apart() -> Iterator[None]:
    """Show no steps and no warnings of a trial, which are those of many selections."""
    with quietly(), warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        yield


def verdict_by(trial: Trial | None, pair: Pair, table: Table, rng: Generator, budget: Budget | None = None) -> Verdict:
    """Verdict by a trial; knockoffs are compared with features where it is not good, or where there is none."""
    if trial is not None and trial.word == "good":
        return Verdict(trial.word, len(pair), trial=trial)
    stage("comparing knockoffs with features")
    trim_memory()
    found = compare(pair, names=table.names, kinds=table.kinds, rng=rng, budget=budget)
    return found if trial is None else replace(found, word=trial.word, trial=trial)
