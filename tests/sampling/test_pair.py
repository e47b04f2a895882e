"""A pair of m copies: places change feature by feature, and back; what acts on columns commutes with it."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.pair import Pair, check_features

FEATURE_OF = np.array([0, 1, 1])


def copies(seed=0, m=3):
    return Pair.of(np.random.default_rng(seed).standard_normal((m + 1, 5, 3)), FEATURE_OF)


def test_one_change_of_place_is_a_swap_of_a_pair():
    one = copies(m=1)
    place = np.array([[0, 1], [1, 0]])  # the second feature changes places
    np.testing.assert_array_equal(one.permute(place).stacked, one.swap([False, True]).stacked)


def test_changes_of_place_are_undone_by_their_inverse():
    rng, some = np.random.default_rng(1), copies()
    place = rng.permuted(np.tile(np.arange(4), (2, 1)), axis=1).T
    back = some.permute(place).permute(np.argsort(place, axis=0))
    np.testing.assert_array_equal(back.stacked, some.stacked)


def test_rows_and_columnwise_maps_commute_with_changes_of_place():
    class Squares:
        feature_of = FEATURE_OF

        def __call__(self, X):
            return X**2

    some, place = copies(), np.array([[2, 1], [0, 3], [1, 0], [3, 2]])
    one, other = some.map(Squares()).permute(place), some.permute(place).map(Squares())
    np.testing.assert_array_equal(one.stacked, other.stacked)
    np.testing.assert_array_equal(some.rows(slice(2)).permute(place).stacked, some.permute(place).stacked[:2])


def test_a_feature_is_copied_only_where_all_its_knockoffs_are_itself():
    X = np.arange(6.0).reshape(2, 3)
    other = X.copy()
    other[0, 2] = -1
    assert Pair.of([X, X, X], FEATURE_OF).copied.tolist() == [True, True]
    assert Pair.of([X, X, other], FEATURE_OF).copied.tolist() == [True, False]


def test_parts_after_a_swap_are_views_of_the_array_that_a_model_sees():
    """Without another copy, also of some of the rows."""
    moved = copies().permute(np.array([[2, 1], [0, 3], [1, 0], [3, 2]]))
    assert moved.stacked is moved.X.base and moved.stacked.shape == (5, 12)
    some = moved.rows(np.array([0, 3]))
    assert some.stacked is some.X.base
    np.testing.assert_array_equal(some.stacked, np.hstack(moved.parts)[[0, 3]])


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
