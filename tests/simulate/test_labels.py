import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.simulate import draw_non_nulls, level_set_labels, polynomial_labels, simulate_labels
from knockoffs.simulate.labels import _choose_monomials

MASK = np.array([True, True, False, True, False])


def labels(X, **options):
    return polynomial_labels(X, MASK, n_classes=3, rng=np.random.default_rng(3), **options)


def test_nulls_do_not_touch_the_labels_and_non_nulls_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    y = labels(X)
    for j in range(5):
        moved = X.copy()
        moved[:, j] = rng.standard_normal(500)
        assert np.array_equal(labels(moved), y) == (not MASK[j])


def test_labels_do_not_depend_on_units():
    X = np.random.default_rng(0).standard_normal((500, 5))
    np.testing.assert_array_equal(labels(X * 1000 + 7), labels(X))


def test_labels_are_the_argmax_of_cubic_polynomials():
    # without noise, y is a function of the monomials to degree 3: written out here for two features
    X = np.random.default_rng(0).standard_normal((200, 2))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    a, b = Z.T
    monomials = np.stack([a, b, a * a, a * b, b * b, a**3, a * a * b, a * b * b, b**3], axis=1)
    coefficients = np.random.default_rng(9).standard_normal((9, 4))
    y = polynomial_labels(X, np.ones(2, bool), n_classes=4, noise_variance=0.0, rng=np.random.default_rng(9))
    np.testing.assert_array_equal(y, np.argmax(monomials @ coefficients, axis=1))


def test_chunks_make_no_difference(monkeypatch):
    X = np.random.default_rng(0).standard_normal((500, 5))
    whole = labels(X)
    monkeypatch.setattr("knockoffs.simulate.labels.CELLS", 100)
    np.testing.assert_array_equal(labels(X), whole)


@pytest.mark.parametrize("seed", range(5))
def test_sparse_polynomials_use_every_non_null(seed):
    powers = [(0,), (1,), (2,), (0, 1), (1, 2)]
    mask = _choose_monomials(powers, 3, 1, 2, np.random.default_rng(seed))
    used = {j for m in np.flatnonzero(mask.any(axis=1)) for j in powers[m]}
    assert used == {0, 1, 2}


def test_simulate_labels_keeps_X():
    X = np.random.default_rng(0).standard_normal((100, 6))
    data = simulate_labels(X, n_classes=2, n_non_nulls=4, n_monomials=5, rng=np.random.default_rng(1))
    assert data.X is X and data.non_nulls.sum() == 4 and data.y.shape == (100,)


@pytest.mark.parametrize("count", [0, 7])
def test_impossible_number_of_non_nulls(count):
    with pytest.raises(InputError, match=f"n_non_nulls={count}"):
        draw_non_nulls(6, count, rng=np.random.default_rng(0))


def test_one_class_is_refused():
    with pytest.raises(InputError, match="n_classes=1"):
        polynomial_labels(np.zeros((3, 1)), np.ones(1, bool), n_classes=1, rng=np.random.default_rng(0))


def test_level_sets_follow_one_polynomial():
    X = np.random.default_rng(0).standard_normal((90, 1))
    options = dict(n_classes=3, noise_variance=0.0)
    y = level_set_labels(X, np.ones(1, bool), rng=np.random.default_rng(4), **options)
    z = (X[:, 0] - X.mean()) / X.std()
    a, b, c = np.random.default_rng(4).standard_normal((3, 1))[:, 0]
    values = a * z + b * z**2 + c * z**3
    assert list(np.bincount(y)) == [30, 30, 30]
    assert values[y == 0].max() < values[y == 1].min() and values[y == 1].max() < values[y == 2].min()
