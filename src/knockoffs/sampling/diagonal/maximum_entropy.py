"""Maximum entropy: D that makes (X, X_tilde) as random as its covariance allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.newton import Objective, inner_start, minimise
from knockoffs.sampling.diagonal.shape import BlockShape

# -log det A - log det D: up to constants, minus twice the entropy of (X, X_tilde)
ENTROPY = Objective(
    value=lambda s, A: -A.log_determinant - float(np.log(s).sum()),
    pull=lambda s: 1 / s,
    bend=lambda a, b: 1 / (a * b),  # of -1 / s
)


def maximum_entropy(R: NDArray, shape: BlockShape) -> NDArray:
    """Maximiser D of log det(2R - D) + log det D.

    At the solution trace(A^-1 D) = d, so A = 2R - D >= D / d: the margin needs no help.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : BlockShape

    Returns
    -------
    ndarray, shape (n_entries,)

    >>> from knockoffs.sampling.diagonal.shape import shape_of
    >>> maximum_entropy(np.eye(3), shape_of(np.arange(3)))
    array([1., 1., 1.])
    """
    return minimise(ENTROPY, R, shape, inner_start(R, shape))
