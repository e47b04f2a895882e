"""Neural networks of y with scikit-learn's interface: standardised columns, fully connected layers, ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from knockoffs.errors import InputError
from knockoffs.response.devices import as_tensor, choose_device
from knockoffs.response.neural_model import NeuralModel, Split, check_width, softmax
from knockoffs.response.task import kind_of
from knockoffs.response.torch_model import TorchModel, Training, train

if TYPE_CHECKING:  # devices.py says what installs it, before it is imported
    import torch

Seed = int | np.random.SeedSequence | np.random.Generator | None  # what numpy.random.default_rng takes
HIDDEN = (100, 100, 100, 100)  # the paper's classifier of the real data; its simulations also use three layers


class _Neural(NeuralModel):
    """What classifier and regressor share: options, checks, training, outputs and their gradients."""

    network_: TorchModel

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
        device: str | torch.device = "auto",
        random_state: Seed | np.random.RandomState = None,
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

    def _train(self, XX: NDArray, y: NDArray, classes: NDArray | None, sample_weight: ArrayLike | None) -> None:
        """Train on class numbers, or on values of y where ``classes`` is None."""
        import torch

        device = choose_device(self.device)
        self.center_, self.scale_ = _moments(XX)
        self.n_features_in_ = XX.shape[1]
        center, scale = (0, 1) if classes is not None else _moments(y)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        network, self.validation_loss_ = train(
            as_tensor((XX - self.center_) / self.scale_, device, torch.float32),
            as_tensor(
                (y - center) / scale if classes is None else y, device, torch.float32 if classes is None else None
            ),
            as_tensor(weight / weight.mean(), device, torch.float32),
            1 if classes is None else len(classes),
            Training(
                tuple(self.hidden),
                self.epochs,
                self.batch_size,
                self.lr,
                self.weight_decay,
                self.patience,
                self.validation_fraction,
            ),
            np.random.default_rng(_seed(self.random_state)),
        )
        if classes is None:  # the outputs in the units of y
            last = network[-1]
            last.weight.mul_(float(scale))
            last.bias.mul_(float(scale)).add_(float(center))
        self.network_ = TorchModel(network, classes)
        self.n_iter_ = int(np.argmin(self.validation_loss_)) + 1 if self.validation_loss_ else self.epochs

    def _check_options(self, XX: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[NDArray, NDArray]:
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

    def _standardised(self, XX: ArrayLike) -> NDArray:
        check_is_fitted(self, "network_")
        return (check_width(XX, self.n_features_in_) - self.center_) / self.scale_

    def decision(self, XX: ArrayLike) -> NDArray:
        """Logits of all classes, shape (n, n_classes), or values of y, shape (n, 1)."""
        return self.network_.decision(self._standardised(XX))

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
        return self.network_.gradient(self._standardised(XX), direction) / self.scale_

    def split(self) -> Split:
        """First layer and the rest, for scores along lambda paths."""
        check_is_fitted(self, "network_")
        inner = self.network_.split()
        center, scale = (as_tensor(moment, inner.weight.device) for moment in (self.center_, self.scale_))
        return Split(
            lambda XX: inner.first((XX - center) / scale),
            (inner.weight / scale[:, None]).to(inner.weight.dtype),
            inner.rest,
            inner.width,
        )


class NeuralClassifier(ClassifierMixin, _Neural):
    """Classifier with fully connected ReLU layers, trained by Adam with early stopping.

    Parameters
    ----------
    hidden : sequence of int
        Widths of the hidden layers; the paper uses three or four of 100.
    epochs, batch_size, lr, weight_decay, patience, validation_fraction
        Most passes over the rows, rows per step, learning rate and weight decay of AdamW, epochs without a gain on
        held-out rows after which training stops, and their share. ``patience=None`` trains on all rows for all epochs.
    device : str
        "auto" (CUDA where there is one), "cpu", "cuda".
    random_state : int, Generator, RandomState or None
        The same int gives the same network on the CPU.

    Attributes
    ----------
    network_ : TorchModel
        The trained ``network_.module``, a function of standardised columns ``(XX - center_) / scale_``.
    validation_loss_ : list of float
        Loss on the held-out rows after each epoch; empty with ``patience=None``.
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
        self._train(XX, codes, self.classes_, sample_weight)
        return self

    def decision_function(self, XX: ArrayLike) -> NDArray:
        """Logits as scikit-learn has them: (n,) for two classes, (n, n_classes) for more."""
        logits = self.decision(XX)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, XX: ArrayLike) -> NDArray:
        """Probabilities of the classes, shape (n, n_classes)."""
        return softmax(self.decision(XX))

    def predict(self, XX: ArrayLike) -> NDArray:
        """Most probable class of each row."""
        return self.classes_[self.decision(XX).argmax(axis=1)]


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
        self._train(XX, y, None, sample_weight)
        return self

    def predict(self, XX: ArrayLike) -> NDArray:
        """Predicted values, shape (n,)."""
        return self.decision(XX)[:, 0]


def make_neural(
    task: str, *, random_state: Seed | np.random.RandomState = None, n_jobs: int | None = None, **options: Any
) -> _Neural:
    """Return an unfitted network for a task, the estimator "neural"; its threads are PyTorch's."""
    model = NeuralRegressor if kind_of(task) == "regression" else NeuralClassifier
    return model(random_state=random_state, **options)


def _moments(values: NDArray) -> tuple[NDArray, NDArray]:
    """Mean and standard deviation of each column; 1 where nothing varies."""
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    return mean, np.where(deviation > 1e-12 * (1 + np.abs(mean)), deviation, 1.0)


def _seed(random_state: Seed | np.random.RandomState) -> Seed:
    """Turn scikit-learn's random state into what `numpy.random.default_rng` takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
