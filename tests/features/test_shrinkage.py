"""Covariances from few rows: how far they are shrunk, and when that is said."""

import warnings

import numpy as np
import pytest

from knockoffs.errors import KnockoffWarning
from knockoffs.features import covariance
from knockoffs.features.covariance import (
    INTENSITIES,
    _moments,
    estimate_covariance,
    intensity_of_moments,
)
from knockoffs.features.gaussian import fit_gaussian


@pytest.mark.parametrize("n", [30, 120, 500])
def test_shrinkage_does_not_hide_collinear_columns(n, rng):
    """Ledoit and Wolf's intensity (0.015 for 500 rows) would turn a correlation of 0.9999995 into 0.985."""
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    S = fit_gaussian(X).laws[0].covariance
    assert S[0, 2] / np.sqrt(S[0, 0] * S[2, 2]) > 1 - 1e-4


def test_shrinkage_is_near_the_best_there_is(rng):
    """300 rows of 100 columns: the divergence from the true law is within 15 % of the best intensity's, and less
    than two thirds of the plain covariance's. One draw; over 20 seeds the first ratio was at most 1.04."""
    d, n = 100, 300
    truth = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    X = rng.multivariate_normal(np.zeros(d), truth, size=n)

    def divergence(S):  # Kullback-Leibler, of N(0, truth) from N(0, S)
        ratio = np.linalg.solve(S, truth)
        return 0.5 * (np.trace(ratio) - d - np.linalg.slogdet(ratio)[1])

    _, plain = _moments(X, np.ones(n))
    diagonal = np.diag(np.diag(plain))
    best = min(divergence((1 - a) * plain + a * diagonal) for a in INTENSITIES)
    chosen = estimate_covariance(X, what="the test").covariance
    assert divergence(chosen) < 1.15 * best
    assert divergence(chosen) < divergence(plain) / 1.5


def test_covariance_of_many_rows_is_kept(rng):
    X = rng.normal(size=(500, 3))
    np.testing.assert_allclose(fit_gaussian(X).laws[0].covariance, np.cov(X.T, bias=True), rtol=1e-9)


def test_covariance_with_weights_is_that_of_the_rows_they_leave(rng):
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 4))
    mean, covariance, intensity = estimate_covariance(X, np.r_[np.zeros(500), np.ones(500)], what="the test")
    expected = estimate_covariance(X[500:], what="the test")
    np.testing.assert_allclose(mean, expected[0])
    np.testing.assert_allclose(covariance, expected[1])
    assert intensity == expected.intensity


def test_moments_are_weighted_moments_over_blocks(rng):
    X, w = rng.normal(size=(5000, 3)), rng.random(5000)
    mean, covariance = _moments(X, w)
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(covariance, np.cov(X.T, aweights=w, bias=True))


def test_a_correlation_that_loses_much_is_worth_a_warning(rng):
    """100 rows of 40 columns with correlations of 0.5: more than two rows a column, and yet shrunk by a third or so."""
    X = rng.multivariate_normal(np.zeros(40), np.full((40, 40), 0.5) + 0.5 * np.eye(40), size=100)
    X[:, 20:] = rng.normal(size=(100, 20))
    with pytest.warns(KnockoffWarning, match="rests on 100 rows for 40 columns") as caught:
        model = fit_gaussian(X)
    off = ~np.eye(40, dtype=bool)
    lost = np.abs(np.corrcoef(X.T)[off]).max() * model.intensities[0]
    assert lost > 0.25
    assert f"by {model.intensities[0]:.2g}, which takes up to {lost:.2g} from a correlation" in str(caught[0].message)
    assert f"shrunk towards the diagonal by {model.intensities[0]:.2g}" in model.say()


def test_a_correlation_that_loses_little_is_said_without_a_warning(rng):
    X = rng.normal(size=(600, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_gaussian(X)
    assert 0 < model.intensities[0] * np.abs(np.corrcoef(X.T) - np.eye(20)).max() <= 0.25
    assert f"; its covariance was shrunk towards the diagonal by {model.intensities[0]:.2g}." in model.say()
    assert fit_gaussian(rng.normal(size=(1000, 20))).say() == "P^X is a Gaussian of 20 columns, fitted to 1,000 rows."


def test_few_rows_by_their_singular_values_are_as_many_by_their_eigenvalues(rng, monkeypatch):
    """Fewer rows than columns: the axes that are not zero say all that the d x d covariance says."""
    Z = rng.standard_normal((60, 90)) @ np.linalg.cholesky(0.5 * np.eye(90) + 0.5).T
    for weights in (np.ones(60), rng.uniform(0.1, 1, 60)):
        found = covariance.held_out_intensity(Z, weights)
        with monkeypatch.context() as patch:

            def by_covariance(Z, weights):
                mean, C = covariance._moments(Z, weights)
                return mean, *np.linalg.eigh(C)

            patch.setattr(covariance, "_axes", by_covariance)
            assert covariance.held_out_intensity(Z, weights) == found
        assert 0 < found < 1


@pytest.mark.parametrize("n, d", [(60, 12), (40, 30), (400, 12)])
def test_folds_known_by_their_moments_ask_for_the_same(n, d, rng):
    """Rows dealt in turn, or the moments of the four folds alone: the same intensity."""
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.1) * rng.uniform(0.1, 10, d) + rng.normal(size=d)
    folds = [X[k::4] for k in range(4)]
    rows, means = np.array([len(fold) for fold in folds]), np.array([fold.mean(axis=0) for fold in folds])
    scatters = np.array([(fold - fold.mean(axis=0)).T @ (fold - fold.mean(axis=0)) for fold in folds])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        expected = estimate_covariance(X, what="the test").intensity
    assert intensity_of_moments(rows, means, scatters) == expected > 0
