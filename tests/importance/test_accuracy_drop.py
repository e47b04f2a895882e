from functools import partial

import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.refusals import refuses

from knockoffs.importance.accuracy_drop import (
    At,
    Integral,
    accuracy_drop,
    permutation_score,
    swap_integral,
    swap_score,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X, X_tilde = rng.normal(size=(2, 80, 3))
    y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(80, 3)), axis=1)
    return KNeighborsClassifier(3).fit(np.hstack([X, X_tilde]), y), X, X_tilde, y


class Recorded:
    """A generator that hands out orders written down beforehand."""

    def __init__(self, orders):
        self.orders = list(orders)

    def permutation(self, n):
        return self.orders.pop(0)


def test_permutation_agrees_with_scikit_learn_for_the_same_orders(data):
    model, X, X_tilde, y = data
    XX = np.hstack([X, X_tilde])
    n_repeats, seed = 4, 11
    theirs = permutation_importance(model, XX, y, n_repeats=n_repeats, random_state=seed, scoring="accuracy")
    # scikit-learn draws one seed and starts every column from it, so all columns share its orders; each repetition
    # permutes the column that the last one left
    state = np.random.RandomState(np.random.RandomState(seed).randint(np.iinfo(np.int32).max + 1))
    order, total, orders = np.arange(len(XX)), np.arange(len(XX)), []
    for _ in range(n_repeats):
        state.shuffle(order)
        total = total[order]
        orders.append(total)
    ours = permutation_score(model, X, X_tilde, y, rng=Recorded(orders), n_repeats=n_repeats)
    np.testing.assert_allclose(np.concatenate([ours.Z, ours.Z_tilde]), theirs.importances_mean, atol=1e-12)


def test_swap_written_out(data):
    model, X, X_tilde, y = data
    XX = np.hstack([X, X_tilde])
    scores = swap_score(model, X, X_tilde, y, rng=np.random.default_rng(0))
    for j in range(3):
        moved = XX.copy()
        moved[:, j] = X_tilde[:, j]
        assert scores.Z[j] == pytest.approx(model.score(XX, y) - model.score(moved, y))
        moved = XX.copy()
        moved[:, j + 3] = X[:, j]
        assert scores.Z_tilde[j] == pytest.approx(model.score(XX, y) - model.score(moved, y))


def test_swap_integral_is_the_published_one(data):
    model, X, X_tilde, y = data
    XX = np.hstack([X, X_tilde])
    scores = swap_integral(model, X, X_tilde, y, rng=np.random.default_rng(0))
    lams = np.linspace(0, 10, 21)
    drops = []
    for lam in lams:
        moved = XX.copy()
        moved[:, 1] = X[:, 1] + lam * (X_tilde[:, 1] - X[:, 1])
        drops.append(model.score(XX, y) - model.score(moved, y))
    assert scores.Z[1] == pytest.approx(np.trapezoid(drops, lams))


def test_range_and_grid_are_arguments(data):
    model, X, X_tilde, y = data
    score = partial(swap_integral, reduce=Integral(1.0, 2.0, n_lams=3), loss="brier")
    assert np.isfinite(score(model, X, X_tilde, y, rng=np.random.default_rng(0)).Z).all()
    for high in (2, 5):
        refuses(rf"range \(5, {high}\) is empty", Integral, 5, high)
    refuses(r"range \(-1, 2\) must be finite and start at 0", Integral, -1, 2)
    refuses("at least 2 points", Integral, n_lams=1)
    refuses("at least 0, got -2", At, -2.0)


def test_input_that_cannot_be_used(data):
    _, X, X_tilde, y = data
    rng = np.random.default_rng(0)
    narrow = LogisticRegression().fit(X, y)
    refuses(r"takes 3 columns, but \[X, X_tilde\] has 6", swap_score, narrow, X, X_tilde, y, rng=rng)
    model = LogisticRegression().fit(np.hstack([X, X_tilde]), y)
    refuses("not fitted on: '7'", swap_score, model, X, X_tilde, np.where(y == 2, 7, y), rng=rng)
    refuses("X_tilde", swap_score, model, X, X_tilde[:, :2], y, rng=rng)
    refuses("y has shape", swap_score, model, X, X_tilde, y[:-1], rng=rng)
    refuses("sample_weight", swap_score, model, X, X_tilde, y, rng=rng, sample_weight=-np.ones(len(y)))
    refuses("n_repeats=0", accuracy_drop, model, X, X_tilde, y, rng=rng, n_repeats=0)
