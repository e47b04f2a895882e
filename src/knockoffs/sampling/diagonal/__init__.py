"""The matrix D of Gaussian knockoffs: Cov(X, X_tilde) = Sigma - D, with D and 2 Sigma - D positive definite.

Each choice is a function ``(R, shape) -> D``. R is Sigma whitened within each feature (the correlation matrix, where a
feature is one column), so no choice depends on the units of X. D has a number for every column, or a positive definite
block for every feature that owns several; its entries are one vector, whose places ``shape`` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError
from knockoffs.registry import load

ASYMMETRY = 1e-8  # of an entry, relative to its two standard deviations: more than rounding
# Power of the lasso difference at FDR 0.1 (0.2), n = 500, 150 columns, 30 signals, 40 to 80 draws of four designs:
# AR(1) 0.5, equal correlations 0.5, factors, blocks of correlation 0.7. The standard error of a difference to MVR is
# 0.009 (0.004) or less.  maximum entropy .751 .534 .280 .325 (.873 .758 .493 .549)
#                          MVR             .747 .534 .276 .317 (.861 .760 .495 .546)
#                          SDP             .762 .000 .007 .081 (.877 .000 .169 .250)
DEFAULT_DIAGONAL = "maximum_entropy"


DIAGONALS: dict[str, str] = {
    "equicorrelated": "knockoffs.sampling.diagonal.newton:equicorrelated",
    "sdp": "knockoffs.sampling.diagonal.newton:sdp",
    "mvr": "knockoffs.sampling.diagonal.newton:mvr",
    "maximum_entropy": "knockoffs.sampling.diagonal.newton:maximum_entropy",
}


def solve_diagonal(
    Sigma: ArrayLike, method: str = DEFAULT_DIAGONAL, feature_of: ArrayLike | None = None
) -> NDArray[np.float64]:
    """D for which [[Sigma, Sigma - D], [Sigma - D, Sigma]] is positive definite, by one of ``DIAGONALS``.

    With L the Cholesky factors of the features' own blocks of Sigma and R = L^-1 Sigma L^-T, D is L S L^T: S is
    diagonal where every feature owns one column, and otherwise block diagonal, each block whatever is best ("sdp",
    "mvr", "maximum_entropy") or the same multiple of the identity for all ("equicorrelated"). The result is strictly
    feasible: D > 0 and 2 Sigma - D >= MARGIN Sigma, MARGIN = 1e-6 (``newton.py``). The optimised methods "mvr" and
    "maximum_entropy" are further inside by themselves; "sdp" and "equicorrelated", whose optimum makes 2 Sigma - D
    singular, are moved inside by that much.

    Parameters
    ----------
    Sigma : array-like, shape (d, d)
        Symmetric and positive definite.
    method : {"maximum_entropy", "mvr", "sdp", "equicorrelated"}
    feature_of : array-like of int, shape (d,), optional
        Feature that owns each column; one column a feature by default.

    Returns
    -------
    ndarray, shape (d, d)
        Diagonal, or block diagonal over the features where a feature owns several columns.

    >>> solve_diagonal([[1.0, 0.0], [0.0, 4.0]])
    array([[1., 0.],
           [0., 4.]])
    """
    from knockoffs.sampling.pair import check_features

    Sigma = check_covariance(Sigma)
    return solve_checked(Sigma, method, check_features(feature_of, len(Sigma)))


def solve_checked(Sigma: NDArray, method: str, owners: NDArray[np.intp]) -> NDArray:
    """D as ``solve_diagonal`` finds it, for a covariance and features that have been checked."""
    from knockoffs.sampling.diagonal.newton import MARGIN, factor

    solver, shape = load(DIAGONALS, "diagonal", method), shape_of(owners)
    R, blocks = whiten(Sigma, owners)
    order = np.ix_(shape.order, shape.order)
    D = solver(R[order], shape)
    # checked with half of the margin that is promised, the other half being left to rounding
    if not (shape.eigh(D)[0] > 0).all() or factor((1 - MARGIN / 4) * R[order], shape, D) is None:
        smallest = float(np.linalg.eigvalsh(R)[0])
        raise InputError(
            f"no D can be found safely inside by method={method!r}: the covariance is too near to singular "
            f"(smallest eigenvalue {smallest:.3g} as a correlation matrix). Shrink it, or drop dependent columns."
        )
    S = np.empty_like(R)
    S[order] = shape.scatter(D)
    return unwhiten(S, blocks)


def whiten(Sigma: NDArray, feature_of: NDArray) -> tuple[NDArray, list[tuple[NDArray, NDArray]]]:
    """R = L^-1 Sigma L^-T, and the blocks of L as pairs (columns of the feature, Cholesky factor of its block).

    The features with one column come first, all in one pair whose factor is the vector of standard deviations.
    """
    from scipy.linalg import solve_triangular

    sizes = np.bincount(feature_of)
    single = np.flatnonzero(sizes[feature_of] == 1)
    sd = np.sqrt(np.diagonal(Sigma))
    R = Sigma / sd / sd[:, None]
    blocks = [(single, sd[single])]
    for feature in np.flatnonzero(sizes > 1):
        columns = np.flatnonzero(feature_of == feature)
        L = np.linalg.cholesky(R[np.ix_(columns, columns)])
        R[columns] = solve_triangular(L, R[columns], lower=True)
        R[:, columns] = solve_triangular(L, R[:, columns].T, lower=True).T
        R[np.ix_(columns, columns)] = np.eye(len(columns))
        blocks.append((columns, sd[columns, None] * L))
    np.fill_diagonal(R, 1.0)
    return (R + R.T) / 2, blocks


def unwhiten(S: NDArray, blocks: list[tuple[NDArray, NDArray]]) -> NDArray:
    """D = L S L^T, for a block-diagonal S."""
    (single, sd), *others = blocks
    D = np.zeros_like(S)
    D[single, single] = S[single, single] * sd**2
    for columns, L in others:
        block = L @ S[np.ix_(columns, columns)] @ L.T
        D[np.ix_(columns, columns)] = (block + block.T) / 2
    return D


def check_covariance(Sigma: ArrayLike, name: str = "covariance") -> NDArray[np.float64]:
    """Sigma as a symmetric positive definite float array; rounding in its symmetry is averaged out.

    Whether it is positive definite is decided for the correlation matrix, so the answer does not depend on units:
    its smallest eigenvalue must exceed d times the rounding of its largest row sum.

    Parameters
    ----------
    Sigma : array-like, shape (d, d)
    name : str
        How the message calls it, for instance "covariance of component 3".

    >>> check_covariance([[4.0, 1.0], [1.0, 1.0]])
    array([[4., 1.], [1., 1.]])
    >>> check_covariance([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: covariance is not positive definite (smallest eigenvalue -1 as a correlation matrix).
    Drop duplicated or dependent columns, or shrink it.
    """
    try:
        Sigma = np.array(Sigma, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a matrix of numbers: {error}.") from None
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1] or Sigma.shape[0] == 0:
        raise InputError(
            f"{name} has shape {Sigma.shape}: expected (d, d), one row and one column for each column of X."
        )
    if not np.isfinite(Sigma).all():
        i, j = np.argwhere(~np.isfinite(Sigma))[0]
        raise InputError(f"{name} is {Sigma[i, j]} at row {i}, column {j}: every entry must be finite.")
    variances = np.diagonal(Sigma)
    if (variances <= 0).any():
        j = int(np.argmin(variances > 0))
        raise InputError(
            f"{name} has variance {variances[j]:g} in column {j}: drop constant columns; variances are > 0."
        )
    sd = np.sqrt(variances)
    R = Sigma / sd / sd[:, None]
    asymmetry = np.abs(R - R.T)
    if asymmetry.max() > ASYMMETRY:
        i, j = np.unravel_index(int(asymmetry.argmax()), R.shape)
        raise InputError(
            f"{name} is not symmetric: {Sigma[i, j]:g} at row {i}, column {j}, "
            f"but {Sigma[j, i]:g} at row {j}, column {i}."
        )
    R = (R + R.T) / 2
    rounding = len(R) * np.finfo(float).eps * np.abs(R).sum(axis=1).max()
    if dpotrf(R - rounding * np.eye(len(R)), lower=1)[1] != 0:
        smallest = float(np.linalg.eigvalsh(R)[0])
        raise InputError(
            f"{name} is not positive definite (smallest eigenvalue {smallest:.3g} as a correlation matrix). "
            "Drop duplicated or dependent columns, or shrink it."
        )
    return (Sigma + Sigma.T) / 2


# The shape of a block-diagonal D, and products of block-diagonal matrices that are kept as one vector


@dataclass(frozen=True)
class BlockShape:
    """Where the blocks of D lie: columns by the size of their feature, blocks of one size as one array (k, g, g)."""

    order: NDArray[np.intp]  # shape (d,): column at each place
    runs: tuple[tuple[int, int, int], ...]  # from place ``start`` on there are k features of g columns each

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether every feature owns one column, so that D is diagonal."""
        return all(g == 1 for _, _, g in self.runs)

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

    def subtract(self, M: NDArray, flat: NDArray) -> None:
        """Subtract the block-diagonal matrix from M, in place."""
        if self.is_diagonal:
            np.einsum("jj->j", M)[:] -= flat
            return
        for rows, piece in zip(self._rows, self.cut(flat), strict=True):
            M[rows[:, :, None], rows[:, None, :]] -= piece

    def eigh(self, flat: NDArray) -> tuple[NDArray, NDArray]:
        """Eigenvalues of all blocks, shape (d,), and their eigenvectors, shape (n_entries,)."""
        if self.is_diagonal:
            return flat, np.ones_like(flat)
        pairs = [np.linalg.eigh(piece) for piece in self.cut(flat)]
        return np.concatenate([values.ravel() for values, _ in pairs]), self.join([vectors for _, vectors in pairs])

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

    def symmetric(self, flat: NDArray) -> NDArray:
        """Every block averaged with its transpose."""
        return flat if self.is_diagonal else (flat + self.transpose(flat)) / 2

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


def shape_of(feature_of: NDArray) -> BlockShape:
    """Shape of D for columns that belong to these features.

    >>> shape_of(np.array([0, 1, 0, 2])).runs
    ((0, 2, 1), (2, 1, 2))
    """
    sizes = np.bincount(feature_of)
    order = np.lexsort((feature_of, sizes[feature_of])) if sizes.max() > 1 else np.arange(len(feature_of))
    runs, start = [], 0
    for g in np.unique(sizes):
        k = int((sizes == g).sum())
        runs.append((start, k, int(g)))
        start += k * int(g)
    return BlockShape(order, tuple(runs))
