"""Trials of conditional tests: right under the right P^X, loud under a wrong one, the same for every seed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from sklearn.neighbors import KNeighborsRegressor

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.gaussian import gaussian_features
from knockoffs.response.linear import make_lasso
from knockoffs.table.target import Target
from knockoffs.trials.labels import by_sets, label_sampler, shifted
from knockoffs.trials.tests import mean_correlation, null_tests, trial_groups, trial_models, trial_of_tests, trial_tests

SIGMA = toeplitz(0.5 ** np.arange(4))


def tests_of(X, y, kind, rng, law=None, model="lasso"):
    law = gaussian_features(np.zeros(4), SIGMA) if law is None else law
    given = {"nominal": (), "response_model": model, "encode": None}
    tests = group_tests(law, X, y, kind=kind, rng=rng, **given)
    return trial_tests(tests, law, X, Target(y, kind=kind), most_rows=10_000)[0]


tests_of.__test__ = False


def made(n, kind, rng):
    """Every column matters, and much."""
    X = rng.standard_normal((n, 4)) @ np.linalg.cholesky(SIGMA).T
    signal = X.sum(axis=1) + rng.standard_normal(n)
    if kind in ("classes", "binary"):
        return X, np.digitize(signal, [-1.0, 1.0] if kind == "classes" else [0.0])
    return X, signal if kind == "number" else np.digitize(signal, [-2.0, -1.0, 0.0, 1.0, 2.0]).astype(float)


def p_values_under_the_right_law(kind, rng, shuffle=None, n=120, n_tables=60, plant=None):
    """Standard errors by which mean p-values, and calls, differ from those of uniform p-values; four a table."""
    means, called = [], []
    for _ in range(n_tables):
        X, y = made(n, kind, rng)
        if plant is not None:
            plant(X)
        tests = tests_of(X, y, kind, rng)
        j = np.array([rng.integers(4)])
        response, models = trial_models(tests.response_without(j), tests, j)
        found = null_tests(tests, "x", j, response, models, int(rng.integers(1000)), 4, 0.1, shuffle)
        means.append(found.p_values.mean())
        called.append(found.called.mean())
    given = ((np.array(means), 0.505), (np.array(called), 0.1))
    return [(values.mean() - expected) / (values.std() / np.sqrt(len(values))) for values, expected in given]


@pytest.mark.parametrize("kind", ["number", "classes", "ordinal"])
def test_p_values_are_uniform_under_the_right_law(kind, rng):
    """Five standard errors over 60 tables: false in 1 of 10^6; means that are off by 0.19 are seen half the time.

    Of classes, whose models are slow, over 30 tables: 0.26.
    """
    n_tables = 30 if kind == "classes" else 60
    assert np.abs(p_values_under_the_right_law(kind, rng, n_tables=n_tables)).max() < 5


@pytest.mark.parametrize("kind", ["number", "binary"])
@pytest.mark.parametrize("shuffle", [shifted(120), by_sets(np.arange(120) // 3)], ids=["order", "sets"])
def test_p_values_are_uniform_if_independent_rows_keep_their_order_or_sets(kind, shuffle, rng):
    """Five standard errors over 30 tables: false in 1 of 10^6; means that are off by 0.26 are seen half the time."""
    assert np.abs(p_values_under_the_right_law(kind, rng, shuffle, n_tables=30)).max() < 5


def test_labels_fitted_on_the_column_itself_are_seen(rng, monkeypatch):
    """The planted fault: y* knows the column, so that it matters; p-values are far from uniform."""

    def plant(X):
        monkeypatch.setattr(
            "knockoffs.trials.tests.label_sampler", lambda rest, *given, **options: label_sampler(X, *given, **options)
        )

    mean, called = p_values_under_the_right_law("number", rng, n_tables=20, plant=plant)
    assert mean < -5 and called > 5


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


def test_a_permuted_column_would_hide_a_wrong_law(rng):
    """The planted fault: a column whose cells are permuted has lost its links, and is called no more than it should."""
    X, y = bent(500, rng)
    law = gaussian_features(X.mean(axis=0), np.cov(X, rowvar=False))
    tests = tests_of(X, y, "number", rng, law)
    shares = []
    for hidden in (False, True):
        called = []
        for j in range(4):
            column = np.array([j])
            response, models = trial_models(tests.response_without(column), tests, column)
            Z = X.copy()
            Z[:, j] = rng.permutation(X[:, j]) if hidden else X[:, j]
            own = replace(tests, X=Z)
            called.append(null_tests(own, "x", column, response, models, 0, 12, 0.1).called.mean())
        shares.append(np.mean(called))
    assert shares[0] > 0.2 > shares[1]


def test_random_numbers_of_the_selection_have_no_part_in_a_trial(rng):
    """The planted fault: a trial that takes the seed of the selection differs from seed to seed."""
    X, y = made(150, "number", rng)
    law = gaussian_features(np.zeros(4), SIGMA)
    given = {"kind": "number", "nominal": (), "response_model": "lasso", "encode": None}
    of_seeds = [group_tests(law, X, y, rng=np.random.default_rng(seed), **given) for seed in (0, 1)]
    own = [trial_tests(tests, law, X, Target(y, kind="number"), most_rows=1000)[0] for tests in of_seeds]
    groups = [(name, np.array([j])) for j, name in enumerate("abcd")]
    right, wrong = ([trial_of_tests(one, groups, 0.1) for one in which] for which in (own, of_seeds))
    assert right[0] == right[1] and wrong[0] != wrong[1]


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


def test_rows_that_move_together_keep_what_they_share(rng):
    """A shift keeps neighbours, sets keep their members together, and every residual is used once."""
    moved = shifted(50)(rng)
    assert (np.diff(moved) % 50 == 1).all() and moved[0] != 0
    set_of = rng.permutation(np.repeat(np.arange(20), 3))
    moved = by_sets(set_of)(rng)
    assert sorted(moved) == list(range(60)) and (set_of[moved] != set_of).all()
    assert all(len(np.unique(set_of[moved][set_of == k])) == 1 for k in range(20))
    visit = np.arange(300) % 3  # a column of the visits has nothing to do with the residuals that its rows get
    moved = by_sets(np.arange(300) // 3)(rng)
    assert abs(np.corrcoef(visit, visit[moved])[0, 1]) < 5 / np.sqrt(300)


@pytest.mark.parametrize("kind", ["number", "classes"])
def test_dependence_of_rows_stays_in_labels_that_are_shifted(kind, rng):
    """y is slow and rest does not matter: so are shifted labels, and permuted ones are not."""
    slow = np.convolve(rng.standard_normal(509), np.ones(10))[9:-9]
    y = slow if kind == "number" else (slow > 0) * 1
    rest, model = rng.standard_normal((500, 2)), make_lasso("classification" if kind == "classes" else "regression")
    kept, lost = (label_sampler(rest, y, kind, model, rng, shuffle=how)(rng) for how in (shifted(500), None))
    lags = [np.corrcoef(labels[1:], labels[:-1])[0, 1] for labels in (kept, lost)]
    assert lags[0] > (0.8 if kind == "number" else 0.5) and abs(lags[1]) < 5 / np.sqrt(500)
