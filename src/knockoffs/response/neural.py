"""Neural networks of y with scikit-learn's face: `NeuralClassifier`, `NeuralRegressor`, and `TorchModel`.

The first two are one repetition of the batched networks of `networks.py`; `TorchModel` wraps a trained module of the
user's own for scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from knockoffs.errors import InputError
from knockoffs.response.networks import (
    HIDDEN,
    ROWS_AT_ONCE,
    Network,
    Split,
    Tensor,
    as_tensor,
    choose_device,
    input_gradient,
    outputs,
    split_network,
    torch,  # imported there, with a word for those who lack it
    train_batched,
)
from knockoffs.response.task import kind_of


class _Neural(BaseEstimator):
    """What classifier and regressor share: options, checks, forward passes."""

    network_: Network

    def __init__(
        self,
        hidden: Sequence[int] = HIDDEN,
        *,
        epochs: int = 100,
        batch_size: int = 128,
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        patience: int | None = 10,
        validation_fraction: float = 0.1,
        device: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.device = device
        self.random_state = random_state

    def _train(self, XX: NDArray, y: NDArray, n_outputs: int, classify: bool, sample_weight: Any) -> None:
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)[None]
        self.network_ = train_batched(
            XX[None],
            y[None],
            n_outputs,
            classify=classify,
            hidden=tuple(self.hidden),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            patience=self.patience,
            validation_fraction=self.validation_fraction,
            sample_weight=weight,
            seeds=[_seed(self.random_state)],
            device=self.device,
        )
        self.n_features_in_ = XX.shape[1]
        self.n_iter_ = int(self.network_.best_epoch[0]) + 1

    def _check_options(self, XX: ArrayLike, y: ArrayLike, sample_weight: Any) -> tuple[NDArray, NDArray]:
        """Check options, inputs and y once; inputs as floats."""
        XX, y = np.asarray(XX, dtype=float), np.asarray(y)
        if XX.ndim != 2 or y.shape != XX.shape[:1]:
            raise InputError(f"XX has shape {XX.shape} and y {y.shape}: expected (n, columns) and (n,).")
        if len(y) < 2:
            raise InputError(f"XX has {len(y)} rows: a network needs at least 2 (one is held out for early stopping).")
        bad = np.flatnonzero(~np.isfinite(XX).all(axis=0))
        if bad.size:
            raise InputError(f"XX has missing or infinite values, first in column {bad[0]}: impute or drop them first.")
        if sample_weight is not None and np.shape(sample_weight) != y.shape:
            raise InputError(f"sample_weight has shape {np.shape(sample_weight)}: expected {y.shape}.")
        if sample_weight is not None and (np.min(sample_weight) < 0 or np.sum(sample_weight) <= 0):
            raise InputError("sample_weight must be non-negative with a positive sum.")
        for name, least in (("epochs", 1), ("batch_size", 1), ("patience", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}={value!r}: expected an integer of at least {least}.")
        if self.patience is not None and not 0 < self.validation_fraction < 1:
            raise InputError(f"validation_fraction={self.validation_fraction!r}: expected a share between 0 and 1.")
        return XX, y

    def _outputs(self, XX: ArrayLike) -> NDArray:
        """Compute the outputs (n, n_outputs), as float64."""
        return outputs(self.network_, self._inputs(XX)[None])[0].double().cpu().numpy()

    def _inputs(self, XX: ArrayLike) -> NDArray:
        check_is_fitted(self, "network_")
        return _check_width(XX, self.n_features_in_)

    def gradient(self, XX: ArrayLike, direction: ArrayLike | None = None) -> NDArray:
        """Gradient of the outputs with respect to the inputs, row by row.

        Parameters
        ----------
        XX : array, shape (n, n_columns)
        direction : array, shape (n, n_outputs), optional
            Weights of the outputs.

        Returns
        -------
        array, shape (n, n_outputs, n_columns), or (n, n_columns) with a direction
            d output_c / d x_j, or the gradient of sum_c direction_c output_c. Outputs are logits or values of y.
        """
        XX = self._inputs(XX)
        return _gradients(partial_gradient(self.network_), XX, direction, self.network_.n_outputs)

    def split(self) -> Split:
        """First layer and the rest, for scores along lambda paths."""
        check_is_fitted(self, "network_")
        return split_network(self.network_)


class NeuralClassifier(ClassifierMixin, _Neural):
    """Classifier with fully connected ReLU layers, trained by Adam with early stopping.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers; the paper uses three or four of 100.
    epochs, batch_size, lr, weight_decay, patience, validation_fraction
        As in `train_batched`; ``patience=None`` trains on all rows for all epochs.
    device : str
        "auto" (CUDA where there is one), "cpu", "cuda".
    random_state : int, Generator, RandomState or None
        The same int gives the same network on the CPU.

    Attributes
    ----------
    network_ : Network
        With ``network_.validation_loss`` (1, n_epochs) and ``network_.best_epoch`` (1,).
    classes_ : array
    n_iter_ : int
        Epochs up to the one whose weights were kept.

    >>> rng = np.random.default_rng(0)
    >>> XX = rng.normal(size=(200, 2))
    >>> model = NeuralClassifier((16,), random_state=0, device="cpu").fit(XX, np.where(XX[:, 0] > 0, "up", "down"))
    >>> model.predict([[2.0, 0.0], [-2.0, 0.0]])
    array(['up', 'down'], dtype='<U4')
    """

    def fit(self, XX: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NeuralClassifier:
        """Train on XX (n, n_columns) and labels y (n,)."""
        XX, y = self._check_options(XX, y, sample_weight)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only, {self.classes_[0]!r}: a classifier needs at least two.")
        self._train(XX, codes, len(self.classes_), True, sample_weight)
        return self

    def decision(self, XX: ArrayLike) -> NDArray:
        """Logits of all classes, shape (n, n_classes)."""
        return self._outputs(XX)

    def decision_function(self, XX: ArrayLike) -> NDArray:
        """Logits as scikit-learn has them: (n,) for two classes, (n, n_classes) for more."""
        logits = self._outputs(XX)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, XX: ArrayLike) -> NDArray:
        """Probabilities of the classes, shape (n, n_classes)."""
        return _softmax(self._outputs(XX))

    def predict(self, XX: ArrayLike) -> NDArray:
        """Most probable class of each row."""
        return self.classes_[self._outputs(XX).argmax(axis=1)]


class NeuralRegressor(RegressorMixin, _Neural):
    """Regressor with fully connected ReLU layers and squared error; options as in `NeuralClassifier`."""

    def fit(self, XX: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NeuralRegressor:
        """Train on XX (n, n_columns) and numbers y (n,)."""
        XX, y = self._check_options(XX, y, sample_weight)
        try:
            y = y.astype(float)
        except (TypeError, ValueError):
            raise InputError("y is not numeric: use NeuralClassifier for labels.") from None
        if not np.isfinite(y).all():
            raise InputError(f"y is missing or infinite in row {np.flatnonzero(~np.isfinite(y))[0]}.")
        self._train(XX, y, 1, False, sample_weight)
        return self

    def decision(self, XX: ArrayLike) -> NDArray:
        """Predicted values as one output, shape (n, 1)."""
        return self._outputs(XX)

    def predict(self, XX: ArrayLike) -> NDArray:
        """Predicted values, shape (n,)."""
        return self._outputs(XX)[:, 0]


def make_neural(task: str, *, random_state: Any = None, n_jobs: int | None = None, **options: Any) -> _Neural:
    """Return an unfitted network for a task, the estimator "neural"; its threads are PyTorch's."""
    model = NeuralRegressor if kind_of(task) == "regression" else NeuralClassifier
    return model(random_state=random_state, **options)


