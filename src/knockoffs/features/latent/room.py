"""D of coordinates that are seen through cells: a label shows only a part of the coordinate that stands for it.

D by maximum entropy keeps L and L_tilde apart, and takes it that both are seen. Of a 0/1 column only the sign is. What
nobody sees need not be kept apart, and a number beside such a column can have more room than its coordinate would
leave it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.sampling.conjugates.gaussian import GaussianLaw


def unseen(start: NDArray, unit: NDArray[np.bool_]) -> NDArray:
    """Variance of the noise through which each coordinate is seen, shape (D,): zero where it is a point.

    A score that holds a share v of a coordinate's variance tells as much of it as the coordinate plus noise of variance
    (1 - v) / v.

    Parameters
    ----------
    start : array, shape (n, D)
        Scores of the cells.
    unit : array of bool, shape (D,)
        Coordinates known by intervals, whose variance is 1.
    """
    v = np.where(unit, start.var(axis=0).clip(1e-2, 1.0), 1.0)
    return (1 - v) / v


def with_room(
    law: GaussianLaw, noise: NDArray, feature_of: NDArray[np.intp], *, barrier: float = 0.05, n_steps: int = 50
) -> GaussianLaw:
    """Law with the D of maximum entropy of (L + noise, L_tilde + noise), each feature's block of D times a number.

    With S + N the covariance of what is seen, the entropy is log det(2S + N - D) + log det(D + N), up to a constant.
    It is maximised by Newton's method, with a small weight on log det(2S - D) + log det(D), which hold D feasible.

    Parameters
    ----------
    law : GaussianLaw
        With a D to start from.
    noise : array, shape (D,)
        Variances N.
    feature_of : array of int, shape (D,)
    barrier : float
        The small weight: 1 is the entropy of L and L_tilde themselves.
    n_steps : int
        Most steps; ten are usual.
    """
    if not noise.any():
        return law
    F = np.linalg.cholesky(law.D)
    inverse = np.linalg.inv(F)
    S, N = (inverse @ A @ inverse.T for A in (law.covariance, np.diag(noise)))
    s = np.ones(feature_of.max() + 1)
    value = _entropy(s, S, N, feature_of, barrier)
    for _ in range(n_steps):
        gradient, hessian = _slopes(s, S, N, feature_of, barrier)
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        length = 1.0
        while (found := _entropy(s + length * step, S, N, feature_of, barrier)) < value + 0.1 * length * decrement:
            length /= 2
            if length < 1e-8:
                break
        else:
            s, value = s + length * step, found
            if decrement > 1e-8:
                continue
        break
    return GaussianLaw(law.mean, law.covariance, F * s[feature_of] @ F.T)


def _parts(
    s: NDArray, S: NDArray, N: NDArray, feature_of: NDArray[np.intp], barrier: float
) -> list[tuple[float, float, NDArray]]:
    """Weight, sign of D, and matrix of each log determinant."""
    D = np.diag(s[feature_of])
    return [(1 - barrier, -1, 2 * S + N - D), (1 - barrier, 1, D + N), (barrier, -1, 2 * S - D), (barrier, 1, D)]


def _entropy(s: NDArray, S: NDArray, N: NDArray, feature_of: NDArray[np.intp], barrier: float) -> float:
    total = 0.0
    for weight, _, A in _parts(s, S, N, feature_of, barrier):
        factor, failed = dpotrf(A, lower=1)
        if failed:
            return -np.inf
        total += 2 * weight * float(np.log(np.diagonal(factor)).sum())
    return total


def _slopes(
    s: NDArray, S: NDArray, N: NDArray, feature_of: NDArray[np.intp], barrier: float
) -> tuple[NDArray, NDArray]:
    """Gradient, and minus the matrix of second derivatives, in the numbers of the features."""
    own = (feature_of[:, None] == np.arange(len(s))).astype(float)
    gradient, hessian = np.zeros(len(s)), np.zeros((len(s), len(s)))
    for weight, sign, A in _parts(s, S, N, feature_of, barrier):
        P = np.linalg.inv(A)
        gradient += weight * sign * np.diagonal(P) @ own
        hessian += weight * own.T @ (P * P) @ own
    return gradient, hessian
