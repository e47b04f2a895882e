"""MVR, minimum variance-based reconstructability: D that makes each X_j hard to rebuild from the other columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.newton import Objective, inner_start, minimise
from knockoffs.sampling.diagonal.shape import BlockShape

# trace(A^-1) + trace(D^-1): half the trace of the inverse of the covariance of (X, X_tilde)
RECONSTRUCTABILITY = Objective(
    value=lambda s, A: float(np.vdot(A.inverse_L, A.inverse_L)) + float((1 / s).sum()),
    pull=lambda s: 1 / s**2,
    bend=lambda a, b: (a + b) / (a * b) ** 2,  # of -1 / s^2
    power=2,
)


def mvr(R: NDArray, shape: BlockShape) -> NDArray:
    """Minimiser D of trace((2R - D)^-1) + trace(D^-1).

    At the solution trace(D A^-2 D) = d, so A = 2R - D >= D / sqrt(d): the margin needs no help.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : BlockShape

    Returns
    -------
    ndarray, shape (n_entries,)

    >>> from knockoffs.sampling.diagonal.shape import shape_of
    >>> mvr(np.eye(3), shape_of(np.arange(3)))
    array([1., 1., 1.])
    """
    return minimise(RECONSTRUCTABILITY, R, shape, inner_start(R, shape))
