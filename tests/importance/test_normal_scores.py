"""Normal scores of a pair: they know ranks alone, and not which of a pair of columns is the knockoff."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from knockoffs.importance import normal_scores as scores_of
from knockoffs.importance.normal_scores import learn_scores, normal_scores, scores_of_target
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target


@pytest.fixture
def pair(rng):
    """A heavy-tailed column, a normal one, one of two values, a count, and a block of two columns."""
    draws = [
        np.stack(
            [
                np.exp(3 * rng.standard_normal(200)),
                rng.standard_normal(200),
                rng.integers(2, size=200),
                np.floor(np.exp(2 * rng.standard_normal(200))),
                np.sinh(3 * rng.standard_normal(200)),
                rng.standard_normal(200),
            ],
            axis=1,
        )
        for _ in range(2)
    ]
    return Pair(*draws, np.array([0, 1, 2, 3, 4, 4]))


def test_swapped_columns_have_swapped_scores(pair):
    for S in (np.array([True, False, False, True, True]), np.ones(5, dtype=bool)):
        np.testing.assert_array_equal(normal_scores(pair.swap(S)).stacked, normal_scores(pair).swap(S).stacked)


def test_only_columns_far_from_normal_change(pair):
    changed = (normal_scores(pair).stacked != pair.stacked).any(axis=0).reshape(2, -1)
    np.testing.assert_array_equal(changed, [[True, False, False, True, True, False]] * 2)


def test_scores_are_those_of_both_columns_ranked_together(pair):
    found = normal_scores(pair)
    both = np.concatenate([found.X[:, 0], found.X_tilde[:, 0]])
    values = np.concatenate([pair.X[:, 0], pair.X_tilde[:, 0]])
    np.testing.assert_array_equal(np.argsort(both), np.argsort(values))
    assert abs(both.mean()) < 1e-12 and abs(both.std() - 1) < 0.01


def test_equal_values_have_equal_scores(pair):
    found = normal_scores(pair)
    values, scores = np.hstack([pair.X[:, 3], pair.X_tilde[:, 3]]), np.hstack([found.X[:, 3], found.X_tilde[:, 3]])
    assert all(np.ptp(scores[values == value]) == 0 for value in np.unique(values))


@pytest.mark.parametrize("digits", [6, 0])
def test_normality_is_the_correlation_with_the_scores(digits, rng):
    values = np.round(np.exp(rng.standard_normal(300)), digits)
    scores = norm.ppf((rankdata(values) - 0.5) / 300)
    assert scores_of._ranked(values)[2] == pytest.approx(np.corrcoef(values, scores)[0, 1], abs=1e-12)
    assert scores_of._ranked(values > 1) is None


def test_numbers_whose_squares_overflow(rng):
    huge = Pair(
        1e300 * np.exp(rng.standard_normal((50, 1))), 1e300 * np.exp(rng.standard_normal((50, 1))), np.arange(1)
    )
    assert np.isfinite(normal_scores(huge).stacked).all()


def test_learned_scores_are_those_of_the_pair_and_swap():
    rng = np.random.default_rng(0)
    values = np.exp(2 * rng.standard_normal((300, 8)))
    values[:, 1] = rng.integers(4, size=300) ** 4
    values[:, 5] = rng.integers(4, size=300) ** 4
    pair = Pair(values[:, :4], values[:, 4:], np.arange(4))
    found = learn_scores(pair)
    np.testing.assert_allclose(found(pair).stacked, normal_scores(pair).stacked, atol=1e-12)
    S = np.array([True, False, False, True])
    np.testing.assert_array_equal(learn_scores(pair.swap(S))(pair).stacked, found(pair).stacked)
    np.testing.assert_array_equal(found(pair.swap(S)).stacked, found(pair).swap(S).stacked)
    few = learn_scores(pair, most=50)(pair).stacked
    assert np.abs(few - normal_scores(pair).stacked).mean() < 0.02


def test_of_many_rows_some_tell_that_a_column_is_normal(pair, rng, monkeypatch):
    """And only that: the scores of the others are those of all rows, and a swap swaps them."""
    expected = normal_scores(pair).stacked
    counted = []
    ranked = scores_of._ranked
    monkeypatch.setattr(scores_of, "_ranked", lambda values: counted.append(len(values)) or ranked(values))
    monkeypatch.setattr(scores_of, "ENOUGH_ROWS", 60)  # every third row
    np.testing.assert_array_equal(normal_scores(pair).stacked, expected)
    assert counted.count(2 * 67) == 6 and 4 <= counted.count(2 * 200) < 6
    S = np.array([True, False, True, False, True])
    np.testing.assert_array_equal(normal_scores(pair.swap(S)).stacked, normal_scores(pair).swap(S).stacked)


def test_a_target_is_ranked_without_the_rows_of_weight_0_and_classes_and_counts_are_not():
    rng = np.random.default_rng(0)
    y, weights = np.exp(2 * rng.normal(size=60)), np.ones(60)
    weights[:10] = 0.0
    found = scores_of_target(Target(y, weights))
    np.testing.assert_array_equal(found.values[10:], scores_of_target(Target(y[10:])).values)
    np.testing.assert_array_equal(np.argsort(found.values[10:]), np.argsort(y[10:]))
    assert abs(found.values[10:].mean()) < 1e-12
    y[:10] *= 100.0
    np.testing.assert_array_equal(scores_of_target(Target(y, weights)).values[10:], found.values[10:])
    for kind in ("count", "ordinal", "binary", "classes"):
        assert scores_of_target(Target(np.round(y), kind=kind)) is None
