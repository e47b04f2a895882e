import numpy as np
import pytest

from knockoffs.diagnostics.near_duplicates import correlation, find_twins, kappa, likeness
from knockoffs.sampling.pair import Pair


def test_correlation_skips_missing_cells_and_constants():
    x = np.array([1.0, 2.0, np.nan, 4.0])
    assert correlation(x, np.array([2.0, 4.0, 9.0, 8.0])) == pytest.approx(1.0)
    assert np.isnan(correlation(np.ones(4), x))
    assert correlation(np.arange(4.0), np.ones(4)) == 0.0


def test_kappa_by_hand():
    """Agreement 3/4; by chance 1/2: kappa is 1/2."""
    assert kappa(np.array([0, 0, 1, 1]), np.array([0, 1, 0 + 1, 1])) == pytest.approx((0.75 - 0.5) / 0.5)
    assert np.isnan(kappa(np.zeros(3), np.zeros(3)))


def test_a_feature_is_a_twin_if_all_its_columns_are(rng):
    X = rng.standard_normal((200, 4))
    X_tilde = X + np.array([0.1, 0.1, 0.1, 2.0]) * rng.standard_normal(X.shape)
    pair = Pair(X, X_tilde, np.array([0, 1, 2, 2]))
    kinds = ("continuous",) * 4
    assert {twin.columns for twin in find_twins(pair, "abcd", kinds)} == {("a",), ("b",)}
    assert find_twins(pair, "abcd", kinds, bound=0.2)[-1].columns == ("c", "d")
    assert likeness(pair, kinds)[3] < 0.6
