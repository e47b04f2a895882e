"""Training of many independent neural networks as one batched model.

Nothing here touches the global random state of numpy or torch: weights, splits and shuffles of a repetition are
functions of its seed alone, the same on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from knockoffs.errors import InputError
from knockoffs.progress import track
from knockoffs.response.networks import Network, as_tensor, backward, choose_device, forward

Seed = int | np.random.SeedSequence | Generator | None  # what numpy.random.default_rng takes
HIDDEN = (100, 100, 100, 100)  # the paper's classifier of the real data; its simulations also use three layers


def train_batched(
    XX: NDArray | Tensor,
    y: NDArray | Tensor,
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
    sample_weight: NDArray | Tensor | None = None,
    seeds: Sequence[Seed],
    device: str | torch.device = "auto",
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


def train_classifiers(XX: NDArray | Tensor, y: NDArray | Tensor, n_classes: int, **options: Any) -> Network:
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
    >>> network.n_repetitions, network.n_outputs
    (2, 2)
    """
    return train_batched(XX, y, n_classes, classify=True, **options)


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
