"""Trials of conditional tests: how often a column is called by labels for which it does not matter.

For a group of columns G, y* is drawn from a model of y on the other columns. So G does not matter for y*, while the
other columns matter for y* much as they do for y. G is then tested with y* as it is tested with y. Draws of X_G given
the others do not depend on y*: several y* share them. Random numbers are those of a fixed seed, so that a trial is a
function of the table and of P^X.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy.stats import rankdata

from knockoffs.conditional_tests.distil import Response
from knockoffs.conditional_tests.resolution import discovery_name
from knockoffs.conditional_tests.tests import Columns, Conditional, GroupTests, sampling_given_others
from knockoffs.conditional_tests.tree import column_tree
from knockoffs.diagnostics.verdict import Outcomes, Trial
from knockoffs.features.latent.model import LatentFeatures
from knockoffs.machine.parallel import parallel_map
from knockoffs.response import Estimator, make_boosting, task_of
from knockoffs.seeds import seeds_of
from knockoffs.table.target import Target
from knockoffs.trials.labels import Shuffle, label_sampler


def trial_of_tests(
    tests: GroupTests,
    groups: Sequence[tuple[str, Columns]],
    level: float,
    n_jobs: int | None = None,
    *,
    shuffle: Shuffle | None = None,
    budget: int = 240,
    per_round: int = 30,
    n_labels: int = 6,
    visits: int = 3,
    price: int = 2,
) -> Trial:
    """Trial of the tests of a table: rounds of null tests until the word is clear.

    Parameters
    ----------
    tests : GroupTests
        Of the table, with the model of y that the selection chose. Its seed is that of the trial.
    groups : sequence of (str, array of int)
        Names and columns of what may be called.
    n_jobs : int, optional
        Groups at a time; the answer does not depend on it.
    shuffle : callable, optional
        How residuals change rows in labels, where rows depend on each other; see ``label_sampler``.
    budget : int
        Null tests after which no round is added.
    per_round, n_labels : int
        Null tests of a round, and those of a group in a round, at least: they share a fit and draws.
    visits : int
        Rounds that a group takes part in: more labels of the same column say little more.
    price : int
        Tests by the lasso that cost as much as one by boosting.
    """
    size = min(len(groups), per_round // n_labels)
    n_labels = -(-per_round // size)
    order = np.random.default_rng(tests.seed).permutation(len(groups))
    lasso = replace(tests, response_model="lasso", chosen={})
    found: list[NullTests] = []
    spent = 0
    for number in range(-(-visits * len(groups) // size)):
        tasks = []
        for i in range(number * size, (number + 1) * size):
            name, columns = groups[order[i % len(groups)]]
            response, models = trial_models(tests.response_without(columns[:1]), lasso, groups[0][1])
            tasks.append(delayed(null_tests)(tests, name, columns, response, models, number, n_labels, level, shuffle))
            spent += n_labels * (price if response.name == "boosting" else 1)
        found += parallel_map(tasks, n_jobs)
        outcomes = join(found)
        if outcomes.decided(level) or spent >= budget:
            break
    return outcomes.judge(level, [one.name for one in found for _ in one.called])


@dataclass(frozen=True)
class NullTests:
    """Tests of a group of columns by several labels for which it does not matter.

    Parameters
    ----------
    p_values : array, shape (n_labels,)
    called : array, shape (n_labels,)
        1 where the p-value is at most the level, else 0.
    correlation : float
        Of ``called`` between labels, where the level holds: the labels share X_G. Found by draws of X_G in its place.
    """

    name: str
    p_values: NDArray
    called: NDArray
    correlation: float


def join(found: Sequence[NullTests]) -> Outcomes:
    """Outcomes of all tests; those of one group hang together."""
    values = np.concatenate([one.called for one in found])
    weights = [len(one.called) - 1 for one in found]
    correlation = max(np.average([one.correlation for one in found], weights=weights), 0.0) if sum(weights) else 0.0
    sizes = np.array(list(Counter(one.name for one in found for _ in one.called).values()))
    return Outcomes(values, float((sizes * (1 + (sizes - 1) * correlation)).sum() / sizes.sum()))


def null_tests(
    tests: GroupTests,
    name: str,
    columns: Columns,
    response: Response,
    models: Sequence[Estimator],
    number: int,
    n_labels: int,
    level: float,
    shuffle: Shuffle | None = None,
    *,
    n_draws: int = 99,
) -> NullTests:
    """Test a group of columns by several labels for which it does not matter, all drawn from one fit of a model of y.

    Parameters
    ----------
    columns : array of int
        The group.
    response : Response
        Model of y by which it is tested.
    models : sequence of Estimator
        Models that labels are drawn from; rounds and groups take turns.
    number : int
        Of the round: each has its own random numbers.
    n_draws : int
        Draws of the group given the others, which all labels share.
    """
    pilot_seed, draw_seed, label_seed = seeds_of(tests.seed, np.append(columns, number)).spawn(3)
    stream = np.random.default_rng(label_seed)
    sample, rest = tests.given_others(columns), tests.without(columns)
    pilot = tests.pilot(sample, columns, pilot_seed)
    drawn = sample(np.random.default_rng(draw_seed), n_draws)
    model = models[(number + int(columns[0])) % len(models)]
    labels = label_sampler(rest, tests.y, tests.kind, model, stream, shuffle=shuffle)
    statistics = []
    for _ in range(n_labels):
        y = labels(stream)
        if tests.kind in ("binary", "classes"):
            y = np.unique(y, return_inverse=True)[1]
        if y.min() < y.max():  # else no test could call anything
            statistic = tests.statistic(columns, replace(response, y=y), pilot)
            statistics.append(np.append(tests.observed(statistic, columns), statistic(drawn)))
    values = np.array(statistics).reshape(-1, 1 + n_draws)
    p_values = (values[:, :1] <= values).mean(axis=1)
    called = rankdata(-values, method="max", axis=1) <= level * (1 + n_draws) + 1e-9  # by X_G, and by each draw
    return NullTests(name, p_values, called[:, 0].astype(float), mean_correlation(called[:, 1:].astype(float)))


def mean_correlation(values: NDArray) -> float:
    """Mean correlation between the rows of an array; nan-free: rows that do not vary correlate with none.

    >>> mean_correlation(np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    1.0
    """
    n = len(values)
    total = values.var(axis=1).sum()
    return float((values.sum(axis=0).var() / total - 1) / (n - 1)) if n > 1 and total > 0 else 0.0


def trial_models(
    response: Response, lasso: GroupTests, columns: Columns, *, n_trees: int = 10, few_rows: int = 100
) -> tuple[Response, list[Estimator]]:
    """Model of y by which a group is tested, that of the selection, and models that labels are drawn from.

    Labels come from a lasso (or a user's model) and from boosting in turn. Boosting has fewer trees and folds than in
    the selection, which make up most of its cost, and learns faster.
    """
    boosting = make_boosting(task_of(response.kind), random_state=0, max_iter=n_trees, learning_rate=4 / n_trees)
    if response.name == "boosting":
        return replace(response, estimator=boosting, n_folds=2), [
            lasso.response_without(columns[:1]).estimator,
            boosting,
        ]
    return response, [response.estimator] if len(response.y) < few_rows else [response.estimator, boosting]


def trial_tests(
    tests: GroupTests, model: Conditional, X: NDArray, target: Target, *, most_rows: int, seed: int = 0
) -> tuple[GroupTests, NDArray[np.intp]]:
    """Make tests of the same columns with random numbers of their own, which no seed has a part in; and their rows.

    Parameters
    ----------
    tests : GroupTests
        Those of the selection, whose choices of a model of y are used again where the rows are the same.
    model : Conditional
        P^X.
    X : array, shape (n, n_columns)
        Complete rows of the table.
    most_rows : int
        Of more rows so many are drawn.
    """
    stream = np.random.default_rng(seed)
    rows = np.arange(len(X)) if target.observed is None else np.flatnonzero(target.observed)
    if len(rows) > most_rows:
        some = np.sort(stream.choice(len(rows), most_rows, replace=False))
        rows, target = rows[some], target.rows(some)
    X, y = X[rows], target.values
    if y.dtype.kind not in "biuf" or tests.kind in ("binary", "classes"):
        y = np.unique(y, return_inverse=True)[1]
    sampler = sampling_given_others(model, X, stream)
    if isinstance(model, LatentFeatures):  # draws given coarse columns take chains, which are kept short here
        sampler = replace(model.resampler(X, stream), n_states=5, n_sweeps=2).given_others
    chosen = tests.chosen if np.array_equal(X, tests.X) else {}
    tests = replace(tests, given_others=sampler, n_pilot=(20, 40), chosen=chosen)
    return replace(tests, X=X, y=y, seed=SeedSequence(seed)), rows


def trial_groups(
    tests: GroupTests, names: Sequence[str], feature_of: NDArray[np.intp], *, grouped: bool, most_cells: int = 200_000
) -> list[tuple[str, Columns]]:
    """Names and columns of what may be called: features, and groups of the tree of at most half of them.

    Parameters
    ----------
    names : sequence of str
        Of the features; covariates are numbered after them.
    feature_of : array of int, shape (n_columns,)
    grouped : bool
        Whether groups are tested.
    most_cells : int
        Of the columns of a group; larger ones take no part.
    """
    found = [(name, np.flatnonzero(feature_of == j)) for j, name in enumerate(names)]
    if grouped:
        own = feature_of < len(names)
        for node in column_tree(tests.X[:, own], tests.nominal[own], feature_of[own]).walk():
            columns = np.flatnonzero(np.isin(feature_of, node.features))
            if node.children and 2 * len(node.features) <= len(names) and len(tests.X) * len(columns) <= most_cells:
                found.append((discovery_name([names[j] for j in node.features]), columns))
    return found
