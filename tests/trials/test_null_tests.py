"""Trials of conditional tests: right under the right P^X, loud under a wrong one, the same for every seed."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from sklearn.neighbors import KNeighborsRegressor

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.gaussian import gaussian_features
from knockoffs.table.target import Target
from knockoffs.trials.labels import label_sampler
from knockoffs.trials.tests import mean_correlation, null_tests, trial_groups, trial_models, trial_of_tests, trial_tests

SIGMA = toeplitz(0.5 ** np.arange(4))


def tests_of(X, y, kind, rng, law=None, model="lasso"):
    law = gaussian_features(np.zeros(4), SIGMA) if law is None else law
    given = {"nominal": (), "response_model": model, "encode": None}
    tests = group_tests(law, X, y, kind=kind, rng=rng, **given)
    return trial_tests(tests, law, X, Target(y, kind=kind), most_rows=10_000)


tests_of.__test__ = False


def made(n, kind, rng):
    """Every column matters, and much."""
    X = rng.standard_normal((n, 4)) @ np.linalg.cholesky(SIGMA).T
    signal = X.sum(axis=1) + rng.standard_normal(n)
    if kind == "classes":
        return X, np.digitize(signal, [-1.0, 1.0])
    return X, signal if kind == "number" else np.digitize(signal, [-2.0, -1.0, 0.0, 1.0, 2.0]).astype(float)


@pytest.mark.parametrize("kind", ["number", "classes", "ordinal"])
def test_p_values_are_uniform_under_the_right_law(kind, rng):
    """Each table has four p-values, which are averaged: 5 standard errors over 60 tables, false in 1 of 10^6."""
    means, called = [], []
    for _ in range(60):
        X, y = made(120, kind, rng)
        tests = tests_of(X, y, kind, rng)
        j = np.array([rng.integers(4)])
        response, models = trial_models(tests.response_without(j), tests, j)
        found = null_tests(tests, "x", j, response, models, int(rng.integers(1000)), 4, 0.1)
        means.append(found.p_values.mean())
        called.append(found.called.mean())
    for values, expected in ((np.array(means), 0.5025), (np.array(called), 0.1)):
        assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(len(values))


def bent(n, rng):
    """x2 and x3 are bent functions of x0 and x1, which one Gaussian does not know, and y is of the bent ones."""
    X = rng.standard_normal((n, 4))
    X[:, 2:] = 0.8 * (X[:, :2] ** 2 - 1) / np.sqrt(2) + 0.6 * X[:, 2:]
    return X, (X[:, :2] ** 2).sum(axis=1) + X.sum(axis=1) + rng.standard_normal(n)


def test_a_wrong_law_is_broken_and_a_column_is_named(rng):
    X, y = bent(500, rng)
    law = gaussian_features(X.mean(axis=0), np.cov(X, rowvar=False))
    tests = tests_of(X, y, "number", rng, law)
    trial = trial_of_tests(tests, trial_groups(tests, "abcd", np.arange(4), grouped=True), 0.1)
    assert trial.word == "broken" and trial.rate > 0.2
    assert trial.worst[0].called > 0.3 * trial.worst[0].n and repr(trial.worst[0].name) in trial.sentence


def test_the_verdict_is_the_same_for_every_seed(rng):
    """Also where cells are missing, which each selection fills by its own stream."""
    X, y = made(150, "number", rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    first, second = (KnockoffSelector(random_state=seed).fit(frame, y) for seed in (0, 1))
    assert first.verdict_.trial == second.verdict_.trial
    assert not np.array_equal(first.selection_.test_scores, second.selection_.test_scores)


def test_labels_come_from_predictions_of_rows_that_were_not_seen(rng):
    """A model that knows the labels it has seen by heart would pass on all that y has to do with other columns."""
    rest, y = rng.standard_normal((400, 2)), rng.standard_normal(400)
    labels = label_sampler(rest, y, "number", KNeighborsRegressor(1), rng)
    assert abs(np.corrcoef(labels(rng), y)[0, 1]) < 5 / np.sqrt(400)


@pytest.mark.parametrize("kind", ["count", "ordinal"])
def test_labels_that_are_ranks_have_the_values_of_y(kind, rng):
    y = rng.poisson(2.0, 200).astype(float)
    labels = label_sampler(rng.standard_normal((200, 2)), y, kind, KNeighborsRegressor(9), rng)
    assert np.array_equal(np.sort(labels(rng)), np.sort(y))


def test_labels_of_rows_that_hang_together_count_as_fewer():
    assert mean_correlation(np.array([[0.0, 1.0], [1.0, 0.0]])) == -1.0
    assert mean_correlation(np.zeros((3, 5))) == 0.0
