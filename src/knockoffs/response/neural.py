"""Neural networks of y: fully connected layers with ReLU, many independent repetitions trained as one batched model.

A `Network` holds R independent networks of one architecture; every array has the repetition as its first axis. For
an experiment with many repetitions (all on the device, each repetition with its own data, split, shuffles and early
stopping)::

    network = train_classifiers(XX, y, n_classes=10, seeds=seeds, device="cuda")  # XX (R, n, 2p), y (R, n) = 0, 1, ...
    losses = path_losses(network, XX, XX_fake, y, lams)            # importance/neural_paths.py: loss -> (R, 2m, L)
    Z = gradient_scores(network, XX)                               # importance/saliency.py: (R, 2p)

`NeuralClassifier` and `NeuralRegressor` are the case R = 1 with scikit-learn's face, and `TorchModel` wraps a trained
module of the user's own for scoring. Nothing here touches the global random state of numpy or torch: weights, splits
and shuffles of a repetition are functions of its seed alone, the same on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from knockoffs.errors import InputError, unknown_option
from knockoffs.progress import track
from knockoffs.response.task import kind_of

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Neural networks need PyTorch, which is not installed: pip install 'knockoffs[neural]'."
    ) from error

HIDDEN = (100, 100, 100, 100)  # the paper's classifier of the real data; its simulations also use three layers
ROWS_AT_ONCE = 65_536  # rows of one forward pass outside of training


# The network: data and plain functions


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

    def to(self, *, device: Any = None, dtype: torch.dtype | None = None) -> Network:
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


def outputs(network: Network, XX: Any) -> Tensor:
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


def input_gradient(network: Network, XX: Any, direction: Tensor) -> Tensor:
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


def as_tensor(values: Any, device: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Array as a tensor on a device."""
    if not isinstance(values, Tensor):
        array = np.ascontiguousarray(values)
        values = torch.from_numpy(array if array.flags.writeable else array.copy())  # torch has no read-only arrays
    return values.to(device=device, dtype=dtype)


def choose_device(device: Any) -> torch.device:
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


# Training


