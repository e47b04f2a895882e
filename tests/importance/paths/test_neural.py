"""Losses of networks along lambda paths are those of plain predictions on moved tables."""

from dataclasses import replace

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError

torch = pytest.importorskip("torch")

from knockoffs.importance.losses import LOSSES, Loss  # noqa: E402
from knockoffs.importance.paths.follow import path_losses  # noqa: E402
from knockoffs.response.neural import NeuralClassifier, NeuralRegressor  # noqa: E402
from knockoffs.response.torch_model import TorchModel  # noqa: E402

LAMS = np.array([0.0, 0.5, 1.0, 3.0, 10.0])
OWNERS = np.array([0, 0, 1, 2, 3, 3, 4, 5])  # four columns a half, three features, the first of two columns


def loss_at(model, XX, XX_fake, y, lams, loss, *, feature_of2, sample_weight=None, memory=None):
    path = path_losses(model, XX, XX_fake, y, loss, feature_of2=feature_of2, sample_weight=sample_weight)
    return (replace(path, memory_bytes=memory) if memory else path).at(lams)


def data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    XX = rng.normal(size=(n, 8)) * np.arange(1, 9) + 2
    XX_fake = rng.normal(size=(n, 8)) * np.arange(1, 9) + 2
    return XX, XX_fake, rng.integers(3, size=n)


def trained(XX, y, dtype=torch.float32):
    model = NeuralClassifier((12, 10), epochs=8, lr=0.02, batch_size=32, random_state=0, device="cpu").fit(XX, y)
    model.network_.module.to(dtype)
    return model


def probabilities(logits):
    exponential = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponential / exponential.sum(axis=-1, keepdims=True)


def row_losses(name, logits, y):
    """Each loss again, from its definition."""
    p = probabilities(logits)
    truth = np.eye(logits.shape[-1])[y]
    if name == "accuracy":
        return (logits.argmax(axis=-1) != y).astype(float)
    if name == "log_loss":
        return -np.log(np.clip((p * truth).sum(axis=-1), 1e-15, 1))
    if name == "brier":
        return ((p - truth) ** 2).sum(axis=-1)
    return np.where(truth == 1, -np.inf, logits).max(axis=-1) - (logits * truth).sum(axis=-1)


def moved(XX, XX_fake, columns, lam):
    table = XX.copy()
    table[:, columns] += lam * (XX_fake - XX)[:, columns]
    return table


@pytest.mark.parametrize("owners", [np.arange(8), OWNERS])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("memory", [None, 6000])
@pytest.mark.parametrize("name", ["accuracy", "log_loss", "brier"])
def test_path_losses_are_those_of_plain_predictions(owners, dtype, tolerance, memory, name):
    XX, XX_fake, y = data()
    model = trained(XX, y, dtype)
    weight = np.random.default_rng(1).uniform(size=y.shape)
    losses = loss_at(
        model, XX, XX_fake, y, LAMS, name, feature_of2=owners, sample_weight=weight, memory=memory
    )  # fmt: skip
    for feature in range(owners.max() + 1):
        for number, lam in enumerate(LAMS):
            logits = model.decision(moved(XX, XX_fake, owners == feature, lam))
            expected = np.average(row_losses(name, logits, y), weights=weight)
            np.testing.assert_allclose(losses[feature, number], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["ours", "sequential", "black box"])
