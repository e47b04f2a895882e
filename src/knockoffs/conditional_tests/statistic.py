"""How much the columns of a group, or draws of them, have to do with the residuals of y.

The statistic looks at a few functions of each column (itself, its rank, its distance from the middle, an indicator for each
level) times the residuals and their products with other columns, and at the plain functions of all columns together, as
an F-test does. Every constant in it, medians, quantiles, means and variances, comes from pilot draws of the columns given
the others, never from the columns: observed and drawn values are treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr


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

    @property
    def n_plain(self) -> int:
        """How many of the functions, the first ones, a linear model would use."""
        return 1 if self.numeric else len(self.levels)

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


def column_functions(
    pilot: NDArray, *, nominal: bool = False, n_quantiles: int = 65, most_levels: int = 12
) -> ColumnFunctions:
    """Functions for a column, from pilot draws, shape (m, n).

    Numbers with more than ``most_levels`` distinct values among the draws get no indicators; of more labels the most
    frequent ones get one. Ranks are read off ``n_quantiles`` quantiles.

    >>> column_functions(np.array([[0.0, 1.0], [1.0, 1.0]])).levels  # two values: one number says it all
    array([], dtype=float64)
    >>> column_functions(np.array([[0.0, 1.0], [2.0, 1.0]]), nominal=True).levels
    array([0., 1., 2.])
    """
    values, counts = np.unique(pilot, return_counts=True)
    few = 2 < len(values) <= most_levels or nominal
    values = np.sort(values[np.argsort(-counts, kind="stable")[:most_levels]])  # the most frequent levels
    quantiles = np.unique(np.quantile(pilot, np.linspace(0, 1, n_quantiles)))
    return ColumnFunctions(quantiles, values if few else values[:0], not nominal)


@dataclass(frozen=True)
class ResidualStatistic:
    """The most striking of many covariances, and of all plain ones together, as -log p: the larger, the more striking.

    z_fw = |sum_i w_i (f(x_i) - m_i)| / sqrt(sum_i w_i^2 v_i) for a function f of one column and a weight w; it counts as
    -log P(|N(0, 1)| > z_fw) less the log of how many covariances share its kind (a column itself, other functions of it,
    products with other columns), so that the few that see a plain effect are not drowned by the many that see an
    interaction. The plain covariances U together count by U^T V^-1 U, V their covariance, as chi-squared. Only the
    order of the values counts: that they are nearly normal has no part in the p-value of the test.

    Attributes
    ----------
    functions : tuple of ColumnFunctions
        One for each column of the group.
    weights : array, shape (n, m)
        Residuals of y and their products with other columns.
    centre, scale, penalty : array, shape (n_functions, m)
        sum_i w_i m_i with m_i the mean of f over the pilot draws of row i; the deviation; the log of the kind's size.
    plain : array of int
        Which of the flattened covariances are plain.
    root : array, shape (n_plain, n_plain)
        |root U|^2 = U^T V^-1 U, V slightly enlarged on its diagonal.
    freedom : float
        Degrees of freedom of that.
    """

    functions: tuple[ColumnFunctions, ...]
    weights: NDArray
    centre: NDArray
    scale: NDArray
    penalty: NDArray
    plain: NDArray[np.intp]
    root: NDArray
    freedom: float

    def __call__(self, x: NDArray) -> NDArray:
        """Return the statistic of each draw of the columns, (m, n, c) to (m,)."""
        U = np.concatenate([f(x[..., i]) @ self.weights for i, f in enumerate(self.functions)])
        U = np.moveaxis(U - self.centre[:, None], 1, 0)  # (m, n_functions, n_weights)
        found = (-log_ndtr(-np.abs(U) / self.scale) - self.penalty).max(axis=(1, 2))
        if len(self.plain) == 1:
            return found
        square = ((U.reshape(len(U), -1)[:, self.plain] @ self.root.T) ** 2).sum(axis=1)
        # Wilson and Hilferty: the cube root of chi-squared over its degrees of freedom is nearly normal
        part = 2 / (9 * self.freedom)
        return np.maximum(found, -log_ndtr(-(np.cbrt(square / self.freedom) - 1 + part) / np.sqrt(part)))


def residual_statistic(
    weights: NDArray, pilot: NDArray, *, n_residuals: int = 1, nominal: Sequence[bool] = (), ridge: float = 1e-3
) -> ResidualStatistic:
    """Build the statistic of a group of columns.

    Parameters
    ----------
    weights : array, shape (n, m)
        Residuals of y, n_residuals columns of them, then their products with other columns.
    pilot : array, shape (n_pilot, n, c)
        Draws of the columns given the others.
    n_residuals : int
    nominal : sequence of bool
        Whether the values of each column are labels without an order; none are by default.
    ridge : float
        By which share the diagonal of V is enlarged: columns of the group may be near copies.
    """
    labels = nominal or [False] * pilot.shape[2]
    functions = tuple(column_functions(pilot[..., i], nominal=bool(one)) for i, one in enumerate(labels))
    centre, scale, kind, plain, deviations = [], [], [], [], []
    place = 0
    for i, f in enumerate(functions):
        values = f(pilot[..., i])  # (n_functions, n_pilot, n)
        mean, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
        spread = np.sqrt(variance @ weights**2)
        # a function that never varies has no say: 0 over infinity
        scale.append(np.where(spread > 1e-9 * np.sqrt((weights**2).sum(axis=0)), spread, np.inf))
        centre.append(mean @ weights)
        own = np.full(spread.shape, 1)
        own[: f.n_plain] = 0
        own[:, n_residuals:] = 2
        kind.append(own)
        deviations.append((values - mean[:, None])[: f.n_plain])
        plain += [place + a * weights.shape[1] + b for a in range(f.n_plain) for b in range(n_residuals)]
        place += own.size
    kinds = np.concatenate(kind)
    V = _covariance(np.concatenate(deviations), weights[:, :n_residuals])
    root, freedom = _inverse_root(V, ridge)
    return ResidualStatistic(
        functions,
        weights,
        np.concatenate(centre),
        np.concatenate(scale),
        np.log(np.bincount(kinds.ravel(), minlength=3)[kinds]),
        np.array(plain, dtype=np.intp),
        root,
        freedom,
    )


def _covariance(deviations: NDArray, r: NDArray) -> NDArray:
    """Covariance of the sums of r times the functions, (F, n_pilot, n) and (n, m), to (F m, F m)."""
    V = np.zeros((len(deviations) * r.shape[1],) * 2)
    for draw in range(deviations.shape[1]):
        terms = (deviations[:, draw, None] * r.T).reshape(len(V), -1)
        V += terms @ terms.T
    return V / (deviations.shape[1] - 1)


def _inverse_root(V: NDArray, ridge: float) -> tuple[NDArray, float]:
    """Root of the inverse of V, its diagonal enlarged, and the trace of V times that inverse: degrees of freedom."""
    scale = np.sqrt(np.diagonal(V))
    scale = np.where(scale > 0, scale, np.inf)  # a function that never varies has no say
    values, vectors = np.linalg.eigh(V / np.outer(scale, scale))
    values = values.clip(0)
    root = (vectors / np.sqrt(values + ridge)).T / scale
    return root, max(float((values / (values + ridge)).sum()), 1e-9)