def train_batched(
    XX: Any,
    y: Any,
    n_outputs: int,
    *,
    classify: bool,
    hidden: Sequence[int] = HIDDEN,
    epochs: int = 100,
    batch_size: int = 128,
    lr: float = 1e-3,
    weight_decay: float = 1e-4,
    patience: int | None = 10,
    validation_fraction: float = 0.1,
    sample_weight: Any = None,
    seeds: Sequence[Any],
    device: Any = "auto",
    dtype: torch.dtype = torch.float32,
) -> Network:
    """Train R independent networks of one architecture as one batched model.

    Adam (beta 0.9, 0.999) with decoupled weight decay on minibatches of shuffled rows; a last, smaller minibatch is
    left out of its epoch. Each repetition keeps the weights of its best epoch on held-out rows and stops `patience`
    epochs after it; the others go on without it.

    Parameters
    ----------
    XX : array or tensor, shape (R, n, n_inputs)
    y : array or tensor, shape (R, n)
        Class numbers 0, ..., n_outputs - 1, or floats where ``classify`` is false.
    n_outputs : int
        Number of classes; 1 for regression.
    classify : bool
        Cross-entropy of softmax (true) or squared error (false).
    hidden : sequence of int
        Widths of the hidden layers.
    epochs : int
        Most passes over the rows.
    batch_size : int
    lr : float
    weight_decay : float
    patience : int or None
        None trains on all rows for all epochs and keeps the last weights.
    validation_fraction : float
        Share of the rows held out for early stopping, spread evenly over the classes (or over the order of y).
    sample_weight : array, shape (R, n), optional
    seeds : sequence of R
        What `numpy.random.default_rng` takes: an int, a SeedSequence or a Generator for each repetition. A
        repetition depends on its own seed alone, not on R.
    device : str or torch.device
    dtype : torch.dtype

    Returns
    -------
    Network
    """
    device = choose_device(device)
    n_repetitions, n, n_inputs = XX.shape
    rngs = [np.random.default_rng(seed) for seed in seeds]
    if len(rngs) != n_repetitions:
        raise InputError(f"{len(rngs)} seeds for {n_repetitions} repetitions: give one seed for each.")

    targets = as_tensor(y, device, torch.int64 if classify else torch.float64)
    y_center = y_scale = torch.zeros(1)
    if not classify:
        y_center, y_scale = _moments(targets)
        targets = ((targets - y_center) / y_scale).to(dtype)
    weight_of_row = torch.ones(n_repetitions, n, dtype=dtype, device=device)
    if sample_weight is not None:
        weight_of_row = as_tensor(sample_weight, device, dtype)
        weight_of_row = weight_of_row / weight_of_row.mean(1, keepdim=True)

    # one float32 copy of all data on the device, standardised; rows of repetition r are r * n, ..., r * n + n - 1
    inputs = torch.empty(n_repetitions, n, n_inputs, dtype=dtype, device=device)
    center = torch.empty(n_repetitions, 1, n_inputs, dtype=torch.float64, device=device)
    scale = torch.empty_like(center)
    for r in range(n_repetitions):
        columns = as_tensor(XX[r], device, torch.float64)
        center[r, 0], scale[r, 0] = (moment[0] for moment in _moments(columns.T[None], axis=2, keepdim=False))
        inputs[r] = (columns - center[r]) / scale[r]
    data = _Data(inputs.view(-1, n_inputs), targets.reshape(-1), weight_of_row.reshape(-1), classify)

    host_y = np.asarray(targets.cpu())
    splits = [_hold_out(host_y[r], validation_fraction if patience else 0.0, rngs[r]) for r in range(n_repetitions)]
    offset = np.arange(n_repetitions)[:, None] * n
    training = as_tensor(np.stack([train for train, _ in splits]) + offset, device)
    validation = as_tensor(np.stack([held for _, held in splits]) + offset, device)

    shapes = list(zip([n_inputs, *hidden], [*hidden, n_outputs], strict=True))
    flat = as_tensor(np.stack([_initial(shapes, rng) for rng in rngs]), device, dtype)
    shuffle_seeds = as_tensor(np.array([rng.integers(2**62) for rng in rngs]), device)
    adam = _Adam(lr, weight_decay)
    best, best_epoch, losses = _descend(
        flat, shapes, data, training, validation, shuffle_seeds, adam, epochs, batch_size, patience
    )
    weights, biases = _layers(best, shapes)
    if not classify:  # the outputs in the units of y
        units, shift = (moment.to(dtype)[:, :, None] for moment in (y_scale, y_center))
        weights[-1], biases[-1] = weights[-1] * units, biases[-1] * units + shift
    return Network(
        tuple(W.contiguous() for W in weights),
        tuple(b.contiguous() for b in biases),
        center,
        scale,
        best_epoch.cpu().numpy(),
        losses.cpu().numpy(),
    )


def train_classifiers(XX: Any, y: Any, n_classes: int, **options: Any) -> Network:
    """R classifiers trained together: `train_batched` with cross-entropy.

    Parameters
    ----------
    XX : array or tensor, shape (R, n, 2p)
    y : array or tensor of int, shape (R, n)
        Class numbers 0, ..., n_classes - 1.
    n_classes : int
    options
        hidden, epochs, batch_size, lr, weight_decay, patience, validation_fraction, sample_weight, seeds, device,
        dtype, as in `train_batched`.

    >>> XX, y = np.random.default_rng(0).normal(size=(2, 50, 4)), np.tile([0, 1], (2, 25))
    >>> network = train_classifiers(XX, y, 2, hidden=(8,), epochs=2, seeds=[0, 1], device="cpu")
    >>> outputs(network, XX).shape
    torch.Size([2, 50, 2])
    """
    return train_batched(XX, y, n_classes, classify=True, **options)


def train_regressors(XX: Any, y: Any, **options: Any) -> Network:
    """R regressors trained together: `train_batched` with squared error; the outputs are in the units of y."""
    return train_batched(XX, y, 1, classify=False, **options)


