"""Cuts of the columns of steps, where the classes together have the cumulated shares of the column's values.

With one class they are quantiles of the standard normal. A mixture of several has other quantiles, and with the cuts
left where they were, knockoffs would not have the distribution of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from knockoffs.features.latent.cells import INTERVAL, Cells
from knockoffs.features.latent.margins import Margin, Steps

N_HALVINGS = 60


class Cuts(NamedTuple):
    """Cuts of some coordinates, each with the cumulated shares at them.

    Parameters
    ----------
    coordinates : array of int, shape (c,)
    shares : sequence of array, shape (m - 1,)
        Share of the values below each inner cut.
    at : sequence of array, shape (m + 1,)
        The cuts, from -inf to inf.
    """

    coordinates: NDArray[np.intp]
    shares: Sequence[NDArray]
    at: Sequence[NDArray]

    def under(self, weights: NDArray, means: NDArray, covariances: NDArray) -> Cuts:
        """Cuts at the quantiles of a mixture, its weights, means and covariances of shape (l,), (l, D), (l, D, D)."""
        deviations = np.sqrt(np.einsum("kii->ki", covariances))
        at = [
            np.concatenate([[-np.inf], mixture_quantiles(p, weights, means[:, j], deviations[:, j]), [np.inf]])
            for j, p in zip(self.coordinates.tolist(), self.shares, strict=True)
        ]
        return self._replace(at=at)

    def move(self, cells: Cells, new: Cuts) -> Cells:
        """Cells whose intervals end at the new cuts in place of these."""
        low, high, start = cells.low.copy(), cells.high.copy(), cells.start.copy()
        for j, old, moved in zip(self.coordinates.tolist(), self.at, new.at, strict=True):
            seen = cells.status[:, j] == INTERVAL
            place = np.searchsorted(old, cells.low[seen, j])
            low[seen, j], high[seen, j] = moved[place], moved[place + 1]
            start[seen, j] = np.clip(start[seen, j], low[seen, j], high[seen, j])
        return Cells(cells.status, low, high, start)

    def in_margins(self, margins: Sequence[Margin], column_of: NDArray[np.intp]) -> tuple[Margin, ...]:
        """Margins with these cuts."""
        moved = list(margins)
        for j, at in zip(self.coordinates.tolist(), self.at, strict=True):
            moved[column_of[j]] = replace(margins[column_of[j]], cuts=at)  # type: ignore[type-var]
        return tuple(moved)


def cuts_of(margins: Sequence[Margin], column_of: NDArray[np.intp]) -> Cuts:
    """Cuts at quantiles of the standard normal, of the columns that have them."""
    steps = [(j, m) for j, m in ((j, margins[column]) for j, column in enumerate(column_of)) if isinstance(m, Steps)]
    return Cuts(
        np.array([j for j, _ in steps], dtype=np.intp),
        [ndtr(margin.cuts[1:-1]) for _, margin in steps],
        [margin.cuts for _, margin in steps],
    )


def mixture_quantiles(p: NDArray, weights: NDArray, means: NDArray, deviations: NDArray) -> NDArray:
    """Where a mixture of normals has the cumulated probabilities p, shape (m,), by halving.

    >>> mixture_quantiles(np.array([0.5]), np.array([0.5, 0.5]), np.array([-2.0, 2.0]), np.ones(2)).round(6) + 0.0
    array([0.])
    """
    each = means[:, None] + deviations[:, None] * ndtri(
        p
    )  # the quantile of the mixture lies between those of its parts
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means[:, None]) / deviations[:, None]) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
