"""Flip-sign, for every score of the registry: swapping columns, for the model and for the score, negates W there.

A refitted model has it in distribution only (tests/guarantees/test_flip_sign_refit.py); here one fitted model is
wrapped in the same swap, and then it must hold exactly.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from knockoffs.importance import SCORES
from knockoffs.importance.accuracy_drop import permuted, swapped
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.paths.moves import both_halves, faked_tables
from knockoffs.importance.paths.tree import TreePath
from knockoffs.registry import imported
from knockoffs.sampling.pair import Pair, swap

N_COLUMNS = 5
FEATURES = {"one column each": np.arange(N_COLUMNS), "groups": np.array([0, 1, 1, 2, 3])}


class Swapped:
    """A fitted model that swaps back before it looks: on swapped tables it says what the model says on the others.

    Whatever a score may read is wrapped: predictions, coefficients and gradients.
    """

    def __init__(self, model, S, feature_of):
        mask = np.asarray(S)[feature_of]
        p = len(feature_of)
        columns = np.arange(2 * p)
        columns[:p][mask], columns[p:][mask] = np.arange(p, 2 * p)[mask], np.arange(p)[mask]
        self.model, self.columns = model, columns
        for name in ("classes_", "n_features_in_", "intercept_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        for name in ("predict", "predict_proba", "decision_function", "decision"):
            if hasattr(model, name):
                setattr(self, name, self._wrap(getattr(model, name)))
        if hasattr(model, "coef_"):
            self.coef_ = np.asarray(model.coef_)[..., columns]
        if hasattr(model, "gradient"):
            self.gradient = lambda XX, direction: model.gradient(XX[:, columns], direction)[:, columns]

    def _wrap(self, method):
        return lambda XX: method(XX[:, self.columns])


def tables(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, N_COLUMNS))
    X_tilde = X_tilde * [2, 1, 1, 3, 0.5] + 1  # so that a scale taken from one side alone is seen
    return X, X_tilde, X[:, 0] * X[:, 1] + X[:, 2] - X[:, 4] + 0.3 * rng.normal(size=n)


def load(name):
    return imported(SCORES[name].function)


class Smooth:
    """A small network with fixed weights, and the derivatives that saliency asks for."""

    classes_, n_features_in_ = np.array(["a", "b", "c"]), 2 * N_COLUMNS

    def __init__(self):
        rng = np.random.default_rng(8)
        self.A, self.B = rng.normal(size=(2 * N_COLUMNS, 7)), rng.normal(size=(7, 3))

    def decision(self, XX):
        return np.tanh(XX @ self.A) @ self.B

    decision_function = decision

    def gradient(self, XX, direction):
        return ((direction @ self.B.T) * (1 - np.tanh(XX @ self.A) ** 2)) @ self.A.T

    def predict_proba(self, XX):
        return np.exp(self.decision(XX)) / np.exp(self.decision(XX)).sum(axis=1, keepdims=True)

    def predict(self, XX):
        return self.classes_[self.decision(XX).argmax(axis=1)]


def models_for(needs, XX, signal):
    """Fitted models that offer what a score needs, with their y."""
    labels = Smooth.classes_[np.digitize(signal, [-0.5, 0.5])]
    linear = [(LogisticRegression().fit(XX, labels), labels), (LinearRegression().fit(XX, signal), signal)]
    if needs == "coefficients":
        return linear
    if needs == "gradient":
        return [*linear, (Smooth(), labels)]
    forest = RandomForestClassifier(10, random_state=0).fit(XX, labels)
    return [*linear, (Smooth(), labels), (KNeighborsClassifier(5).fit(XX, labels), labels), (forest, labels)]


def statistics(score, model, X, X_tilde, y, feature_of):
    scores = score(model, X, X_tilde, y, feature_of=feature_of, rng=np.random.default_rng(3))
    return scores.Z - scores.Z_tilde


def check_flip(score, model, X, X_tilde, y, S, feature_of):
    # wrapped in no swap as well, so that both are followed in the same way
    W = statistics(score, Swapped(model, np.zeros_like(S), feature_of), X, X_tilde, y, feature_of)
    left, right = swap(X, X_tilde, S, feature_of)
    W_swapped = statistics(score, Swapped(model, S, feature_of), left, right, y, feature_of)
    scale = np.abs(W).max()
    assert scale > 0
    np.testing.assert_allclose(W_swapped, np.where(S, -W, W), rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("grouping", FEATURES)
@pytest.mark.parametrize("name", SCORES)
def test_every_score_flips_its_sign(name, grouping):
    score, feature_of = load(name), FEATURES[grouping]
    X, X_tilde, signal = tables()
    S = np.random.default_rng(1).random(feature_of.max() + 1) < 0.5
    S[:2] = [True, False]
    for model, y in models_for(SCORES[name].needs, np.hstack([X, X_tilde]), signal):
        check_flip(score, model, X, X_tilde, y, S, feature_of)


@pytest.mark.parametrize("fake", [swapped, permuted])
@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(10, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        RandomForestRegressor(10, random_state=0),
    ],
)
def test_trees_with_swapped_columns_flip_in_the_kernel_too(model, fake):
    # the wrapped model above is a black box; here the columns of the trees themselves are swapped
    feature_of = FEATURES["groups"]
    X, X_tilde, signal = tables()
    y = signal if isinstance(model, RandomForestRegressor) else np.digitize(signal, [-0.5, 0.5])
    S = np.array([True, True, False, True])
    fitted = clone(model).fit(np.hstack([X, X_tilde]), y)
    columns = Swapped(fitted, S, feature_of).columns
    loss = "squared_error" if isinstance(model, RandomForestRegressor) else "log_loss"

    def W(left, right, rename):
        XX, XX_fake = faked_tables(left, right, fake, np.random.default_rng(5))
        path = path_losses(fitted, XX, XX_fake, y, loss, feature_of2=both_halves(feature_of))
        assert isinstance(path, TreePath)
        trees = path.trees
        moved = np.where(trees.column >= 0, rename[np.maximum(trees.column, 0)], -1).astype(np.int32)
        path = TreePath(type(trees)(**(vars(trees) | {"column": moved})), path.moves, path.loss, path.classes)
        Z = np.column_stack([path.integral(0.0, 10.0, 2), path.at(np.array([1.0]))[:, 0]])
        return Z[:4] - Z[4:]

    before = W(X, X_tilde, np.arange(2 * N_COLUMNS))
    after = W(*swap(X, X_tilde, S, feature_of), columns)
    np.testing.assert_allclose(after, np.where(S[:, None], -before, before), atol=1e-8 * np.abs(before).max())


def test_one_permutation_a_column_would_not_flip():
    # the check sees a score that draws a new order for each column: the fault it is there for
    from functools import partial

    from knockoffs.importance.accuracy_drop import permutation_score as permutation

    def permuted_column_by_column(X, X_tilde, rng):
        XX = rng.permuted(np.hstack([X, X_tilde]), axis=0)
        return XX[:, : X.shape[1]], XX[:, X.shape[1] :]

    X, X_tilde, signal = tables()
    S, feature_of = np.array([True, False, True, False, True]), FEATURES["one column each"]
    fitted = KNeighborsClassifier(5).fit(np.hstack([X, X_tilde]), signal > 0)
    faulty = partial(permutation, fake=permuted_column_by_column)
    with pytest.raises(AssertionError):
        check_flip(faulty, fitted, X, X_tilde, signal > 0, S, feature_of)


# ---- covariates: columns without knockoffs -----------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORES)
def test_every_score_flips_its_sign_beside_covariates(name):
    score, feature_of = load(name), np.array([0, 1, 4, 2, 3])  # features first, the covariate last
    X, X_tilde, signal = tables()
    pair = Pair(X, X_tilde, feature_of).without_knockoffs(np.array([2]))
    S = np.array([True, False, True, True, False])
    for model, y in models_for(SCORES[name].needs, pair.stacked, signal):
        check_flip(score, model, pair.X, pair.X_tilde, y, S, feature_of)


@pytest.mark.parametrize("m", [1, 2])
def test_a_swap_of_a_covariate_changes_nothing_and_its_drawn_knockoff_is_never_seen(m):
    X, *drawn = np.random.default_rng(0).normal(size=(m + 1, 30, 3))
    feature_of, columns = np.array([0, 2, 1]), np.array([1])
    pair = Pair.of([X, *drawn], feature_of).without_knockoffs(columns)
    others = [np.where(np.arange(3) == 1, 99.0, part) for part in drawn]
    np.testing.assert_array_equal(pair.stacked, Pair.of([X, *others], feature_of).without_knockoffs(columns).stacked)
    place = np.tile(np.arange(m + 1)[:, None], (1, 3))
    place[:, 2] = place[::-1, 2]
    np.testing.assert_array_equal(pair.permute(place).stacked, pair.stacked)
    assert pair.copied.tolist() == [False, False, True]
