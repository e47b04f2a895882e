"""What every neural network of y shows to the scores: its outputs, their gradients, its first layer.

No deep-learning library is loaded here, so that any model can be asked whether it is one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from knockoffs.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

ROWS_AT_ONCE = 65_536  # rows of one forward pass outside of training


@dataclass(frozen=True)
class Split:
    """A model as its first affine layer and the rest: moving one input is a rank-one change of the first layer.

    Parameters
    ----------
    first : callable
        (n, n_inputs) float64 inputs -> (n, width) pre-activations of the first layer, or the inputs themselves. Sums
        are taken in float64 and then rounded: a sum in another column order gives the same float32.
    weight : tensor, shape (n_inputs, width)
        Change of the pre-activations per unit of each input; shape (0, 0) where there is no first layer to share.
    rest : callable
        (n, width) pre-activations -> (n, n_outputs); may overwrite its argument.
    width : int
        Widest layer, which determines the memory needed.
    """

    first: Callable[[Tensor], Tensor]
    weight: Tensor
    rest: Callable[[Tensor], Tensor]
    width: int


class NeuralModel(BaseEstimator):
    """A neural network of y."""

    @abstractmethod
    def decision(self, XX: ArrayLike) -> NDArray:
        """Logits (n, n_classes), or values of y (n, 1)."""

    @abstractmethod
    def gradient(self, XX: ArrayLike, direction: ArrayLike | None = None) -> NDArray:
        """Gradient of the outputs with respect to the inputs, (n, n_outputs, n_columns), or along a direction."""

    @abstractmethod
    def split(self) -> Split:
        """First layer and the rest, for scores along lambda paths."""


def gradients_along(along: Callable, XX: NDArray, direction: object, n_outputs: int) -> NDArray:
    """Gradients along one direction (n, n_columns) or of every output (n, n_outputs, n_columns), in blocks of rows."""
    blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, max(len(XX), 1), ROWS_AT_ONCE)]
    if direction is not None:
        direction = np.asarray(direction, dtype=float)
        return np.concatenate([along(XX[rows], direction[rows]) for rows in blocks])
    unit = np.eye(n_outputs)[:, None, :].repeat(len(XX), axis=1)
    return np.stack([np.concatenate([along(XX[rows], unit[c][rows]) for rows in blocks]) for c in range(n_outputs)], 1)


def softmax(logits: NDArray) -> NDArray:
    """Probabilities (n, n_classes) of logits."""
    exponential = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponential / exponential.sum(axis=1, keepdims=True)


def check_width(XX: ArrayLike, width: int | None) -> NDArray:
    """Take inputs as floats (n, n_columns), of the width that the network was fitted on."""
    XX = np.asarray(XX, dtype=float)
    if XX.ndim != 2 or (width is not None and XX.shape[1] != width):
        raise InputError(f"XX has shape {XX.shape}: the network was fitted on {width} columns.")
    return XX
