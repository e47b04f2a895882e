"""Maximum entropy: D that makes (X, X_tilde) as random as its covariance allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.diagonal.blocks import Layout, LogDeterminant, block_start, minimise_blocks
from knockoffs.sampling.diagonal.newton import Derivatives, Factor, feature_sums, inner_start, minimise


class Entropy:
    """-log det A - sum_g |g| log s_g: up to constants, minus twice the entropy of (X, X_tilde)."""

    upper = np.inf

    def value(self, s: NDArray, sizes: NDArray, A: Factor) -> float:
        """Objective at s."""
        return -A.log_determinant - float(sizes @ np.log(s))

    def derivatives(self, s: NDArray, sizes: NDArray, A: Factor, feature_of: NDArray) -> Derivatives:
        """Gradient sum_{j in g} (A^-1)_jj - |g| / s_g; Hessian A^-1 o A^-1 summed over features, + diag(|g| / s^2)."""
        rise = np.bincount(feature_of, weights=np.diagonal(A.inverse))
        hessian = feature_sums(A.inverse * A.inverse, feature_of)
        np.einsum("gg->g", hessian)[:] += sizes / s**2
        return Derivatives(rise, sizes / s, hessian)


def maximum_entropy(R: NDArray, feature_of: NDArray) -> NDArray:
    """Maximiser s of log det(2R - D) + log det D, D = diag(s[feature_of]).

    At the solution trace(A^-1 D) = d, so A = 2R - D >= D / d: the margin needs no help.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance, the identity within each feature.
    feature_of : ndarray, shape (d,)

    Returns
    -------
    ndarray, shape (m,)

    >>> maximum_entropy(np.eye(3), np.arange(3))
    array([1., 1., 1.])
    """
    return minimise(Entropy(), R, feature_of, inner_start(R, feature_of))


class BlockEntropy(LogDeterminant):
    """-log det A - log det D, for blocks of any shape."""

    upper = np.inf

    def value(self, values: NDArray, A: Factor) -> float:
        """Objective at D with these eigenvalues."""
        return -A.log_determinant - float(np.log(values).sum())

    def slope(self, values: NDArray) -> NDArray:
        """Eigenvalues of -D^-1."""
        return -1 / values

    def pull(self, values: NDArray) -> NDArray:
        """Eigenvalues of D^-1."""
        return 1 / values

    def bend(self, a: NDArray, b: NDArray) -> NDArray:
        """Divided differences of -1 / s."""
        return 1 / (a * b)


def maximum_entropy_blocks(R: NDArray, shape: Layout) -> NDArray:
    """Maximiser D of log det(2R - D) + log det D over all block-diagonal D; at the solution (A^-1)_gg = S_g^-1.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : Layout

    Returns
    -------
    ndarray, shape (n_entries,)
    """
    return minimise_blocks(BlockEntropy(), R, shape, block_start(R, shape))
