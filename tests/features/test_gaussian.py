"""One Gaussian as a law of the features: density, draws, conditionals, units."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning
from knockoffs.features.gaussian import check_covariance_units, fit_gaussian, gaussian_features
from knockoffs.sampling.sampler import sample_knockoffs

MEAN, S = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.5]])


def test_given_gaussian_checks_its_mean():
    with pytest.raises(InputError, match=r"mean has shape \(3,\): expected 2"):
        gaussian_features([0, 0, 0], np.eye(2))


def test_the_density_is_that_of_the_gaussian(rng):
    X = rng.normal(size=(20, 3))
    np.testing.assert_allclose(gaussian_features(MEAN, S).log_density(X), multivariate_normal(MEAN, S).logpdf(X))


def test_draws_have_mean_and_covariance(rng):
    """5 standard errors of 40,000 rows, 9 comparisons."""
    n = 40_000
    X = gaussian_features(MEAN, S).sample(n, rng)
    assert (np.abs(X.mean(axis=0) - MEAN) <= 5 * np.sqrt(np.diag(S) / n)).all()
    error = np.sqrt((S**2 + np.outer(np.diag(S), np.diag(S))) / n)
    assert (np.abs(np.cov(X.T) - S) <= 5 * error).all()


def test_fixed_columns_are_point_masses(rng):
    X = rng.normal(size=(300, 3))
    X = np.column_stack([X[:, 0], np.full(300, 7.0), X[:, 1:], 3 * X[:, 2] - X[:, 0] + 5])
    with pytest.warns(KnockoffWarning, match="columns '4' are exact combinations"):
        model = fit_gaussian(X, dependent="drop")
    free = X[:, [0, 2, 3]]
    law = multivariate_normal(free.mean(axis=0), np.cov(free.T, bias=True))
    np.testing.assert_allclose(model.log_density(X), law.logpdf(free), rtol=1e-6)
    for column in (1, 4):
        off = X[:5].copy()
        off[2, column] += 0.01
        assert np.isinf(model.log_density(off)).tolist() == [False, False, True, False, False]
    drawn = model.sample(1000, rng)
    np.testing.assert_allclose(drawn[:, 4], 3 * drawn[:, 3] - drawn[:, 0] + 5, atol=1e-6)
    assert (drawn[:, 1] == 7).all() and np.isfinite(model.log_density(drawn)).all()
    assert model.say(names="abcde").endswith(
        "; column 'b' is constant; column 'e' is dropped as exact combinations of others."
    )


def test_no_model_of_y_sees_a_dropped_column(rng):
    """The sum of two columns would tell them from their knockoffs: it is zero on both sides of the pair."""
    X = rng.normal(size=(200, 3))
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.ones(200)])
    with pytest.warns(KnockoffWarning, match="'3' of '0', '1'"):
        model = fit_gaussian(X, dependent="drop", feature_of=[0, 1, 2, 0, 1])
    pair = model.as_sampler().sample(X, rng)
    assert (pair.X[:, 3] == 0).all() and (pair.X_tilde[:, 3] == 0).all() and (pair.X_tilde[:, 4] == 1).all()
    assert (pair.X[:, :3] == X[:, :3]).all() and (pair.X_tilde[:, :3] != X[:, :3]).all()
    assert pair.feature_of.tolist() == [0, 1, 2, 0, 1] and X[0, 3] != 0
    with pytest.raises(InputError, match="X has shape"):
        model.as_sampler().sample(X[:, :3], rng)


def test_knockoffs_of_free_columns_do_not_know_the_dropped_ones(seed):
    X = np.random.default_rng(seed).normal(size=(100, 4))
    with pytest.warns(KnockoffWarning):
        model = fit_gaussian(np.column_stack([X, X.sum(axis=1)]), dependent="drop")
    alone = fit_gaussian(X)
    one = model.as_sampler().sample(np.column_stack([X, X.sum(axis=1)]), np.random.default_rng(1)).X_tilde[:, :4]
    other = sample_knockoffs(alone.as_network(), X, np.random.default_rng(1))
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_covariance_in_other_units_is_refused(rng):
    X = rng.normal(size=(500, 3)) * [1.0, 30.0, 1.5]
    check_covariance_units(np.cov(X.T), X)
    with pytest.raises(
        ColumnsError, match="other units than X in columns '1' .standard deviation 1 in .* and 2[0-9]|and 3[0-9]"
    ):
        check_covariance_units(np.eye(3), X)
    with pytest.raises(ColumnsError, match="columns '0', '1', '2'"):
        check_covariance_units(np.cov(X.T) * 9, X)
    check_covariance_units(np.eye(3), X[:5])  # too few rows to tell
    check_covariance_units(np.eye(1), np.full((20, 1), 3.0))
