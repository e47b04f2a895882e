"""Neural networks: batched training, early stopping, gradients, no global state."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

from knockoffs.errors import InputError

torch = pytest.importorskip("torch")

from knockoffs.response import networks, training  # noqa: E402
from knockoffs.response.neural import NeuralClassifier, NeuralRegressor  # noqa: E402
from knockoffs.response.torch_model import TorchModel  # noqa: E402
from knockoffs.response.training import train_batched  # noqa: E402


def xor_rows(seed, n=2000, p=4):
    """Labels that no linear model predicts: the sign of a product."""
    rng = np.random.default_rng(seed)
    XX = rng.normal(size=(n, p))
    return XX, np.where(XX[:, 0] * XX[:, 1] > 0, "same", "other")


def small(seed=0, R=3, n=120, p=5, n_classes=3):
    rng = np.random.default_rng(seed)
    XX = rng.normal(size=(R, n, p)) * np.arange(1, p + 1) + 3
    return XX, rng.integers(n_classes, size=(R, n))


def train(XX, y, n_outputs=3, **options):
    settings = {"classify": True, "hidden": (8, 8), "epochs": 6, "batch_size": 32, "device": "cpu"} | options
    return train_batched(XX, y, n_outputs, **settings)


def same(left, right, tolerance):
    for a, b in zip(left.weights + left.biases, right.weights + right.biases, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_learns_a_nonlinear_function():
    XX, y = xor_rows(0)
    X_new, y_new = xor_rows(1)
    model = NeuralClassifier((100, 100, 100), random_state=0, device="cpu").fit(XX, y)
    assert model.score(X_new, y_new) > 0.95  # guessing has 0.5; 0.975 to 0.988 over ten seeds
    probability = model.predict_proba(X_new)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X_new), model.classes_[probability.argmax(axis=1)])
    logit = np.log(probability[:, 1] / probability[:, 0])
    np.testing.assert_allclose(model.decision_function(X_new), logit, atol=1e-6)


def test_regressor_learns_in_the_units_of_y():
    rng = np.random.default_rng(0)
    XX = rng.normal(size=(2000, 3)) * [1, 10, 100]
    y = 5000 + 300 * np.abs(XX[:, 0]) + 10 * XX[:, 1]
    model = NeuralRegressor((50, 50), random_state=0, device="cpu").fit(XX[:1500], y[:1500])
    assert model.score(XX[1500:], y[1500:]) > 0.97


@pytest.mark.parametrize("patience", [2, None])
def test_batched_training_is_separate_training(patience):
    """R = 3 and three times R = 1 with the same seeds: the same weights, stops and losses."""
    XX, y = small()
    options = {"dtype": torch.float64, "epochs": 12, "patience": patience, "lr": 0.02}
    together = train(XX, y, seeds=[4, 5, 6], **options)
    if patience:
        assert len(set(together.best_epoch)) > 1  # they do not stop together: the batch shrinks on the way
    for r in range(3):
        alone = train(XX[r : r + 1], y[r : r + 1], seeds=[4 + r], **options)
        same(alone, together.repetition(r), 1e-9)
        assert alone.best_epoch[0] == together.best_epoch[r]
        np.testing.assert_allclose(alone.validation_loss[0], together.validation_loss[r], rtol=1e-9)


def test_one_step_is_that_of_autograd_and_adamw():
    """Backpropagation and Adam against torch's own, three steps on the whole table."""
    XX, y = small(R=1, n=40)
    weight = np.random.default_rng(1).uniform(0.5, 2, size=(1, 40))
    options = {
        "dtype": torch.float64, "patience": None, "seeds": [0], "batch_size": 40, "sample_weight": weight,
        "lr": 0.01, "weight_decay": 0.1,
    }  # fmt: skip
    after = train(XX, y, epochs=3, **options)
    start = train(XX, y, epochs=1, **(options | {"lr": 0.0}))
    module = as_module(start)
    optimiser = torch.optim.AdamW(module.parameters(), lr=0.01, weight_decay=0.1)
    inputs = (torch.from_numpy(XX[0]) - start.center[0]) / start.scale[0]
    for _ in range(3):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(inputs), torch.from_numpy(y[0]), reduction="none")
        (loss * torch.from_numpy(weight[0] / weight.mean())).mean().backward()
        optimiser.step()
    linear = [layer for layer in module if isinstance(layer, torch.nn.Linear)]
    for layer, W, b in zip(linear, after.weights, after.biases, strict=True):
        np.testing.assert_allclose(layer.weight.detach().T, W[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(layer.bias.detach(), b[0, 0], rtol=1e-9, atol=1e-12)


def as_module(network):
    """The network of repetition 0, for standardised inputs, as torch writes it."""
    layers = []
    for W, b in zip(network.weights, network.biases, strict=True):
        linear = torch.nn.Linear(*W.shape[1:], dtype=network.dtype)
        linear.weight.data, linear.bias.data = W[0].T.clone(), b[0, 0].clone()
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def test_early_stopping_keeps_the_best_weights():
    """The loss of the network that is returned, on its held-out rows, is the smallest of its history."""
    XX, y = small(R=2, n=200)
    options = {"dtype": torch.float64, "patience": 3, "epochs": 40, "lr": 0.03, "validation_fraction": 0.25}
    network = train(XX, y, seeds=[0, 1], **options)
    for r in range(2):
        history = network.validation_loss[r]
        seen = ~np.isnan(history)
        best = network.best_epoch[r]
        assert best == np.nanargmin(history)
        assert seen.sum() == best + 1 + 3 < 40  # it stopped three epochs after
        _, held = training._hold_out(y[r], 0.25, np.random.default_rng(r))
        logits = networks.outputs(network, XX)[r, held]
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y[r, held]))
        np.testing.assert_allclose(loss, history[best], rtol=1e-9)
        assert history[seen][-1] > history[best]  # the last weights are not the best ones


