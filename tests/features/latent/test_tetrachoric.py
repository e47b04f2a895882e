import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from knockoffs.features.latent.stochastic_em import tetrachoric


@pytest.mark.parametrize("r", [-0.95, -0.4, 0.0, 0.3, 0.8, 0.97])
@pytest.mark.parametrize("h, k", [(0.0, 0.0), (0.5, -1.0), (1.3, 1.3)])
def test_the_correlation_comes_back(r, h, k):
    both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([-h, -k])  # P(A > h, B > k), by symmetry
    first, second = ndtr(-h), ndtr(-k)
    if both < 1e-9:
        pytest.skip("the event is as good as impossible: nothing can be learned from it")
    found = tetrachoric(np.array([both]), np.array([first]), np.array([second]), most=0.999)
    assert found[0] == pytest.approx(r, abs=2e-3)


def test_copies_reach_the_largest_correlation():
    found = tetrachoric(np.array([0.5, 1e-9]), np.array([0.5, 0.5]), np.array([0.5, 0.5]), most=0.99)
    np.testing.assert_allclose(found, [0.99, -0.99], atol=1e-6)
