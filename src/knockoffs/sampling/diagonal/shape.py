"""The shape of a block-diagonal D, and products of block-diagonal matrices that are kept as one vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BlockShape:
    """Where the blocks of D lie: columns by the size of their feature, blocks of one size as one array (k, g, g).

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
