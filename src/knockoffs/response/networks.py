"""Neural networks of y: fully connected layers with ReLU, many independent repetitions as one batched model.

A `Network` holds R independent networks of one architecture; every array has the repetition as its first axis. For
an experiment with many repetitions (all on the device, each repetition with its own data, split, shuffles and early
stopping)::

    network = train_classifiers(XX, y, n_classes=10, seeds=seeds, device="cuda")  # XX (R, n, 2p), y (R, n) = 0, 1, ...
    losses = network_losses(network, XX, XX_fake, y, lams)         # importance/paths/batched.py: loss -> (R, 2m, L)
    Z = gradient_scores(network, XX)                               # importance/saliency.py: (R, 2p)

`training.py` trains them; `neural.py` has the case R = 1 with scikit-learn's face.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, require, unknown_option
from knockoffs.response.neural_model import ROWS_AT_ONCE

require("torch", "neural networks")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402


@dataclass(frozen=True)
class Network:
    """R independent fully connected ReLU networks of one architecture.

    Layer l maps a (R, n, fan_in) to a @ weights[l] + biases[l]; ReLU between layers, none after the last. Inputs are
    standardised first: (XX - center) / scale. Outputs are logits (classification) or values of y (regression).

    Parameters
    ----------
    weights : tuple of tensors, shape (R, fan_in, fan_out)
    biases : tuple of tensors, shape (R, 1, fan_out)
    center, scale : tensor of float64, shape (R, 1, n_inputs)
    best_epoch : array of int, shape (R,)
        Epoch whose weights were kept, from 0.
    validation_loss : array, shape (R, n_epochs)
        Loss on the held-out rows after each epoch; nan after a repetition stopped or where none were held out.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    center: Tensor
    scale: Tensor
    best_epoch: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    validation_loss: NDArray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def n_repetitions(self) -> int:
        """Number of networks, R."""
        return self.weights[0].shape[0]

    @property
    def n_inputs(self) -> int:
        """Columns of [X, X_tilde]."""
        return self.weights[0].shape[1]

    @property
    def n_outputs(self) -> int:
        """Classes, or 1 for regression."""
        return self.weights[-1].shape[2]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights[0].device

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        return self.weights[0].dtype

    def to(self, *, device: object = None, dtype: torch.dtype | None = None) -> Network:
        """Network on another device or in another precision."""
        return replace(
            self,
            weights=tuple(W.to(device=device, dtype=dtype) for W in self.weights),
            biases=tuple(b.to(device=device, dtype=dtype) for b in self.biases),
            center=self.center.to(device=device),
            scale=self.scale.to(device=device),
        )

    def repetition(self, r: int) -> Network:
        """Network of repetition r alone (R = 1)."""
        return self.part(slice(r, r + 1))

    def part(self, which: slice) -> Network:
        """Networks of some repetitions."""
        return replace(
            self,
            weights=tuple(W[which] for W in self.weights),
            biases=tuple(b[which] for b in self.biases),
            center=self.center[which],
            scale=self.scale[which],
            best_epoch=self.best_epoch[which],
            validation_loss=self.validation_loss[which],
        )


@dataclass(frozen=True)
class Split:
    """A model as its first affine layer and the rest, so that moving one input is a rank-one change of the first.

    Parameters
    ----------
    first : callable
        (R, n, n_inputs) float64 inputs -> (R, n, width) pre-activations of the first layer.
    weight : tensor, shape (R, n_inputs, width)
        Change of the pre-activations per unit of each input.
    rest : callable
        (r, n, width) pre-activations of some repetitions, and which (a slice) -> (r, n, n_outputs); may overwrite
        its argument.
    width : int
        Widest layer, for the memory needed.
    """

    first: Callable[[Tensor], Tensor]
    weight: Tensor
    rest: Callable[[Tensor, slice], Tensor]
    width: int


def split_network(network: Network) -> Split:
    """First layer of a network, in the units of its inputs, and the rest.

    The first layer is summed in float64 and then rounded: a sum in another column order gives the same float32, so
    that scores swap with the columns to more than float32's precision.
    """
    first = (network.weights[0] / network.scale.mT).double()
    bias = network.biases[0].double()

    def pre_activation(XX: Tensor) -> Tensor:
        return torch.baddbmm(bias, XX - network.center, first).to(network.dtype)

    def rest(pre: Tensor, repetitions: slice) -> Tensor:
        for W, b in zip(network.weights[1:], network.biases[1:], strict=True):
            pre = torch.baddbmm(b[repetitions], pre.relu_(), W[repetitions])
        return pre

    width = max(W.shape[2] for W in network.weights)
    return Split(pre_activation, first.to(network.dtype), rest, width)


def forward(network: Network, inputs: Tensor) -> list[Tensor]:
    """Activations of every layer, standardised inputs first and outputs last, shape (R, n, width) each."""
    layers = [inputs]
    last = len(network.weights) - 1
    for number, (W, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        z = torch.baddbmm(b, layers[-1], W)
        layers.append(z if number == last else z.relu_())
    return layers


def backward(network: Network, layers: list[Tensor], direction: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Backpropagation: for each layer, from the last, its number, its input and d loss / d pre-activation."""
    delta = direction
    for number in range(len(network.weights) - 1, -1, -1):
        yield number, layers[number], delta
        if number:
            delta = torch.bmm(delta, network.weights[number].mT) * (layers[number] > 0)


def outputs(network: Network, XX: object) -> Tensor:
    """Logits or values of y of every repetition, shape (R, n, n_outputs).

    Parameters
    ----------
    network : Network
    XX : array or tensor, shape (R, n, n_inputs)
    """
    split = split_network(network)
    rows = max(1, ROWS_AT_ONCE // network.n_repetitions)
    parts = as_tensor(XX, network.device, torch.float64).split(rows, dim=1)
    return torch.cat([split.rest(split.first(part), slice(None)) for part in parts], dim=1)


def input_gradient(network: Network, XX: object, direction: Tensor) -> Tensor:
    """Gradient of sum_c direction_c output_c with respect to the inputs, in their units, shape (R, n, n_inputs).

    Parameters
    ----------
    network : Network
    XX : array or tensor, shape (R, n, n_inputs)
    direction : tensor, shape (R, n, n_outputs)
    """
    split = split_network(network)
    pre = split.first(as_tensor(XX, network.device, torch.float64))
    delta = direction.to(network.dtype)
    if len(network.weights) > 1:
        above = replace(network, weights=network.weights[1:], biases=network.biases[1:])
        layers = forward(above, pre.relu())
        *_, (_, _, delta) = backward(above, layers, delta)  # that of the second layer
        delta = torch.bmm(delta, network.weights[1].mT) * (layers[0] > 0)
    return torch.bmm(delta, split.weight.mT)


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
