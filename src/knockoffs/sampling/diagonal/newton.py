"""Newton's method in D: one positive definite block for each feature, while A = 2R - D stays positive definite.

The optimised choices of D differ in their objective only: the sum of phi over the eigenvalues of D plus psi(A). In the
eigenvectors of the blocks the Hessian of the first part is elementwise (the divided differences of Daleckii and Krein).
The part of A couples the blocks. Where every feature owns one column the Newton equation is solved by a Cholesky
factorisation; otherwise by conjugate gradients, preconditioned by all that is elementwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dlauum, dposv, dpotrf, dtrtri

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.sampling.diagonal import BlockShape

MARGIN = 1e-6  # solutions on the boundary are moved inside until 2R - D >= MARGIN R; the others are further inside
LAST = 1e-5  # first-order residual below which the next Newton step, which squares it, is the last
NEARLY_DONE = 1e-3  # residual at which a full Newton step must succeed; one that does not has met rounding
MAX_NEWTON_STEPS = 100  # a handful is usual; each costs a few Choleskys of R
SUFFICIENT = 0.1  # of the decrease that the slope promises
HEADROOM = 1.05  # a step could have been this much longer and still be feasible
OBJECTIVE_ROUNDING = 1e-12  # relative error of an objective, below which no decrease can be seen
FORCING = 0.1  # largest residual of the Newton equation, relative to its right-hand side; it falls with the gradient
MAX_PRODUCTS = 1000  # of the Hessian with a direction, for one Newton step; tens are usual


class CholeskyFactor:
    """Cholesky factor L of A = 2R - D, and what follows from it; only lower triangles are filled."""

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


def symmetric(lower: NDArray) -> NDArray:
    """Full matrix of a lower triangle."""
    full = np.tril(lower)
    return full + np.tril(full, -1).T


@dataclass(frozen=True)
class Objective:
    """sum_i phi(eigenvalue i of D) + psi(A), convex in D; infinite where A is not positive definite."""

    value: Callable[[NDArray, CholeskyFactor], float]  # (eigenvalues of D, factor of A) -> float
    # eigenvalues -> the part of -phi' that is positive: it lowers the objective as D grows
    pull: Callable[[NDArray], NDArray]
    # (a, b) -> the divided difference (phi'(a) - phi'(b)) / (a - b), phi'' where a = b
    bend: Callable[[NDArray, NDArray], NDArray]
    push: Callable[[NDArray], NDArray] = np.zeros_like  # eigenvalues -> phi' + pull, not negative
    power: int = 1  # psi(A) = -log det A, with the gradient A^-1 in D; or trace(A^-1), with A^-2
    upper: float = np.inf  # the eigenvalues of D stay below this

    def rise(self, inverse: NDArray) -> NDArray:
        """Lower triangle of A^-1 or A^-2, from that of A^-1: its blocks are the gradient of psi with respect to D."""
        return inverse if self.power == 1 else dsyrk(1.0, symmetric(inverse), lower=1)


@dataclass(frozen=True)
class Point:
    """Feasible D: its blocks, their eigenvalues and eigenvectors, and the factor of A."""

    D: NDArray
    values: NDArray
    vectors: NDArray
    A: CholeskyFactor


def factor(R: NDArray, shape: BlockShape, D: NDArray) -> CholeskyFactor | None:
    """Cholesky factor of A = 2R - D, or None where A is not positive definite."""
    A = np.multiply(R, 2.0, order="F")
    shape.subtract(A, D)
    L, info = dpotrf(A, lower=1, overwrite_a=1)
    return CholeskyFactor(L) if info == 0 else None


def feasible_point(objective: Objective, R: NDArray, shape: BlockShape, D: NDArray) -> Point | None:
    """D with what follows from it, or None where it is not feasible."""
    D = shape.symmetric(D)
    values, vectors = shape.eigh(D)
    if values.min() <= 0 or values.max() >= objective.upper:
        return None
    A = factor(R, shape, D)
    return None if A is None else Point(D, values, vectors, A)


def inner_start(R: NDArray, shape: BlockShape) -> NDArray:
    """Closed-form diagonal D <= R, so that A >= R: D_jj = 1 / sum_k |R^-1|_jk.

    The largest eigenvalue of D R^-1 is at most its largest row sum of absolute values, which is then at most 1.

    >>> from knockoffs.sampling.diagonal import shape_of
    >>> inner_start(np.array([[1.0, 0.5], [0.5, 1.0]]), shape_of(np.arange(2))).round(12)
    array([0.5, 0.5])
    """
    L, info = dpotrf(R, lower=1)
    if info != 0:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    return shape.from_diagonal(1.0 / np.abs(symmetric(CholeskyFactor(L).inverse)).sum(axis=1))


def minimise(objective: Objective, R: NDArray, shape: BlockShape, D: NDArray, *, last: float = LAST) -> NDArray:
    """Minimiser of a convex objective over {D block-diagonal, D > 0, A > 0}, from a feasible D as one vector.

    The step taken where the first-order residual is below ``last`` is the last one. The residual is the root mean
    square of C^T (gradient) C, with C C^T = pull^-1. The answer is strictly feasible: every step has been tested by a
    Cholesky factorisation.
    """
    point = feasible_point(objective, R, shape, D)
    if point is None:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    solve = dense_step if shape.is_diagonal else step_by_conjugate_gradients
    for _ in range(MAX_NEWTON_STEPS):
        step, slope, residual = solve(objective, shape, point)
        if slope >= 0:
            break  # rounding has eaten the gradient
        found = _line_search(objective, R, shape, point, step, slope)
        if found is None:
            break
        point, t = found
        if residual < last or (t < 1 and residual < NEARLY_DONE):
            break
    else:
        warnings.warn(
            f"the search for D stopped after {MAX_NEWTON_STEPS} Newton steps: D is valid, but may not be the best.",
            KnockoffWarning,
            stacklevel=2,
        )
    return point.D


def dense_step(objective: Objective, shape: BlockShape, point: Point) -> tuple[NDArray, float, float]:
    """Newton step where every feature owns one column, the slope along it and the first-order residual."""
    s, inverse = point.D, point.A.inverse
    rise, pull = objective.rise(inverse), objective.pull(s)
    gradient = np.diagonal(rise) + objective.push(s) - pull
    residual = float(np.sqrt(np.mean((gradient / pull) ** 2)))
    hessian = objective.power * rise * inverse
    np.einsum("jj->j", hessian)[:] += objective.bend(s, s)
    step, info = dposv(hessian, -gradient, lower=1, overwrite_a=1)[1:]
    return step, float(gradient @ step) if info == 0 else 0.0, residual


def step_by_conjugate_gradients(objective: Objective, shape: BlockShape, point: Point) -> tuple[NDArray, float, float]:
    """Newton step of blocks, the slope along it and the first-order residual."""
    # in the eigenvectors of the blocks: D is diagonal there
    inverse = shape.rotate(point.vectors, symmetric(point.A.inverse))
    rise = inverse if objective.power == 1 else symmetric(objective.rise(inverse))
    pull = objective.pull(point.values)
    gradient = shape.gather(rise) + shape.from_diagonal(objective.push(point.values) - pull)
    scaled = gradient / shape.outer(lambda a, b: np.sqrt(a * b), pull)
    residual = float(np.sqrt(scaled @ scaled / len(pull)))
    bend = shape.outer(objective.bend, point.values)

    def hessian(V: NDArray) -> NDArray:
        """Second derivative along V: blocks of A^-1 V A^-1, or of A^-1 V A^-2 + A^-2 V A^-1."""
        half = shape.sandwich(inverse, V, rise)
        return bend * V + (half if objective.power == 1 else half + shape.transpose(half))

    m, n = np.diagonal(inverse), np.diagonal(rise)
    places = np.arange(len(m), dtype=np.intp)
    curve = shape.outer(lambda i, j: objective.power / 2 * (m[i] * n[j] + n[i] * m[j]), places)
    step = conjugate_gradients(hessian, -gradient, bend + curve, min(FORCING, residual))
    slope = float(gradient @ step)
    back = shape.transpose(point.vectors)
    return shape.product(shape.product(point.vectors, step), back), slope, residual


def conjugate_gradients(
    hessian: Callable[[NDArray], NDArray], b: NDArray, preconditioner: NDArray, tolerance: float
) -> NDArray:
    """Solution of hessian(x) = b up to a relative residual, in the norm of the inverse of the preconditioner."""
    x, r = np.zeros_like(b), b
    z = r / preconditioner
    p, rz = z, float(r @ z)
    goal = tolerance**2 * rz
    for _ in range(MAX_PRODUCTS):
        Hp = hessian(p)
        bent = float(p @ Hp)
        if bent <= 0:
            break  # rounding
        alpha = rz / bent
        x = x + alpha * p
        r = r - alpha * Hp
        z = r / preconditioner
        new = float(r @ z)
        if new <= goal:
            break
        p = z + (new / rz) * p
        rz = new
    return x


def _line_search(
    objective: Objective, R: NDArray, shape: BlockShape, point: Point, step: NDArray, slope: float
) -> tuple[Point, float] | None:
    """First of t = 1, 0.7, 0.49, ... where D + t step is feasible and the objective falls as the slope promises."""
    # the eigenvalues of D move at most nine tenths of the way to 0 and to their upper bound
    t = min(1.0, 0.9 * _room(shape, point, -step, point.values))
    if np.isfinite(objective.upper):
        t = min(t, 0.9 * _room(shape, point, step, objective.upper - point.values))
    value = objective.value(point.values, point.A)
    # a self-concordant barrier always accepts 1 / (1 + decrement): where much less is refused, it is by rounding
    shortest = min(1e-3, 0.1 / (1 + np.sqrt(-slope)))
    reach = 0.8 / np.sqrt(-slope)  # largest t known to be feasible, at first by self-concordance
    while t > shortest:
        moved = feasible_point(objective, R, shape, point.D + t * step)
        if moved is not None:
            # a step that ends just inside the boundary is hard to recover from: there must be room to go on
            roomy = HEADROOM * t <= reach or factor(R, shape, point.D + HEADROOM * t * step) is not None
            reach = max(reach, t)
            promised = value + SUFFICIENT * t * slope + OBJECTIVE_ROUNDING * abs(value)  # Armijo, up to rounding
            if roomy and objective.value(moved.values, moved.A) <= promised:
                return moved, t
        t *= 0.7
    return None


def _room(shape: BlockShape, point: Point, step: NDArray, distance: NDArray) -> float:
    """Largest t for which diag(distance) - t step, in the eigenvectors of D, is positive semi-definite."""
    if shape.is_diagonal:
        shrinking = step > 0
        return float((distance[shrinking] / step[shrinking]).min(initial=np.inf))
    back = shape.transpose(point.vectors)
    turned = shape.product(shape.product(back, step), point.vectors)
    scaled = turned / shape.outer(lambda a, b: np.sqrt(a * b), distance)
    largest = max(float(np.linalg.eigvalsh(piece)[:, -1].max()) for piece in shape.cut(scaled))
    return 1 / largest if largest > 0 else np.inf


# The choices of D, (R, shape) -> D, its entries as one vector: R is the covariance in the order of ``shape``, and the
# identity within each feature.


# -log det A - log det D: up to constants, minus twice the entropy of (X, X_tilde)
ENTROPY = Objective(
    value=lambda s, A: -A.log_determinant - float(np.log(s).sum()),
    pull=lambda s: 1 / s,
    bend=lambda a, b: 1 / (a * b),  # of -1 / s
)


def maximum_entropy(R: NDArray, shape: BlockShape) -> NDArray:
    """Maximiser D of log det(2R - D) + log det D.

    At the solution trace(A^-1 D) = d, so A = 2R - D >= D / d: the margin needs no help.

    >>> from knockoffs.sampling.diagonal import shape_of
    >>> maximum_entropy(np.eye(3), shape_of(np.arange(3)))
    array([1., 1., 1.])
    """
    return minimise(ENTROPY, R, shape, inner_start(R, shape))


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

    >>> from knockoffs.sampling.diagonal import shape_of
    >>> mvr(np.eye(3), shape_of(np.arange(3)))
    array([1., 1., 1.])
    """
    return minimise(RECONSTRUCTABILITY, R, shape, inner_start(R, shape))


