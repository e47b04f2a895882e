"""Which features a picture shows and where their names stand: arithmetic that every kind of picture shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def largest(W: NDArray, most: int) -> NDArray[np.intp]:
    """Features of the largest |W|, at most so many, from the largest W down; W = 0 is never shown.

    >>> largest(np.array([1.0, -3.0, 0.0, 2.0]), 2)
    array([3, 1])
    """
    size = np.abs(np.nan_to_num(W))
    order = np.argsort(-size, kind="stable")[:most]
    order = order[size[order] > 0]
    return order[np.argsort(-W[order], kind="stable")]


TOWERS = 20  # times the middle one


def linear_width(ends: NDArray) -> float | None:
    """Where one line towers over the others, what is drawn in proportion; beyond it the axis is logarithmic.

    >>> linear_width(np.array([100.0, 2.0, 1.0])), linear_width(np.array([3.0, 2.0, 1.0]))
    (2.0, None)
    """
    size = np.abs(ends[ends != 0])
    if not len(size) or size.max() <= TOWERS * np.median(size):
        return None
    return float(np.median(size))


def apart(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """Places moved as little as is simple, so that any two are ``least`` apart and none is above ``high``.

    >>> apart([1.0, 1.1, 5.0], 1.0, 0.0, 5.0)
    [1.0, 2.0, 5.0]
    """
    order = np.argsort(places, kind="stable")
    placed = np.clip(np.array(places, dtype=float)[order], low, high)
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + least)
    if len(placed) and placed[-1] > high:
        placed[-1] = high
        for i in range(len(placed) - 2, -1, -1):
            placed[i] = min(placed[i], placed[i + 1] - least)
    moved = np.empty(len(placed))
    moved[order] = placed
    return moved.tolist()
