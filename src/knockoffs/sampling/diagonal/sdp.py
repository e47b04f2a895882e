"""SDP: D as near to the identity as it can be, so that X_tilde_j is on average as far from X_j as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.blocks import Layout, LogDeterminant, block_start, minimise_blocks
from knockoffs.sampling.diagonal.newton import MARGIN, Derivatives, Factor, feature_sums, inner_start, minimise

GAP = 1e-6  # distance from the optimum, relative to the objective
BLOCK_GAP = 1e-4  # the same for full blocks, whose Newton equations are harder the nearer the boundary is
SHRINK = 0.1  # of the barrier's weight; three or four Newton steps for each
CENTRED = 0.3  # first-order residual at which a point is near enough to the central path to go on


class Barrier:
    """-sum_g |g| s_g / weight - log det A - sum_g |g| (log s_g + log(1 - s_g))."""

    upper = 1.0

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def value(self, s: NDArray, sizes: NDArray, A: Factor) -> float:
        """Objective at s."""
        return -A.log_determinant - float(sizes @ (s / self.weight + np.log(s) + np.log1p(-s)))

    def derivatives(self, s: NDArray, sizes: NDArray, A: Factor, feature_of: NDArray) -> Derivatives:
        """Those of maximum entropy, plus the bound s < 1 and the linear term."""
        rise = np.bincount(feature_of, weights=np.diagonal(A.inverse)) + sizes / (1 - s)
        hessian = feature_sums(A.inverse * A.inverse, feature_of)
        np.einsum("gg->g", hessian)[:] += sizes * (s**-2 + (1 - s) ** -2)
        return Derivatives(rise, sizes * (1 / self.weight + 1 / s), hessian)


def sdp(R: NDArray, feature_of: NDArray) -> NDArray:
    """Maximiser s of sum_g |g| s_g with 0 <= s <= 1 and A = 2R - diag(s[feature_of]) >= 0, moved inside by MARGIN.

    The optimum itself makes A singular, so MARGIN of the inner start, which has D <= R, is mixed in: then
    A >= MARGIN R, at a cost of at most MARGIN of the objective.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance, the identity within each feature.
    feature_of : ndarray, shape (d,)

    Returns
    -------
    ndarray, shape (m,)

    >>> sdp(np.array([[1.0, 0.8], [0.8, 1.0]]), np.arange(2)).round(4)  # 2 (1 - 0.8)
    array([0.4, 0.4])
    """
    inner = 0.9 * inner_start(R, feature_of)  # strictly below 1, also for R = I
    return (1 - MARGIN) * follow_path(R, feature_of, inner) + MARGIN * inner


def follow_path(R: NDArray, feature_of: NDArray, s: NDArray) -> NDArray:
    """Feasible s within GAP of the optimum: the minimiser of ``Barrier(weight)`` is at most 3 d weight from it."""
    sizes, d = np.bincount(feature_of), len(R)
    weight = float(sizes @ s) / d
    while (goal := GAP * float(sizes @ s) / (3 * d)) < weight:
        s = minimise(Barrier(weight), R, feature_of, s, last=CENTRED)
        weight *= SHRINK
    return minimise(Barrier(goal), R, feature_of, s, last=CENTRED)


class BlockBarrier(LogDeterminant):
    """-trace(D) / weight - log det A - log det D - log det(I - D), for blocks of any shape."""

    upper = 1.0

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def value(self, values: NDArray, A: Factor) -> float:
        """Objective at D with these eigenvalues."""
        return -A.log_determinant - float((values / self.weight + np.log(values) + np.log1p(-values)).sum())

    def slope(self, values: NDArray) -> NDArray:
        """Return the derivative of the terms of D."""
        return 1 / (1 - values) - self.pull(values)

    def pull(self, values: NDArray) -> NDArray:
        """Return what draws D upwards: all but the bound."""
        return 1 / self.weight + 1 / values

    def bend(self, a: NDArray, b: NDArray) -> NDArray:
        """Divided differences of -1 / s + 1 / (1 - s)."""
        return 1 / (a * b) + 1 / ((1 - a) * (1 - b))


def sdp_blocks(R: NDArray, shape: Layout) -> NDArray:
    """Maximiser D of trace(D) with 0 <= D <= I and 2R - D >= 0 over all block-diagonal D, moved inside by MARGIN.

    R being whitened, the objective is sum_g trace(Sigma_gg^-1 S_g) and the bound S_g <= Sigma_gg. (Chu et al. sum the
    entries of |Sigma_gg - S_g| instead, which depends on the basis of the block.)

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : Layout

    Returns
    -------
    ndarray, shape (n_entries,)
    """
    inner = 0.9 * block_start(R, shape)  # strictly below I, also for R = I
    return (1 - MARGIN) * follow_block_path(R, shape, inner) + MARGIN * inner


def follow_block_path(R: NDArray, shape: Layout, D: NDArray) -> NDArray:
    """Feasible D within BLOCK_GAP of the optimum: the minimiser of the barrier is at most 3 d weight from it."""
    d = len(R)
    weight = 1.0  # the analytic centre, nearly: a start nearer to the optimum ends on the boundary and creeps along it
    while (goal := BLOCK_GAP * shape.trace(D) / (3 * d)) < weight:
        D = minimise_blocks(BlockBarrier(weight), R, shape, D, last=CENTRED)
        weight *= SHRINK
    return minimise_blocks(BlockBarrier(goal), R, shape, D, last=CENTRED)
