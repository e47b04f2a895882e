import numpy as np

from knockoffs.diagnostics.rows import (
    check_order,
    check_repeats,
    lag_correlation,
    nearest,
    repeated_by_rows,
    sorted_columns,
)
from knockoffs.diagnostics.scores import link_scores
from knockoffs.sampling.pair import Pair


def test_nearest_against_brute_force(rng):
    M = rng.standard_normal((700, 3))
    distance = ((M[:, None] - M) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    np.testing.assert_array_equal(nearest(M), distance.argmin(axis=1))


def test_lags_by_hand():
    x = np.array([1.0, -1.0, 1.0, -1.0])
    assert lag_correlation(x[:, None], 1).tolist() == [-0.75]
    assert lag_correlation(x[:, None], 2).tolist() == [0.5]
    assert np.isnan(lag_correlation(np.ones((4, 1)), 1)).all()


def test_columns_of_many_values_in_order_are_sorted():
    X = np.column_stack([np.arange(50), -np.arange(50), np.arange(50) > 25, np.arange(50) % 30])
    assert sorted_columns(X.astype(float)).tolist() == [True, True, False, False]


def test_repeats_of_rows_and_of_values_are_told_apart(rng):
    X = np.column_stack([rng.standard_normal(100), rng.integers(2, size=100)])
    assert repeated_by_rows(np.vstack([X, X])).tolist() == [True, False]
    assert repeated_by_rows(X).tolist() == [False, False]
    assert repeated_by_rows(X[:, 1:]).tolist() == [False]  # two different rows are no table


def test_repeats_are_counted_and_zeros_have_no_sign(rng):
    X = rng.standard_normal((100, 2))
    X[50:] = X[:50]
    X[0], X[50] = 0.0, -0.0
    check = check_repeats(Pair(X, rng.standard_normal((100, 2)), np.arange(2)))
    assert check.statistic == 10.0  # 100 rows that repeat, over the root of 100
    assert check.sentence.startswith("50 of 100 rows are copies")
    discrete = Pair(rng.integers(2, size=(100, 2)), rng.integers(2, size=(100, 2)), np.arange(2))
    assert check_repeats(discrete).p_value == 1.0


def test_the_column_whose_order_shows_is_named(rng):
    X = rng.standard_normal((400, 3))
    for i in range(1, 400):
        X[i, 1] = 0.9 * X[i - 1, 1] + 0.4 * X[i, 1]
    pair = Pair(X, rng.standard_normal((400, 3)), np.arange(3))
    check = check_order(pair, link_scores(pair, ("continuous",) * 3), "abc")
    assert check.p_value < 1e-6
    assert check.columns == ("b",)


def test_rows_that_are_like_one_some_steps_before_are_told(rng):
    """Ten rooms, one after the other at each hour: the row before is another room's."""
    X = rng.standard_normal((400, 12))
    for i in range(10, 400):
        X[i] = 0.7 * X[i - 10] + 0.71 * X[i]
    pair = Pair(X, rng.standard_normal((400, 12)), np.arange(12))
    check = check_order(pair, link_scores(pair, ("continuous",) * 12), "abcdefghijkl")
    assert check.p_value < 1e-6
    assert "Rows are like the row 10 before them (correlation 0." in check.sentence
