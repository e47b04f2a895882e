"""A number beside a label keeps its room: its knockoff is no nearer than the label's true law asks for."""

import numpy as np
import pytest
from scipy.special import ndtri

from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.latent.fit import fit_latent, with_room

N = 3000
ERROR = 4 / np.sqrt(N)  # of the correlation of a column and its knockoff: four standard errors at most


def beside_a_label(m, explained, seed=0):
    """A label with m levels and a number, Gaussian around the mean of each level, which explains a share of it.

    The means are normal quantiles in a shuffled order, the levels equally frequent.
    """
    rng = np.random.default_rng(seed)
    means = rng.permutation(ndtri((np.arange(m) + 0.5) / m))
    means /= means.std()
    level = rng.permutation(np.arange(N) % m)
    x = np.sqrt(explained) * means[level] + np.sqrt(1 - explained) * rng.standard_normal(N)
    return np.column_stack([level, x])


def true_correlation(explained):
    """Correlation of x and its knockoff beside the label's true values, by D of the Gaussian with their moments."""
    r = np.sqrt(explained)
    return 1 - gaussian_features([0, 0], [[1, r], [r, 1]]).laws[0].D[1, 1]


def correlation(X):
    model = fit_latent(X, kinds=["nominal", "continuous"], n_classes=1)
    pair = model.as_sampler().sample(X, np.random.default_rng(1))
    return np.corrcoef(pair.X[:, 1], pair.X_tilde[:, 1])[0, 1]


@pytest.mark.parametrize("explained", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("m", [2, 5, 30])
def test_a_number_beside_a_label_keeps_its_room(m, explained):
    assert correlation(beside_a_label(m, explained)) < true_correlation(explained) + 0.05 + ERROR


def test_what_a_label_says_of_a_number_is_kept():
    """The level must not pay for the room: the label explains as much of the knockoff as of the number."""
    X = beside_a_label(12, 0.4)
    pair = fit_latent(X, kinds=["nominal", "continuous"]).as_sampler().sample(X, np.random.default_rng(1))
    level = X[:, 0].astype(int)
    means = np.bincount(level, pair.X_tilde[:, 1]) / np.bincount(level)
    assert means[level].var() / pair.X_tilde[:, 1].var() == pytest.approx(0.4, abs=0.06)


def test_D_of_what_is_seen_is_feasible_and_that_of_points_is_left_alone(rng):
    root = rng.standard_normal((5, 8))
    S = root @ root.T / 8
    features = np.array([0, 0, 1, 2, 3])
    law = gaussian_features(np.zeros(5), S, feature_of=features).laws[0]
    assert with_room(law, np.zeros(5), features) is law
    found = with_room(law, np.array([0.6, 0.6, 0, 0, 2.0]), features)
    assert np.linalg.eigvalsh(found.D)[0] > 0 and np.linalg.eigvalsh(2 * S - found.D)[0] > 0
    assert found.D[0, 2] == found.D[2, 4] == 0 != found.D[0, 1]
    np.testing.assert_allclose(with_room(law, np.full(5, 1e-9), features, barrier=0.5).D, law.D, rtol=0.05)


def test_D_of_what_is_seen_has_the_largest_entropy(rng):
    """Against a grid, for a number beside a coordinate that is seen through noise."""
    S, noise = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([0.57, 0.0])
    law = gaussian_features([0, 0], S).laws[0]
    found = np.diagonal(with_room(law, noise, np.arange(2), barrier=1e-6).D)

    def entropy(d):
        inner = 2 * S - np.diag(d)
        if min(*d, *np.linalg.eigvalsh(inner)) <= 0:
            return -np.inf
        return np.linalg.slogdet(inner + np.diag(noise))[1] + np.log(d + noise).sum()

    grid = np.linspace(0.01, 1.6, 160)
    best = max(((a, b) for a in grid for b in grid), key=lambda d: entropy(np.array(d)))
    np.testing.assert_allclose(found, best, atol=0.012)
    assert found[1] > law.D[1, 1] + 0.05
