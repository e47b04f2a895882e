"""How much X_j, or one of its draws, has to do with the residuals of y: the most striking of many covariances.

The statistic sees a few functions of X_j (itself, its rank, its distance from the middle, an indicator for each
level) times the residuals and their products with other features. Every constant in it, medians, quantiles, means and
variances, comes from pilot draws of X_j given the others, never from X_j: observed and drawn values are treated
alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

N_QUANTILES = 65
MOST_LEVELS = 12  # a column of numbers with more distinct values among its draws gets no indicators


@dataclass(frozen=True)
class ColumnFunctions:
    """Functions of one column, with constants from pilot draws.

    Attributes
    ----------
    quantiles : array
        Of the pooled pilot draws, ascending and distinct.
    levels : array
        Values that get an indicator each; none for numbers.
    numeric : bool
        Whether size and order of the values mean something.
    """

    quantiles: NDArray
    levels: NDArray
    numeric: bool

    def __call__(self, x: NDArray) -> NDArray:
        """Return the functions of x, (m, n) to (n_functions, m, n)."""
        found = []
        if self.numeric:
            found.append(x - self.quantiles[len(self.quantiles) // 2])
            if len(self.quantiles) > 2:
                rank = np.interp(x, self.quantiles, np.linspace(-1, 1, len(self.quantiles)))
                found += [rank, np.abs(rank)]
        found += [(x == level).astype(float) for level in self.levels]
        return np.array(found)


def column_functions(pilot: NDArray, *, nominal: bool = False) -> ColumnFunctions:
    """Functions for a column, from pilot draws, shape (m, n).

    >>> column_functions(np.array([[0.0, 1.0], [1.0, 1.0]])).levels  # two values: one number says it all
    array([], dtype=float64)
    >>> column_functions(np.array([[0.0, 1.0], [2.0, 1.0]]), nominal=True).levels
    array([0., 1., 2.])
    """
    values, counts = np.unique(pilot, return_counts=True)
    few = 2 < len(values) <= MOST_LEVELS or nominal
    values = np.sort(values[np.argsort(-counts, kind="stable")[:MOST_LEVELS]])  # the most frequent levels
    quantiles = np.unique(np.quantile(pilot, np.linspace(0, 1, N_QUANTILES)))
    return ColumnFunctions(quantiles, values if few else values[:0], not nominal)


@dataclass(frozen=True)
class ResidualStatistic:
    """The smallest of many Bonferroni p-values, as -log p: max over f and w of -log P(|N(0, 1)| > z_fw) - penalty_fw.

    z_fw = |sum_i w_i (f(x_i) - m_i)| / sqrt(sum_i w_i^2 v_i). Only the order of its values counts: that z_fw is nearly
    normal makes covariances of different kinds comparable and has no part in the p-value of the test.

    Attributes
    ----------
    functions : ColumnFunctions
    weights : array, shape (n, m)
        Residuals of y and their products with other features.
    centre : array, shape (n_functions, m)
        sum_i w_i m_i, m_i the mean of f over the pilot draws of row i.
    scale : array, shape (n_functions, m)
    penalty : array, shape (n_functions, m)
        Log of how many covariances share a kind: X_j itself, other functions of it, products with other features.
        The few that see a plain effect are then not drowned by the many that see an interaction.
    """

    functions: ColumnFunctions
    weights: NDArray
    centre: NDArray
    scale: NDArray
    penalty: NDArray

    def __call__(self, x: NDArray) -> NDArray:
        """Return the statistic of each row of x, (m, n) to (m,)."""
        sums = self.functions(x) @ self.weights  # (n_functions, m, n_weights)
        z = np.abs(sums - self.centre[:, None]) / self.scale[:, None]
        return (-log_ndtr(-z) - self.penalty[:, None]).max(axis=(0, 2))


def residual_statistic(
    weights: NDArray, pilot: NDArray, *, n_residuals: int = 1, nominal: bool = False
) -> ResidualStatistic:
    """Build the statistic for one column.

    Parameters
    ----------
    weights : array, shape (n, m)
        Residuals of y, n_residuals columns of them, then their products with other features.
    pilot : array, shape (n_pilot, n)
        Draws of the column given the others.
    n_residuals : int
    nominal : bool
        Whether the values are labels without an order.
    """
    functions = column_functions(pilot, nominal=nominal)
    values = functions(pilot)
    mean, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
    spread = np.sqrt(variance @ weights**2)
    # a function that never varies has no say: 0 over infinity
    scale = np.where(spread > 1e-9 * np.sqrt((weights**2).sum(axis=0)), spread, np.inf)
    kind = np.zeros(scale.shape, dtype=np.intp)
    kind[int(functions.numeric) :] = 1
    kind[:, n_residuals:] = 2
    return ResidualStatistic(functions, weights, mean @ weights, scale, np.log(np.bincount(kind.ravel())[kind]))
