"""Newton's method in D itself: one positive definite block S_g for each feature, A = 2R - D positive definite.

An objective here is the trace of a function of D plus a function of A, so in the eigenvectors of the blocks its first
part is a sum over eigenvalues and the Hessian of that part is elementwise (the divided differences of Daleckii and
Krein). The part of A couples the blocks: V -> blocks of A^-1 V A^-1 costs d^2 operations for each column of a block,
so the Newton equation is solved by conjugate gradients, preconditioned by all that is elementwise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.sampling.diagonal.newton import (
    LAST,
    MAX_STEPS,
    NEAR,
    ROOM,
    ROUNDING,
    SUFFICIENT,
    Factor,
    inner_start,
    symmetric,
)

FORCING = 0.1  # largest residual of the Newton equation, relative to its right-hand side; it falls with the gradient
MAX_PRODUCTS = 1000  # of the Hessian with a direction, for one Newton step; tens are usual


@dataclass(frozen=True)
class Layout:
    """Columns sorted by the size of their feature: the blocks of one size are one array (k, g, g).

    Parameters
    ----------
    order : array of int, shape (d,)
        Column at each place.
    runs : tuple of (start, k, g)
        From place ``start`` on there are k features of g columns each.
    """

    order: NDArray[np.intp]
    runs: tuple[tuple[int, int, int], ...]

    @cached_property
    def n_entries(self) -> int:
        """Entries of all blocks."""
        return sum(k * g * g for _, k, g in self.runs)

    def cut(self, flat: NDArray) -> list[NDArray]:
        """Cut a vector with all entries of all blocks into its views (k, g, g)."""
        pieces, start = [], 0
        for _, k, g in self.runs:
            pieces.append(flat[start : start + k * g * g].reshape(k, g, g))
            start += k * g * g
        return pieces

    def join(self, pieces: list[NDArray]) -> NDArray:
        """All entries of all blocks as one vector."""
        return np.concatenate([piece.ravel() for piece in pieces])

    def gather(self, M: NDArray) -> NDArray:
        """Blocks of a full matrix, as one vector."""
        return self.join([M[rows[:, :, None], rows[:, None, :]] for rows in self._rows])

    def scatter(self, flat: NDArray) -> NDArray:
        """Block-diagonal matrix, shape (d, d)."""
        M = np.zeros((len(self.order), len(self.order)))
        for rows, piece in zip(self._rows, self.cut(flat), strict=True):
            M[rows[:, :, None], rows[:, None, :]] = piece
        return M

    def left(self, flat: NDArray, M: NDArray) -> NDArray:
        """V M, for the block-diagonal V."""
        out = np.empty_like(M)
        for (start, k, g), V in zip(self.runs, self.cut(flat), strict=True):
            rows = slice(start, start + k * g)
            if g == 1:
                np.multiply(V[:, 0], M[rows], out=out[rows])
            else:
                np.matmul(V, M[rows].reshape(k, g, -1), out=out[rows].reshape(k, g, -1))
        return out

    def sandwich(self, M: NDArray, flat: NDArray, N: NDArray) -> NDArray:
        """Blocks of M V N, as one vector; M symmetric."""
        turned = np.ascontiguousarray(self.left(flat, N).T)
        pieces = []
        for start, k, g in self.runs:
            rows = slice(start, start + k * g)
            left, right = M[rows].reshape(k, g, -1), turned[rows].reshape(k, g, -1)
            if g == 1:
                pieces.append(np.einsum("kgd,kgd->kg", left, right))
            else:
                pieces.append(left @ right.transpose(0, 2, 1))
        return self.join(pieces)

    def rotate(self, vectors: NDArray, M: NDArray) -> NDArray:
        """Q^T M Q, for the block-diagonal Q with these blocks; M symmetric."""
        turned = self.transpose(vectors)
        return self.left(turned, np.ascontiguousarray(self.left(turned, M).T))

    def transpose(self, flat: NDArray) -> NDArray:
        """Every block transposed."""
        return self.join([piece.transpose(0, 2, 1) for piece in self.cut(flat)])

    def product(self, first: NDArray, second: NDArray) -> NDArray:
        """Block by block."""
        pairs = zip(self.cut(first), self.cut(second), strict=True)
        return self.join([a @ b for a, b in pairs])

    def from_diagonal(self, values: NDArray) -> NDArray:
        """Diagonal blocks, as one vector, of d numbers."""
        flat = np.zeros(self.n_entries)
        for (start, k, g), piece in zip(self.runs, self.cut(flat), strict=True):
            np.einsum("kgg->kg", piece)[:] = values[start : start + k * g].reshape(k, g)
        return flat

    def trace(self, flat: NDArray) -> float:
        """Sum of the traces of all blocks."""
        return sum(float(np.einsum("kgg->", piece)) for piece in self.cut(flat))

    def outer(self, function: Callable[[NDArray, NDArray], NDArray], values: NDArray) -> NDArray:
        """function(v_i, v_j) for all i, j of a block, as one vector."""
        pieces = [values[start : start + k * g].reshape(k, g) for start, k, g in self.runs]
        return self.join([function(v[:, :, None], v[:, None, :]) for v in pieces])

    @cached_property
    def _rows(self) -> list[NDArray[np.intp]]:
        return [np.arange(start, start + k * g).reshape(k, g) for start, k, g in self.runs]


def layout(feature_of: NDArray) -> Layout:
    """Columns by the size of their feature.

    >>> layout(np.array([0, 1, 0, 2])).runs
    ((0, 2, 1), (2, 1, 2))
    """
    sizes = np.bincount(feature_of)
    order = np.lexsort((feature_of, sizes[feature_of]))
    runs, start = [], 0
    for g in np.unique(sizes):
        k = int((sizes == g).sum())
        runs.append((start, k, int(g)))
        start += k * int(g)
    return Layout(order, tuple(runs))


class BlockObjective(Protocol):
    """sum_i phi(eigenvalue i of D) + psi(A), convex in D; infinite where A is not positive definite."""

    upper: float  # the eigenvalues of D stay below this

    def value(self, values: NDArray, A: Factor) -> float:
        """Objective; ``values`` (d,) are the eigenvalues of D."""
        ...

    def slope(self, values: NDArray) -> NDArray:
        """Return phi'."""
        ...

    def pull(self, values: NDArray) -> NDArray:
        """Part of -phi' that lowers the objective as D grows; positive."""
        ...

    def bend(self, a: NDArray, b: NDArray) -> NDArray:
        """Divided differences (phi'(a) - phi'(b)) / (a - b), phi'' where a = b."""
        ...

    def rise(self, inverse: NDArray) -> NDArray:
        """-d psi / dA, the whole matrix, from A^-1; its blocks are the gradient of psi with respect to D."""
        ...

    def curve(self, shape: Layout, inverse: NDArray, rise: NDArray, V: NDArray) -> NDArray:
        """Second derivative of psi along V: blocks."""
        ...

    def diagonal_curve(self, shape: Layout, inverse: NDArray, rise: NDArray) -> NDArray:
        """About the diagonal of that map, for the preconditioner."""
        ...


