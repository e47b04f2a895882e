"""SDP: D as near to the identity as it can be, so that X_tilde_j is on average as far from X_j as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.newton import MARGIN, Objective, inner_start, minimise
from knockoffs.sampling.diagonal.shape import BlockShape

GAP = 1e-6  # distance from the optimum, relative to the objective
BLOCK_GAP = 1e-4  # the same for full blocks, whose Newton equations are harder the nearer the boundary is
SHRINK = 0.1  # of the barrier's weight; three or four Newton steps for each
CENTRED = 0.3  # first-order residual at which a point is near enough to the central path to go on


def barrier(weight: float) -> Objective:
    """-trace(D) / weight - log det A - log det D - log det(I - D)."""
    return Objective(
        value=lambda s, A: -A.log_determinant - float((s / weight + np.log(s) + np.log1p(-s)).sum()),
        pull=lambda s: 1 / weight + 1 / s,
        bend=lambda a, b: 1 / (a * b) + 1 / ((1 - a) * (1 - b)),
        push=lambda s: 1 / (1 - s),
        upper=1.0,
    )


def sdp(R: NDArray, shape: BlockShape) -> NDArray:
    """Maximiser D of trace(D) with 0 <= D <= I and A = 2R - D >= 0, moved inside by MARGIN.

    The optimum itself makes A singular, so MARGIN of the inner start, which has D <= R, is mixed in: then
    A >= MARGIN R, at a cost of at most MARGIN of the objective. R being whitened, the objective is
    sum_g trace(Sigma_gg^-1 S_g) and the bound S_g <= Sigma_gg. (Chu et al. sum the entries of |Sigma_gg - S_g| instead,
    which depends on the basis of the block.)

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : BlockShape

    Returns
    -------
    ndarray, shape (n_entries,)

    >>> from knockoffs.sampling.diagonal.shape import shape_of
    >>> sdp(np.array([[1.0, 0.8], [0.8, 1.0]]), shape_of(np.arange(2))).round(4)  # 2 (1 - 0.8)
    array([0.4, 0.4])
    """
    inner = 0.9 * inner_start(R, shape)  # strictly below I, also for R = I
    return (1 - MARGIN) * follow_path(R, shape, inner) + MARGIN * inner


def follow_path(R: NDArray, shape: BlockShape, D: NDArray) -> NDArray:
    """Feasible D within GAP (BLOCK_GAP) of the optimum: the minimiser of the barrier is at most 3 d weight from it."""
    d = len(R)
    # of blocks a start nearer to the optimum than the analytic centre ends on the boundary and creeps along it
    gap, weight = (GAP, shape.trace(D) / d) if shape.is_diagonal else (BLOCK_GAP, 1.0)
    while (goal := gap * shape.trace(D) / (3 * d)) < weight:
        D = minimise(barrier(weight), R, shape, D, last=CENTRED)
        weight *= SHRINK
    return minimise(barrier(goal), R, shape, D, last=CENTRED)
