"""PyTorch's devices: which one to use, and arrays on it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, require, unknown_option

require("torch", "neural networks")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402


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
