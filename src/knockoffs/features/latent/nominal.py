"""An unordered label column: boxes of one or a few latent coordinates, one box for each level.

Levels that are alike in the other columns lie side by side. A label then says nearly all there is to know about its
coordinates, whatever the number of levels. A coordinate for each level, of which the label shows only the largest,
would leave most of them unseen: to explain a fifth of a number, 20 labels would have to determine it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from knockoffs.errors import InputError
from knockoffs.features.latent.margins import LatentCells, free_cells, interval_cells
from knockoffs.features.latent.normals import interval_mean

Tree = int | tuple[int, "Tree", "Tree"]  # a level, or a coordinate with the levels on its lower and on its upper side
Cut = Callable[[NDArray, NDArray, int, float], float]  # box (low, high), coordinate, lower share of its mass -> where


@dataclass(frozen=True)
class Nominal:
    """X = codes[a] where low[a] < L <= high[a] in every coordinate.

    The coordinates are pooled independent standard normals; what is learned is their covariance with the other columns.
    """

    codes: NDArray  # shape (m,): codes of the levels seen, in rising order
    shares: NDArray  # shape (m,)
    tree: Tree  # how the boxes cut the space in two, again and again
    low: NDArray  # shape (m, n_coordinates): the boxes. By them the levels have their shares.
    high: NDArray  # shape (m, n_coordinates)

    @property
    def n_coordinates(self) -> int:
        """Dimension of the boxes."""
        return self.low.shape[1]

    @cached_property
    def scores(self) -> NDArray:
        """Mean of independent standard normals in each box, shape (m, n_coordinates)."""
        return interval_mean(self.low, self.high)

    def place(self, x: NDArray) -> NDArray[np.intp]:
        """Level of each code; a code that was never seen is refused, NaN is level 0."""
        m = np.searchsorted(self.codes, x).clip(max=len(self.codes) - 1)
        unknown = (self.codes[m] != x) & ~np.isnan(x)
        if unknown.any():
            raise InputError(f"code {x[unknown][0]:g} of a nominal column was not seen when it was fitted.")
        return np.where(np.isnan(x), 0, m)

    def read(self, x: NDArray) -> LatentCells:
        """Return the intervals of the box of each label."""
        m = self.place(x)
        cells = interval_cells(self.low[m], self.high[m], self.scores[m])
        missing = np.isnan(x)
        for part, value in zip(cells, free_cells(1, self.n_coordinates), strict=True):
            part[missing] = value
        return cells

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Code of the box that l lies in."""
        x = np.full(len(l), self.codes[0])
        for code, low, high in zip(self.codes, self.low, self.high, strict=True):
            x[((l > low) & (l <= high)).all(axis=1)] = code
        return x

    def log_slope(self, x: NDArray) -> NDArray:
        """Zero: a level has a probability, not a density."""
        return np.zeros(len(x))

    def under(self, weights: NDArray, means: NDArray, deviations: NDArray) -> Nominal:
        """Boxes by which a mixture, whose coordinates are independent in each class, has the shares."""

        def cut(low: NDArray, high: NDArray, i: int, share: float) -> float:
            inside = ndtr((high - means) / deviations) - ndtr((low - means) / deviations)
            first, last = (ndtr((end[i] - means[:, i]) / deviations[:, i]) for end in (low, high))
            inside[:, i] = 1.0
            held = weights * inside.prod(axis=1) / (weights @ inside.prod(axis=1))
            p = held @ (first + share * (last - first))
            at = mixture_quantiles(np.array([p]), held, means[:, i], deviations[:, i])[0]
            return float(np.clip(at, low[i], high[i]))

        return self._cut_by(cut)

    def _cut_by(self, cut: Cut) -> Nominal:
        low, high = boxes(self.tree, self.shares, self.n_coordinates, cut)
        return Nominal(self.codes, self.shares, self.tree, low, high)


