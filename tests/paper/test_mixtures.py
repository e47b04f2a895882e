import numpy as np
import pytest
from paper.mixtures import (
    MixtureParameters,
    draw_mixture,
    draw_three_components,
    mixture_moments,
    sample_mixture,
    simulate_three_components,
)
from tests.refusals import refuses


@pytest.mark.parametrize("df", [np.inf, 8.0])
def test_sample_has_the_moments_of_the_mixture(df):
    # 5 standard errors (false failure about 1e-6 for each of 12 moments); an error of 10 standard errors is 0.02
    # of a standard deviation for the means and 0.1 for the covariances
    mixture = draw_mixture(3, 3, rng=np.random.default_rng(0), degrees_of_freedom=df)
    n = 200_000
    X, K = sample_mixture(mixture, n, rng=np.random.default_rng(1))
    mean, covariance = mixture_moments(mixture)
    centred = X - mean
    assert np.all(np.abs(centred.mean(axis=0)) < 5 * X.std(axis=0) / np.sqrt(n))
    products = np.einsum("ni,nj->nij", centred, centred)
    assert np.all(np.abs(products.mean(axis=0) - covariance) < 5 * products.std(axis=0) / np.sqrt(n))
    shares = np.bincount(K, minlength=3) / n
    assert np.all(np.abs(shares - mixture.weights) < 5 * np.sqrt(0.25 / n))


def test_moments_by_hand():
    # two point-like components at -1 and 3 with proportions 3/4, 1/4: mean 0, variance 3 plus the variance within
    mixture = MixtureParameters(np.array([0.75, 0.25]), np.array([[-1.0], [3.0]]), np.full((2, 1, 1), 0.5))
    mean, covariance = mixture_moments(mixture)
    assert mean == pytest.approx([0.0])
    assert covariance.item() == pytest.approx(3.5)


def test_t_components_have_heavier_tails():
    gaussian = draw_mixture(1, 2, rng=np.random.default_rng(0))
    heavy = MixtureParameters(gaussian.weights, gaussian.means, gaussian.covariances, 3.0)
    ratios = []
    for mixture in (gaussian, heavy):
        X = np.abs(sample_mixture(mixture, 20_000, rng=np.random.default_rng(2))[0])
        ratios.append(np.quantile(X, 0.999) / np.quantile(X, 0.5))
    assert ratios[1] > 1.5 * ratios[0]


def test_bad_sizes():
    refuses("n_components=0", draw_mixture, 0, 3, rng=np.random.default_rng(0))


def correlations(covariance):
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def test_strong_correlations_within_components_cancel_over_the_mixture():
    mixture = draw_three_components(rng=np.random.default_rng(0))
    j = np.arange(10)
    within = np.stack([correlations(C)[j, j + 10] for C in mixture.covariances])
    assert np.all(np.abs(within[1:]) >= 0.92)
    assert np.all(within[0] * within[1] < 0)
    covariance = mixture_moments(mixture)[1]
    # the means add the little that is left, at most 3 times 0.3 squared
    off = covariance - np.diag(np.diag(covariance))
    assert np.abs(off).max() < 0.27 and np.abs(correlations(covariance) - np.eye(30)).max() < 0.1
    for C in mixture.covariances:
        assert np.linalg.eigvalsh(C).min() > 0


def test_the_first_ten_features_are_the_non_nulls():
    data = simulate_three_components(400, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(data.non_nulls, np.arange(30) < 10)
    assert set(np.unique(data.y)) == {0, 1} and 100 < data.y.sum() < 300


def test_correlations_too_strong_to_cancel():
    refuses("too small to cancel", draw_three_components, rng=np.random.default_rng(0), wide_variance=2.0)
