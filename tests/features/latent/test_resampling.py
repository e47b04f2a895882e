"""Columns drawn anew given what is hidden: their law, and p-values that are uniform where nothing matters."""

import numpy as np
from scipy.stats import kstest

from knockoffs.conditional_tests.tests import randomization_tests
from knockoffs.features.latent.margins import Affine, Steps
from knockoffs.features.latent.model import latent_features

R = np.array([[1.0, 0.7, 0.5], [0.7, 1.0, 0.6], [0.5, 0.6, 1.0]])
HALF = Steps(np.array([0.0, 1.0]), np.array([-np.inf, 0.0, np.inf]))
THIRDS = Steps(np.array([1.0, 2.0, 3.0]), np.array([-np.inf, -0.5, 0.6, np.inf]))


def model(**classes):
    return latent_features(
        [HALF, THIRDS, Affine()], **({"weights": [1.0], "means": [[0, 0, 0]], "covariances": [R]} | classes)
    )


def test_a_column_and_its_draws_have_one_law_together_with_the_others():
    """Means of products with each other column: 5 standard errors (of 0.007), false alarm about 1e-5 for all."""
    rng = np.random.default_rng(0)
    law = model(weights=[0.4, 0.6], means=[[1, 0, 0], [-0.5, 0.3, 0]], covariances=[R, np.eye(3)])
    X = law.sample(20_000, rng)
    resampler = law.resampler(X, rng)
    for j in range(3):
        (drawn,) = resampler.draw(j, rng, 1)
        assert set(np.unique(drawn)) <= set(np.unique(X[:, j])) or j == 2
        for other in (k for k in range(3) if k != j):
            z = (X[:, j] - drawn) * (X[:, other] - X[:, other].mean())
            assert abs(z.mean()) < 5 * z.std() / np.sqrt(len(z))
        assert abs((X[:, j] - drawn).mean()) < 5 * (X[:, j] - drawn).std() / np.sqrt(len(X))


def test_two_columns_and_their_draws_have_one_law_together_with_the_third():
    """Means of products within the group and with the column outside: 5 standard errors, false alarm about 1e-5."""
    rng = np.random.default_rng(3)
    near = np.array([[1.0, 0.3, 0.9], [0.3, 1.0, 0.4], [0.9, 0.4, 1.0]])
    law = model(weights=[0.7, 0.3], means=[[1, 0, 0], [-0.5, 0.3, 0]], covariances=[near, np.eye(3)])
    X = law.sample(20_000, rng)
    (drawn,) = law.conditional_together(np.array([0, 2]), X, rng, 1)
    centre = X.mean(axis=0)
    pairs = {
        "within": (
            (X[:, 0] - centre[0]) * (X[:, 2] - centre[2]),
            (drawn[:, 0] - centre[0]) * (drawn[:, 1] - centre[2]),
        ),
        "first": tuple((x - centre[0]) * (X[:, 1] - centre[1]) for x in (X[:, 0], drawn[:, 0])),
        "last": tuple((x - centre[2]) * (X[:, 1] - centre[1]) for x in (X[:, 2], drawn[:, 1])),
    }
    for name, (seen, new) in pairs.items():
        z = seen - new
        assert abs(z.mean()) < 5 * z.std() / np.sqrt(len(z)), name
    # planted: each column given all others, its mate in the group among them, so that the two are no longer near
    apart = np.column_stack([law.resampler(X, rng).draw(j, rng, 1)[0] for j in (0, 2)])
    z = (X[:, 0] - centre[0]) * (X[:, 2] - centre[2]) - (apart[:, 0] - centre[0]) * (apart[:, 1] - centre[2])
    assert abs(z.mean()) > 5 * z.std() / np.sqrt(len(z))


def test_p_values_of_nulls_are_uniform():
    """The target depends on the third column, which the first two resemble: 240 nulls, false failure 1e-4."""
    law, p_values = model(), []
    for rng in np.random.default_rng(1).spawn(120):
        X = law.sample(120, rng)
        y = X[:, 2] + 0.5 * rng.standard_normal(120)
        tested = randomization_tests(law, X, y, kind="number", rng=rng, response_model="lasso", max_draws=99)
        p_values += tested.p_values[:2].tolist()
    uniform = np.array(p_values) - np.random.default_rng(2).random(240) / 100  # multiples of a hundredth, smoothed
    assert kstest(uniform, "uniform").pvalue > 1e-4


def test_the_law_of_a_coordinate_given_the_others_is_that_of_the_algebra():
    """Mean and covariance by Schur complements of each class's covariance, to rounding."""
    means, covariances = [[1, 0, 0], [-0.5, 0.3, 0]], [R, 0.4 * R + 0.6 * np.eye(3)]
    law = model(weights=[0.4, 0.6], means=means, covariances=covariances)
    resampler = law.resampler(law.sample(40, np.random.default_rng(0)), np.random.default_rng(1))
    for j in range(3):
        rest = [k for k in range(3) if k != j]
        found, factors = resampler._law(np.array([j]))
        for k, (mean, S) in enumerate(zip(np.array(means), covariances, strict=True)):
            slope = np.linalg.solve(S[np.ix_(rest, rest)], S[rest, j])
            rows = resampler.K == k
            expected = mean[j] + (resampler.L[np.ix_(rows, rest)] - mean[rest]) @ slope
            np.testing.assert_allclose(found[rows, 0], expected, atol=1e-10)
            np.testing.assert_allclose(factors[k] @ factors[k].T, [[S[j, j] - S[j, rest] @ slope]], atol=1e-10)