class LogDeterminant:
    """psi(A) = -log det A."""

    def rise(self, inverse: NDArray) -> NDArray:
        """A^-1."""
        return inverse

    def curve(self, shape: Layout, inverse: NDArray, rise: NDArray, V: NDArray) -> NDArray:
        """Blocks of A^-1 V A^-1."""
        return shape.sandwich(inverse, V, inverse)

    def diagonal_curve(self, shape: Layout, inverse: NDArray, rise: NDArray) -> NDArray:
        """(A^-1)_ii (A^-1)_jj."""
        return shape.outer(np.multiply, np.diagonal(inverse))


class TraceOfInverse:
    """psi(A) = trace(A^-1)."""

    def rise(self, inverse: NDArray) -> NDArray:
        """A^-2."""
        return inverse @ inverse

    def curve(self, shape: Layout, inverse: NDArray, rise: NDArray, V: NDArray) -> NDArray:
        """Blocks of A^-1 V A^-2 + A^-2 V A^-1."""
        half = shape.sandwich(inverse, V, rise)
        return half + shape.transpose(half)

    def diagonal_curve(self, shape: Layout, inverse: NDArray, rise: NDArray) -> NDArray:
        """(A^-1)_ii (A^-2)_jj + (A^-2)_ii (A^-1)_jj."""
        m, n = np.diagonal(inverse), np.diagonal(rise)
        places = np.arange(len(m), dtype=np.intp)
        return shape.outer(lambda i, j: m[i] * n[j] + n[i] * m[j], places)


def block_start(R: NDArray, shape: Layout) -> NDArray:
    """Diagonal D <= R, as blocks: ``newton.inner_start`` with a number for every column."""
    return shape.from_diagonal(inner_start(R, np.arange(len(R))))


@dataclass(frozen=True)
class Point:
    """Feasible D: its blocks, their eigenvalues and eigenvectors, the factor of A and the objective."""

    D: NDArray
    values: NDArray
    vectors: NDArray
    A: Factor
    objective: float


