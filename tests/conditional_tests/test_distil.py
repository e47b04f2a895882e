"""Residuals of y given the other columns: which model is fitted to which rows, and that nothing in it is random."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier

from knockoffs.conditional_tests import distil as module
from knockoffs.conditional_tests.distil import choose_response, fixed_folds
from knockoffs.response.linear import make_lasso


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
    found = choose_response(X, y, "number")
    assert found.name == "lasso" and len(fits) == 3 + 1
    alone = choose_response(X, y, "number", "lasso")
    np.testing.assert_array_equal(found.distil(X).weights, alone.distil(X).weights)


def test_boosting_is_fitted_on_all_folds_where_it_is_ahead(fits, rng):
    X = rng.standard_normal((400, 6))
    y = X[:, 0] ** 2 + 0.1 * rng.standard_normal(400)
    assert choose_response(X, y, "number").name == "boosting" and len(fits) == 3 + 3
    fits.clear()
    assert choose_response(X[:99], y[:99], "number").name == "lasso" and not fits  # too few rows for trees


@pytest.mark.parametrize(("first", "asked"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_a_candidate_is_out_by_the_rows_so_far(first, asked, rng, monkeypatch):
    """Predictions of the second candidate are bad from one fold on: no fold is fitted after the first bad one."""
    X, folds, seen = rng.standard_normal((300, 2)), fixed_folds(300), []
    y = X[:, 0] + rng.standard_normal(300)
    cross_fit = module.cross_fit

    def second(estimator, *arguments):
        if type(estimator).__name__.endswith("Lasso") or hasattr(estimator, "alpha"):
            yield from cross_fit(estimator, *arguments)
            return
        for fold in range(3):
            seen.append(fold)
            held = folds == fold
            yield held, y[held, None] + (9.0 if fold >= first else 0.01)

    monkeypatch.setattr(module, "cross_fit", second)
    found = choose_response(X, y, "number")
    assert len(seen) == asked and found.name == ("boosting" if first == 3 else "lasso")


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
    found = choose_response(X, y, kind, Remembers()).distil(X)
    np.testing.assert_allclose(found.weights[:, 0], y - y.mean())


@pytest.mark.parametrize("kind", ["number", "binary"])
def test_residuals_of_the_lasso_are_those_of_one_fit_to_all_rows(kind, rng):
    X = rng.standard_normal((120, 5))
    y = X @ [2.0, 1.0, 0.5, 0.0, 0.0] + rng.standard_normal(120)
    y = (y > 0).astype(int) if kind == "binary" else y
    response = choose_response(X, y, kind, "lasso")
    fitted = make_lasso("classification" if kind == "binary" else "regression").set_params(
        alpha=response.estimator.alpha
    )
    fitted.fit(X, y)
    r = y - (fitted.predict_proba(X)[:, 1] if kind == "binary" else fitted.predict(X))
    np.testing.assert_allclose(response.distil(X).weights[:, 0], r - r.mean(), atol=1e-12)
    assert clone(response.estimator).alpha == response.estimator.alpha > 0


def test_partners_are_the_columns_most_associated_with_y_and_multiply_the_residuals(rng):
    X = rng.standard_normal((500, 9))
    y = 3 * X[:, 4] + np.abs(X[:, 7]) * 3 + rng.standard_normal(500)  # in mean, and in size
    found = choose_response(X, y, "number", "lasso").distil(X)
    assert found.weights.shape == (500, 1 + 6) and found.n_residuals == 1
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for place in (4, 7):
        product = found.weights[:, 0] * Z[:, place]
        assert np.abs(found.weights[:, 1:3] - product[:, None]).max(axis=0).min() < 1e-12


class Plain:
    """A user-defined model: no get_params, and a fit that returns nothing."""

    def fit(self, rest, y):
        self.model = LinearRegression().fit(rest, y)

    def predict(self, rest):
        return self.model.predict(rest)


def test_a_user_defined_model_needs_fit_and_predict_and_nothing_else(rng):
    rest = rng.standard_normal((60, 3))
    y = rest @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    ours, theirs = (choose_response(rest, y, "number", model).distil(rest) for model in (Plain(), LinearRegression()))
    np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_residuals_of_a_model_without_a_seed_are_always_the_same_and_the_global_state_is_left_alone(rng):
    rest = rng.standard_normal((60, 3))
    y = rest @ [1.0, 2.0, 0.0] + rng.standard_normal(60)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (
        choose_response(rest, y, "number", RandomForestRegressor(n_estimators=3)).distil(rest).weights for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_labels_that_a_model_predicts_are_compared_with_each_class(rng):
    rest = rng.standard_normal((90, 2))
    y = (rest[:, 0] > -0.5).astype(int) + (rest[:, 0] > 0.5)
    found = choose_response(rest, y, "classes", RidgeClassifier()).distil(rest)
    r = found.weights[:, : found.n_residuals] - found.weights[:, : found.n_residuals].min(axis=0)
    assert found.n_residuals == 3 and np.ptp(r) <= 2  # an indicator less an indicator, not less a code up to 2


def test_without_columns_the_residuals_are_deviations_from_the_mean(rng):
    y = rng.standard_normal(50)
    for model in ("best", "lasso", "boosting", LinearRegression()):
        r = choose_response(np.empty((50, 0)), y, "number", model).distil(np.empty((50, 0))).weights
        assert r.shape == (50, 1)
        if model in ("best", "lasso"):
            np.testing.assert_allclose(r[:, 0], y - y.mean(), atol=1e-12)
        else:  # of each fold from the mean of the others
            assert np.corrcoef(r[:, 0], y)[0, 1] > 0.99
