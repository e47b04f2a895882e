"""A Gaussian of many columns that few rows tell of: its correlations are a I + U^T U, and nothing is of shape (d, d).

Correlations of r rows, shrunk towards none, have this form. All that knockoffs need of them costs d r^2 then, where a
covariance would cost d^3. The draws are those of ``GaussianLaw``, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import blas, cholesky, solve_triangular

from knockoffs.sampling.conjugates.gaussian import ROWS_AT_ONCE, GaussianLaw

COLUMNS_AT_ONCE = 256  # of a Cholesky factor


@dataclass(frozen=True)
class LowRankLaw:
    """N(mean, S) with S_ij = scale_i (a I + U^T U)_ij scale_j, and D_jj = s_j scale_j^2, of maximum entropy."""

    mean: NDArray  # shape (d,)
    scale: NDArray  # shape (d,)
    a: float  # above zero
    U: NDArray  # shape (r, d)
    s: NDArray  # shape (d,)

    @cached_property
    def dense(self) -> GaussianLaw:
        """The same law with its matrices, for what is not done without them."""
        R = self.a * np.eye(len(self.s)) + self.U.T @ self.U
        return GaussianLaw(self.mean, R * np.outer(self.scale, self.scale), np.diag(self.s * self.scale**2))

    @property
    def covariance(self) -> NDArray:
        """S, shape (d, d)."""
        return self.dense.covariance

    @property
    def D(self) -> NDArray:
        """D, shape (d, d)."""
        return self.dense.D

    @property
    def factor(self) -> NDArray:
        """L, lower triangular, with L L^T = S."""
        return self.dense.factor

    @property
    def precision(self) -> NDArray:
        """S^-1."""
        return self.dense.precision

    @cached_property
    def inner(self) -> NDArray:
        """Lower triangular Cholesky factor of a I + U U^T, shape (r, r)."""
        return cholesky(self.a * np.eye(len(self.U)) + self.U @ self.U.T, lower=True)

    @cached_property
    def B(self) -> NDArray:
        """(a I + U^T U)^-1 = (I - B^T B) / a, shape (r, d)."""
        return solve_triangular(self.inner, self.U, lower=True)

    @cached_property
    def noise_factor(self) -> LowRankFactor:
        """Of 2 D - D S^-1 D, in units of ``scale``."""
        return LowRankFactor(self.s * (2 - self.s / self.a), self.B * (self.s / np.sqrt(self.a)))

    def log_density(self, X: NDArray) -> NDArray:
        """Log N(x; mean, S) for each row."""
        r, d = self.U.shape
        z = (X - self.mean) / self.scale
        squares = (np.einsum("ij,ij->i", z, z) - ((z @ self.B.T) ** 2).sum(axis=1)) / self.a
        log_det = (d - r) * np.log(self.a) / 2 + np.log(np.diagonal(self.inner)).sum() + np.log(self.scale).sum()
        return -0.5 * squares - log_det - 0.5 * d * np.log(2 * np.pi)

    def sample_rows(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of N(mean, S)."""
        z = rng.standard_normal((n, len(self.mean)))
        return self.mean + self.scale * LowRankFactor(np.full(len(self.s), self.a), self.U).times(z)

    def log_knockoff_density(self, X_tilde: NDArray, X: NDArray) -> NDArray:
        """Log density of X_tilde given X, for each row."""
        return self.dense.log_knockoff_density(X_tilde, X)

    def sample(self, X: NDArray, rng: Generator) -> NDArray:
        """Draw X_tilde given X, one for each row."""
        X_tilde = np.empty(X.shape)
        for start in range(0, len(X), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            moved = self.noise_factor.times(rng.standard_normal(X[rows].shape))
            z = (X[rows] - self.mean) / self.scale
            moved -= (z - (z @ self.B.T) @ self.B) * (self.s / self.a)
            X_tilde[rows] = X[rows] + self.scale * moved
        return X_tilde


@dataclass(frozen=True)
class LowRankFactor:
    """Cholesky factor of the positive definite matrix diag(own) + W^T W, by blocks of columns."""

    own: NDArray  # shape (d,): entries may be negative
    W: NDArray  # shape (r, d)

    @cached_property
    def blocks(self) -> list[tuple[NDArray, NDArray]]:
        """Of each block its own factor, shape (b, b), and P, shape (r, b): W^T P of what comes later is below it."""
        left, found = np.eye(len(self.W)), []
        for columns in self._columns():
            W = self.W[:, columns]
            half = left @ W
            own = cholesky(np.diag(self.own[columns]) + W.T @ half, lower=True)
            P = solve_triangular(own, half.T, lower=True).T
            left -= P @ P.T
            found.append((own, P))
        return found

    def times(self, z: NDArray) -> NDArray:
        """Rows of z, shape (n, d), each multiplied by the factor."""
        out, below = np.empty_like(z), np.zeros((len(z), len(self.W)))
        for columns, (own, P) in zip(self._columns(), self.blocks, strict=True):
            out[:, columns] = z[:, columns] @ own.T + below @ self.W[:, columns]
            below += z[:, columns] @ P.T
        return out

    def _columns(self) -> Iterator[slice]:
        return (slice(j, j + COLUMNS_AT_ONCE) for j in range(0, len(self.own), COLUMNS_AT_ONCE))


def low_rank_entropy(a: float, U: NDArray, *, tolerance: float = 1e-10, most_sweeps: int = 100) -> NDArray:
    """Maximiser s of log det(2 a I + 2 U^T U - diag(s)) + log det diag(s), shape (d,).

    One entry at a time, which can only gain. With t_j what the other entries leave of 2 u_j^T u_j, the diagonal entry
    of A^-1 is 1 / (2 a - s_j + t_j), and the best s_j its inverse: a + t_j / 2. It ends with a sweep that changes no
    entry by more than ``tolerance``.

    >>> low_rank_entropy(0.5, np.array([[0.5**0.5, 0.0], [0.0, 0.5**0.5]]))
    array([1., 1.])
    """
    s = np.full(U.shape[1], a)
    columns = np.ascontiguousarray(U.T)
    if not U.any():
        return s
    for _ in range(most_sweeps):
        before, own = s.copy(), 2 * a - s
        own[own == 0] = np.finfo(float).eps * a
        Q = np.asfortranarray(np.linalg.inv(np.eye(len(U)) / 2 + (U / own) @ U.T))
        for j, u in enumerate(columns):
            w = blas.dsymv(1.0, Q, u, lower=1)
            k, e = float(u @ w), float(own[j])
            s[j] = a + 0.5 * k * e / (e - k)
            new = 2 * a - s[j]  # Q of the new entry, by Sherman and Morrison
            Q = blas.dsyr(-(e - new) / (new * (e - k) + e * k), w, lower=1, a=Q, overwrite_a=1)
        if np.abs(s / before - 1).max() < tolerance:
            break
    return s
