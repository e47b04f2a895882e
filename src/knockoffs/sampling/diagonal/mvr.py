"""MVR, minimum variance-based reconstructability: D that makes each X_j hard to rebuild from the other columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from knockoffs.sampling.diagonal.blocks import Layout, TraceOfInverse, block_start, minimise_blocks
from knockoffs.sampling.diagonal.newton import Derivatives, Factor, feature_sums, inner_start, minimise, symmetric


class Reconstructability:
    """trace(A^-1) + sum_g |g| / s_g: half the trace of the inverse of the covariance of (X, X_tilde)."""

    upper = np.inf

    def value(self, s: NDArray, sizes: NDArray, A: Factor) -> float:
        """Objective at s."""
        return float(np.vdot(A.inverse_L, A.inverse_L)) + float((sizes / s).sum())

    def derivatives(self, s: NDArray, sizes: NDArray, A: Factor, feature_of: NDArray) -> Derivatives:
        """Gradient sum_{j in g} (A^-2)_jj - |g| / s_g^2; Hessian 2 A^-2 o A^-1 summed, + diag(2 |g| / s^3)."""
        inverse = A.inverse
        squared = dsyrk(1.0, symmetric(inverse), lower=1)
        rise = np.bincount(feature_of, weights=np.diagonal(squared))
        hessian = feature_sums(2.0 * squared * inverse, feature_of)
        np.einsum("gg->g", hessian)[:] += 2.0 * sizes / s**3
        return Derivatives(rise, sizes / s**2, hessian)


def mvr(R: NDArray, feature_of: NDArray) -> NDArray:
    """Minimiser s of trace((2R - D)^-1) + trace(D^-1), D = diag(s[feature_of]).

    At the solution trace(D A^-2 D) = d, so A = 2R - D >= D / sqrt(d): the margin needs no help.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance, the identity within each feature.
    feature_of : ndarray, shape (d,)

    Returns
    -------
    ndarray, shape (m,)

    >>> mvr(np.eye(3), np.arange(3))
    array([1., 1., 1.])
    """
    return minimise(Reconstructability(), R, feature_of, inner_start(R, feature_of))


class BlockReconstructability(TraceOfInverse):
    """trace(A^-1) + trace(D^-1), for blocks of any shape."""

    upper = np.inf

    def value(self, values: NDArray, A: Factor) -> float:
        """Objective at D with these eigenvalues."""
        return float(np.vdot(A.inverse_L, A.inverse_L)) + float((1 / values).sum())

    def slope(self, values: NDArray) -> NDArray:
        """Eigenvalues of -D^-2."""
        return -(values**-2)

    def pull(self, values: NDArray) -> NDArray:
        """Eigenvalues of D^-2."""
        return values**-2

    def bend(self, a: NDArray, b: NDArray) -> NDArray:
        """Divided differences of -1 / s^2."""
        return (a + b) / (a * b) ** 2


def mvr_blocks(R: NDArray, shape: Layout) -> NDArray:
    """Minimiser D of trace((2R - D)^-1) + trace(D^-1) over all block-diagonal D; at it (A^-2)_gg = S_g^-2.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : Layout

    Returns
    -------
    ndarray, shape (n_entries,)
    """
    return minimise_blocks(BlockReconstructability(), R, shape, block_start(R, shape))