def test_hold_out_is_stratified():
    y = np.repeat([0, 1, 2], [700, 250, 50])
    train_rows, held = training._hold_out(y, 0.1, np.random.default_rng(0))
    assert np.all(np.abs(np.bincount(y[held]) - [70, 25, 5]) <= 1)
    np.testing.assert_array_equal(np.sort(np.concatenate([train_rows, held])), np.arange(1000))


def test_shuffles_are_permutations_that_differ():
    keys = [training._hash(torch.tensor([1, 2]), epoch, 1000) for epoch in range(3)]
    orders = torch.cat([key.argsort(1) for key in keys]).numpy()
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(1000), (6, 1)))
    # two random orders agree at Poisson(1) many places: 12 or more has probability 1e-9 for each of the 15 pairs
    agree = [(orders[i] == orders[j]).sum() for i in range(6) for j in range(i)]
    assert max(agree) < 12
    # a place's mean over 200 epochs: 499.5 +- 20.4; five standard errors, false alarm 1e-6 a place
    places = torch.cat([training._hash(torch.tensor([9]), epoch, 1000).argsort(1) for epoch in range(200)])
    assert abs(places[:, [0, 1, 500, 999]].double().mean(0) - 499.5).max() < 5 * 20.4


def test_a_seed_gives_the_same_network_and_global_states_stay():
    XX, y = xor_rows(0, n=300)
    before_numpy, before_torch = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, second, other = (
        NeuralClassifier((10,), epochs=3, device="cpu", random_state=seed).fit(XX, y) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.decision(XX), second.decision(XX))
    assert np.abs(first.decision(XX) - other.decision(XX)).max() > 1e-3
    np.testing.assert_array_equal(before_numpy, np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before_torch, torch.get_rng_state())
    assert clone(first).get_params() == first.get_params()


def test_weights_count_as_copies_of_rows():
    """Rows of weight zero do not matter to a fit on whole batches."""
    XX, y = small(R=1, n=60)
    weight = np.ones((1, 60))
    weight[0, 40:] = 0
    changed = y.copy()
    changed[0, 40:] = (y[0, 40:] + 1) % 3
    options = {"dtype": torch.float64, "patience": None, "seeds": [0], "batch_size": 60, "sample_weight": weight}
    same(train(XX, y, **options), train(XX, changed, **options), 1e-12)


