"""Offsets of nominal columns, where the classes together have the shares of the column's levels.

As `cuts` does for columns of steps: with one class the offsets give the levels their shares, and the means and
covariances of several classes, which are fitted and then shrunk, would give them others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from knockoffs.features.latent.cells import FREE, INTERVAL, WINNER, Cells
from knockoffs.features.latent.chain import Layout
from knockoffs.features.latent.margins import Margin
from knockoffs.features.latent.nominal import Nominal, level_means, shares_of

N_POINTS = 2**12  # of the integral over the other coordinates, for all classes together; its error is below 1e-3
N_STEPS = 200
CLOSE = 1e-6  # step of an offset that is small enough


class Offsets(NamedTuple):
    """Offsets of the nominal columns, and the shares of their levels.

    Parameters
    ----------
    blocks : sequence of slice
        Coordinates of each column.
    shares : sequence of array, shape (m + 1,)
    at : sequence of array, shape (m,)
    """

    blocks: Sequence[slice]
    shares: Sequence[NDArray]
    at: Sequence[NDArray]

    def under(self, weights: NDArray, means: NDArray, covariances: NDArray) -> Offsets:
        """Offsets by which a mixture has the shares: weights, means, covariances of shape (l,), (l, D), (l, D, D)."""
        at = [
            mixture_offsets(share, start, weights, means[:, b], covariances[:, b, b])
            for b, share, start in zip(self.blocks, self.shares, self.at, strict=True)
        ]
        return self._replace(at=at)

    def move(self, cells: Cells) -> Cells:
        """Cells with these offsets: bounds of a column's first level, and a start inside the constraints of each."""
        high, start = cells.high.copy(), cells.start.copy()
        for b, offset in zip(self.blocks, self.at, strict=True):
            status = cells.status[:, b]
            won = status == WINNER
            level = np.where(won.any(axis=1), won.argmax(axis=1) + 1, 0)
            high[:, b] = np.where(status == INTERVAL, -offset, high[:, b])
            start[:, b] = np.where(status == FREE, start[:, b], level_means(offset)[level])
        return cells._replace(high=high, start=start)

    def in_layout(self, layout: Layout) -> Layout:
        """Layout with these offsets."""
        offset = layout.offset.copy()
        for b, mine in zip(self.blocks, self.at, strict=True):
            offset[b] = mine
        return layout._replace(offset=offset)

    def in_margins(self, margins: Sequence[Margin], column_of: NDArray[np.intp]) -> tuple[Margin, ...]:
        """Margins with these offsets."""
        moved = list(margins)
        for b, offset in zip(self.blocks, self.at, strict=True):
            moved[column_of[b.start]] = replace(margins[column_of[b.start]], offset=offset)  # type: ignore[type-var]
        return tuple(moved)


def offsets_of(margins: Sequence[Margin], layout: Layout) -> Offsets:
    """Offsets that the margins have, of the columns that have them."""
    found = [(j, m) for j, m in enumerate(margins) if isinstance(m, Nominal)]
    firsts = [int(np.argmax(layout.column_of == j)) for j, _ in found]
    return Offsets(
        [slice(first, first + m.n_coordinates) for first, (_, m) in zip(firsts, found, strict=True)],
        [shares_of(m.offset) for _, m in found],
        [m.offset for _, m in found],
    )


def mixture_offsets(
    shares: NDArray, offset: NDArray, weights: NDArray, means: NDArray, covariances: NDArray
) -> NDArray:
    """Offsets, shape (m,), by which argmax(0, L + offset) has the shares given, shape (m + 1,), L a mixture.

    Steps on the probit scale, as those of ``solve_offsets``, from an offset to start with.
    """
    points = _Points.of(weights, means, covariances)
    wanted = ndtri(shares)
    for _ in range(N_STEPS):
        error = wanted - ndtri(points.shares(offset).clip(1e-12, 1 - 1e-12))
        step = error[1:] - error[0]
        offset = offset + 0.7 * step
        if np.abs(step).max() < CLOSE:
            break
    return offset


class _Points(NamedTuple):
    """Points of L under each class, the conditional means of every coordinate at them, and its deviations."""

    weights: NDArray  # (l,)
    L: NDArray  # (l, n, m)
    mean: NDArray  # (l, n, m)
    deviation: NDArray  # (l, m)

    @staticmethod
    def of(weights: NDArray, means: NDArray, covariances: NDArray) -> _Points:
        l, m = means.shape  # noqa: E741
        n = max(2**8, N_POINTS // 2 ** int(np.ceil(np.log2(l))))
        z = ndtri(qmc.Sobol(m, scramble=False).random(n) + 0.5 / n)
        L = means[:, None] + z @ np.linalg.cholesky(covariances).swapaxes(1, 2)
        precision = np.linalg.inv(covariances)
        own = np.einsum("kii->ki", precision)
        # given the others, coordinate a has mean l_a - (P (l - mu))_a / P_aa and variance 1 / P_aa
        return _Points(weights, L, L - (L - means[:, None]) @ precision / own[:, None], 1 / np.sqrt(own))

    def shares(self, offset: NDArray) -> NDArray:
        """P(argmax(0, L + offset) = a) for every level: of one coordinate exact, over the others a mean of points."""
        utility = self.L + offset
        top = utility.argmax(axis=2)
        best = np.maximum(np.take_along_axis(utility, top[..., None], 2), 0.0)
        second = utility.copy()
        np.put_along_axis(second, top[..., None], -np.inf, 2)
        others = np.where(
            np.arange(len(offset)) == top[..., None], np.maximum(second.max(axis=2), 0.0)[..., None], best
        )
        wins = ndtr((self.mean + offset - others) / self.deviation[:, None]).mean(axis=1)
        rest = self.weights @ wins
        return np.concatenate([[max(1 - rest.sum(), 0.0)], rest])
