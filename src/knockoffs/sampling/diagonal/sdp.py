"""SDP: D as near to the identity as it can be, so that X_tilde_j is on average as far from X_j as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.newton import MARGIN, Derivatives, Factor, feature_sums, inner_start, minimise

GAP = 1e-6  # distance from the optimum, relative to the objective
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
