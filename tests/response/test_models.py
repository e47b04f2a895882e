"""Every model of y that has a name: it is made for some task, offers what its line says, and its own score takes it."""

import importlib.util
import warnings

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.importance import SCORES
from knockoffs.response import ESTIMATORS, make_estimator
from knockoffs.sampling.pair import Pair

TASKS = {"regression": "number", "classification": "binary"}
CAN = {"coefficients": "coef_", "gradient": "coef_"}  # what a fitted linear model has; others have the method


def data(task, n=150, d=4):
    rng = np.random.default_rng(2)
    X, X_tilde = rng.standard_normal((2, n, d))
    signal = 2 * X[:, 0] - 2 * X[:, 1] + 0.5 * rng.standard_normal(n)
    y = signal if task == "regression" else (signal > 0).astype(int)
    return Pair(X, X_tilde, np.arange(d)), y


def made(name, task):
    if name == "neural" and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    try:
        return make_estimator(name, task, random_state=0)
    except InputError as error:
        assert f"estimator={name!r}" in str(error)
        return None


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_is_made_for_a_task_and_is_not_fitted_yet(name):
    models = [made(name, task) for task in TASKS]
    with pytest.raises(InputError, match=f"Did you mean {name!r}"):
        make_estimator(name[:2] + name[1:], "regression")
    assert any(model is not None for model in models)
    for model in models:
        assert model is None or not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_offers_what_its_line_says(name, task):
    line, model = ESTIMATORS[name], made(name, task)
    if model is None:
        return
    pair, y = data(task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(pair.stacked, y)
    assert model.predict(pair.stacked).shape == y.shape
    for offer in line.offers:
        assert hasattr(model, "gradient" if offer == "gradient" and hasattr(model, "gradient") else CAN[offer])
    needs = SCORES[line.score].needs
    assert needs is None or needs in line.offers