@pytest.mark.parametrize("kind", ["classifier", "regressor", "module", "plain module"])
def test_gradient_is_that_of_finite_differences(kind):
    XX, y = small(R=1)
    XX, y = XX[0], y[0]
    if kind == "classifier":
        model = NeuralClassifier((8, 8), epochs=3, device="cpu", random_state=0).fit(XX, y)
        model.network_ = model.network_.to(dtype=torch.float64)
    elif kind == "regressor":
        model = NeuralRegressor((8,), epochs=3, device="cpu", random_state=0).fit(XX, y)
        model.network_ = model.network_.to(dtype=torch.float64)
    else:
        module = as_module(train(XX[None], y[None], seeds=[0], dtype=torch.float64))
        module = module if kind == "module" else torch.nn.Sequential(torch.nn.Identity(), module)
        model = TorchModel(module, classes=[0, 1, 2])
    slopes = model.gradient(XX)
    outputs = model.decision(XX)
    assert slopes.shape == (120, outputs.shape[1], 5)
    step = 1e-6
    for j in range(5):
        up, down = XX.copy(), XX.copy()
        up[:, j] += step
        down[:, j] -= step
        np.testing.assert_allclose(slopes[:, :, j], (model.decision(up) - model.decision(down)) / (2 * step), atol=1e-7)
    direction = np.random.default_rng(0).normal(size=outputs.shape)
    along = np.einsum("nc,ncj->nj", direction, slopes)
    np.testing.assert_allclose(model.gradient(XX, direction), along, atol=1e-12)


def test_module_with_one_logit_or_probabilities():
    torch_linear = torch.nn.Linear(3, 1)
    XX = np.random.default_rng(0).normal(size=(10, 3))
    one = TorchModel(torch.nn.Sequential(torch_linear), classes=["no", "yes"])
    sure = TorchModel(torch.nn.Sequential(torch_linear, torch.nn.Sigmoid()), classes=["no", "yes"], probabilities=True)
    np.testing.assert_allclose(one.predict_proba(XX), sure.predict_proba(XX), atol=1e-6)
    assert set(one.predict(XX)) <= {"no", "yes"}
    number = TorchModel(torch.nn.Sequential(torch_linear))
    np.testing.assert_allclose(number.predict(XX), one.decision_function(XX), atol=1e-6)
    assert is_classifier(one) and is_regressor(number) and clone(one).classes == ["no", "yes"]
    with pytest.raises(InputError, match="no probabilities"):
        number.predict_proba(XX)


def test_errors_say_what_to_do():
    XX, y = xor_rows(0, n=50)
    with pytest.raises(InputError, match="one class only"):
        NeuralClassifier(device="cpu").fit(XX, np.zeros(50))
    with pytest.raises(InputError, match="not numeric: use NeuralClassifier"):
        NeuralRegressor(device="cpu").fit(XX, y)
    with pytest.raises(InputError, match="column 2"):
        NeuralClassifier(device="cpu").fit(np.where(np.arange(4) == 2, np.nan, XX), y)
    with pytest.raises(InputError, match=r"batch_size=0"):
        NeuralClassifier(batch_size=0, device="cpu").fit(XX, y)
    with pytest.raises(InputError, match="'gpu' is not known"):
        NeuralClassifier(device="gpu").fit(XX, y)
    with pytest.raises(InputError, match=r"shape \(50, 3\).*4 columns"):
        NeuralClassifier((4,), epochs=1, device="cpu").fit(XX, y).predict(XX[:, :3])
    with pytest.raises(InputError, match="2 seeds for 3 repetitions"):
        train(*small(), seeds=[0, 1])
    with pytest.raises(InputError, match="trained already"):
        TorchModel(torch.nn.Linear(2, 1)).fit(XX, y)


def test_constant_columns_few_rows_and_read_only_tables():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        XX, y = xor_rows(0, n=50)
        XX.flags.writeable = False
        NeuralClassifier((4,), epochs=1, device="cpu").fit(XX, y).predict(XX)
        model = NeuralClassifier((4,), epochs=2, device="cpu", random_state=0)
        model.fit([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]], [0, 1, 1])
        assert np.isfinite(model.predict_proba([[5.0, 0.0]])).all()
