"""The conjugate of a Gaussian node: X_tilde is affine in X, plus Gaussian noise; one knockoff or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import blas, cho_solve, cholesky, solve_triangular

from knockoffs.errors import InputError
from knockoffs.sampling.network import Blanket

if TYPE_CHECKING:
    from knockoffs.sampling.conjugates.low_rank import LowRankLaw

ROWS_AT_ONCE = 2048  # a block of rows and its noise stay in the cache between the two matrix products


@dataclass(frozen=True)
class GaussianLaw:
    """N(mean, covariance) together with the matrix D of its knockoffs.

    (X, X_tilde) has covariance [[S, S - D], [S - D, S]], so that given X the knockoff is Gaussian with mean
    X - (X - mean) S^-1 D and covariance 2D - D S^-1 D (section 3 of the paper).
    """

    mean: NDArray  # shape (d,)
    covariance: NDArray  # shape (d, d): S, positive definite
    D: NDArray  # shape (d, d): symmetric, block-diagonal over the features, with D and 2S - D positive definite

    @cached_property
    def factor(self) -> NDArray:
        """L, lower triangular, with L L^T = S."""
        return np.asfortranarray(cholesky(self.covariance, lower=True))

    @cached_property
    def slope(self) -> NDArray:
        """S^-1 D, so that E[X_tilde | X] = X - (X - mean) slope."""
        return np.asfortranarray(cho_solve((self.factor, True), self.D))

    @cached_property
    def precision(self) -> NDArray:
        """S^-1: column j, over its diagonal, is the regression of X_j on the others."""
        return cho_solve((self.factor, True), np.eye(len(self.mean)))

    @cached_property
    def noise_factor(self) -> NDArray:
        """C with C C^T = Cov(X_tilde | X) = 2D - D S^-1 D, lower triangular."""
        # With D = F F^T the covariance is F (2I - F^T S^-1 F) F^T; the eigenvalues of the middle lie in (0, 2)
        # whatever the units of X, so its Cholesky factor exists whenever D is strictly feasible.
        roots = np.sqrt(np.diagonal(self.D))
        diagonal = np.count_nonzero(self.D) == len(self.D)
        F = np.diag(roots) if diagonal else cholesky(self.D, lower=True)
        G = solve_triangular(self.factor, F, lower=True)
        middle = 2 * np.eye(len(F)) - G.T @ G
        C = cholesky(middle, lower=True)
        return np.asfortranarray(roots[:, None] * C if diagonal else F @ C)

    def log_density(self, X: NDArray) -> NDArray:
        """Log N(x; mean, S) for each row."""
        return _log_normal(X, self.mean, self.factor)

    def sample_rows(self, n: int, rng: Generator) -> NDArray:
        """Draw n rows of N(mean, S)."""
        X = rng.standard_normal((n, len(self.mean)))
        X = blas.dtrmm(1.0, self.factor, X.T, lower=True, overwrite_b=True).T
        X += self.mean
        return X

    def log_knockoff_density(self, X_tilde: NDArray, X: NDArray) -> NDArray:
        """Log density of X_tilde given X, for each row."""
        return _log_normal(X_tilde, X - (X - self.mean) @ self.slope, self.noise_factor)

    def sample(self, X: NDArray, rng: Generator) -> NDArray:
        """Draw X_tilde given X, one for each row."""
        X_tilde = np.empty(X.shape)
        for start in range(0, len(X), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            self._move(X[rows], X_tilde[rows], rng)
        return X_tilde

    def _move(self, X: NDArray, out: NDArray, rng: Generator) -> None:
        rng.standard_normal(out=out)
        centred = X - self.mean
        # rows are draws, so C multiplies from the right as z @ C.T; BLAS sees columns: (C z^T) - slope^T (X - mean)^T
        noise = blas.dtrmm(1.0, self.noise_factor, out.T, lower=True, overwrite_b=True)
        moved = blas.dgemm(-1.0, self.slope, centred.T, beta=1.0, c=noise, trans_a=True, overwrite_c=True)
        np.add(moved.T, X, out=out)


def _log_normal(X: NDArray, mean: NDArray, factor: NDArray) -> NDArray:
    """Log density of N(mean, L L^T) at each row; the mean may have a row for each row of X."""
    squares = np.empty(len(X))
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        centred = X[rows] - (mean if mean.ndim == 1 else mean[rows])
        z = blas.dtrsm(1.0, factor, centred.T, lower=True, overwrite_b=True)
        squares[rows] = np.einsum("ij,ij->j", z, z)
    return -0.5 * squares - np.log(np.diag(factor)).sum() - 0.5 * len(factor) * np.log(2 * np.pi)


@dataclass(frozen=True)
class SeveralGaussian:
    """N(mean, S) with the matrix D of m knockoffs, (m + 1) / m S - D positive definite.

    Any two of X, X_1, ..., X_m have covariance S - D. Given X, copy l is X - (X - mean) S^-1 D + e_l. The noises have
    covariance C + D each and C between two, with C = D - D S^-1 D, which need not be positive: e_l = e + u_l - mean(u),
    with u_l ~ N(0, D) and e ~ N(0, C + D / m).
    """

    mean: NDArray  # shape (d,)
    covariance: NDArray  # shape (d, d)
    D: NDArray  # shape (d, d): block-diagonal over the features
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

    def sample(self, X: NDArray, rng: Generator) -> NDArray:
        """Draw m knockoffs of every row, shape (m, n, d)."""
        centre = X - (X - self.mean) @ self.slope + rng.standard_normal(X.shape) @ self.shared_factor.T
        own = rng.standard_normal((self.m, *X.shape)) @ self.own_factor.T
        own -= own.mean(axis=0)
        own += centre
        return own


def several_of(law: GaussianLaw | LowRankLaw, m: int) -> SeveralGaussian:
    """Law of m knockoffs of a Gaussian whose D for one knockoff is known: (m + 1) / (2 m) of it.

    Feasible is D <= (m + 1) / m S, the condition for one knockoff with (m + 1) / (2 m) S in place of S; and every
    choice of D is in proportion to S.

    >>> law = GaussianLaw(np.zeros(2), np.eye(2), np.eye(2))
    >>> several_of(law, 5).D
    array([[0.6, 0. ],
           [0. , 0.6]])
    """
    return SeveralGaussian(law.mean, law.covariance, (m + 1) / (2 * m) * law.D, m)


@dataclass(frozen=True)
class Gaussian:
    """Gaussian knockoffs of a node, given the component that its parent names."""

    laws: Sequence[GaussianLaw | LowRankLaw]  # one for each value of the parent; exactly one without a parent
    component: str | None = None  # name of the parent whose integer value picks the law

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde from the Gaussian of each row's component."""
        _refuse_infinite(u)
        if self.component is None:
            return self.laws[0].sample(u, rng)
        u_tilde = np.empty(u.shape)
        for k, rows in self._rows(blanket, len(u)):
            for start in range(0, len(rows), ROWS_AT_ONCE):  # gathered and put back while in the cache
                some = rows[start : start + ROWS_AT_ONCE]
                u_tilde[some] = self.laws[k].sample(u[some], rng)
        return u_tilde

    def several(self, u: NDArray, blanket: Blanket, m: int, rng: Generator) -> NDArray:
        """Draw m knockoffs of each row by the Gaussian of its component, shape (m, n, d)."""
        _refuse_infinite(u)
        if self.component is None:
            return several_of(self.laws[0], m).sample(u, rng)
        copies = np.empty((m, *u.shape))
        for k, rows in self._rows(blanket, len(u)):
            copies[:, rows] = several_of(self.laws[k], m).sample(u[rows], rng)
        return copies

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log N(u; mean_k, S_k)."""
        value = np.empty(len(u))
        for k, rows in self._rows(blanket, len(u)):
            value[rows] = self.laws[k].log_density(u[rows])
        return value

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log density of u_tilde given u and the component."""
        value = np.empty(len(u))
        for k, rows in self._rows(blanket, len(u)):
            value[rows] = self.laws[k].log_knockoff_density(u_tilde[rows], u[rows])
        return value

    def _rows(self, blanket: Blanket, n: int) -> list[tuple[int, NDArray]]:
        if self.component is None:
            return [(0, np.arange(n))]
        K = blanket[self.component]
        return [(int(k), np.flatnonzero(K == k)) for k in np.unique(K)]


def _refuse_infinite(u: NDArray) -> None:
    if not np.isfinite(u.sum()) and not np.isfinite(u).all():  # a finite sum has finite terms
        row, column = np.argwhere(~np.isfinite(u))[0]
        raise InputError(
            f"row {row}, column {column} of a Gaussian node is {u[row, column]}: it has no knockoff. Fill or drop "
            "missing values first."
        )
