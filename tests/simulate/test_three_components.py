import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.simulate import draw_three_components, mixture_moments, simulate_three_components


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
    with pytest.raises(InputError, match="too small to cancel"):
        draw_three_components(rng=np.random.default_rng(0), wide_variance=2.0)
