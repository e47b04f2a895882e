"""Several knockoffs of a Gaussian row at once: any two of X, X_1, ..., X_m have covariance S - D."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky

from knockoffs.errors import InputError
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_diagonal


@dataclass(frozen=True)
class SeveralGaussian:
    """N(mean, S) with the matrix D of m knockoffs, (m + 1) / m S - D positive definite.

    Given X, copy l is X - (X - mean) S^-1 D + e_l. The noises have covariance C + D each and C between two, with
    C = D - D S^-1 D, which need not be positive: e_l = e + u_l - mean(u), with u_l ~ N(0, D) and e ~ N(0, C + D / m).

    Parameters
    ----------
    mean : array, shape (d,)
    covariance : array, shape (d, d)
    D : array, shape (d, d)
        Block-diagonal over the features.
    m : int
    """

    mean: NDArray
    covariance: NDArray
    D: NDArray
    m: int

    @cached_property
    def slope(self) -> NDArray:
        """S^-1 D."""
        return np.linalg.solve(self.covariance, self.D)

    @cached_property
    def shared_factor(self) -> NDArray:
        """F with F F^T = C + D / m = F_D ((1 + 1 / m) I - F_D^T S^-1 F_D) F_D^T."""
        G = np.linalg.solve(cholesky(self.covariance, lower=True), self.own_factor)
        return self.own_factor @ cholesky((1 + 1 / self.m) * np.eye(len(G)) - G.T @ G, lower=True)

    @cached_property
    def own_factor(self) -> NDArray:
        """F with F F^T = D."""
        return cholesky(self.D, lower=True)

    def sample(self, X: NDArray, rng: Generator) -> list[NDArray]:
        """Draw m knockoffs of every row, m arrays of shape (n, d)."""
        centre = X - (X - self.mean) @ self.slope + rng.standard_normal(X.shape) @ self.shared_factor.T
        own = rng.standard_normal((self.m, *X.shape)) @ self.own_factor.T
        return list(centre + own - own.mean(axis=0))


def several_gaussian(
    mean: ArrayLike,
    covariance: ArrayLike,
    m: int,
    *,
    feature_of: ArrayLike | None = None,
    diagonal: str = DEFAULT_DIAGONAL,
) -> SeveralGaussian:
    """Law of m knockoffs of N(mean, S), with D as ``solve_diagonal`` finds it for (m + 1) / (2 m) S in place of S.

    Parameters
    ----------
    mean, covariance : array-like, shape (d,) and (d, d)
    m : int
        Knockoffs of every feature; the more, the nearer they are to it.
    feature_of : array-like of int, shape (d,), optional
        Groups of columns.
    diagonal : str
        Which matrix D.
    """
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise InputError(f"m={m!r}: expected a whole number of knockoffs, at least 1.")
    S = np.asarray(covariance, dtype=float)
    owners = None if feature_of is None else np.asarray(feature_of)
    D = solve_diagonal((m + 1) / (2 * m) * S, diagonal, owners)
    return SeveralGaussian(np.asarray(mean, dtype=float), S, D, int(m))
