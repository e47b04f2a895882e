"""What every importance score owes: a weight of two is the row twice, and flip-sign holds with weights."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from knockoffs.importance.accuracy_drop import swap_integral, swap_score
from knockoffs.importance.coefficients import coefficient_magnitude, contribution
from knockoffs.importance.saliency import gradient_saliency, integrated_gradients

FEATURE_OF = np.array([0, 1, 1, 2])
MODELS = {
    "neighbours": KNeighborsClassifier(3),
    "least squares": LinearRegression(),
    "logistic": LogisticRegression(),
    "multinomial": LogisticRegression(),
    "forest": RandomForestClassifier(10, random_state=0),
    "forest of numbers": RandomForestRegressor(10, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=5, random_state=0),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5, random_state=0),
}
PATHS = {"swap": swap_score, "swap integral": swap_integral}
LINEAR = {
    "coefficients": coefficient_magnitude,
    "contribution": contribution,
    "gradient": gradient_saliency,
    "integrated gradients": integrated_gradients,
}


def table(name):
    """X and X_tilde of different spread, so that a scale taken from one side only is seen, and y for the model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4)) * [1, 2, 0.5, 1]
    X_tilde = rng.standard_normal((80, 4)) * [2, 1, 1, 3] + [0, 1, 0, -2]
    y = X[:, 0] - X[:, 1] * X[:, 2] + X_tilde[:, 3]
    if name in ("least squares", "forest of numbers", "boosting"):
        return X, X_tilde, y
    return X, X_tilde, np.digitize(y, [-1, 1] if name in ("multinomial", "forest") else [0.0])


CASES = [(model, score) for model in MODELS for score in PATHS]
CASES += [(model, score) for model in ("least squares", "logistic", "multinomial") for score in LINEAR]
WITH_LOSSES = [(*case, loss) for case in CASES for loss in ("default", "smooth")[: 2 if case[1] in PATHS else 1]]


@pytest.mark.parametrize(("name", "score", "loss"), WITH_LOSSES)
def test_a_weight_of_two_is_the_row_twice(name, score, loss):
    X, X_tilde, y = table(name)
    options = {}
    if loss == "smooth":
        options["loss"] = "log_loss" if y.dtype.kind == "i" else (lambda y, prediction: np.abs(y - prediction))
    model = MODELS[name].fit(np.hstack([X, X_tilde]), y)
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    run = (PATHS | LINEAR)[score]
    rng = np.random.default_rng(0)
    weighted = run(model, X, X_tilde, y, feature_of=FEATURE_OF, rng=rng, sample_weight=weight.astype(float), **options)
    again = run(
        model,
        *(np.repeat(part, weight, axis=0) for part in (X, X_tilde)),
        np.repeat(y, weight),
        feature_of=FEATURE_OF,
        rng=rng,
        **options,
    )
    plain = run(model, X, X_tilde, y, feature_of=FEATURE_OF, rng=rng, **options)
    np.testing.assert_allclose(weighted.Z, again.Z, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weighted.Z_tilde, again.Z_tilde, rtol=1e-9, atol=1e-12)
    assert not np.allclose(weighted.Z, plain.Z, rtol=1e-6)  # the weights do something