def barrier(weight: float) -> Objective:
    """-trace(D) / weight - log det A - log det D - log det(I - D)."""
    return Objective(
        value=lambda s, A: -A.log_determinant - float((s / weight + np.log(s) + np.log1p(-s)).sum()),
        pull=lambda s: 1 / weight + 1 / s,
        bend=lambda a, b: 1 / (a * b) + 1 / ((1 - a) * (1 - b)),
        push=lambda s: 1 / (1 - s),
        upper=1.0,
    )


def sdp(R: NDArray, shape: BlockShape) -> NDArray:
    """Maximiser D of trace(D) with 0 <= D <= I and A = 2R - D >= 0, moved inside by MARGIN.

    The optimum itself makes A singular, so MARGIN of the inner start, which has D <= R, is mixed in: then
    A >= MARGIN R, at a cost of at most MARGIN of the objective. R being whitened, the objective is
    sum_g trace(Sigma_gg^-1 S_g) and the bound S_g <= Sigma_gg. (Chu et al. sum the entries of |Sigma_gg - S_g| instead,
    which depends on the basis of the block.)

    >>> from knockoffs.sampling.diagonal import shape_of
    >>> sdp(np.array([[1.0, 0.8], [0.8, 1.0]]), shape_of(np.arange(2))).round(4)  # 2 (1 - 0.8)
    array([0.4, 0.4])
    """
    inner = 0.9 * inner_start(R, shape)  # strictly below I, also for R = I
    return (1 - MARGIN) * follow_path(R, shape, inner) + MARGIN * inner


