"""Losses of neural networks along lambda paths: one column moves, so the first layer moves by a rank-one term.

With column j at x_j + lam (fake_j - x_j), the first layer's pre-activation is a + lam (fake_j - x_j) w_j, where w_j is
the j-th row of its weights: a is computed once for all columns and all lam, and only the later layers are run again.
Features of several columns add up their terms. Columns, lambdas, rows and repetitions are batched to the memory given.

Everything runs in the network's own precision (float32; pass ``network.to(dtype=torch.float64)`` for float64) except
the first layer and the sums over rows, which are float64. TF32 is not switched on here: matrix products are full
float32 unless the program has set ``torch.backends.cuda.matmul.allow_tf32`` itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from knockoffs.errors import unknown_option
from knockoffs.importance.losses import SMALLEST_PROBABILITY
from knockoffs.progress import track
from knockoffs.response.networks import Network, Split, as_tensor, split_network

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


def _margin(output: Tensor, y: Tensor) -> Tensor:
    others = output.scatter(-1, y[..., None], -torch.inf)
    return others.amax(-1) - _of_true(output, y)


def _squared_error(output: Tensor, y: Tensor) -> Tensor:
    return (output[..., 0].double() - y).square()


def _absolute_error(output: Tensor, y: Tensor) -> Tensor:
    return (output[..., 0].double() - y).abs()


DEVICE_LOSSES: dict[str, RowLoss] = {
    "accuracy": _accuracy,
    "log_loss": _log_loss,
    "brier": _brier,
    "margin": _margin,
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
}
REGRESSION_LOSSES = ("squared_error", "absolute_error")


# The evaluation: all features, all lambdas, all repetitions


def network_losses(
    network: Network | Split,
    XX: NDArray | Tensor,
    XX_fake: NDArray | Tensor,
    y: NDArray | Tensor,
    lams: ArrayLike,
    losses: Sequence[str | RowLoss] = ("accuracy", "log_loss"),
    *,
    feature_of2: NDArray[np.intp] | None = None,
    sample_weight: NDArray | None = None,
    memory_bytes: int | None = None,
) -> dict[str, NDArray]:
    """Mean loss with each feature, and each knockoff, moved to each lam; one feature at a time.

    Parameters
    ----------
    network : Network or Split
        R networks.
    XX, XX_fake : array or tensor, shape (R, n, 2 n_columns)
        [X, X_tilde], and what its columns move to at lam = 1.
    y : array or tensor, shape (R, n)
        Class numbers, or values.
    lams : array, shape (L,)
    losses : sequence
        Names (`DEVICE_LOSSES`) or functions (outputs (..., n_outputs), y (...)) -> (...) of tensors, evaluated on
        the device in one pass.
    feature_of2 : array of int, shape (2 n_columns,), optional
        Which of the 2m features and knockoffs owns each column; one each if left out.
    sample_weight : array, shape (R, n), optional
    memory_bytes : int, optional
        Memory for the activations in flight: 4 MiB on a CPU (its cache) and 1 GiB on a GPU if left out.

    Returns
    -------
    dict
        Loss (its name) -> array of float64, shape (R, 2m, L).
    """
    split = split_network(network) if isinstance(network, Network) else network
    device, dtype = split.weight.device, split.weight.dtype
    functions = {name_of(loss): _row_loss(loss) for loss in losses}
    grid = np.asarray(lams, dtype=float)
    with torch.inference_mode():
        XX = as_tensor(XX, device, torch.float64)
        delta = (as_tensor(XX_fake, device, torch.float64) - XX).to(dtype)
        base = split.first(XX)
        y = as_tensor(y, device)
        y = y.double() if y.is_floating_point() or set(functions) & set(REGRESSION_LOSSES) else y.long()
        R, n, n_inputs = XX.shape
        weight = torch.full((R, n), 1 / n, dtype=torch.float64, device=device)
        if sample_weight is not None:
            weight = as_tensor(sample_weight, device, torch.float64)
            weight = weight / weight.sum(1, keepdim=True)

        owners = np.arange(n_inputs) if feature_of2 is None else np.asarray(feature_of2)
        at_zero = np.flatnonzero(grid == 0)
        moved = np.flatnonzero(grid != 0)
        total = torch.zeros(len(functions), R, int(owners.max()) + 1, len(grid), dtype=torch.float64, device=device)
        if at_zero.size:  # nothing has moved: one pass for all features
            for part in _blocks(n, max(1, _rows_in_flight(split, base, memory_bytes) // R)):
                output = split.rest(base[:, part].clone(), slice(None))
                for k, function in enumerate(functions.values()):
                    unmoved = _sum_rows(function(output, y[:, part]), weight[:, part])
                    total[k][:, :, at_zero] += unmoved[:, None, None]
        job = _Job(split, base, delta, y, weight, functions, total)
        blocks = list(_plan(job, owners, moved, grid, _rows_in_flight(split, base, memory_bytes)))
        for block in track(blocks, "lambda paths"):
            _add_block(job, block)
        result = total.cpu().numpy()
    return {name: result[k] for k, name in enumerate(functions)}


@dataclass(frozen=True)
class _Job:
    """What stays the same over the blocks: tensors on the device, and the sums (n_losses, R, 2m, L) that grow."""

    split: Split
    base: Tensor  # (R, n, width)
    delta: Tensor  # (R, n, n_inputs)
    y: Tensor  # (R, n)
    weight: Tensor  # (R, n)
    functions: dict[str, RowLoss]
    total: Tensor


@dataclass(frozen=True)
class _Block:
    """Features of the same number of columns, lambdas, rows and repetitions that are run together."""

    features: NDArray[np.intp]  # (F,)
    columns: NDArray[np.intp]  # (F, k)
    lams: Tensor  # (L,)
    at: Tensor  # (L,) where in the grid
    rows: slice
    repetitions: slice


def _add_block(job: _Job, block: _Block) -> None:
    """Run one block through the later layers and add its row losses."""
    reps, rows = block.repetitions, block.rows
    base = job.base[reps, rows]  # (r, B, h)
    n_features, k = block.columns.shape
    columns = torch.from_numpy(block.columns.reshape(-1)).to(base.device)
    move = job.delta[reps, rows].index_select(2, columns)  # (r, B, F * k)
    r, B = move.shape[:2]
    if job.split.weight.numel():
        W = job.split.weight[reps].index_select(1, columns).view(r, n_features, k, -1)
        move = move.view(r, B, n_features, k).permute(0, 2, 1, 3).contiguous()  # (r, F, B, k)
        step = move * W if k == 1 else move @ W  # (r, F, B, h): the rank-one terms, added over the feature's columns
    else:  # no first layer to share: the inputs themselves move
        step = base.new_zeros(r, n_features, B, base.shape[2])
        for f in range(n_features):
            step[:, f, :, columns[f * k : (f + 1) * k]] = move[:, :, f * k : (f + 1) * k]
    pre = base.new_empty(r, n_features, len(block.lams), B, base.shape[2])
    torch.addcmul(base[:, None, None], block.lams[:, None, None], step[:, :, None], out=pre)
    output = job.split.rest(pre.view(r, -1, base.shape[2]), reps)
    output = output.view(r, n_features, len(block.lams), B, -1)
    y = job.y[reps, None, None, rows].expand(output.shape[:-1])
    weight = job.weight[reps, rows]
    first, last = block.features[0], block.features[-1]
    consecutive = last - first + 1 == n_features
    features = slice(int(first), int(last) + 1) if consecutive else torch.from_numpy(block.features).to(base.device)
    for number, function in enumerate(job.functions.values()):
        sums = _sum_rows(function(output, y), weight)  # (r, F, L)
        if isinstance(features, slice):
            part = job.total[number, reps, features]
            part[:, :, block.at] += sums
        else:
            part = job.total[number, reps]
            part[:, features[:, None], block.at[None]] += sums


def _plan(
    job: _Job, owners: NDArray[np.intp], moved: NDArray[np.intp], grid: NDArray, in_flight: int
) -> Iterator[_Block]:
    """Blocks of at most in_flight rows: all lambdas, then as many rows, repetitions and features as fit."""
    R, n = job.y.shape
    device, dtype = job.base.device, job.base.dtype
    if not moved.size:
        return
    L = min(len(moved), in_flight)
    B = _even(n, in_flight // L)
    r = _even(R, in_flight // (L * B))
    F = max(1, in_flight // (L * B * r))
    lams = torch.from_numpy(grid).to(device, dtype)
    where = torch.from_numpy(moved).to(device)
    of_count = _by_column_count(owners)
    for columns, features in of_count:
        size = max(1, F // columns.shape[1]) if columns.shape[1] > 1 else F
        for reps, rows, chosen, part in product(
            _blocks(R, r), _blocks(n, B), _blocks(len(features), size), _blocks(len(moved), L)
        ):
            yield _Block(features[chosen], columns[chosen], lams[where[part]], where[part], rows, reps)


def _by_column_count(owners: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Columns (F, k) and numbers (F,) of the features, grouped by their number of columns k."""
    order = np.argsort(owners, kind="stable")
    counts = np.bincount(owners)
    starts = np.cumsum(counts) - counts
    groups = []
    for k in np.unique(counts[counts > 0]):
        features = np.flatnonzero(counts == k)
        groups.append((order[starts[features][:, None] + np.arange(k)], features))
    return groups