@dataclass(frozen=True)
class _Data:
    """Rows of all repetitions, one below the other, on the device."""

    inputs: Tensor  # (R * n, n_inputs)
    targets: Tensor  # (R * n,)
    weight: Tensor  # (R * n,)
    classify: bool

    def rows(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gather inputs, targets and weights of the rows index (R, B)."""
        chosen = index.reshape(-1)
        inputs = self.inputs.index_select(0, chosen).view(*index.shape, -1)
        return inputs, self.targets[chosen].view(index.shape), self.weight[chosen].view(index.shape)

    def slope(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Differentiate the mean loss of a minibatch with respect to the outputs, (R, B, n_outputs)."""
        if self.classify:
            error = output.softmax(2)
            error.scatter_add_(2, y[:, :, None], error.new_full((1, 1, 1), -1.0).expand(*y.shape, 1))
        else:
            error = 2 * (output - y[:, :, None])
        return error.mul_(weight[:, :, None] / y.shape[1])

    def loss(self, output: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Weighted mean loss of each repetition, (R,)."""
        if self.classify:
            row = -output.log_softmax(2).gather(2, y[:, :, None])[:, :, 0]
        else:
            row = (output[:, :, 0] - y).square()
        return (row * weight).sum(1) / weight.sum(1).clamp_min(1e-12)


@dataclass(frozen=True)
class _Adam:
    lr: float
    weight_decay: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def step(self, flat: Tensor, slope: Tensor, mean: Tensor, square: Tensor, t: int) -> None:
        """Move the parameters, in place; t counts from 1."""
        mean.lerp_(slope, 1 - self.beta1)
        square.mul_(self.beta2).addcmul_(slope, slope, value=1 - self.beta2)
        size = (square / (1 - self.beta2**t)).sqrt_().add_(self.epsilon)
        flat.mul_(1 - self.lr * self.weight_decay)
        flat.addcdiv_(mean, size, value=-self.lr / (1 - self.beta1**t))


def _descend(
    flat: Tensor,
    shapes: list[tuple[int, int]],
    data: _Data,
    training: Tensor,
    validation: Tensor,
    shuffle_seeds: Tensor,
    adam: _Adam,
    epochs: int,
    batch_size: int,
    patience: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Minibatch descent on the parameters flat (R, P): best parameters, best epoch and validation losses."""
    R, n_train = training.shape
    batch = min(batch_size, n_train)
    best = flat.clone()
    best_loss = flat.new_full((R,), torch.inf)
    best_epoch = torch.full((R,), epochs - 1, device=flat.device)
    losses = flat.new_full((R, epochs), torch.nan)
    active = torch.arange(R, device=flat.device)  # repetition of each row of flat: those that stopped are left out
    mean, square, slope = torch.zeros_like(flat), torch.zeros_like(flat), torch.empty_like(flat)
    rows = training
    t = 0
    for epoch in track(range(epochs), "training networks"):
        order = _hash(shuffle_seeds[active], epoch, n_train).argsort(1)
        shuffled = rows.gather(1, order)
        network = _view(flat, shapes)
        slopes = list(zip(*_layers(slope, shapes), strict=True))
        for start in range(0, n_train - batch + 1, batch):
            t += 1
            x, y, weight = data.rows(shuffled[:, start : start + batch])
            layers = forward(network, x)
            for number, below, delta in backward(network, layers, data.slope(layers[-1], y, weight)):
                torch.bmm(below.mT, delta, out=slopes[number][0])
                torch.sum(delta, 1, keepdim=True, out=slopes[number][1])
            adam.step(flat, slope, mean, square, t)
        if patience is None:
            continue
        loss = _validation_loss(network, data, validation[active])
        losses[active, epoch] = loss
        improved = loss < best_loss[active]
        best[active] = torch.where(improved[:, None], flat, best[active])
        best_loss[active] = torch.where(improved, loss, best_loss[active])
        best_epoch[active] = torch.where(improved, epoch, best_epoch[active])
        going = epoch - best_epoch[active] < patience
        if not bool(going.all()):
            if not bool(going.any()):
                break
            active, rows = active[going], rows[going]
            flat, mean, square, slope = flat[going], mean[going], square[going], slope[going]
    if patience is None:
        best = flat
    return best, best_epoch, losses


def _validation_loss(network: Network, data: _Data, index: Tensor) -> Tensor:
    """Loss on the held-out rows index (R, n_validation)."""
    width = max(W.shape[2] for W in network.weights) + network.n_inputs
    rows = max(1, 2**28 // (width * index.shape[0] * 4))  # about 256 MB an activation
    total = torch.zeros(index.shape[0], dtype=torch.float64, device=index.device)
    mass = torch.zeros_like(total)
    for part in index.split(rows, dim=1):
        x, y, weight = data.rows(part)
        weights = weight.double().sum(1)
        total += data.loss(forward(network, x)[-1], y, weight).double() * weights
        mass += weights
    return (total / mass.clamp_min(1e-12)).to(network.dtype)


def _view(flat: Tensor, shapes: list[tuple[int, int]]) -> Network:
    """Network whose weights are views of flat (R, P), for inputs that are standardised already."""
    weights, biases = _layers(flat, shapes)
    none = flat.new_zeros(1)
    return Network(tuple(weights), tuple(biases), none, none)


def _layers(flat: Tensor, shapes: list[tuple[int, int]]) -> tuple[list[Tensor], list[Tensor]]:
    """Weights and biases as views of flat (R, P)."""
    weights, biases, start = [], [], 0
    for fan_in, fan_out in shapes:
        weights.append(flat[:, start : start + fan_in * fan_out].view(-1, fan_in, fan_out))
        start += fan_in * fan_out
        biases.append(flat[:, start : start + fan_out].view(-1, 1, fan_out))
        start += fan_out
    return weights, biases


def _initial(shapes: list[tuple[int, int]], rng: np.random.Generator) -> NDArray:
    """Draw the first parameters of one repetition: uniform on +- 1 / sqrt(fan_in), the layers one after the other.

    Small weights find interactions among many noise columns that He's larger ones miss: 4 x 100 units, n = 3000, the
    sign of a product of two of 60 columns is predicted with accuracy 0.77 against 0.52 (8 repetitions).
    """
    return np.concatenate(
        [rng.uniform(-1, 1, size=(fan_in + 1) * fan_out) / np.sqrt(fan_in) for fan_in, fan_out in shapes]
    )


def _hold_out(y: NDArray, fraction: float, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows held out: every (1 / fraction)-th row in the order of y, ties in random order.

    >>> train, held = _hold_out(np.array([0, 1] * 10), 0.2, np.random.default_rng(0))
    >>> len(held), int(np.sum(held % 2))
    (4, 2)
    """
    n = len(y)
    n_held = 0 if fraction == 0 else min(n - 1, max(1, round(fraction * n)))
    order = np.lexsort((rng.random(n), y))
    position = np.floor((np.arange(n_held) + rng.random()) * n / max(n_held, 1)).astype(np.intp)
    held = np.zeros(n, dtype=bool)
    held[order[position]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _hash(seeds: Tensor, epoch: int, n: int) -> Tensor:
    """Pseudo-random int64 keys (R, n), a function of seed, epoch and position alone: splitmix64 (Steele et al. 2014).

    One round each for seed, epoch and row: the same shuffles on every device, without a generator's state.
    """
    state = _mix(_mix(seeds) + epoch)
    return _mix(state[:, None] + torch.arange(n, device=seeds.device) * -0x61C8864680B583EB)


def _mix(z: Tensor) -> Tensor:
    """Scramble int64 (the finaliser of splitmix64; arithmetic is modulo 2^64, shifts are made logical by a mask)."""
    z = (z ^ ((z >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    z = (z ^ ((z >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return z ^ ((z >> 31) & (2**33 - 1))


def _moments(values: Tensor, axis: int = 1, keepdim: bool = True) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation along an axis in float64; 1 where nothing varies."""
    values = values.double()
    mean = values.mean(axis, keepdim=True)
    deviation = (values - mean).square().mean(axis, keepdim=True).sqrt()
    deviation = torch.where(deviation > 1e-12 * (1 + mean.abs()), deviation, torch.ones_like(deviation))
    return (mean, deviation) if keepdim else (mean.squeeze(axis), deviation.squeeze(axis))


# scikit-learn's face


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