def follow_path(
    R: NDArray, shape: BlockShape, D: NDArray, *, gaps: tuple[float, float] = (1e-6, 1e-4), centred: float = 0.3
) -> NDArray:
    """Feasible D near the optimum: the minimiser of the barrier is at most 3 d weight from it.

    ``gaps`` are the distance from the optimum, relative to the objective, and that of full blocks, whose Newton
    equations are harder the nearer the boundary is. At a first-order residual of ``centred`` a point is near enough to
    the central path to go on.
    """
    d = len(R)
    # of blocks a start nearer to the optimum than the analytic centre ends on the boundary and creeps along it
    gap, weight = (gaps[0], shape.trace(D) / d) if shape.is_diagonal else (gaps[1], 1.0)
    while (goal := gap * shape.trace(D) / (3 * d)) < weight:
        D = minimise(barrier(weight), R, shape, D, last=centred)
        weight *= 0.1  # three or four Newton steps for each
    return minimise(barrier(goal), R, shape, D, last=centred)


def equicorrelated(R: NDArray, shape: BlockShape) -> NDArray:
    """D = s I with the largest s: min(1, 2 lambda_min(R) (1 - MARGIN)), so that 2R - D >= 2 MARGIN R.

    >>> from knockoffs.sampling.diagonal import shape_of
    >>> equicorrelated(np.array([[1.0, 0.8], [0.8, 1.0]]), shape_of(np.arange(2))).round(4)
    array([0.4, 0.4])
    """
    smallest = eigvalsh(R, subset_by_index=(0, 0))[0]
    return shape.from_diagonal(np.full(len(R), min(1.0, 2.0 * (1.0 - MARGIN) * smallest)))
