"""Gradient saliency and integrated gradients: finite differences, completeness, linear models, flip-sign."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.importance.saliency import as_smooth, attributions, gradient_saliency, integrated_gradients

FEATURES = np.arange(4)


def tables(n=150, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, 4)) * [1, 10, 0.1, 3] + [0, 5, 0, 1]
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 3], [-2, 4])[:n] if n_classes == 3 else (X[:, 0] > 0).astype(int)
    return X, X_tilde, y


def network(X, X_tilde, y, **options):
    pytest.importorskip("torch")
    from knockoffs.response import neural

    settings = {"hidden": (16, 16), "epochs": 15, "lr": 0.01, "device": "cpu", "random_state": 0} | options
    return neural.NeuralClassifier(**settings).fit(np.hstack([X, X_tilde]), y)


def explained(smooth, XX, direction):
    """Logit of the class that was predicted at first, less the mean of all."""
    return (smooth.decision(XX) * direction).sum(axis=1)


def test_gradient_saliency_is_that_of_finite_differences():
    X, X_tilde, y = tables()
    model = network(X, X_tilde, y)
    model.network_.module.double()
    XX = np.hstack([X, X_tilde])
    scores = gradient_saliency(model, X, X_tilde, y, feature_of=FEATURES, rng=np.random.default_rng(0))
    smooth = as_smooth(model)
    direction = smooth.direction(model.decision(XX))
    np.testing.assert_allclose(direction.sum(axis=1), 0, atol=1e-15)
    assert (direction.argmax(axis=1) == model.predict(XX)).all()
    scale = np.sqrt((X.var(axis=0) + X_tilde.var(axis=0)) / 2)
    for j in range(8):
        step = np.zeros(8)
        step[j] = 1e-6 * scale[j % 4]
        slope = (explained(smooth, XX + step, direction) - explained(smooth, XX - step, direction)) / 2e-6
        np.testing.assert_allclose(np.abs(slope).mean(), scores.stacked[j], rtol=1e-6)


def test_integrated_gradients_are_complete():
    X, X_tilde, y = tables()
    XX, smooth = np.hstack([X, X_tilde]), as_smooth(network(X, X_tilde, y))
    baseline, direction = XX.mean(axis=0), smooth.direction(smooth.decision(XX))
    change = explained(smooth, XX, direction) - explained(smooth, baseline[None], direction)
    gaps = [
        np.abs(attributions(smooth, XX, baseline, direction, n_steps).sum(axis=1) - change).mean()
        for n_steps in (10, 100, 1000)
    ]
    assert gaps[0] > 5 * gaps[1] and gaps[1] > 5 * gaps[2]  # of order 1 / n_steps at least
    assert gaps[2] < 1e-3 * np.abs(change).mean()


def test_too_few_steps_are_reported():
    X, X_tilde, y = tables()
    model = network(X, X_tilde, y)
    options = {"feature_of": FEATURES, "rng": np.random.default_rng(0)}
    with pytest.warns(KnockoffWarning, match=r"n_steps=1 .*use more steps"):
        integrated_gradients(model, X, X_tilde, y, n_steps=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        integrated_gradients(model, X, X_tilde, y, **options)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_linear_models_in_closed_form(n_classes, scaled):
    X, X_tilde, y = tables(n_classes=n_classes)
    XX = np.hstack([X, X_tilde])
    last = LogisticRegression(max_iter=5000)
    model = (make_pipeline(StandardScaler(), last) if scaled else last).fit(XX, y)
    smooth = as_smooth(model)
    logits = smooth.decision(XX)
    expected = model.decision_function(XX)
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0] if n_classes == 2 else logits, expected, atol=1e-9)
    coef = last.coef_ / (model[0].scale_ if scaled else 1)
    scale = np.sqrt((X.var(axis=0) + X_tilde.var(axis=0)) / 2)
    options = {"feature_of": FEATURES, "rng": np.random.default_rng(0)}
    gradient = gradient_saliency(model, X, X_tilde, y, **options)
    integrated = integrated_gradients(model, X, X_tilde, y, n_steps=1, **options)  # exact with one step
    if n_classes == 2:  # half the coefficient: the logit less the mean of both
        np.testing.assert_allclose(np.append(gradient.Z, gradient.Z_tilde), np.abs(coef[0]) * np.tile(scale, 2) / 2)
        deviation = np.abs(XX - XX.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(np.append(integrated.Z, integrated.Z_tilde), np.abs(coef[0]) * deviation / 2)
    else:
        slope = np.abs((coef - coef.mean(axis=0))[logits.argmax(axis=1)]).mean(axis=0)
        np.testing.assert_allclose(np.append(gradient.Z, gradient.Z_tilde), slope * np.tile(scale, 2))


def test_features_of_several_columns():
    X, X_tilde, y = tables()
    model = LinearRegression().fit(np.hstack([X, X_tilde]), y)
    options = {"rng": np.random.default_rng(0)}
    pairs = np.array([0, 0, 1, 1])
    single = gradient_saliency(model, X, X_tilde, y, feature_of=FEATURES, **options)
    both = gradient_saliency(model, X, X_tilde, y, feature_of=pairs, **options)
    np.testing.assert_allclose(both.Z, single.Z.reshape(2, 2).sum(axis=1))
    attribution = (X - X.mean(axis=0)) * model.coef_[:4]
    both = integrated_gradients(model, X, X_tilde, y, feature_of=pairs, **options)
    np.testing.assert_allclose(both.Z, np.abs(attribution.reshape(-1, 2, 2).sum(axis=2)).mean(axis=0))


def test_errors_say_what_is_missing():
    X, X_tilde, y = tables()
    XX = np.hstack([X, X_tilde])
    options = {"feature_of": FEATURES, "rng": np.random.default_rng(0)}
    forest = RandomForestClassifier(5, random_state=0).fit(XX, y)
    with pytest.raises(InputError, match=r"RandomForestClassifier has no method 'gradient'.*Use 'swap', 'permutation'"):
        gradient_saliency(forest, X, X_tilde, y, **options)
    linear = LogisticRegression(max_iter=5000).fit(XX, y)
    with pytest.raises(InputError, match="n_steps=0"):
        integrated_gradients(linear, X, X_tilde, y, n_steps=0, **options)
    with pytest.raises(InputError, match="takes 8 columns, but .* has 6"):
        gradient_saliency(linear, X[:, :3], X_tilde[:, :3], y, feature_of=np.arange(3), rng=options["rng"])
