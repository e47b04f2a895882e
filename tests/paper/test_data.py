"""The data sets and the synthetic data of the paper."""

import doctest
import importlib

import numpy as np
import pytest

pytest.importorskip("pandas")

from paper.data import fill_median, load_bank, load_bankruptcy, load_nhanes, normal_scores  # noqa: E402
from paper.simulate import level_set_labels, polynomial_labels, simulate_labels  # noqa: E402

MASK = np.array([True, True, False, True, False])


def test_the_data_sets_have_their_sizes(data_folder):
    bank, bankruptcy, nhanes = (load(data_folder) for load in (load_bank, load_bankruptcy, load_nhanes))
    assert bank.X.shape == (41_188, 10) and bank.y.sum() == 4_640 and bank.X[0, 3] == 999
    assert bankruptcy.X.shape == (10_503, 64) and bankruptcy.y.sum() == 495 and np.abs(bankruptcy.X).max() < 5
    assert nhanes.X.shape[1] == 74 and len(nhanes.y) == len(nhanes.X) <= 9_228
    assert nhanes.meanings["RIDAGEYR"] == "Age in years at screening"
    assert not any(np.isnan(data.X).any() for data in (bank, bankruptcy, nhanes))


def test_absent_data_give_one_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match="bank-additional-full.csv.gz is not there: set KNOCKOFFS_DATA"):
        load_bank(tmp_path)


def test_normal_scores_are_monotone_and_keep_missing():
    X = np.array([[5.0, 1.0], [np.nan, 1.0], [1e9, 2.0], [-3.0, np.nan]])
    scores = normal_scores(X)
    assert np.isnan(scores[1, 0]) and np.isnan(scores[3, 1])
    assert scores[3, 0] < scores[0, 0] < scores[2, 0] and scores[0, 1] == scores[1, 1] < scores[2, 1]
    assert scores[0, 0] == pytest.approx(0.0)
    np.testing.assert_array_equal(fill_median(X)[:, 0], [5.0, 5.0, 1e9, -3.0])


def labels(X):
    return polynomial_labels(X, MASK, n_classes=3, rng=np.random.default_rng(3))


def test_nulls_do_not_touch_the_labels_and_non_nulls_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    y = labels(X)
    for j in range(5):
        moved = X.copy()
        moved[:, j] = rng.standard_normal(500)
        assert np.array_equal(labels(moved), y) == (not MASK[j])
    np.testing.assert_array_equal(labels(X * 1000 + 7), y)  # nor do the units


def test_labels_are_the_argmax_of_cubic_polynomials(monkeypatch):
    # without noise, y is a function of the monomials to degree 3: written out here for two features
    monkeypatch.setattr("paper.simulate.NOISE_VARIANCE", 0.0)
    X = np.random.default_rng(0).standard_normal((200, 2))
    a, b = ((X - X.mean(axis=0)) / X.std(axis=0)).T
    monomials = np.stack([a, b, a * a, a * b, b * b, a**3, a * a * b, a * b * b, b**3], axis=1)
    coefficients = np.random.default_rng(9).standard_normal((9, 4))
    y = polynomial_labels(X, np.ones(2, bool), n_classes=4, rng=np.random.default_rng(9))
    np.testing.assert_array_equal(y, np.argmax(monomials @ coefficients, axis=1))


def test_level_sets_follow_one_polynomial(monkeypatch):
    monkeypatch.setattr("paper.simulate.NOISE_VARIANCE", 0.0)
    X = np.random.default_rng(0).standard_normal((90, 1))
    y = level_set_labels(X, np.ones(1, bool), n_classes=3, rng=np.random.default_rng(4))
    z = (X[:, 0] - X.mean()) / X.std()
    a, b, c = np.random.default_rng(4).standard_normal((3, 1))[:, 0]
    values = a * z + b * z**2 + c * z**3
    assert list(np.bincount(y)) == [30, 30, 30]
    assert values[y == 0].max() < values[y == 1].min() and values[y == 1].max() < values[y == 2].min()


def test_simulated_labels_keep_X():
    X = np.random.default_rng(0).standard_normal((100, 6))
    data = simulate_labels(X, n_classes=2, n_non_nulls=4, labels=polynomial_labels, rng=np.random.default_rng(1))
    assert data.X is X and data.non_nulls.sum() == 4 and data.y.shape == (100,)


@pytest.mark.parametrize("name", ["data", "runner", "simulate"])
def test_the_examples_of_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"paper.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted and not found.failed