def _even(total: int, most: int) -> int:
    """Size of equal parts of total, each at most ``most``."""
    parts = -(-total // max(1, min(total, most)))
    return -(-total // parts)


def _blocks(total: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, total)) for start in range(0, total, max(1, size))]


def _rows_in_flight(split: Split, base: Tensor, memory_bytes: int | None) -> int:
    """Rows that fit: two layers and the rank-one terms live at once."""
    if memory_bytes is None:
        memory_bytes = CUDA_BYTES if base.is_cuda else CPU_BYTES
    return max(1, memory_bytes // (3 * max(split.width, base.shape[2]) * base.element_size()))


def _sum_rows(loss: Tensor, weight: Tensor) -> Tensor:
    """Weighted sum over the last axis in float64: loss (r, ..., B), weight (r, B) -> (r, ...)."""
    shape = loss.shape
    return torch.bmm(loss.reshape(shape[0], -1, shape[-1]).double(), weight[:, :, None]).view(shape[:-1])


def name_of(loss: object) -> str:
    """Name of a loss, however it was given."""
    return loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", str(loss)))


def _row_loss(loss: str | RowLoss) -> RowLoss:
    if not isinstance(loss, str):
        return loss
    if loss not in DEVICE_LOSSES:
        raise unknown_option("loss", loss, DEVICE_LOSSES)
    return DEVICE_LOSSES[loss]
