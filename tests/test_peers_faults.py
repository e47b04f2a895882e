"""Faults found in other packages, each with the test that catches it here (those that a user meets at the surface)."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.filter import knockoff_filter
from knockoffs.selector import KnockoffSelector


def data(seed=0, n=300, d=15, strong=8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 2 * X[:, :strong].sum(axis=1) + rng.standard_normal(n)


def fitted(X, y, **options):
    common = {"fdr": 0.2, "method": "knockoffs", "feature_model": "gaussian", "random_state": 0, "verdict": False}
    return KnockoffSelector(**(common | options)).fit(X, y)


def test_a_second_fit_does_not_reuse_the_first_datas_knockoffs():
    first, second = data(seed=1), data(seed=2)
    selector = fitted(*first)
    old = selector.knockoffs_
    selector.fit(*second)
    fresh = fitted(*second)
    assert not np.array_equal(selector.knockoffs_, old)
    np.testing.assert_array_equal(selector.knockoffs_, fresh.knockoffs_)
    np.testing.assert_array_equal(selector.W_, fresh.W_)


def test_a_second_fit_may_have_another_shape():
    selector = fitted(*data())
    selector.fit(*data(seed=3, n=200, d=20))
    assert selector.W_.shape == (20,)
    assert selector.knockoffs_.shape == (200, 20)


def test_the_same_seed_gives_the_same_answer_twice():
    X, y = data()
    np.testing.assert_array_equal(fitted(X, y).W_, fitted(X, y).W_)
    np.testing.assert_array_equal(fitted(X, y).knockoffs_, fitted(X, y).knockoffs_)


def test_the_global_random_state_neither_changes_the_answer_nor_is_changed():
    X, y = data()
    answers = []
    for seed in (0, 12345):
        np.random.seed(seed)  # noqa: NPY002
        expected_next = np.random.RandomState(seed).uniform()
        answers.append(fitted(X, y).W_)
        assert np.random.uniform() == expected_next  # noqa: NPY002
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_the_units_of_y_do_not_change_the_selection(unit):
    X, y = data()
    expected = fitted(X, y)
    assert expected.get_support()[:8].all()
    np.testing.assert_array_equal(fitted(X, unit * y).get_support(), expected.get_support())


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_units_of_x_do_not_change_the_selection(unit):
    X, y = data()
    scaled = X * np.where(np.arange(X.shape[1]) % 2, unit, 1.0)
    np.testing.assert_array_equal(fitted(scaled, y).get_support(), fitted(X, y).get_support())


@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_sign_and_offset_of_y_do_not_change_the_selection(shift):
    X, y = data()
    np.testing.assert_array_equal(fitted(X, shift - y).get_support(), fitted(X, y).get_support())


def test_more_than_two_classes_are_classes_and_not_numbers():
    X, _ = data()
    # the middle class by number is an extreme by features: a numeric reading sees no trend in x0, ..., x7
    score = X[:, :8].sum(axis=1)
    classes = np.select([score < -1.5, score < 1.5], [1, 0], default=1) + np.where(score > 1.5, 1, 0)
    y = np.where(classes == 0, 1, np.where(classes == 1, 0, 2))
    selector = fitted(X, y)
    assert selector.selection_.notes["task"].startswith("y has 3 classes: 0, 1, 2")
    assert selector.get_support()[:8].all()
    renamed = np.array(["one", "two", "three"])[y]
    np.testing.assert_array_equal(fitted(X, renamed).get_support(), selector.get_support())


@pytest.mark.parametrize(
    ("fdr", "message"), [(20, "Did you mean 0.2"), (1.0, "not between 0 and 1"), (-0.1, "not between")]
)
def test_a_level_that_is_no_level_is_refused(fdr, message):
    with pytest.raises(InputError, match=message):
        fitted(*data(), fdr=fdr)


def test_ties_of_mixed_sign_are_counted_on_both_sides():
    W = np.repeat([1.0, -1.0], 10)
    assert not knockoff_filter(W, 0.1).any()


def test_a_feature_that_does_nothing_is_never_selected():
    assert not knockoff_filter(np.r_[np.full(20, 3.0), 0.0], 0.1)[-1]
    assert knockoff_filter(np.r_[np.full(20, 3.0), 0.0], 0.1)[:-1].all()


def test_the_order_of_the_columns_does_not_decide():
    """Non-nulls in front and at the back are found alike: nothing rests on where a column stands."""
    X, y = data()
    assert fitted(X[:, ::-1], y).get_support()[-8:].all()
    assert fitted(X, y).get_support()[:8].all()