def minimise_blocks(objective: BlockObjective, R: NDArray, shape: Layout, D: NDArray, *, last: float = LAST) -> NDArray:
    """Minimiser of a convex objective over {D block-diagonal, D > 0, A > 0}, from a feasible D.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : Layout
    D : ndarray, shape (n_entries,)
        Start, strictly feasible: its blocks as one vector.
    last : float
        As in ``newton.minimise``: the step taken where the first-order residual is below this is the last one. The
        residual is the root mean square of C^T (gradient) C, with C C^T = pull^-1.

    Returns
    -------
    ndarray, shape (n_entries,)
        Strictly feasible: every step has been tested by a Cholesky factorisation.
    """
    point = feasible_point(objective, R, shape, D)
    if point is None:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    for _ in range(MAX_STEPS):
        step, slope, residual = newton_step(objective, shape, point)
        if slope >= 0:
            break  # rounding has eaten the gradient
        found = block_line_search(objective, R, shape, point, step, slope)
        if found is None:
            break
        moved, t = found
        point = moved
        if residual < last or (t < 1 and residual < NEAR):
            break
    else:
        warnings.warn(
            f"the search for D stopped after {MAX_STEPS} Newton steps: D is valid, but may not be the best.",
            KnockoffWarning,
            stacklevel=2,
        )
    return point.D


def newton_step(objective: BlockObjective, shape: Layout, point: Point) -> tuple[NDArray, float, float]:
    """Newton step in D, the slope along it and the first-order residual."""
    # in the eigenvectors of the blocks: D is diagonal there
    inverse = shape.rotate(point.vectors, symmetric(point.A.inverse))
    rise, pull = objective.rise(inverse), objective.pull(point.values)
    gradient = shape.gather(rise) + shape.from_diagonal(objective.slope(point.values))
    scaled = gradient / shape.outer(lambda a, b: np.sqrt(a * b), pull)
    residual = float(np.sqrt(scaled @ scaled / len(pull)))
    bend = shape.outer(objective.bend, point.values)

    def hessian(V: NDArray) -> NDArray:
        return bend * V + objective.curve(shape, inverse, rise, V)

    preconditioner = bend + objective.diagonal_curve(shape, inverse, rise)
    step = conjugate_gradients(hessian, -gradient, preconditioner, min(FORCING, residual))
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


def block_line_search(
    objective: BlockObjective, R: NDArray, shape: Layout, point: Point, step: NDArray, slope: float
) -> tuple[Point, float] | None:
    """First of t = 1, 0.7, 0.49, ... where D + t step is feasible and the objective falls as the slope promises."""
    # the eigenvalues of D move at most nine tenths of the way to 0 and to their upper bound
    t = min(1.0, 0.9 * _room(shape, point, -step, point.values))
    if np.isfinite(objective.upper):
        t = min(t, 0.9 * _room(shape, point, step, objective.upper - point.values))
    # a self-concordant barrier always accepts 1 / (1 + decrement): where much less is refused, it is by rounding
    shortest = min(1e-3, 0.1 / (1 + np.sqrt(-slope)))
    reach = 0.8 / np.sqrt(-slope)  # largest t known to be feasible, at first by self-concordance
    while t > shortest:
        moved = feasible_point(objective, R, shape, point.D + t * step)
        if moved is not None:
            # a step that ends just inside the boundary is hard to recover from: there must be room to go on
            roomy = ROOM * t <= reach or block_factor(R, shape, point.D + ROOM * t * step) is not None
            reach = max(reach, t)
            if roomy and moved.objective <= point.objective + SUFFICIENT * t * slope + ROUNDING * abs(point.objective):
                return moved, t
        t *= 0.7
    return None


def _room(shape: Layout, point: Point, step: NDArray, distance: NDArray) -> float:
    """Largest t for which diag(distance) - t step, in the eigenvectors of D, is positive semi-definite."""
    back = shape.transpose(point.vectors)
    turned = shape.product(shape.product(back, step), point.vectors)
    scaled = turned / shape.outer(lambda a, b: np.sqrt(a * b), distance)
    largest = max(float(np.linalg.eigvalsh(piece)[:, -1].max()) for piece in shape.cut(scaled))
    return 1 / largest if largest > 0 else np.inf


def feasible_point(objective: BlockObjective, R: NDArray, shape: Layout, D: NDArray) -> Point | None:
    """D with what follows from it, or None where it is not feasible."""
    D = (D + shape.transpose(D)) / 2
    pairs = [np.linalg.eigh(piece) for piece in shape.cut(D)]
    values = np.concatenate([v.ravel() for v, _ in pairs])
    if values.min() <= 0 or values.max() >= objective.upper:
        return None
    A = block_factor(R, shape, D)
    if A is None:
        return None
    return Point(D, values, shape.join([Q for _, Q in pairs]), A, objective.value(values, A))


def block_factor(R: NDArray, shape: Layout, D: NDArray) -> Factor | None:
    """Cholesky factor of A = 2R - D, or None where A is not positive definite."""
    L, info = dpotrf(2.0 * R - shape.scatter(D), lower=1, overwrite_a=1)
    return Factor(L) if info == 0 else None
