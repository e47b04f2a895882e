"""Newton's method in s, one number for each feature, while A = 2R - diag(s[feature_of]) stays positive definite.

The three optimised choices of D differ in their objective only. What they share is here: the factor of A, the Newton
step, and the line search whose test of feasibility is the Cholesky factorisation that the next step needs anyway.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dlauum, dposv, dpotrf, dtrtri

from knockoffs.errors import InputError, KnockoffWarning

MARGIN = 1e-6  # solutions on the boundary are moved inside until 2R - D >= MARGIN R; the others are further inside
LAST = 1e-5  # first-order residual below which the next Newton step, which squares it, is the last
NEAR = 1e-3  # residual at which a full Newton step must succeed; one that does not has met rounding
MAX_STEPS = 100  # a handful is usual; each costs a few Choleskys of R
SUFFICIENT = 0.1  # of the decrease that the slope promises
ROOM = 1.05  # a step could have been this much longer and still be feasible
ROUNDING = 1e-12  # relative error of an objective, below which no decrease can be seen


class Factor:
    """Cholesky factor L of A = 2R - diag(s[feature_of]), and what follows from it; only lower triangles are filled."""

    def __init__(self, L: NDArray) -> None:
        self.L = L

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of det A."""
        return 2.0 * float(np.log(np.diagonal(self.L)).sum())

    @cached_property
    def inverse_L(self) -> NDArray:
        """L^-1, so that trace(A^-1) is its sum of squares."""
        return dtrtri(self.L, lower=1)[0]

    @cached_property
    def inverse(self) -> NDArray:
        """Lower triangle of A^-1 = L^-T L^-1."""
        return dlauum(self.inverse_L, lower=1)[0]


class Derivatives(NamedTuple):
    """Gradient of an objective as rise - pull, both positive, and the lower triangle of its Hessian."""

    rise: NDArray  # (m,) what raises the objective as s grows: A comes nearer to singular
    pull: NDArray  # (m,) what lowers it
    hessian: NDArray  # (m, m)


class Objective(Protocol):
    """A convex function of s, infinite where A is not positive definite."""

    upper: float  # s stays below this

    def value(self, s: NDArray, sizes: NDArray, A: Factor) -> float:
        """Objective at s; ``sizes`` (m,) are the numbers of columns of the features."""
        ...

    def derivatives(self, s: NDArray, sizes: NDArray, A: Factor, feature_of: NDArray) -> Derivatives:
        """Gradient and Hessian at s."""
        ...


def factor(R: NDArray, feature_of: NDArray, s: NDArray) -> Factor | None:
    """Cholesky factor of A at s, or None where A is not positive definite."""
    A = np.multiply(R, 2.0, order="F")
    A.T.flat[:: len(R) + 1] -= s[feature_of]  # A.T is in C order, so this is a view of the diagonal
    L, info = dpotrf(A, lower=1, overwrite_a=1)
    return Factor(L) if info == 0 else None


def feature_sums(lower: NDArray, feature_of: NDArray) -> NDArray:
    """Block sums over pairs of features of a symmetric matrix; both given and returned by the lower triangle.

    >>> M = np.array([[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [3.0, 4.0, 1.0]])  # the upper triangle is not read
    >>> feature_sums(M, np.array([0, 0, 1]))
    array([[6., 7.],
           [7., 1.]])
    """
    d = len(feature_of)
    m = int(feature_of.max()) + 1
    if m == d and np.array_equal(feature_of, np.arange(d)):
        return lower
    members = np.zeros((m, d))
    members[feature_of, np.arange(d)] = 1.0
    return members @ symmetric(lower) @ members.T


def symmetric(lower: NDArray) -> NDArray:
    """Full matrix of a lower triangle."""
    full = np.tril(lower)
    return full + np.tril(full, -1).T


def inner_start(R: NDArray, feature_of: NDArray) -> NDArray:
    """Closed-form s with diag(s) <= R, so that A >= R: s_g = min over its columns j of 1 / sum_k |R^-1|_jk.

    The largest eigenvalue of diag(s) R^-1 is at most its largest row sum of absolute values, which is then at most 1.

    >>> inner_start(np.array([[1.0, 0.5], [0.5, 1.0]]), np.arange(2)).round(12)
    array([0.5, 0.5])
    """
    L, info = dpotrf(R, lower=1)
    if info != 0:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    bounds = 1.0 / np.abs(symmetric(Factor(L).inverse)).sum(axis=1)
    s = np.full(int(feature_of.max()) + 1, np.inf)
    np.minimum.at(s, feature_of, bounds)
    return s


def minimise(objective: Objective, R: NDArray, feature_of: NDArray, s: NDArray, *, last: float = LAST) -> NDArray:
    """Minimiser of a convex objective over {s > 0 : A positive definite}, from a feasible s.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance, the identity within each feature.
    feature_of : ndarray, shape (d,)
    s : ndarray, shape (m,)
        Start, strictly feasible.
    last : float
        The step taken where the first-order residual, the root mean square of rise / pull - 1, is below this is the
        last one.

    Returns
    -------
    ndarray, shape (m,)
        Strictly feasible: every step has been tested by a Cholesky factorisation.
    """
    sizes = np.bincount(feature_of).astype(float)
    A = factor(R, feature_of, s)
    if A is None:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    value = objective.value(s, sizes, A)
    for _ in range(MAX_STEPS):
        rise, pull, hessian = objective.derivatives(s, sizes, A, feature_of)
        gradient = rise - pull
        residual = np.sqrt(np.mean((gradient / pull) ** 2))
        step, info = dposv(hessian, -gradient, lower=1, overwrite_a=1)[1:]
        slope = float(gradient @ step)
        if info != 0 or slope >= 0:
            break  # rounding has eaten the gradient
        found = line_search(objective, R, feature_of, s, value, step, slope, sizes)
        if found is None:
            break
        cut_short = not np.array_equal(found[0], s + step)
        s, value, A = found
        if residual < last or (cut_short and residual < NEAR):
            break
    else:
        warnings.warn(
            f"the search for D stopped after {MAX_STEPS} Newton steps: D is valid, but may not be the best.",
            KnockoffWarning,
            stacklevel=2,
        )
    return s


def line_search(
    objective: Objective,
    R: NDArray,
    feature_of: NDArray,
    s: NDArray,
    value: float,
    step: NDArray,
    slope: float,
    sizes: NDArray,
) -> tuple[NDArray, float, Factor] | None:
    """First of t = 1, 0.7, 0.49, ... where s + t step is feasible and the objective falls as the slope promises."""
    # s moves at most nine tenths of the way to 0 and to its upper bound
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step < 0, s / -step, np.where(step > 0, (objective.upper - s) / step, np.inf))
    t = min(1.0, 0.9 * float(room.min()))
    # a self-concordant barrier always accepts 1 / (1 + decrement): where much less is refused, it is by rounding
    shortest = min(1e-3, 0.1 / (1 + np.sqrt(-slope)))
    reach = 0.8 / np.sqrt(-slope)  # largest t known to be feasible, at first by self-concordance
    while t > shortest:
        moved = s + t * step
        A = factor(R, feature_of, moved)
        if A is not None:
            # a step that ends just inside the boundary is hard to recover from: there must be room to go on
            roomy = ROOM * t <= reach or factor(R, feature_of, s + ROOM * t * step) is not None
            reach = max(reach, t)
            if roomy:
                new = objective.value(moved, sizes, A)
                if new <= value + SUFFICIENT * t * slope + ROUNDING * abs(value):  # Armijo, up to rounding
                    return moved, new, A
        t *= 0.7
    return None
