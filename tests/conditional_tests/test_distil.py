"""Residuals of y given the other features: which model is fitted on which folds, and what they are."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from knockoffs.conditional_tests import distil as module
from knockoffs.conditional_tests.distil import N_FOLDS, _residuals, distil


@pytest.fixture
def fits(monkeypatch):
    """Classes of the models that were fitted, in order."""
    seen, fitted_copy = [], module.fitted_copy

    def counted(model, *arguments, **options):
        seen.append(type(model).__name__)
        return fitted_copy(model, *arguments, **options)

    monkeypatch.setattr(module, "fitted_copy", counted)
    return seen


def test_boosting_is_fitted_on_one_fold_where_that_leaves_it_surely_behind(fits, rng):
    X = rng.standard_normal((400, 6))
    y = X.sum(axis=1) + 0.3 * rng.standard_normal(400)
    found = distil(X, y, kind="number", rng=np.random.default_rng(0))
    assert found.model == "lasso"
    assert len(fits) == N_FOLDS + 1
    alone = distil(X, y, kind="number", model="lasso", rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.weights, alone.weights)


def test_boosting_is_fitted_on_all_folds_where_it_is_ahead(fits, rng):
    X = rng.standard_normal((400, 6))
    y = X[:, 0] ** 2 + 0.1 * rng.standard_normal(400)
    assert distil(X, y, kind="number", rng=np.random.default_rng(0)).model == "boosting"
    assert len(fits) == 2 * N_FOLDS


def test_a_candidate_is_out_by_the_rows_so_far_and_never_after_the_last_fold(rng):
    Y, folds = rng.standard_normal((300, 1)), np.arange(300) % 3
    near = Y + 0.1 * rng.standard_normal((300, 1))
    asked = []

    def worse(first):
        for fold in range(3):
            asked.append(fold)
            held = folds == fold
            yield held, Y[held] + (1.0 if fold >= first else 0.01)

    assert _residuals(worse(0), Y, Y - near) is None and asked == [0]
    asked.clear()
    assert _residuals(worse(1), Y, Y - near) is None and asked == [0, 1]
    asked.clear()
    last = _residuals(worse(2), Y, Y - near)
    np.testing.assert_allclose(last, -np.where(folds == 2, 1.0, 0.01)[:, None])
    assert asked == [0, 1, 2]
    assert _residuals(worse(0), Y, None) is not None  # nobody to be behind


@pytest.mark.parametrize("kind", ["number", "binary"])
def test_no_residual_is_of_a_row_that_the_model_was_fitted_on(kind, rng):
    class Remembers(RegressorMixin if kind == "number" else ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.seen_, self.classes_ = {row.tobytes() for row in X}, np.array([0, 1])
            assert len(self.seen_) == 60
            return self

        def predict(self, X):
            assert not any(row.tobytes() in self.seen_ for row in X)
            return np.zeros(len(X))

        def predict_proba(self, X):
            return np.tile([1.0, 0.0], (len(X), 1)) + self.predict(X)[:, None]

    if kind == "number":
        del Remembers.predict_proba
    X = rng.standard_normal((90, 3))
    y = (X[:, 0] > 0).astype(int) if kind == "binary" else X[:, 0]
    found = distil(X, y, kind=kind, model=Remembers(), rng=rng)
    np.testing.assert_allclose(found.weights[:, 0], y - y.mean())
