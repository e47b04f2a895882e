"""Pair: the features X beside their knockoffs X_tilde, and which columns belong to which feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.sampling.swap import swap


class Columnwise(Protocol):
    """A function of the columns of an array, one by one, and the features that own the columns it makes."""

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column of the result."""
        ...

    def __call__(self, X: NDArray) -> NDArray:
        """Columns of the result; X itself where nothing changes."""
        ...


@dataclass(frozen=True)
class Pair:
    """[X, X_tilde] of n rows.

    Parameters
    ----------
    X, X_tilde : array, shape (n, n_columns)
    feature_of : array of int, shape (n_columns,)
        The feature that owns each column: a swap exchanges whole features.
    """

    X: NDArray
    X_tilde: NDArray
    feature_of: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def parts(self) -> tuple[NDArray, ...]:
        """X, and then X_tilde."""
        return self.X, self.X_tilde

    def of(self, parts: tuple[NDArray, ...]) -> Pair:
        """Give other values in place of these."""
        X, X_tilde = parts
        return Pair(X, X_tilde, self.feature_of)

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.X.shape[1]

    @property
    def n_features(self) -> int:
        """Features, each of which owns one column or several."""
        return int(self.feature_of.max()) + 1

    @property
    def stacked(self) -> NDArray:
        """[X, X_tilde] as one array, shape (n, 2 n_columns): what a model of y is fitted on.

        Nothing is copied where the two are the halves of one array already, as a swap leaves them.
        """
        whole = self._whole
        return np.hstack([self.X, self.X_tilde]) if whole is None else whole

    @property
    def _whole(self) -> NDArray | None:
        """The array of which X and X_tilde are the halves, if there is one."""
        whole, shape = self.X.base, (len(self), 2 * self.n_columns)
        if whole is None or whole is not self.X_tilde.base or whole.shape != shape or not whole.flags.c_contiguous:
            return None
        return whole if self.X.ctypes.data == whole.ctypes.data else None

    @property
    def copied(self) -> NDArray[np.bool_]:
        """Which features are their own knockoffs in every row, shape (n_features,)."""
        moved = (self.X != self.X_tilde).any(axis=0)
        return np.bincount(self.feature_of, weights=moved, minlength=self.n_features) == 0

    def swap(self, S: ArrayLike) -> Pair:
        """[X, X_tilde]_swap(S), S of shape (n_features,): the columns of the features in S change places.

        >>> pair = Pair(np.array([[1, 2]]), np.array([[10, 20]]), np.array([0, 1]))
        >>> pair.swap([False, True]).stacked
        array([[ 1, 20, 10,  2]])
        """
        return Pair(*swap(self.X, self.X_tilde, S, self.feature_of), self.feature_of)

    def map(self, columns: Columnwise) -> Pair:
        """Do the same to X and to X_tilde, column by column, so that swaps commute with it."""
        X = columns(self.X)
        return self if X is self.X else Pair(X, columns(self.X_tilde), columns.feature_of)

    def rows(self, which: NDArray | slice) -> Pair:
        """Take some of the rows; halves of one array stay halves of one."""
        whole = self._whole
        if whole is None or isinstance(which, slice):
            return Pair(self.X[which], self.X_tilde[which], self.feature_of)
        taken, d = whole[which], self.n_columns
        return Pair(taken[:, :d], taken[:, d:], self.feature_of)
