"""Ridge regression: its normal equations, its penalty, and units and copies that do not matter."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from knockoffs.response import ESTIMATORS
from knockoffs.response.plain import PENALTIES, RidgePathCV, make_ridge


def rows(n=80, d=6):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(n, 1))
    return X, X[:, 0] - X[:, 1] + rng.normal(size=n)


def test_it_solves_the_normal_equations_with_the_penalty_that_leaves_one_out_best():
    X, y = rows()
    model = RidgePathCV().fit(X, y)
    Z, v = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    n = len(y)

    def left_out(alpha):  # the definition: a fit for every row, with its own mean
        errors = []
        for i in range(n):
            A, b = np.delete(Z, i, axis=0), np.delete(v, i)
            beta = np.linalg.solve((A - A.mean(0)).T @ (A - A.mean(0)) + n * alpha * np.eye(6), (A - A.mean(0)).T @ b)
            errors.append(v[i] - b.mean() - (Z[i] - A.mean(0)) @ beta)
        return np.mean(np.square(errors))

    assert model.alpha_ == pytest.approx(min(PENALTIES, key=left_out))
    beta = np.linalg.solve(Z.T @ Z + n * model.alpha_ * np.eye(6), Z.T @ v)
    np.testing.assert_allclose(model.coef_, beta * y.std() / X.std(axis=0), rtol=1e-8)
    np.testing.assert_allclose(model.predict(X).mean(), y.mean())


def test_more_columns_than_rows_do_not_pass_for_a_perfect_fit():
    """Without an intercept the rows left out of centred columns would be predicted exactly, and nothing penalised."""
    rng = np.random.default_rng(4)
    factor = rng.normal(size=(60, 1))
    X = factor + rng.normal(size=(60, 200))
    model = RidgePathCV().fit(X, factor[:, 0] + rng.normal(size=60))
    assert 0.01 < model.alpha_ < 100


def test_units_do_not_matter_and_weights_are_copies():
    X, y = rows()
    model = RidgePathCV().fit(X, y)
    scaled = RidgePathCV().fit(X * 10.0 ** np.arange(6), 5 * y + 3)
    np.testing.assert_allclose(scaled.coef_ * 10.0 ** np.arange(6), 5 * model.coef_, rtol=1e-8)
    weighted = RidgePathCV().fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-8)


def test_its_line_and_its_refusal_of_classes():
    assert ESTIMATORS["ridge"].score == "contribution"
    with pytest.raises(ValueError, match="estimator='ridge' predicts a number"):
        make_ridge("classification")


COPIES = "leaving out a row of weight two is not leaving out one of two copies"


@parametrize_with_checks(
    [RidgePathCV()], expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": COPIES}
)
def test_scikit_learn(estimator, check):
    check(estimator)
