"""One Gaussian as a law of the features: density, draws, conditionals, units."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.refusals import refuses

from knockoffs.errors import ColumnsError
from knockoffs.features.gaussian import check_covariance_units, fit_gaussian, gaussian_features

MEAN, S = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0.6, 0.1], [0.6, 1.0, -0.3], [0.1, -0.3, 0.5]])


def test_given_gaussian_checks_its_mean():
    refuses(r"mean has shape \(3,\): expected 2", gaussian_features, [0, 0, 0], np.eye(2))


def test_the_fit_has_the_moments_of_the_rows_far_from_zero_too(rng):
    """Of a column a million million spreads from zero, a sum over rows in turn keeps three digits of the spread."""
    X = rng.standard_normal((5000, 3)) @ [[1.0, 0.5, 0.2], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]] + [0.0, -1e6, 1e12]
    law, exact = fit_gaussian(X).laws[0], X.astype(np.longdouble)
    mean = exact.mean(axis=0)
    covariance = (exact - mean).T @ (exact - mean) / len(X)
    np.testing.assert_allclose(law.mean, mean.astype(float), rtol=4e-16, atol=1e-15)
    np.testing.assert_allclose(law.covariance, covariance.astype(float), rtol=0, atol=1e-10)


def test_the_density_is_the_normal_one(rng):
    X = rng.normal(size=(300, 3))
    law = multivariate_normal(X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(fit_gaussian(X).log_density(X), law.logpdf(X), rtol=1e-6)


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
