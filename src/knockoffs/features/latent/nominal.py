"""An unordered label column is the argmax of latent utilities: one feature with one coordinate fewer than levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from knockoffs.features.latent.cells import INTERVAL, LOSER, WINNER, Cells, free_cells, place_codes

N_NODES = 80  # of the Gauss-Hermite rule; the margin's probabilities are then right to 1e-8


@dataclass(frozen=True)
class Nominal:
    """X = codes[argmax(0, L_1 + offset_1, ..., L_m + offset_m)].

    The coordinates are differences of utilities to that of the most frequent level. Utilities are pooled independent
    with variance 1/2, so that L has variances 1 and covariances 1/2: the scale and the covariance within the column
    cannot be seen in the data, and are fixed so. What is learned is the covariance with the other columns.

    Parameters
    ----------
    codes : array, shape (m + 1,)
        Codes of the levels seen, the most frequent one first.
    offset : array, shape (m,)
        Means of the differences, by which the levels have their shares.
    """

    codes: NDArray
    offset: NDArray

    @property
    def n_coordinates(self) -> int:
        """One fewer than levels."""
        return len(self.offset)

    @property
    def block(self) -> NDArray:
        """Pooled covariance of the coordinates, fixed."""
        return 0.5 * (np.eye(len(self.offset)) + 1.0)

    @cached_property
    def level_means(self) -> NDArray:
        """Mean of L given each level, shape (m + 1, m)."""
        return level_means(self.offset)

    def place(self, x: NDArray) -> NDArray[np.intp]:
        """Level of each code; a code that was never seen is refused, NaN is level 0."""
        return place_codes(self.codes, x)

    def read(self, x: NDArray) -> Cells:
        """Mark the level seen as the one with the largest utility."""
        m, n, c = self.place(x), len(x), self.n_coordinates
        cells = free_cells(n, c)
        won = m[:, None] == np.arange(1, c + 1)
        cells.status[:] = np.where(won, WINNER, LOSER)
        first = m == 0
        cells.status[first] = INTERVAL
        cells.high[first] = -self.offset
        cells.start[:] = self.level_means[m]
        missing = np.isnan(x)
        for part, value in zip(cells, free_cells(1, c), strict=True):
            part[missing] = value
        return cells

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Code of the largest utility."""
        utility = np.column_stack([np.zeros(len(l)), l + self.offset])
        return self.codes[utility.argmax(axis=1)]

    def log_slope(self, x: NDArray) -> NDArray:
        """Zero: a level has a probability, not a density."""
        return np.zeros(len(x))


def fit_nominal(x: NDArray) -> Nominal:
    """Offsets by which the levels of x, shape (n,), have the shares seen."""
    codes, counts = np.unique(x, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shares = counts[order] / len(x)
    return Nominal(codes[order], solve_offsets(shares))


def solve_offsets(shares: NDArray) -> NDArray:
    """Means of the utilities beyond the first (whose mean is 0) for which argmax has the shares given.

    Fixed-point steps on the probit scale, each of which moves a level's own mean by the error of its quantile.
    """
    mean = ndtri(shares) - ndtri(shares[0])
    for _ in range(500):
        error = ndtri(shares) - ndtri(_shares(mean).clip(1e-300, 1 - 1e-16))
        step = error - error[0]
        mean = mean + 0.7 * step
        if np.abs(step).max() < 1e-9:
            break
    return mean[1:]


def level_means(offset: NDArray) -> NDArray:
    """Mean of L given each level, shape (m + 1, m), of independent utilities."""
    return _level_means(np.append(0.0, offset))


def shares_of(offset: NDArray) -> NDArray:
    """Shares of the levels by which offsets were solved, shape (m + 1,)."""
    return _shares(np.append(0.0, offset))


def _nodes() -> tuple[NDArray, NDArray]:
    """Nodes and weights of a standard normal expectation."""
    t, w = np.polynomial.hermite_e.hermegauss(N_NODES)
    return t, w / w.sum()


def _log_losing(mean: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Utilities u of each level on nodes, weights, and P(level a below u) for all pairs, shape (m, nodes, m)."""
    t, w = _nodes()
    u = mean[:, None] + np.sqrt(0.5) * t  # utilities have variance 1/2
    below = ndtr((u[:, :, None] - mean) / np.sqrt(0.5))
    below[np.arange(len(mean)), :, np.arange(len(mean))] = 1.0
    return u, w, below


def _shares(mean: NDArray) -> NDArray:
    """P(argmax = a) of independent N(mean_a, 1/2)."""
    _, w, below = _log_losing(mean)
    return below.prod(axis=2) @ w


def _level_means(mean: NDArray) -> NDArray:
    """E[U_b - U_0 - (mean_b - mean_0) | argmax = a], shape (m + 1, m), by one-dimensional integrals."""
    u, w, below = _log_losing(mean)
    wins = below.prod(axis=2)
    share = wins @ w
    m = len(mean)
    expected = np.empty((m, m))  # E[U_b | a wins]
    for a in range(m):
        z = (u[a][:, None] - mean) / np.sqrt(0.5)
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        cdf = np.maximum(ndtr(z), 1e-300)
        lost = mean - np.sqrt(0.5) * density / cdf  # E[U_b | U_b < u]
        lost[:, a] = u[a]
        expected[a] = (wins[a] * w) @ lost / share[a]
    return (expected[:, 1:] - expected[:, :1]) - (mean[1:] - mean[0])
