"""Labels of a trial do not depend on the columns that they are null for: other values leave them the same, bit by bit.

A trial of tests draws labels for which one group of columns is null, a trial of knockoffs labels for which a quarter of
the features are. If the labels saw these columns, the columns would matter, and calls of them would be no false ones.
"""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.gaussian import gaussian_features
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target
from knockoffs.trials import knockoffs as of_knockoffs
from knockoffs.trials import tests as of_tests

N, D = 120, 6
S = toeplitz(0.5 ** np.arange(D))
KINDS = ("number", "binary")


def table(kind):
    """Every column matters for y."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) @ np.linalg.cholesky(S).T
    signal = X.sum(axis=1) + X[:, 2] * X[:, 3] + rng.standard_normal(N)
    return X, signal if kind == "number" else (signal > 0).astype(int)


def with_others(X, columns):
    """Table with other values in some columns."""
    other = X.copy()
    other[:, columns] = np.random.default_rng(1).standard_normal((N, len(columns))) ** 2
    return other


def labels_of_tests(X, y, kind, columns):
    """All labels that a trial of tests draws for which the columns are null."""
    seen, sampler = [], of_tests.label_sampler

    def spy(*given, **options):
        draw = sampler(*given, **options)
        return lambda rng: seen.append(draw(rng)) or seen[-1]

    how = {"nominal": (), "response_model": "lasso", "encode": None}
    tests = group_tests(gaussian_features(np.zeros(D), S), X, y, kind=kind, rng=np.random.default_rng(2), **how)
    response, models = of_tests.trial_models(tests.response_without(columns), tests, columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_tests, "label_sampler", spy)
        of_tests.null_tests(tests, "group", columns, response, models, 0, 4, 0.1, n_draws=9)
    return np.array(seen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [[3], [1, 4]])
def test_labels_of_a_trial_of_tests_do_not_see_the_group(kind, columns):
    X, y = table(kind)
    columns = np.array(columns)
    found = labels_of_tests(X, y, kind, columns)
    assert len(found) == 4 and not np.array_equal(found[0], found[1])
    np.testing.assert_array_equal(found, labels_of_tests(with_others(X, columns), y, kind, columns))


def labels_of_knockoffs(X, y, i, seed=3):
    """Null features and labels number i of a trial of knockoffs."""
    read = read_table(X)
    return of_knockoffs.null_labels(read.X, read, as_target(y, read))(i, np.random.default_rng(seed))


@pytest.mark.parametrize("i", [0, 1], ids=["lasso", "boosting"])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_a_trial_of_knockoffs_do_not_see_the_null_quarter(kind, i, monkeypatch):
    """The penalty of the lasso is chosen once from all columns, as it is for y: it is kept the same here."""
    X, y = table(kind)
    lasso = of_knockoffs.choose_response(X, y, kind, "lasso")
    monkeypatch.setattr(of_knockoffs, "choose_response", lambda *given: lasso)
    null, labels = labels_of_knockoffs(X, y, i)
    assert null.sum() == -(-D // 4)
    again, other = labels_of_knockoffs(with_others(X, np.flatnonzero(null)), y, i)
    np.testing.assert_array_equal(null, again)
    np.testing.assert_array_equal(labels, other)
    changed = labels_of_knockoffs(with_others(X, np.flatnonzero(~null)), y, i)[1]
    assert not np.array_equal(labels, changed)  # the others matter
