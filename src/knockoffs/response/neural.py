"""Neural networks of y with scikit-learn's face: one repetition of the batched networks of `networks.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from knockoffs.errors import InputError
from knockoffs.response.networks import Network, Split, as_tensor, input_gradient, outputs, split_network
from knockoffs.response.neural_model import NeuralModel, check_width, gradients_along, softmax
from knockoffs.response.task import kind_of
from knockoffs.response.training import HIDDEN, Seed, train_batched

if TYPE_CHECKING:  # networks.py says what installs it, before it is imported
    import torch


class _Neural(NeuralModel):
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

    def _train(self, XX: NDArray, y: NDArray, n_outputs: int, classify: bool, sample_weight: ArrayLike | None) -> None:
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

    def _outputs(self, XX: ArrayLike) -> NDArray:
        """Compute the outputs (n, n_outputs), as float64."""
        return outputs(self.network_, self._inputs(XX)[None])[0].double().cpu().numpy()

    def _inputs(self, XX: ArrayLike) -> NDArray:
        check_is_fitted(self, "network_")
        return check_width(XX, self.n_features_in_)

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
        return gradients_along(partial_gradient(self.network_), XX, direction, self.network_.n_outputs)

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
        return softmax(self._outputs(XX))

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


def make_neural(
    task: str, *, random_state: Seed | np.random.RandomState = None, n_jobs: int | None = None, **options: Any
) -> _Neural:
    """Return an unfitted network for a task, the estimator "neural"; its threads are PyTorch's."""
    model = NeuralRegressor if kind_of(task) == "regression" else NeuralClassifier
    return model(random_state=random_state, **options)


def partial_gradient(network: Network) -> Callable[[NDArray, NDArray], NDArray]:
    """Gradient along a direction for one network, as a function of arrays (n, n_inputs) and (n, n_outputs)."""

    def along(XX: NDArray, direction: NDArray) -> NDArray:
        weights = as_tensor(direction[None], network.device, network.dtype)
        return input_gradient(network, XX[None], weights)[0].double().cpu().numpy()

    return along


def _seed(random_state: Seed | np.random.RandomState) -> Seed:
    """Turn scikit-learn's random state into what `numpy.random.default_rng` takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
