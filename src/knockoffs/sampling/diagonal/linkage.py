"""D for many columns: solved block by block, then scaled until the whole is positive definite."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.sparse.linalg import LinearOperator, eigsh

from knockoffs.errors import InputError
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, solve_diagonal
from knockoffs.sampling.diagonal.newton import MARGIN

LARGEST_BLOCK = 500  # columns; a block of it takes a fraction of a second
SAFETY = 1e-3  # share by which the scale is kept below the largest that rounding-free arithmetic would allow


def linked_blocks(R: NDArray, largest: int = LARGEST_BLOCK) -> list[NDArray[np.intp]]:
    """Blocks of columns: the largest branches of the single-linkage tree on 1 - |correlation| with at most so many.

    Two blocks may still be correlated; they are joined no earlier than at the largest |correlation| between them.

    >>> R = np.array([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]])
    >>> [block.tolist() for block in linked_blocks(R, 2)]
    [[0, 2], [1]]
    """
    from scipy.cluster.hierarchy import linkage

    d = len(R)
    if d <= largest:
        return [np.arange(d)]
    distance = np.concatenate([1 - np.abs(R[j, j + 1 :]) for j in range(d - 1)])  # row by row: no second (d, d) matrix
    tree = linkage(np.clip(distance, 0, None, out=distance), method="single")
    members: dict[int, list[int]] = {j: [j] for j in range(d)}  # only branches that are small enough
    blocks = []
    for node, (left, right) in enumerate(tree[:, :2].astype(int), start=d):
        parts = [members.pop(child, None) for child in (left, right)]
        if parts[0] is not None and parts[1] is not None and len(parts[0]) + len(parts[1]) <= largest:
            members[node] = parts[0] + parts[1]
        else:
            blocks += [part for part in parts if part is not None]
    blocks += members.values()
    return sorted((np.sort(np.array(block, dtype=np.intp)) for block in blocks), key=lambda block: int(block[0]))


def solve_diagonal_blocks(
    Sigma: NDArray, method: str = DEFAULT_DIAGONAL, *, largest: int = LARGEST_BLOCK
) -> NDArray[np.float64]:
    """Diagonal of D, shape (d,), for a Sigma too large for ``solve_diagonal``, one column a feature.

    D is solved for each block of ``linked_blocks`` alone, with ``largest`` columns at most, and the whole is
    multiplied by one number c <= 1, so that 2 Sigma - c D >= MARGIN Sigma: 1 where that holds (blocks that are
    independent lose nothing), and otherwise 2 (1 - MARGIN) / lambda, lambda the largest eigenvalue of D Sigma^-1,
    found by Lanczos from one Cholesky factor of Sigma. That is the number a bisection would end at. The result is
    certified by a Cholesky factorisation of the whole. Two (d, d) arrays in memory beside Sigma at the most.

    >>> solve_diagonal_blocks(np.diag([1.0, 4.0, 9.0]), largest=1)
    array([1., 4., 9.])
    """
    Sigma = np.asarray(Sigma, dtype=float)
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1]:
        raise InputError(f"covariance has shape {Sigma.shape}: expected (d, d).")
    if largest < 1:
        raise InputError(f"largest={largest!r}: a block has at least one column.")
    sd = np.sqrt(np.diagonal(Sigma))
    if not (sd > 0).all() or not np.isfinite(sd).all():
        raise InputError("covariance has variances that are not positive: drop constant columns.")
    R = Sigma / sd
    R /= sd[:, None]
    s = np.empty(len(R))
    for block in linked_blocks(R, largest):
        s[block] = np.diagonal(solve_diagonal(R[np.ix_(block, block)], method))
    if not _inside(R, s):
        s *= min(1.0, 2 * (1 - MARGIN) * (1 - SAFETY) / _largest_eigenvalue(R, s))
        if not _inside(R, s):
            raise InputError("no D can be found safely inside: the covariance is too near to singular. Shrink it.")
    return s * sd**2


def _inside(R: NDArray, s: NDArray) -> bool:
    """Whether 2R - D >= MARGIN R / 2, by a Cholesky factorisation."""
    A = np.multiply(R, 2 - MARGIN / 2, order="F")
    A.T.flat[:: len(R) + 1] -= s  # A.T is in C order, so this is a view of the diagonal
    return bool(dpotrf(A, lower=1, overwrite_a=1, clean=0)[1] == 0)


def _largest_eigenvalue(R: NDArray, s: NDArray) -> float:
    """Largest eigenvalue of D^1/2 R^-1 D^1/2, to SAFETY / 2: Lanczos comes from below, SAFETY makes up for it."""
    from scipy.linalg.lapack import dpotrs

    L, info = dpotrf(np.array(R, order="F"), lower=1, overwrite_a=1, clean=0)
    if info != 0:
        raise InputError("the covariance is not positive definite in floating point. Shrink it, or drop columns.")
    root = np.sqrt(s)
    operator = LinearOperator(
        R.shape, matvec=lambda v: root * dpotrs(L, root * np.ravel(v), lower=1)[0], dtype=np.dtype(float)
    )
    if len(R) < 3:
        return float(np.linalg.eigvalsh(operator @ np.eye(len(R)))[-1])
    value = eigsh(operator, k=1, which="LA", tol=SAFETY / 2, return_eigenvectors=False, v0=np.ones(len(R)))
    return float(value[0])
