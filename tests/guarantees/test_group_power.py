"""The test of a group of Gaussian columns is as strong as the F-test, which knows that y is linear in them."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import f

from knockoffs.conditional_tests.sequential import fixed_looks
from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.gaussian import gaussian_features

N, D, N_TABLES = 200, 20, 120
COVARIANCE = toeplitz(0.5 ** np.arange(D))
LAW, ROOT = gaussian_features(np.zeros(D), COVARIANCE), np.linalg.cholesky(COVARIANCE)


def f_test(X, y, c):
    """p-value of the hypothesis that y is linear in the columns after the first c."""
    left = [
        np.linalg.lstsq(A, y, rcond=None)[1][0]
        for A in (np.column_stack([np.ones(N), X]), np.column_stack([np.ones(N), X[:, c:]]))
    ]
    return f.sf((left[1] - left[0]) / c / (left[0] / (N - D - 1)), c, N - D - 1)


def rejected(c, strength, seed):
    """Whether the F-test and ours reject at 0.05, in each table, shape (n_tables, 2)."""
    found = []
    for rng in np.random.default_rng([seed, c]).spawn(N_TABLES):
        X = rng.standard_normal((N, D)) @ ROOT.T
        beta = np.append(rng.standard_normal(c), np.zeros(D - c))
        beta *= strength / np.sqrt(beta @ COVARIANCE @ beta)
        beta[c:] = 0.3 * rng.standard_normal(D - c)
        y = X @ beta + rng.standard_normal(N)
        tests = group_tests(LAW, X, y, kind="number", rng=rng, nominal=(), response_model="lasso", encode=None)
        found.append([f_test(X, y, c) <= 0.05, tests.test(np.arange(c), fixed_looks(199)).p_value <= 0.05])
    return np.array(found)


@pytest.mark.parametrize(("c", "strength"), [(5, 0.24), (15, 0.3)])
def test_it_rejects_as_often_as_an_f_test(c, strength):
    """Rates within 0.05 of each other on the same tables; the standard error of the difference is 0.03."""
    by_f, ours = rejected(c, strength, 0).mean(axis=0)
    assert 0.5 < by_f < 0.9
    assert ours > by_f - 0.05


def test_a_group_without_effect_is_rejected_as_seldom_as_it_should_be():
    """A binomial number of mean 6 exceeds 17 with probability 5e-5."""
    assert (rejected(5, 0.0, 1).sum(axis=0) <= 17).all()
