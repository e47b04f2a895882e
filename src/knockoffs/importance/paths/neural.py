"""The loss of a neural network along lambda paths: one column moves, so the first layer moves by a rank-one term.

With column j at x_j + lam (fake_j - x_j), the first layer's pre-activation is a + lam (fake_j - x_j) w_j, where w_j is
the j-th row of its weights: a is computed once for all columns and all lam, and only the later layers are run again.
Features of several columns add up their terms.

Everything runs in the network's own precision (float32) except the first layer and the sums over rows, which are
float64. TF32 is not switched on here: matrix products are full float32 unless the program has set
``torch.backends.cuda.matmul.allow_tf32`` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from knockoffs.importance.losses import LOSSES, SMALLEST_MEAN, SMALLEST_PROBABILITY, Loss, check_counts, class_codes
from knockoffs.importance.paths.moves import Moves, trapezoid
from knockoffs.progress import track
from knockoffs.response.neural import NeuralClassifier, NeuralRegressor
from knockoffs.response.torch_model import Split, TorchModel, as_tensor

CPU_BYTES = 2**22  # about 3,500 rows of 100 units in flight: they stay in the cache, and 2^26 takes a third longer
CUDA_BYTES = 2**30
LARGEST_LOG_LOSS = -math.log(SMALLEST_PROBABILITY)

RowLoss = Callable[[Tensor, Tensor], Tensor]  # outputs (..., n_outputs), y (...) -> (...)


# Losses on the device, each the loss of the same name in importance/losses.py


def _of_true(output: Tensor, y: Tensor) -> Tensor:
    return output.gather(-1, y[..., None])[..., 0]


def _accuracy(output: Tensor, y: Tensor) -> Tensor:
    return output.argmax(-1) != y  # the 0-1 loss: a drop in accuracy is its rise


def _log_loss(output: Tensor, y: Tensor) -> Tensor:
    return (output.logsumexp(-1) - _of_true(output, y)).clamp_max(LARGEST_LOG_LOSS)


def _brier(output: Tensor, y: Tensor) -> Tensor:
    probability = output.softmax(-1)
    return probability.square().sum(-1) - 2 * _of_true(probability, y) + 1


def _squared_error(output: Tensor, y: Tensor) -> Tensor:
    return (output[..., 0].double() - y).square()


def _poisson_deviance(output: Tensor, y: Tensor) -> Tensor:
    mean = output[..., 0].double().clamp_min(SMALLEST_MEAN)
    return (2 * (mean - y + torch.xlogy(y, y / mean))).clamp_min(0.0)


ON_DEVICE: dict[str, RowLoss] = {
    "accuracy": _accuracy,
    "log_loss": _log_loss,
    "brier": _brier,
    "squared_error": _squared_error,
    "poisson_deviance": _poisson_deviance,
}


def neural_path(model: NeuralClassifier | NeuralRegressor | TorchModel, moves: Moves, loss: Loss) -> NeuralPath | None:
    """Path losses of a network; None for a loss of one's own, or one that compares rows with one another."""
    if LOSSES.get(loss.name) is not loss or loss.name not in ON_DEVICE:  # a user's loss may be called as one of ours
        return None
    if loss.name == "poisson_deviance":
        check_counts(moves.y)
    return NeuralPath(model, moves, loss)


@dataclass(frozen=True)
class NeuralPath:
    """A neural network of this package: its first layer changes by a rank-one term."""

    model: NeuralClassifier | NeuralRegressor | TorchModel
    moves: Moves
    loss: Loss  # one of `ON_DEVICE`
    # memory for the activations in flight: 4 MiB on a CPU (its cache) and 1 GiB on a GPU by default
    memory_bytes: int | None = None

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return float(self.at(np.zeros(1))[0, 0])

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        moves, classes, split = self.moves, getattr(self.model, "classes_", None), self.model.split_first_layer()
        row_loss = ON_DEVICE[self.loss.name]
        device, dtype = split.weight.device, split.weight.dtype
        grid, n = np.asarray(lams, dtype=float), len(moves.y)
        moved = np.flatnonzero(grid != 0)
        with torch.inference_mode():
            inputs = as_tensor(moves.XX, device, torch.float64)
            delta = (as_tensor(moves.XX_fake, device, torch.float64) - inputs).to(dtype)
            base = split.first(inputs)
            targets = as_tensor(moves.y.astype(float) if classes is None else class_codes(moves.y, classes), device)
            weight = torch.from_numpy(moves.weights)
            weight = (weight / weight.sum()).to(device)
            steps = as_tensor(grid[moved], device, dtype)[:, None, None]
            total = torch.zeros(moves.n_features2, len(grid), dtype=torch.float64, device=device)
            memory = self.memory_bytes or (CUDA_BYTES if base.is_cuda else CPU_BYTES)
            # two layers and the rank-one term live at once
            in_flight = memory // (3 * max(split.width, base.shape[1]) * base.element_size())
            if len(moved) < len(grid):  # nothing has moved: one pass for all features
                for rows in _blocks(n, in_flight):
                    losses = row_loss(split.rest(base[rows].clone()), targets[rows])
                    total[:, grid == 0] += losses.double() @ weight[rows]
            for feature in track(range(len(total)) if moved.size else [], "lambda paths"):
                columns = as_tensor(np.flatnonzero(moves.feature_of2 == feature), device)
                for rows in _blocks(n, in_flight // len(moved)):
                    pre = torch.addcmul(base[rows], steps, _change(split, delta[rows], columns))  # (L, rows, width)
                    output = split.rest(pre.flatten(0, 1)).unflatten(0, pre.shape[:2])
                    losses = row_loss(output, targets[rows].expand(output.shape[:-1]))
                    total[feature, moved] += losses.double() @ weight[rows]
            return total.cpu().numpy()

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Trapezoid rule on n_lams equidistant points."""
        return trapezoid(self, low, high, n_lams)


def _change(split: Split, delta: Tensor, columns: Tensor) -> Tensor:
    """Change of the first layer at lam = 1, shape (n, width): the rank-one terms of a feature's columns, added."""
    if split.weight.numel():
        return delta[:, columns] @ split.weight[columns]
    change = torch.zeros_like(delta)  # no first layer to share: the inputs themselves move
    change[:, columns] = delta[:, columns]
    return change


def _blocks(total: int, most: int) -> list[slice]:
    """Equal parts of at most ``most`` rows."""
    size = -(-total // -(-total // max(1, min(total, most))))
    return [slice(start, start + size) for start in range(0, total, size)]
