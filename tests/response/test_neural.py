"""Neural networks: training, early stopping, gradients, no global state."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from tests.refusals import refuses

torch = pytest.importorskip("torch")

from knockoffs.response import neural  # noqa: E402
from knockoffs.response.neural import NeuralClassifier, NeuralRegressor  # noqa: E402
from knockoffs.response.torch_model import TorchModel  # noqa: E402


def xor_rows(seed, n=2000, p=4):
    """Labels that no linear model predicts: the sign of a product."""
    rng = np.random.default_rng(seed)
    XX = rng.normal(size=(n, p))
    return XX, np.where(XX[:, 0] * XX[:, 1] > 0, "same", "other")


def small(seed=0, n=120, p=5, n_classes=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * np.arange(1, p + 1) + 3, rng.integers(n_classes, size=n)


def in_float64(model):
    """The same fitted network in double precision, so that exact tests see no rounding."""
    model.network_.module.double()
    return model


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


def test_early_stopping_keeps_the_best_weights():
    """The loss of the network that is returned, on its held-out rows, is the smallest of its history."""
    XX, y = small(n=200)
    model = NeuralClassifier(
        (8, 8), patience=3, epochs=40, lr=0.03, validation_fraction=0.25, random_state=1, device="cpu"
    )
    history = np.array(model.fit(XX, y).validation_loss_)
    best = int(history.argmin())
    assert len(history) == best + 1 + 3 < 40  # it stopped three epochs after
    assert model.n_iter_ == best + 1
    _, held = neural.hold_out(y, 0.25, np.random.default_rng(1))
    loss = -np.log(model.predict_proba(XX[held])[np.arange(len(held)), y[held]]).mean()
    np.testing.assert_allclose(loss, history[best], rtol=1e-5)
    assert history[-1] > history[best] * (1 + 1e-4)  # the last weights are not the best ones


def test_hold_out_is_stratified():
    y = np.repeat([0, 1, 2], [700, 250, 50])
    train_rows, held = neural.hold_out(y, 0.1, np.random.default_rng(0))
    assert np.all(np.abs(np.bincount(y[held]) - [70, 25, 5]) <= 1)
    np.testing.assert_array_equal(np.sort(np.concatenate([train_rows, held])), np.arange(1000))


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
    """Labels of rows of weight zero do not matter to a fit on whole batches."""
    XX, y = small(n=60)
    weight = np.ones(60)
    weight[40:] = 0
    changed = y.copy()
    changed[40:] = (y[40:] + 1) % 3
    logits = [
        NeuralClassifier((8,), epochs=6, patience=None, batch_size=60, random_state=0, device="cpu")
        .fit(XX, labels, sample_weight=weight)
        .decision(XX)
        for labels in (y, changed)
    ]
    np.testing.assert_allclose(*logits, atol=1e-5)


@pytest.mark.parametrize("kind", ["classifier", "regressor", "module", "plain module"])
def test_gradient_is_that_of_finite_differences(kind):
    XX, y = small()
    if kind == "classifier":
        model = in_float64(NeuralClassifier((8, 8), epochs=3, device="cpu", random_state=0).fit(XX, y))
    elif kind == "regressor":
        model = in_float64(NeuralRegressor((8,), epochs=3, device="cpu", random_state=0).fit(XX, y))
    else:
        like = torch.zeros(1, dtype=torch.float64)
        module = neural.new_network([5, 8, 3], like, np.random.default_rng(0))
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
    refuses("no probabilities", number.predict_proba, XX)


def test_errors_say_what_to_do():
    XX, y = xor_rows(0, n=50)
    refuses("one class only", NeuralClassifier(device="cpu").fit, XX, np.zeros(50))
    refuses("not numeric: use NeuralClassifier", NeuralRegressor(device="cpu").fit, XX, y)
    refuses("column 2", NeuralClassifier(device="cpu").fit, np.where(np.arange(4) == 2, np.nan, XX), y)
    refuses(r"batch_size=0", NeuralClassifier(batch_size=0, device="cpu").fit, XX, y)
    refuses("'gpu' is not known", NeuralClassifier(device="gpu").fit, XX, y)
    refuses(r"shape \(50, 3\).*4 columns", NeuralClassifier((4,), epochs=1, device="cpu").fit(XX, y).predict, XX[:, :3])
    refuses("trained already", TorchModel(torch.nn.Linear(2, 1)).fit, XX, y)


def test_constant_columns_few_rows_and_read_only_tables():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        XX, y = xor_rows(0, n=50)
        XX.flags.writeable = False
        NeuralClassifier((4,), epochs=1, device="cpu").fit(XX, y).predict(XX)
        model = NeuralClassifier((4,), epochs=2, device="cpu", random_state=0)
        model.fit([[1.0, 0.0], [1.0, 1.0], [1.0, 3.0]], [0, 1, 1])
        assert np.isfinite(model.predict_proba([[5.0, 0.0]])).all()
