"""How much the columns of a group, or draws of them, have to do with the residuals of y.

The statistic looks at a few functions of each column times the residuals and their products with other columns, and at
the plain functions of all columns together, as an F-test does. Every constant in it, medians, quantiles, means and
variances, comes from pilot draws of the columns given the others, never from the columns: observed and drawn values are
treated alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from knockoffs.conditional_tests.column_functions import ColumnFunctions, column_functions, function_values


@dataclass(frozen=True)
class ResidualStatistic:
    """The most striking of several tests, as -log p: the larger, the more striking.

    z = |sum_i w_i e_i| / sqrt(s sum_i w_i^2 v_i) for a function f of one column and a weight w. Here e_i = f(x_i) - m_i
    m_i and v_i are the mean and variance of f(x_i) given the other columns; s = sum_i e_i^2 / sum_i v_i. The factor s
    is near 1 where P^X is right. Where it takes a column for more or less variable given the others than it is, s makes
    up for that. The covariances are of three kinds: plain ones (a column itself or an indicator of a label, times a
    residual), other functions times a residual, and products with other columns. Each kind is one test, by its largest
    z with Bonferroni's correction. All plain covariances together are a fourth test, as chi-squared. Each test has a
    share of the level: most of it goes to what a linear model would see. Where few rows carry the weights and e is far
    from normal, as where two classes are nearly separated, z has heavier tails than a normal variable: z is that of a
    normal variable as improbable as a Student t with the kurtosis of z, else the test with the heaviest tails would
    decide the largest. Only the order of the values counts. That they are nearly normal has no part in the p-value of
    the test.

    Attributes
    ----------
    functions : ColumnFunctions
        Of the columns of the group.
    weights : array, shape (n, m)
        Residuals of y and their products with other columns.
    mean : array, shape (n_functions, n)
        m_i.
    scale : array, shape (n_functions, m)
        Root of sum_i w_i^2 v_i.
    total : array, shape (n_functions,)
        Sum_i v_i.
    nu : array, shape (n_functions, m)
        Degrees of freedom of the Student t with the kurtosis of sum_i w_i e_i.
    kinds : list of arrays of int
        Places of the covariances of each kind, in the flattened array.
    penalties : array, shape (4,)
        Logarithm of how many covariances share a kind, over its share of the level; last for all plain ones together.
    root : array, shape (n_plain, n_plain)
        |root z|^2 = z^T R^-1 z, R the correlation matrix of the plain covariances, slightly enlarged on its diagonal.
    freedom : float
        Degrees of freedom of that.
    """

    functions: ColumnFunctions
    weights: NDArray
    mean: NDArray
    scale: NDArray
    total: NDArray
    nu: NDArray
    kinds: list[NDArray[np.intp]]
    penalties: NDArray
    root: NDArray
    freedom: float

    @cached_property
    def shrink(self) -> NDArray:
        """Factor of Wallace's (1959) normal approximation to Student's t."""
        return (8 * self.nu + 1) / (8 * self.nu + 3) * np.sqrt(self.nu)

    def __call__(self, x: NDArray, *, least: float = 0.1) -> NDArray:
        """Return the statistic of each draw of the columns, (m, n, c) to (m,); s is at least ``least``."""
        e = function_values(self.functions, x, self.mean)
        s = np.einsum("fmn,fmn->fm", e, e) / self.total[:, None]
        z = (e @ self.weights) / (self.scale[:, None] * np.sqrt(np.maximum(s, least))[..., None])
        z = np.sign(z) * self.shrink[:, None] * np.sqrt(np.log1p(z**2 / (self.nu - 2)[:, None]))
        z = np.moveaxis(z, 1, 0).reshape(len(x), -1)  # (m, n_functions * n_weights)
        tests = [
            -log_ndtr(-np.abs(z[:, places]).max(axis=1)) - penalty
            for places, penalty in zip(self.kinds, self.penalties, strict=False)
            if places.size
        ]
        if len(self.kinds[0]) > 1:
            square = ((z[:, self.kinds[0]] @ self.root.T) ** 2).sum(axis=1)
            # Wilson and Hilferty: the cube root of chi-squared over its degrees of freedom is nearly normal
            part = 2 / (9 * self.freedom)
            joint = (np.cbrt(square / self.freedom) - 1 + part) / np.sqrt(part)
            tests.append(-log_ndtr(-joint) - self.penalties[3])
        return np.max(tests, axis=0)


def residual_statistic(
    weights: NDArray,
    pilot: NDArray,
    *,
    n_residuals: int = 1,
    nominal: Sequence[bool] = (),
    alone: tuple[float, float, float] = (0.85, 0.1, 0.05),
    joint: tuple[float, float, float, float] = (0.1, 0.05, 0.05, 0.8),
    ridge: float = 1e-3,
) -> ResidualStatistic:
    """Build the statistic of a group of columns.

    Parameters
    ----------
    weights : array, shape (n, m)
        Residuals of y, n_residuals columns of them, then their products with other columns.
    pilot : array, shape (n_pilot, n, c)
        Draws of the columns given the others.
    nominal : sequence of bool
        Whether the values of each column are labels without an order; none are by default.
    alone : tuple of float
        Shares of the level of the tests, where there is one plain covariance: plain, other functions, products.
    joint : tuple of float
        The same where there are several, and the share of all plain ones together.
    ridge : float
        By which share the diagonal of R is enlarged: columns of the group may be near copies.
    """
    functions = column_functions(pilot, nominal)
    values = function_values(functions, pilot, np.zeros((functions.first[-1], pilot.shape[1])))
    mean, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
    spread, total = np.sqrt(variance @ weights**2), variance.sum(axis=1)
    # a function that never varies has no say: 0 over infinity
    scale = np.where(spread > 1e-9 * np.sqrt((weights**2).sum(axis=0)), spread, np.inf)
    squares = np.square(values - mean[:, None])
    excess = np.einsum("fmn,fmn->fn", squares, squares) / len(pilot) - 3 * variance**2
    nu = 4 + 6 / np.clip(excess @ weights**4 / scale**4, 1e-6, None)  # t has the excess kurtosis 6 / (nu - 4)
    kind = np.full(spread.shape, 1)
    kind[functions.plain] = 0
    kind[:, n_residuals:] = 2
    kinds = [np.flatnonzero(kind == k) for k in range(3)]
    sizes = np.array([2 * max(len(places), 1) for places in kinds] + [1])  # two-sided tests, and one by chi-squared
    V = _covariance(values[functions.plain] - mean[functions.plain, None], weights[:, :n_residuals])
    root, freedom = _inverse_root(V, ridge)
    penalties = np.log(sizes / np.array(joint if len(kinds[0]) > 1 else (*alone, 1.0)))
    total = np.where(total > 0, total, np.inf)
    return ResidualStatistic(functions, weights, mean, scale, total, nu, kinds, penalties, root, freedom)


def _covariance(deviations: NDArray, r: NDArray) -> NDArray:
    """Covariance of the sums of r times the functions, (F, n_pilot, n) and (n, m), to (F m, F m)."""
    V = np.zeros((len(deviations) * r.shape[1],) * 2)
    for draw in range(deviations.shape[1]):
        terms = (deviations[:, draw, None] * r.T).reshape(len(V), -1)
        V += terms @ terms.T
    return V / (deviations.shape[1] - 1)


def _inverse_root(V: NDArray, ridge: float, *, none: float = 1e-9) -> tuple[NDArray, float]:
    """Root of the inverse of the correlation matrix R of V, its diagonal enlarged, and the trace of R times that.

    A direction with an eigenvalue below ``none`` has no say. Indicators of all labels add up to one, so their sums have
    such a direction; their z, each with its own s and tails, leave it a little, and its inverse would be all there is.
    """
    scale = np.sqrt(np.diagonal(V))
    scale = np.where(scale > 0, scale, np.inf)  # a function that never varies has no say
    values, vectors = np.linalg.eigh(V / np.outer(scale, scale))
    values = values.clip(0)
    root = np.where(values > none, vectors / np.sqrt(values + ridge), 0.0).T
    return root, max(float((values / (values + ridge)).sum()), 1e-9)
