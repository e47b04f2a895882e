"""Correlations of classes drawn towards their average: algebra, limits, and what held-out rows ask for."""

import numpy as np
import pytest

from knockoffs.errors import KnockoffWarning
from knockoffs.features.covariance import estimate_covariance
from knockoffs.features.em_steps import Mixture
from knockoffs.features.latent.search import choose_shrinkage, pool, shrink_mixture


def correlation(rng, d):
    """Random correlation matrix."""
    A = rng.standard_normal((d, 2 * d))
    S = A @ A.T
    return S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))


@pytest.fixture
def classes(rng):
    """Three classes in four coordinates: weights, scales, correlations."""
    return np.array([2.0, 1.0, 1.0]), rng.uniform(0.5, 2, (3, 4)), np.stack([correlation(rng, 4) for _ in range(3)])


def covariances(scales, correlations):
    """Covariances of scales and correlations."""
    return correlations * scales[:, :, None] * scales[:, None, :]


def test_nothing_is_moved_without_shrinkage(classes):
    weights, scales, R = classes
    S = covariances(scales, R)
    np.testing.assert_allclose(pool(weights, S, 1.0, [1.0] * 3), S, atol=1e-14)


def test_all_the_way_every_class_has_the_average_correlations_and_its_own_variances(classes):
    weights, scales, R = classes
    average = (2 * R[0] + R[1] + R[2]) / 4
    found = pool(weights, covariances(scales, R), 1.0, [0.0] * 3)
    np.testing.assert_allclose(found, covariances(scales, np.stack([average] * 3)), atol=1e-14)


def test_part_of_the_way_it_is_the_convex_combination(classes):
    weights, scales, R = classes
    average = (2 * R[0] + R[1] + R[2]) / 4
    target = 0.8 * average + 0.2 * np.eye(4)
    found = pool(weights, covariances(scales, R), 0.8, [0.3, 0.5, 1.0])
    expected = np.stack([left * R_k + (1 - left) * target for left, R_k in zip([0.3, 0.5, 1.0], R, strict=True)])
    np.testing.assert_allclose(found, covariances(scales, expected), atol=1e-14)
    assert np.linalg.eigvalsh(found).min() > 0


def test_classes_of_few_rows_with_equal_correlations_are_drawn_together(rng):
    """60 rows a class for 20 coordinates, all correlations .5: new rows are likelier than by what a class knows alone.

    By itself, shrunk towards none as far as held-out rows ask, a class has correlations that are too small.
    """
    factor = np.linalg.cholesky(0.5 * np.eye(20) + 0.5)
    means, scales = 10.0 * np.outer(range(3), np.ones(20)), np.array([1, 2, 0.5])

    def draw(rows):
        K = np.repeat(np.arange(3), rows)
        return K, rng.standard_normal((3 * rows, 20)) @ factor.T * scales[K, None] + means[K]

    (K, Z), (_, new) = draw(60), draw(1000)
    assert min(choose_shrinkage(Z, np.eye(3)[K]).own) > 0.6
    start = Mixture(np.full(3, 1 / 3), means, scales[:, None, None] ** 2 * np.eye(20))
    with pytest.warns(KnockoffWarning, match="shrunk"):
        alone = [estimate_covariance(Z[K == k], what="a class") for k in range(3)]
    by_itself = Mixture(np.full(3, 1 / 3), np.stack([a.mean for a in alone]), np.stack([a.covariance for a in alone]))
    gains = shrink_mixture(Z, start).log_density(new) - by_itself.log_density(new)
    assert gains.mean() > 0.15  # 0.30 here, its standard error 0.02


def test_classes_whose_correlations_differ_keep_them(rng):
    """Correlations of .9 and -.3 with 600 rows each: the average would be wrong for both."""
    K = np.repeat([0, 1], 600)
    Z = np.empty((1200, 3))
    for k, r in enumerate((0.9, -0.3)):
        Z[K == k] = rng.standard_normal((600, 3)) @ np.linalg.cholesky((1 - r) * np.eye(3) + r).T
    assert max(choose_shrinkage(Z, np.eye(2)[K]).own) < 0.1


def test_one_class_is_shrunk_towards_no_correlation(rng):
    noise = choose_shrinkage(rng.standard_normal((60, 20)), np.ones((60, 1)))
    assert noise.common > 0.5 and noise.own == (0.0,)


def test_held_out_rows_judge_one_class_as_it_is_used(rng):
    """Its correlations are shrunk by what is common, exactly; unshrunk, it lost against two needless classes."""
    Z = rng.standard_normal((60, 20))
    one = Mixture(np.ones(1), np.zeros((1, 20)), np.eye(20)[None])
    a = choose_shrinkage(Z, np.ones((60, 1))).common
    S = np.cov(Z.T, bias=True)
    expected = np.where(np.eye(20, dtype=bool), S * (1 + 1e-6), (1 - a) * S)
    np.testing.assert_allclose(shrink_mixture(Z, one).covariances[0], expected, atol=1e-12)


def test_what_is_said():
    assert str(choose_shrinkage(np.zeros((5, 1)), np.ones((5, 1)))) == ""
