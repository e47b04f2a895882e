"""What a feature adds to a linear prediction: by definition, for one column and for columns that nearly cancel."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from knockoffs import KnockoffSelector
from knockoffs.importance.coefficients import coefficient_magnitude, contribution


def pair(n=300, d=5):
    rng = np.random.default_rng(0)
    X, X_tilde = rng.normal(size=(2, n, d)) * [1, 2, 3, 4, 5]
    return X, X_tilde, X[:, 0] - X[:, 3] + rng.normal(size=n)


def test_it_is_the_deviation_of_the_part_of_a_feature():
    X, X_tilde, y = pair()
    feature_of = np.array([0, 1, 1, 1, 2])
    model = LinearRegression().fit(np.hstack([X, X_tilde]), y)
    found = contribution(model, X, X_tilde, y, feature_of=feature_of)
    for Z, half in ((found.Z, model.coef_[:5]), (found.Z_tilde, model.coef_[5:])):
        for g in range(3):
            parts = [block[:, feature_of == g] @ half[feature_of == g] for block in (X, X_tilde)]
            np.testing.assert_allclose(Z[g], np.sqrt(np.mean([part.var() for part in parts])) / y.std())


def test_for_single_columns_it_is_the_coefficient():
    X, X_tilde, y = pair()
    XX, single = np.hstack([X, X_tilde]), np.arange(5)
    for model, target in ((LinearRegression(), y), (LogisticRegression(), np.digitize(y, [-1, 1]))):
        model.fit(XX, target)
        found = contribution(model, X, X_tilde, target, feature_of=single)
        expected = coefficient_magnitude(model, X, X_tilde, target, feature_of=single)
        np.testing.assert_allclose(found.Z, expected.Z)
        np.testing.assert_allclose(found.Z_tilde, expected.Z_tilde)


def test_coefficients_that_cancel_do_not_count():
    """Two columns that are the same but for noise: large coefficients of either sign, and hardly any part."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 1))
    X, X_tilde = x + 1e-3 * rng.normal(size=(2, 200, 2))
    y = rng.normal(size=200)
    model = LinearRegression().fit(np.hstack([X, X_tilde]), y)
    both = np.array([0, 0])
    assert coefficient_magnitude(model, X, X_tilde, y, feature_of=both).Z[0] > 10
    part = contribution(model, X, X_tilde, y, feature_of=both).Z[0]
    difference = (X[:, 0] - X[:, 1]).std() * np.abs(model.coef_).max() / y.std()
    assert part < difference + np.abs(model.coef_[:2].sum()) * x.std() / y.std() * 1.1


@pytest.mark.filterwarnings("ignore::knockoffs.KnockoffWarning")
def test_ridge_is_a_candidate_for_groups_and_chosen_where_columns_share_the_signal():
    rng = np.random.default_rng(2)
    factors = rng.normal(size=(150, 12))
    X = np.repeat(factors, 8, axis=1) + rng.normal(size=(150, 96))
    y = factors[:, :6].sum(axis=1) + rng.normal(size=150)
    groups = [f"g{j // 8}" for j in range(96)]
    options = {"feature_model": "gaussian", "verdict": False, "random_state": 0}
    selector = KnockoffSelector(0.2, groups=groups, method="knockoffs", **options).fit(X, y)
    assert "estimator='ridge'" in selector.selection_.notes["estimator"]
    assert "contribution" in selector.selection_.notes["importance"]
    alone = KnockoffSelector(0.2, **options).fit(X, y)
    assert "ridge" not in alone.selection_.notes["estimator"]
