"""Cuts under several classes: knockoffs have the shares of their columns' values."""

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.kinds import mixture_quantiles
from knockoffs.features.latent.margins import Steps


def test_quantiles_of_a_mixture_are_where_it_has_the_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, weights = np.sort(rng.random(7)), rng.dirichlet(np.ones(4))
        means, deviations = 3 * rng.standard_normal(4), np.exp(rng.standard_normal(4))
        at = mixture_quantiles(p, weights, means, deviations)
        reached = weights @ ndtr((at - means[:, None]) / deviations[:, None])
        assert np.abs(reached - p).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fit_with_classes_has_the_shares_of_every_column(seed):
    rng = np.random.default_rng(seed)
    centre = 2.5 * rng.standard_normal((3, 6))
    X = np.round(rng.standard_normal((1200, 6)) + centre[rng.integers(3, size=1200)])
    model = fit_latent(X, rng=rng, n_classes=3, kinds=["ordinal"] * 6)
    assert model.n_classes == 3
    for j, margin in enumerate(model.margins):
        assert isinstance(margin, Steps)
        means = np.array([law.mean[j] for law in model.mixture.laws])
        deviations = np.sqrt([law.covariance[j, j] for law in model.mixture.laws])
        below = model.mixture.weights @ ndtr((margin.cuts[1:-1] - means[:, None]) / deviations[:, None])
        shares = np.array([(X[:, j] <= value).mean() for value in margin.values[:-1]])
        assert np.abs(below - shares).max() < 1e-9