def partial_gradient(network: Network) -> Callable[[NDArray, NDArray], NDArray]:
    """Gradient along a direction for one network, as a function of arrays (n, n_inputs) and (n, n_outputs)."""

    def along(XX: NDArray, direction: NDArray) -> NDArray:
        weights = as_tensor(direction[None], network.device, network.dtype)
        return input_gradient(network, XX[None], weights)[0].double().cpu().numpy()

    return along


def _gradients(along: Callable, XX: NDArray, direction: Any, n_outputs: int) -> NDArray:
    """Gradients along one direction (n, n_columns) or of every output (n, n_outputs, n_columns), in blocks of rows."""
    blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, max(len(XX), 1), ROWS_AT_ONCE)]
    if direction is not None:
        direction = np.asarray(direction, dtype=float)
        return np.concatenate([along(XX[rows], direction[rows]) for rows in blocks])
    unit = np.eye(n_outputs)[:, None, :].repeat(len(XX), axis=1)
    return np.stack([np.concatenate([along(XX[rows], unit[c][rows]) for rows in blocks]) for c in range(n_outputs)], 1)


def _seed(random_state: Any) -> Any:
    """Turn scikit-learn's random state into what `numpy.random.default_rng` takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state


def _softmax(logits: NDArray) -> NDArray:
    exponential = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponential / exponential.sum(axis=1, keepdims=True)


def _check_width(XX: ArrayLike, width: int | None) -> NDArray:
    XX = np.asarray(XX, dtype=float)
    if XX.ndim != 2 or (width is not None and XX.shape[1] != width):
        raise InputError(f"XX has shape {XX.shape}: the network was fitted on {width} columns.")
    return XX


# A user's own module


class TorchModel(BaseEstimator):
    """A trained module of the user's own, for scoring.

    The module maps a (n, n_columns) tensor to logits (n, n_classes), to one logit (n,) or (n, 1) of the second of
    two classes, or, without ``classes``, to values of y (n,) or (n, 1). It is put into evaluation mode. A
    `torch.nn.Sequential` that begins with a `Linear` layer is scored by rank-one changes of that layer.

    Parameters
    ----------
    module : torch.nn.Module
    classes : array-like, optional
        Labels in the order of the outputs; None for regression.
    probabilities : bool
        The module returns probabilities instead of logits.
    device : str
        Where to move the module; None or "auto" leaves it where it is.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        classes: ArrayLike | None = None,
        *,
        probabilities: bool = False,
        device: Any = None,
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"module is {type(module).__name__}: expected a trained torch.nn.Module.")
        if device not in (None, "auto"):
            module = module.to(choose_device(device))
        self.module = module.eval()
        self.classes = classes
        self.probabilities = probabilities
        self.device = device
        if classes is not None:
            self.classes_ = np.asarray(classes)
        first = _first_linear(module)
        if first is not None:
            self.n_features_in_ = first.in_features

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.classes is None:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    @property
    def _like(self) -> dict[str, Any]:
        """Device and precision of the module."""
        example = next(self.module.parameters(), torch.zeros(1))
        return {"device": example.device, "dtype": example.dtype}

    def fit(self, XX: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> TorchModel:
        """Refuse: the module is trained already."""
        raise InputError(
            "TorchModel scores a module that is trained already. To train inside the procedure use "
            "NeuralClassifier or NeuralRegressor, or give an object with fit(XX, y) of your own."
        )

    def _finish(self, output: Tensor) -> Tensor:
        """Shape the outputs as (n, n_outputs) logits or values."""
        output = output.reshape(len(output), -1)
        if not hasattr(self, "classes_"):
            return output
        if self.probabilities:
            if output.shape[1] == 1:
                output = torch.cat([1 - output, output], 1)
            output = output.clamp_min(1e-30).log()
        elif output.shape[1] == 1:
            output = torch.cat([torch.zeros_like(output), output], 1)
        if output.shape[1] != len(self.classes_):
            raise InputError(f"module has {output.shape[1]} outputs for {len(self.classes_)} classes.")
        return output

    def decision(self, XX: ArrayLike) -> NDArray:
        """Logits (n, n_classes), or values (n, 1)."""
        XX = _check_width(XX, getattr(self, "n_features_in_", None))
        with torch.no_grad():
            parts = [
                self._finish(self.module(as_tensor(XX[start : start + ROWS_AT_ONCE], **self._like)))
                for start in range(0, max(len(XX), 1), ROWS_AT_ONCE)
            ]
        return torch.cat(parts).double().cpu().numpy()

    def decision_function(self, XX: ArrayLike) -> NDArray:
        """Logits as scikit-learn has them: (n,) for two classes, (n, n_classes) for more."""
        logits = self.decision(XX)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, XX: ArrayLike) -> NDArray:
        """Probabilities of the classes."""
        if not hasattr(self, "classes_"):
            raise InputError("TorchModel without classes is a regressor: it has no probabilities. Give classes=...")
        return _softmax(self.decision(XX))

    def predict(self, XX: ArrayLike) -> NDArray:
        """Most probable class, or value, of each row."""
        output = self.decision(XX)
        return self.classes_[output.argmax(axis=1)] if hasattr(self, "classes_") else output[:, 0]

    def gradient(self, XX: ArrayLike, direction: ArrayLike | None = None) -> NDArray:
        """Gradient of the outputs with respect to the inputs; as `NeuralClassifier.gradient`."""
        XX = _check_width(XX, getattr(self, "n_features_in_", None))

        def along(rows: NDArray, weights: NDArray) -> NDArray:
            inputs = as_tensor(rows, **self._like).requires_grad_()
            with torch.enable_grad():
                output = self._finish(self.module(inputs))
                total = (output * as_tensor(weights, **self._like)).sum()
                (slope,) = torch.autograd.grad(total, inputs)
            return slope.double().cpu().numpy()

        n_outputs = len(self.classes_) if hasattr(self, "classes_") else 1
        return _gradients(along, XX, direction, n_outputs)

    def split(self) -> Split:
        """First layer and the rest, for scores along lambda paths; without such a layer, the inputs move."""
        first, like = _first_linear(self.module), self._like
        linear = [layer.out_features for layer in self.module.modules() if isinstance(layer, torch.nn.Linear)]
        width = max(linear, default=0)
        if first is None:
            return Split(
                first=lambda XX: XX.to(like["dtype"]),
                weight=torch.empty(1, 0, 0, **like),
                rest=lambda pre, _: self._finish(self.module(pre[0]))[None],
                width=width,
            )
        rest = torch.nn.Sequential(*list(self.module.children())[1:])
        weight = first.weight.detach().mT[None]
        shift = 0.0 if first.bias is None else first.bias.detach().double()
        return Split(
            first=lambda XX: (torch.matmul(XX, weight.double()) + shift).to(like["dtype"]),
            weight=weight,
            rest=lambda pre, _: self._finish(rest(pre[0]))[None],
            width=width,
        )


def _first_linear(module: torch.nn.Module) -> torch.nn.Linear | None:
    """Find the `Linear` layer a `Sequential` begins with, or None."""
    if isinstance(module, torch.nn.Linear):
        return None
    if isinstance(module, torch.nn.Sequential) and len(module) and isinstance(module[0], torch.nn.Linear):
        return module[0]
    return None


NETWORKS = (_Neural, TorchModel)
