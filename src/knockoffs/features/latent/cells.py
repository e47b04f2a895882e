"""What the cells of a table say about the latent coordinates: a point, an interval, nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError

POINT, FREE, INTERVAL = 0, 1, 2


class Cells(NamedTuple):
    """Constraints on the latent coordinates, one row for each row of X; each array has shape (n, n_coordinates).

    Parameters
    ----------
    status : array of int8
        POINT: L is known. FREE: the cell is missing. INTERVAL: low < L <= high.
    low, high : array
        Bounds where the status is INTERVAL, infinite elsewhere.
    start : array
        The point, or the mean of the coordinate given its own cell alone: a value inside the constraints.
    """

    status: NDArray[np.int8]
    low: NDArray
    high: NDArray
    start: NDArray

    def rows(self, which: NDArray | slice) -> Cells:
        """Take some of the rows."""
        return Cells(*(part[which] for part in self))

    @property
    def all_points(self) -> bool:
        """Whether L is known in every cell."""
        return not self.status.any()


def point_cells(start: NDArray) -> Cells:
    """Cells of known coordinates, shape (n, c)."""
    bound = np.full(start.shape, np.inf)
    return Cells(np.zeros(start.shape, np.int8), -bound, bound, start)


def free_cells(n: int, c: int) -> Cells:
    """Cells of which nothing is known."""
    bound = np.full((n, c), np.inf)
    return Cells(np.full((n, c), FREE, np.int8), -bound, bound, np.zeros((n, c)))


def interval_cells(low: NDArray, high: NDArray, start: NDArray) -> Cells:
    """Cells known up to an interval, shape (n, c)."""
    return Cells(np.full(start.shape, INTERVAL, np.int8), low, high, start)


def place_codes(codes: NDArray, x: NDArray) -> NDArray[np.intp]:
    """Place of each label of x among codes, in any order; one that is not among them is refused, NaN is at place 0.

    >>> place_codes(np.array([2.0, 0.0, 1.0]), np.array([0.0, 2.0, np.nan]))[:2]
    array([1, 0])
    """
    order = np.argsort(codes)
    m = order[np.searchsorted(codes[order], x).clip(max=len(order) - 1)]
    unknown = (codes[m] != x) & ~np.isnan(x)
    if unknown.any():
        raise InputError(f"code {x[unknown][0]:g} of a nominal column was not seen when it was fitted.")
    return m
