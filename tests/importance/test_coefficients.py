"""Coefficient scores: the definition written out, flip-sign, units."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, RobustScaler, StandardScaler

from knockoffs.errors import InputError
from knockoffs.filter import difference
from knockoffs.importance.coefficients import coefficient_magnitude, coefficients_of
from knockoffs.response.linear import LassoPathCV, LogisticPathCV
from knockoffs.response.plain import PlainLinear, PlainLogistic

MODELS = {
    "lasso": (LassoPathCV(random_state=0), None),
    "l1_binary": (LogisticPathCV(random_state=0), 2),
    "l1_multiclass": (LogisticPathCV(random_state=0), 3),
    "linear": (PlainLinear(), None),
    "logistic": (PlainLogistic(), 2),
    "multinomial": (PlainLogistic(), 3),
}


def table(n_classes=None, n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X_tilde = 0.5 * X + rng.standard_normal((n, d))
    y = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.standard_normal(n)
    if n_classes:
        y = np.array(["low", "mid", "high"])[np.digitize(y, [0.0] if n_classes == 2 else [-0.7, 0.7])]
    return X, X_tilde, y


def W_of(model, X, X_tilde, y, feature_of=None, sample_weight=None):
    feature_of = np.arange(X.shape[1]) if feature_of is None else feature_of
    model = model.fit(np.hstack([X, X_tilde]), y, sample_weight=sample_weight)
    scores = coefficient_magnitude(
        model, X, X_tilde, y, feature_of=feature_of, rng=np.random.default_rng(0), sample_weight=sample_weight
    )
    return difference(scores.Z, scores.Z_tilde)


def test_definition():
    X, X_tilde, y = table()
    model = LinearRegression().fit(np.hstack([X, X_tilde]), y)
    scores = coefficient_magnitude(model, X, X_tilde, y, feature_of=np.array([0, 0, 1, 1, 1, 2]))
    pooled = np.sqrt((X.var(axis=0) + X_tilde.var(axis=0)) / 2)
    Z = np.abs(model.coef_[:6]) * pooled / y.std()
    Z_tilde = np.abs(model.coef_[6:]) * pooled / y.std()
    np.testing.assert_allclose(scores.Z, [Z[:2].sum(), Z[2:5].sum(), Z[5]])
    np.testing.assert_allclose(scores.Z_tilde, [Z_tilde[:2].sum(), Z_tilde[2:5].sum(), Z_tilde[5]])


@pytest.mark.parametrize("name", MODELS)
def test_flip_sign_of_a_refitted_model(name):
    model, n_classes = MODELS[name]
    X, X_tilde, y = table(n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    feature_of = np.array([0, 0, 1, 2, 3, 4])
    S = np.array([True, True, True, False, False, True])  # whole features
    W = W_of(model, X, X_tilde, y, feature_of, weights)
    swapped = W_of(model, np.where(S, X_tilde, X), np.where(S, X, X_tilde), y, feature_of, weights)
    np.testing.assert_allclose(swapped, np.where([True, True, False, False, True], -W, W), atol=1e-8 * np.abs(W).max())
    assert W[0] > 0


@pytest.mark.parametrize("name", MODELS)
def test_W_has_no_units(name):
    model, n_classes = MODELS[name]
    X, X_tilde, y = table(n_classes)
    W = W_of(model, X, X_tilde, y)
    units = np.array([1e-12, 1e12, 1.0, -3.0, 1e6, 1e-6])
    changed = W_of(model, X * units, X_tilde * units, y if n_classes else -1e-9 * y)
    np.testing.assert_allclose(changed, W, atol=1e-8 * np.abs(W).max())


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler(), "passthrough"])
def test_scalers_are_undone(scaler):
    X, X_tilde, y = table()
    XX = np.hstack([X, X_tilde]) * np.arange(1, 13)
    through = make_pipeline(scaler, LinearRegression()).fit(XX, y)
    np.testing.assert_allclose(coefficients_of(through)[0], LinearRegression().fit(XX, y).coef_, rtol=1e-9)


def test_refused():
    X, X_tilde, y = table(2)
    XX = np.hstack([X, X_tilde])
    forest = RandomForestClassifier(n_estimators=2, random_state=0).fit(XX, y)
    with pytest.raises(InputError, match="RandomForestClassifier has no coef_. Use 'swap'"):
        coefficient_magnitude(forest, X, X_tilde, y, feature_of=np.arange(6))
    model = PlainLogistic().fit(X, y)
    with pytest.raises(InputError, match="has 6 coefficients for an output: expected 12"):
        coefficient_magnitude(model, X, X_tilde, y, feature_of=np.arange(6))
    through = make_pipeline(PolynomialFeatures(), PlainLogistic()).fit(XX, y)
    with pytest.raises(InputError, match="PolynomialFeatures stands before"):
        coefficient_magnitude(through, X, X_tilde, y, feature_of=np.arange(6))


def test_constant_pairs_score_nothing():
    X, X_tilde, y = table()
    X[:, 3] = X_tilde[:, 3] = 5.0
    assert W_of(PlainLinear(), X, X_tilde, y)[3] == 0


@pytest.mark.parametrize("name", MODELS)
def test_slopes_are_the_scores_with_the_sign_of_the_coefficients(name):
    model, n_classes = MODELS[name]
    X, X_tilde, y = table(n_classes)
    fitted = model.fit(np.hstack([X, X_tilde]), y)
    scores = coefficient_magnitude(fitted, X, X_tilde, y, feature_of=np.arange(6))
    if n_classes == 3:
        assert scores.slopes is None
        return
    np.testing.assert_allclose(np.abs(scores.slopes), [scores.Z, scores.Z_tilde])
    np.testing.assert_array_equal(np.sign(scores.slopes).ravel(), np.sign(np.ravel(fitted.coef_)))
    assert (np.sign(scores.slopes[0, :2]) == [1, -1]).all()  # of "low" and "mid" the larger word is "mid"
    S = np.array([True, False, True, False, False, True])
    np.testing.assert_array_equal(scores.swap(S).swap(S).slopes, scores.slopes)
    np.testing.assert_array_equal(scores.swap(S).slopes[0, S], scores.slopes[1, S])
    grouped = coefficient_magnitude(fitted, X, X_tilde, y, feature_of=np.array([0, 1, 2, 3, 4, 4]))
    assert np.isnan(grouped.slopes[:, 4]).all() and np.isfinite(grouped.slopes[:, :4]).all()


def test_a_selection_knows_the_direction_of_its_features_and_the_report_shows_it():
    """Columns are swapped at random before the fit, and the slopes back after it: all twelve signs are right."""
    from knockoffs import KnockoffSelector
    from knockoffs.report.facts import arrow
    from knockoffs.report.write import facts_of

    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((400, 15)), np.resize([1.0, -1.0], 12)
    y = X[:, :12] @ signs + rng.standard_normal(400)
    for n_draws in (1, 2):
        options = {"estimator": "lasso", "feature_model": "gaussian", "verdict": False, "random_state": 0}
        selector = KnockoffSelector(0.1, n_draws=n_draws, method="knockoffs", **options).fit(X, y)
        slopes = selector.scores_.slopes[0]
        np.testing.assert_array_equal(np.sign(slopes[:12]), signs)
        facts = facts_of(selector)
        assert facts.cells["in the model"] == [arrow(slopes[j]) for j in facts.order]
    forest = KnockoffSelector(0.1, method="knockoffs", **{**options, "estimator": "boosting"}).fit(X, y)
    assert forest.scores_.slopes is None and "in the model" not in facts_of(forest).cells