def fit_nominal(x: NDArray, positions: NDArray | None = None) -> Nominal:
    """Boxes by which the levels of x have the shares seen.

    ``positions``, shape (m, r), says where each level lies, in the order of the codes. Without them the levels are
    steps of one coordinate, in the order of their codes.
    """
    codes, counts = np.unique(x, return_counts=True)
    shares = counts / len(x)
    where = np.zeros((len(codes), 1)) if positions is None else positions
    tree = plant(where, shares, np.arange(len(codes)))
    if len(used := cut_in(tree)) < where.shape[1]:  # a coordinate that no box cuts would be free to explain anything
        where = where[:, sorted(used)]
        tree = plant(where, shares, np.arange(len(codes)))
    empty = np.empty((0, where.shape[1]))
    return Nominal(codes, shares, tree, empty, empty)._cut_by(normal_cut)


def plant(positions: NDArray, shares: NDArray, levels: NDArray[np.intp]) -> Tree:
    """Cut levels in two halves of their mass, where they differ most, until each is alone.

    >>> plant(np.array([[0.0], [2.0], [1.0]]), np.array([0.4, 0.3, 0.3]), np.arange(3))
    (0, 0, (0, 2, 1))
    """
    if len(levels) == 1:
        return int(levels[0])
    mass = shares[levels] / shares[levels].sum()
    centred = positions[levels] - mass @ positions[levels]
    i = int(np.argmax(mass @ centred**2))
    order = np.argsort(positions[levels, i], kind="stable")
    below = np.cumsum(mass[order])[:-1]
    half = int(np.argmin(np.abs(below - 0.5))) + 1
    lower, upper = levels[order[:half]], levels[order[half:]]
    return i, plant(positions, shares, lower), plant(positions, shares, upper)


def boxes(tree: Tree, shares: NDArray, n_coordinates: int, cut: Cut) -> tuple[NDArray, NDArray]:
    """Lower and upper ends of the boxes of all levels, shape (m, n_coordinates)."""
    low, high = np.full((2, len(shares), n_coordinates), [[[-np.inf]], [[np.inf]]])

    def descend(node: Tree, box: tuple[NDArray, NDArray]) -> None:
        if isinstance(node, int):
            low[node], high[node] = box
            return
        i, lower, upper = node
        share = shares[leaves(lower)].sum() / shares[leaves(node)].sum()
        first, second = (box[0], box[1].copy()), (box[0].copy(), box[1])
        first[1][i] = second[0][i] = cut(*box, i, share)
        descend(lower, first)
        descend(upper, second)

    descend(tree, (np.full(n_coordinates, -np.inf), np.full(n_coordinates, np.inf)))
    return low, high


def leaves(tree: Tree) -> list[int]:
    """Levels of a tree."""
    return [tree] if isinstance(tree, int) else [*leaves(tree[1]), *leaves(tree[2])]


def cut_in(tree: Tree) -> set[int]:
    """Coordinates that a tree cuts."""
    return set() if isinstance(tree, int) else {tree[0]} | cut_in(tree[1]) | cut_in(tree[2])


def normal_cut(low: NDArray, high: NDArray, i: int, share: float) -> float:
    """Where the standard normal between low[i] and high[i] has the share given below it."""
    return float(ndtri((1 - share) * ndtr(low[i]) + share * ndtr(high[i])))


def mixture_quantiles(
    p: NDArray, weights: NDArray, means: NDArray, deviations: NDArray, *, n_halvings: int = 60
) -> NDArray:
    """Where a mixture of normals has the cumulated probabilities p, shape (m,), by halving.

    >>> mixture_quantiles(np.array([0.5]), np.array([0.5, 0.5]), np.array([-2.0, 2.0]), np.ones(2)).round(6) + 0.0
    array([0.])
    """
    # the quantile of the mixture lies between those of its parts
    each = means[:, None] + deviations[:, None] * ndtri(p)
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(n_halvings):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means[:, None]) / deviations[:, None]) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