def test_models_agree_with_their_own_predictions(kind):
    XX, XX_fake, y = data()
    labels = np.array(["a", "b", "c"])[y]
    model = NeuralClassifier((12, 10), epochs=8, lr=0.02, device="cpu", random_state=0).fit(XX, labels)
    if kind != "ours":
        torch_layers = [torch.nn.Linear(8, 6), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(6, 3)]
        for number, layer in enumerate(torch_layers):
            if isinstance(layer, torch.nn.Linear):
                values = np.random.default_rng(number).normal(size=layer.weight.shape)
                layer.weight.data, layer.bias.data = torch.from_numpy(values), torch.zeros(len(values)).double()
        module = torch.nn.Sequential(*torch_layers)
        module = module if kind == "sequential" else torch.nn.Sequential(torch.nn.Identity(), module)
        model = TorchModel(module, classes=["a", "b", "c"])
    losses = loss_at(model, XX, XX_fake, labels, LAMS, "log_loss", feature_of2=OWNERS)
    own = Loss(
        "mine", "predict_proba", None, lambda y, p, classes: -np.log(p[np.arange(len(y)), np.searchsorted(classes, y)])
    )
    mine = loss_at(model, XX, XX_fake, labels, LAMS, own, feature_of2=OWNERS)
    wrong = Loss("accuracy", "predict", None, lambda y, prediction, classes: (y != prediction).astype(float))
    errors = loss_at(model, XX, XX_fake, labels, LAMS, wrong, feature_of2=OWNERS)
    np.testing.assert_allclose(errors, loss_at(model, XX, XX_fake, labels, LAMS, "accuracy", feature_of2=OWNERS))
    for feature in range(6):
        for number, lam in enumerate(LAMS):
            probability = model.predict_proba(moved(XX, XX_fake, OWNERS == feature, lam))
            expected = -np.log(probability[np.arange(90), y]).mean()
            np.testing.assert_allclose(mine[feature, number], expected, rtol=1e-5)
            clipped = -np.log(probability[np.arange(90), y].clip(1e-15)).mean()
            np.testing.assert_allclose(losses[feature, number], clipped, rtol=1e-5)


def test_regression_and_integral():
    XX, XX_fake, _ = data()
    y = 100 + XX[:, 0] * XX[:, 1]
    model = NeuralRegressor((10,), epochs=20, device="cpu", random_state=0).fit(XX, y)
    grid, squared = np.linspace(0, 4, 9), lambda y, prediction, _=None: (y - prediction) ** 2
    losses = np.array(
        [[squared(y, model.predict(moved(XX, XX_fake, [j], lam))).mean() for lam in grid] for j in range(8)]
    )
    found = loss_at(model, XX, XX_fake, y, grid, "squared_error", feature_of2=np.arange(8))
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    mine = Loss("mine", "predict", None, squared)
    np.testing.assert_allclose(loss_at(model, XX, XX_fake, y, grid, mine, feature_of2=np.arange(8)), found, rtol=1e-5)
    integral = path_losses(model, XX, XX_fake, y, "squared_error").integral(0, 4, 9)
    np.testing.assert_allclose(integral, np.trapezoid(losses, grid, axis=1), rtol=1e-4)


@pytest.mark.parametrize("name", ["partial_likelihood", "poisson_deviance"])
def test_survival_times_and_counts(name):
    """A partial likelihood compares the rows of one table, never those of several lams."""
    XX, XX_fake, _ = data()
    rng = np.random.default_rng(3)
    times = np.where(rng.random(90) < 0.7, 1, -1) * rng.exponential(size=90)
    y = times if name == "partial_likelihood" else rng.poisson(3.0, size=90)
    model = NeuralRegressor((10,), epochs=20, device="cpu", random_state=0).fit(XX, y)
    found = loss_at(model, XX, XX_fake, y, LAMS, name, feature_of2=OWNERS)
    for feature in range(6):
        for number, lam in enumerate(LAMS):
            prediction = model.predict(moved(XX, XX_fake, OWNERS == feature, lam))
            np.testing.assert_allclose(found[feature, number], LOSSES[name](y, prediction).mean(), rtol=1e-5)


def test_errors_say_what_to_do():
    XX, XX_fake, y = data()
    model = NeuralClassifier((4,), epochs=1, device="cpu").fit(XX, y)
    arguments = (XX, XX_fake, y, LAMS)
    with pytest.raises(InputError, match="'log_los' is not known. Did you mean 'log_loss'"):
        loss_at(model, *arguments, "log_los", feature_of2=np.arange(8))
    with pytest.raises(InputError, match="'squared_error' is a loss for regression"):
        loss_at(model, *arguments, "squared_error", feature_of2=np.arange(8))
    refuses("8", loss_at, model, XX[:, :6], XX_fake[:, :6], y, LAMS, "accuracy", feature_of2=np.arange(6))
    refuses("not fitted on: '9'", loss_at, model, XX, XX_fake, y * 0 + 9, LAMS, "accuracy", feature_of2=np.arange(8))
