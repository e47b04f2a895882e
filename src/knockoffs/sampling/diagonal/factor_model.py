"""D of a factor model, Sigma = diag(noise) + U U^T: maximum entropy by Woodbury's identity, never a (d, d) matrix.

With a = 2 noise - s, A = 2 Sigma - D = diag(a) + 2 U U^T, and A^-1 = diag(1/a) - B C^-1 B^T with B = U / a and
C = I / 2 + U^T diag(1/a) U, shape (k, k). A few a_j may be negative while A is positive definite: it is so if and only
if C has as many negative eigenvalues as a has negative entries (the inertia of Schur complements).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.sampling.diagonal.blocks import FORCING, conjugate_gradients
from knockoffs.sampling.diagonal.newton import LAST, MARGIN, MAX_STEPS, NEAR, ROOM, ROUNDING, SUFFICIENT

TINY = 1e-9  # an a_j nearer to 0 than this, relative to its column's variance, is too near to divide by


@dataclass(frozen=True)
class FactorPoint:
    """A = diag(a) + 2 U U^T at one s: what the Newton step needs of its inverse."""

    s: NDArray
    a: NDArray
    U: NDArray
    C: NDArray
    log_determinant: float

    @property
    def objective(self) -> float:
        """-log det A - log det D."""
        return -self.log_determinant - float(np.log(self.s).sum())

    @cached_property
    def B(self) -> NDArray:
        """U / a, shape (d, k)."""
        return self.U / self.a[:, None]

    @cached_property
    def K(self) -> NDArray:
        """C^-1, shape (k, k)."""
        return np.linalg.inv(self.C)

    @cached_property
    def diagonal(self) -> NDArray:
        """Diagonal of A^-1."""
        return 1 / self.a - np.einsum("jk,jk->j", self.B @ self.K, self.B)

    def squares(self, v: NDArray) -> NDArray:
        """(A^-1 o A^-1) v, at the cost of d k^2."""
        low = 1 / self.a - self.diagonal  # diagonal of B K B^T
        middle = self.K @ (self.B.T @ (v[:, None] * self.B)) @ self.K
        return (1 / self.a - 2 * low) / self.a * v + np.einsum("jk,jk->j", self.B @ middle, self.B)

    def hessian(self, v: NDArray) -> NDArray:
        """Hessian of the objective times v."""
        return v / self.s**2 + self.squares(v)


def factor_point(noise: NDArray, U: NDArray, s: NDArray) -> FactorPoint | None:
    """Return A at s, or None where it is not positive definite (or where that cannot be told)."""
    a = 2 * noise - s
    if s.min() <= 0 or np.abs(a).min() <= TINY:
        return None
    C = np.eye(U.shape[1]) / 2 + U.T @ (U / a[:, None])
    C = (C + C.T) / 2
    values = np.linalg.eigvalsh(C)
    if (values < 0).sum() != (a < 0).sum() or np.abs(values).min() == 0:
        return None
    # det A = det(diag(a)) det(2 C), the signs cancelling
    return FactorPoint(s, a, U, C, float(np.log(np.abs(a)).sum() + np.log(2 * np.abs(values)).sum()))


def solve_diagonal_factor(noise: ArrayLike, loadings: ArrayLike) -> NDArray[np.float64]:
    """Diagonal of D by maximum entropy for Sigma = diag(noise) + U U^T: maximises log det(2 Sigma - D) + log det D.

    Costs d k^2 operations a product and memory for a few (d, k) arrays; the same answer as ``solve_diagonal`` of the
    full matrix, but for a column where 2 noise - s happens to be 0, which is met to six digits.

    Parameters
    ----------
    noise : array-like, shape (d,)
        Positive.
    loadings : array-like, shape (d, k)
        U.

    Returns
    -------
    ndarray, shape (d,)
        Strictly feasible: D > 0 and 2 Sigma - D >= MARGIN Sigma.

    >>> solve_diagonal_factor([1.0, 1.0], [[0.0], [0.5]]).round(6)  # independent columns: D = Sigma
    array([1.  , 1.25])
    """
    psi, U = np.asarray(noise, dtype=float), np.asarray(loadings, dtype=float)
    if psi.ndim != 1 or U.ndim != 2 or len(U) != len(psi):
        raise InputError(f"noise has shape {psi.shape} and loadings {U.shape}: expected (d,) and (d, k).")
    if not (np.isfinite(psi).all() and np.isfinite(U).all() and (psi > 0).all()):
        raise InputError("noise and loadings must be finite, and noise positive.")
    variance = psi + (U**2).sum(axis=1)
    psi, U = psi / variance, U / np.sqrt(variance)[:, None]
    s = _minimise(psi, U)
    # as in solve_diagonal: half of the margin is left to rounding
    inside = 1 - MARGIN / 4
    if factor_point(inside * psi, np.sqrt(inside) * U, s) is None:
        raise InputError("no D can be found safely inside: the factor model is too near to singular. Raise its noise.")
    return s * variance


def _minimise(psi: NDArray, U: NDArray) -> NDArray:
    """Newton's method as in ``blocks.minimise_blocks``, with numbers for blocks; starts at D = diag(noise) <= Sigma."""
    point = factor_point(psi, U, psi)
    if point is None:
        raise InputError("the factor model is not positive definite in floating point. Raise its noise.")
    for _ in range(MAX_STEPS):
        gradient = point.diagonal - 1 / point.s
        residual = float(np.sqrt(np.mean((gradient * point.s) ** 2)))
        preconditioner = point.s**-2 + point.diagonal**2
        step = conjugate_gradients(point.hessian, -gradient, preconditioner, min(FORCING, residual))
        slope = float(gradient @ step)
        if slope >= 0:
            break  # rounding has eaten the gradient
        found = _line_search(psi, U, point, step, slope)
        if found is None:
            break
        point, t = found
        if residual < LAST or (t < 1 and residual < NEAR):
            break
    else:
        warnings.warn(
            f"the search for D stopped after {MAX_STEPS} Newton steps: D is valid, but may not be the best.",
            KnockoffWarning,
            stacklevel=3,
        )
    return point.s


def _line_search(
    psi: NDArray, U: NDArray, point: FactorPoint, step: NDArray, slope: float
) -> tuple[FactorPoint, float] | None:
    """First of t = 1, 0.7, 0.49, ... where s + t step is feasible and the objective falls as the slope promises."""
    with np.errstate(divide="ignore"):
        t = min(1.0, 0.9 * float(np.where(step < 0, point.s / -step, np.inf).min()))
    shortest = min(1e-3, 0.1 / (1 + np.sqrt(-slope)))
    reach = 0.8 / np.sqrt(-slope)
    while t > shortest:
        moved = factor_point(psi, U, point.s + t * step)
        if moved is not None and (ROOM * t <= reach or factor_point(psi, U, point.s + ROOM * t * step) is not None):
            if moved.objective <= point.objective + SUFFICIENT * t * slope + ROUNDING * abs(point.objective):
                return moved, t
        t *= 0.7
    return None
