"""Columns given the others, against the algebra of joint densities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import InputError
from knockoffs.features.gaussian import fit_gaussian, gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features

WEIGHTS = np.array([0.2, 0.5, 0.3])


@pytest.fixture
def mixture(rng):
    roots = rng.normal(size=(3, 4, 4))
    return gaussian_mixture_features(WEIGHTS, rng.normal(size=(3, 4)), roots @ roots.transpose(0, 2, 1) + np.eye(4))


@pytest.mark.parametrize("columns", [[0], [1], [2], [3], [0, 2], [3, 1, 0], [1, 3, 2, 0]])
def test_columns_given_the_others(mixture, columns, rng):
    """P(x_G | x_-G) = P(x) / P(x_-G), at three places; and x_G itself is not looked at, to the last bit."""
    X, columns = mixture.sample(6, rng), np.array(columns)
    weights, means, factors = mixture.given_others(X).law(columns)
    others = np.setdiff1d(np.arange(4), columns)
    marginal = np.column_stack(
        [
            w * multivariate_normal(law.mean[others], law.covariance[np.ix_(others, others)]).pdf(X[:, others])
            if others.size
            else np.full(6, w)
            for w, law in zip(WEIGHTS, mixture.laws, strict=True)
        ]
    )
    np.testing.assert_allclose(weights, marginal / marginal.sum(axis=1, keepdims=True), rtol=1e-9)
    for _ in range(3):
        moved = X.copy()
        moved[:, columns] = rng.normal(size=(6, len(columns)))
        density = [
            sum(
                weights[i, k] * multivariate_normal(means[i, k], F @ F.T).pdf(moved[i, columns])
                for k, F in enumerate(factors)
            )
            for i in range(6)
        ]
        np.testing.assert_allclose(density, np.exp(mixture.log_density(moved)) / marginal.sum(axis=1), rtol=1e-8)
        for found, known in zip(mixture.given_others(moved).law(columns), (weights, means, factors), strict=True):
            np.testing.assert_array_equal(found, known)


def test_draws_of_several_columns_have_their_means_and_covariance(mixture, rng):
    """Of 20,000 draws of one row: 5 standard errors, false alarm about 1e-5 for all; a constant column stays."""
    X, columns = mixture.sample(1, rng), np.array([3, 1])
    weights, means, factors = mixture.given_others(X).law(columns)
    draws = mixture.conditional_together(columns, X, rng, 20_000)[:, 0]
    mean = weights[0] @ means[0]
    second = sum(w * (F @ F.T + np.outer(m, m)) for w, m, F in zip(weights[0], means[0], factors, strict=True))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * draws.std(axis=0) / np.sqrt(20_000)).all()
    products = draws[:, :, None] * draws[:, None, :]
    assert (np.abs(products.mean(axis=0) - second) < 5 * products.std(axis=0) / np.sqrt(20_000)).all()
    table = np.column_stack([np.full(50, 3.0), rng.normal(size=(50, 3))])
    drawn = fit_gaussian(table).conditional_together(np.array([0, 2]), table, rng, 4)
    assert (drawn[..., 0] == 3).all() and len(np.unique(drawn[..., 1])) == 200


def test_one_gaussian_is_the_regression_on_the_others(rng):
    X = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3))
    model = fit_gaussian(X)
    for j in range(3):
        A = np.column_stack([np.ones(400), np.delete(X, j, axis=1)])
        fitted = A @ np.linalg.lstsq(A, X[:, j], rcond=None)[0]
        weights, means, factors = model.given_others(X).law(np.array([j]))
        assert (weights == 1).all()
        np.testing.assert_allclose(means[:, 0, 0], fitted, rtol=1e-8, atol=1e-8)
        assert factors[0, 0, 0] == pytest.approx((X[:, j] - fitted).std(), rel=1e-8)


def test_fixed_columns_are_drawn_as_they_are_and_places_are_those_of_the_table(rng):
    X = np.column_stack([np.full(50, 3.0), rng.normal(size=(50, 2))])
    model = fit_gaussian(X)
    assert (model.conditional(0, X, rng, 3) == 3).all()
    alone = fit_gaussian(X[:, 1:])
    same = alone.conditional(1, X[:, 1:], np.random.default_rng(0), 3)
    np.testing.assert_allclose(model.conditional(2, X, np.random.default_rng(0), 3), same)
    with pytest.raises(InputError, match="j=3: X has columns 0 to 2"):
        model.conditional(3, X, rng, 1)


def test_a_conditional_is_exact_in_far_tails():
    model = gaussian_features([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    _, means, _ = model.given_others(np.array([[1e6, -1e6]])).law(np.array([0]))
    assert means[0, 0, 0] == pytest.approx(-5e5)
