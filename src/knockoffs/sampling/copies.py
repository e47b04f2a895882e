"""Copies: the features X beside several knockoffs of each, any of which can change places with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.pair import Columnwise, Pair


@dataclass(frozen=True)
class Copies:
    """[X, X_1, ..., X_m] of n rows; a ``Pair`` is that with m = 1.

    Parameters
    ----------
    parts : tuple of arrays, shape (n, n_columns)
        X, and then its m knockoffs.
    feature_of : array of int, shape (n_columns,)
        The feature that owns each column: whole features change places.
    """

    parts: tuple[NDArray, ...]
    feature_of: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.feature_of.max()) + 1

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.parts[0].shape[1]

    @property
    def stacked(self) -> NDArray:
        """[X, X_1, ..., X_m], shape (n, (m + 1) n_columns), as a model of y sees it."""
        return np.hstack(self.parts)

    @property
    def copied(self) -> NDArray[np.bool_]:
        """Which features are their own knockoffs in every row, all m of them, shape (n_features,)."""
        X, *others = self.parts
        moved = np.any([(X != other).any(axis=0) for other in others], axis=0)
        return np.bincount(self.feature_of, weights=moved, minlength=self.n_features) == 0

    @property
    def first(self) -> Pair:
        """X beside the first of its knockoffs, which is a knockoff like any other."""
        return Pair(self.parts[0], self.parts[1], self.feature_of)

    def permute(self, place: NDArray[np.intp]) -> Copies:
        """Let copies of each feature change places: place[l, g], shape (m + 1, n_features), is which one stands l-th.

        >>> copies = Copies((np.array([[1, 2]]), np.array([[10, 20]]), np.array([[100, 200]])), np.array([0, 1]))
        >>> copies.permute(np.array([[0, 2], [1, 0], [2, 1]])).stacked
        array([[  1, 200,  10,   2, 100,  20]])
        """
        moved = np.take_along_axis(np.stack(self.parts), place[:, self.feature_of][:, None, :], axis=0)
        return Copies(tuple(moved), self.feature_of)

    def map(self, columns: Columnwise) -> Copies:
        """Do the same to X and to its knockoffs, column by column, so that changes of place commute with it."""
        X = columns(self.parts[0])
        return self if X is self.parts[0] else Copies((X, *map(columns, self.parts[1:])), columns.feature_of)

    def rows(self, which: NDArray | slice) -> Copies:
        """Take some of the rows."""
        return self.of(tuple(part[which] for part in self.parts))

    def of(self, parts: tuple[NDArray, ...]) -> Copies:
        """Give other values in place of these."""
        return Copies(parts, self.feature_of)


Beside = TypeVar("Beside", Pair, Copies)  # X beside one knockoff, or several
