import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.swap import check_features, swap


def test_swap_twice_is_nothing_and_acts_on_features(rng):
    X, X_tilde = rng.normal(size=(2, 4, 3))
    feature_of = np.array([0, 1, 1])
    a, b = swap(X, X_tilde, [False, True], feature_of)
    assert (a[:, 0] == X[:, 0]).all() and (a[:, 1:] == X_tilde[:, 1:]).all() and (b[:, 1:] == X[:, 1:]).all()
    back = swap(a, b, [False, True], feature_of)
    assert (back[0] == X).all() and (back[1] == X_tilde).all()


@pytest.mark.parametrize(
    "feature_of, message",
    [
        ([0, 1], r"shape \(2,\)"),
        ([0.0, 1.0, 2.0], "type float64"),
        ([0, -1, 1], "-1 at column 1"),
        ([0, 3, 3], "no column for feature 1"),
    ],
)
def test_feature_of_refused(feature_of, message):
    with pytest.raises(InputError, match=message):
        check_features(feature_of, 3)
