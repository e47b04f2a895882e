"""PyTorch modules of y: devices, a module as its first layer and the rest, and one trained by the user, for scoring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags, Tags

from knockoffs.errors import InputError, require, unknown_option

require("torch", "neural networks")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

ROWS_AT_ONCE = 65_536  # rows of one forward pass outside of training


@dataclass(frozen=True)
class Split:
    """A model as its first affine layer and the rest: moving one input is a rank-one change of the first layer."""

    # (n, n_inputs) float64 inputs -> (n, width) pre-activations of the first layer, or the inputs themselves. Sums are
    # taken in float64 and then rounded: a sum in another column order gives the same float32
    first: Callable[[Tensor], Tensor]
    # shape (n_inputs, width): change of the pre-activations per unit of each input; shape (0, 0) where there is no
    # first layer to share
    weight: Tensor
    rest: Callable[[Tensor], Tensor]  # (n, width) pre-activations -> (n, n_outputs); may overwrite its argument
    width: int  # widest layer, which determines the memory needed


def as_tensor(values: NDArray | Tensor, device: str | torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Array as a tensor on a device."""
    if not isinstance(values, Tensor):
        array = np.ascontiguousarray(values)
        values = torch.from_numpy(array if array.flags.writeable else array.copy())  # torch has no read-only arrays
    return values.to(device=device, dtype=dtype)


def choose_device(device: object) -> torch.device:
    """Device by name; "auto" is CUDA where there is one and the CPU otherwise.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise unknown_option("device", device, ["auto", "cpu", "cuda"]) from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={device!r}: this machine has no CUDA device. Use device='auto' or 'cpu'.")
    return chosen


def check_width(XX: ArrayLike, width: int | None) -> NDArray:
    """Take inputs as floats (n, n_columns), of the width that the network was fitted on."""
    XX = np.asarray(XX, dtype=float)
    if XX.ndim != 2 or (width is not None and XX.shape[1] != width):
        raise InputError(f"XX has shape {XX.shape}: the network was fitted on {width} columns.")
    return XX


class TorchModel(BaseEstimator):
    """A trained PyTorch module, for scoring.

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
        device: object = None,
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.classes is None:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags

    def _tensor(self, values: NDArray) -> Tensor:
        """Values on the device of the module, in its precision."""
        return as_tensor(values, "cpu").to(next(self.module.parameters(), torch.zeros(1)))

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
        XX = check_width(XX, getattr(self, "n_features_in_", None))
        with torch.no_grad():
            parts = [self._finish(self.module(self._tensor(XX[rows]))) for rows in _blocks(XX)]
        return torch.cat(parts).double().cpu().numpy()

    def decision_function(self, XX: ArrayLike) -> NDArray:
        """Logits as scikit-learn has them: (n,) for two classes, (n, n_classes) for more."""
        logits = self.decision(XX)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, XX: ArrayLike) -> NDArray:
        """Probabilities of the classes."""
        if not hasattr(self, "classes_"):
            raise InputError("TorchModel without classes is a regressor: it has no probabilities. Give classes=...")
        return softmax(self.decision(XX), axis=1)

    def predict(self, XX: ArrayLike) -> NDArray:
        """Most probable class, or value, of each row."""
        output = self.decision(XX)
        return self.classes_[output.argmax(axis=1)] if hasattr(self, "classes_") else output[:, 0]

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
        XX = check_width(XX, getattr(self, "n_features_in_", None))

        def along(rows: NDArray, weights: NDArray) -> NDArray:
            inputs = self._tensor(rows).requires_grad_()
            with torch.enable_grad():
                output = self._finish(self.module(inputs))
                total = (output * self._tensor(weights)).sum()
                (slope,) = torch.autograd.grad(total, inputs)
            return slope.double().cpu().numpy()

        if direction is not None:
            direction = np.asarray(direction, dtype=float)
            return np.concatenate([along(XX[rows], direction[rows]) for rows in _blocks(XX)])
        each = np.eye(len(self.classes_) if hasattr(self, "classes_") else 1)
        return np.stack([self.gradient(XX, np.broadcast_to(unit, (len(XX), len(unit)))) for unit in each], axis=1)

    def split_first_layer(self) -> Split:
        """First layer and the rest, for scores along lambda paths; without such a layer, the inputs move."""
        first, like = _first_linear(self.module), next(self.module.parameters(), torch.zeros(1))
        linear = [layer.out_features for layer in self.module.modules() if isinstance(layer, torch.nn.Linear)]
        width = max(linear, default=0)
        if first is None:
            return Split(
                first=lambda XX: XX.to(like.dtype),
                weight=like.new_empty(0, 0),
                rest=lambda pre: self._finish(self.module(pre)),
                width=width,
            )
        rest = torch.nn.Sequential(*list(self.module.children())[1:])
        weight = first.weight.detach().mT
        shift = 0.0 if first.bias is None else first.bias.detach().double()
        return Split(
            first=lambda XX: (torch.matmul(XX, weight.double()) + shift).to(like.dtype),
            weight=weight,
            rest=lambda pre: self._finish(rest(pre)),
            width=width,
        )


def _blocks(XX: NDArray) -> list[slice]:
    """Rows of each forward pass, one at least."""
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, max(len(XX), 1), ROWS_AT_ONCE)]


def _first_linear(module: torch.nn.Module) -> torch.nn.Linear | None:
    """Find the `Linear` layer a `Sequential` begins with, or None."""
    if isinstance(module, torch.nn.Sequential) and len(module) and isinstance(module[0], torch.nn.Linear):
        return module[0]
    return None
