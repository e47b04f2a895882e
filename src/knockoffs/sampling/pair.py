"""Pair: X beside its knockoffs, one of each or several, the features of its columns, and the swap of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError


def check_features(feature_of: ArrayLike | None, n_columns: int) -> NDArray[np.intp]:
    """Which feature owns each column, shape (n_columns,): features are 0, ..., m - 1 and each owns a column.

    >>> check_features(None, 3)
    array([0, 1, 2])
    >>> check_features([0, 2, 2], 3)
    Traceback (most recent call last):
    knockoffs.errors.InputError: feature_of has no column for feature 1: number the features 0, 1, 2, ... without gaps.
    """
    if feature_of is None:
        return np.arange(n_columns)
    owners = np.asarray(feature_of)
    if owners.shape != (n_columns,):
        raise InputError(f"feature_of has shape {owners.shape}: expected ({n_columns},), a feature for each column.")
    if owners.dtype.kind not in "iu":
        raise InputError(
            f"feature_of has type {owners.dtype}: expected integers 0, 1, 2, ..., a feature for each column."
        )
    if owners.min() < 0:
        raise InputError(
            f"feature_of is {owners.min()} at column {int(owners.argmin())}: features are numbered from 0."
        )
    empty = np.flatnonzero(np.bincount(owners) == 0)
    if empty.size:
        raise InputError(
            f"feature_of has no column for feature {empty[0]}: number the features 0, 1, 2, ... without gaps."
        )
    return owners.astype(np.intp)


def swap(
    X: NDArray, X_tilde: NDArray, S: ArrayLike, feature_of: NDArray[np.intp] | None = None
) -> tuple[NDArray, NDArray]:
    """[X, X_tilde]_swap(S): the columns of the features in S change places.

    Parameters
    ----------
    X, X_tilde : array, shape (n, n_columns)
    S : array-like of bool, shape (n_features,)
        True where the feature is swapped.
    feature_of : array of int, shape (n_columns,), optional
        Feature of each column; one column a feature if left out.

    Returns
    -------
    tuple of two arrays, shape (n, n_columns)

    >>> swap(np.array([[1, 2]]), np.array([[10, 20]]), [False, True])
    (array([[ 1, 20]]), array([[10,  2]]))
    """
    mask = np.asarray(S)
    n, d = X.shape
    m = d if feature_of is None else int(np.max(feature_of, initial=-1)) + 1
    if mask.dtype.kind != "b" or mask.shape != (m,):  # numbers of features would be taken for truth values
        got = f"S has dtype {mask.dtype} and shape {mask.shape}"
        raise InputError(f"{got}: expected True or False for each of {m} features.")
    if X_tilde.shape != X.shape:
        raise InputError(f"X has shape {X.shape} and X_tilde {X_tilde.shape}: they must be the same.")
    owners = np.arange(d) if feature_of is None else feature_of
    first, second = permute((X, X_tilde), np.stack([mask, ~mask]).astype(np.intp), owners)
    return first, second


def permute(parts: Sequence[NDArray], place: NDArray[np.intp], feature_of: NDArray[np.intp]) -> list[NDArray]:
    """X and its m knockoffs with the parts of each feature in another order; a swap is that with m = 1.

    ``place[l, g]`` is the part of feature g that stands l-th. The m + 1 arrays, shape (n, n_columns), are views of one
    array, side by side, so that a model can be fitted on it without another copy.
    """
    n, d = parts[0].shape
    views = split_columns(np.empty((n, len(parts) * d), dtype=np.result_type(*parts)), len(parts))
    for i, (view, order) in enumerate(zip(views, place[:, feature_of], strict=True)):
        view[:] = parts[i]
        for k, part in enumerate(parts):
            if k != i:
                np.copyto(view, part, where=order == k)
    return views


def split_columns(whole: NDArray, n_parts: int) -> list[NDArray]:
    """Split the columns of an array into parts of equal width, as views."""
    d = whole.shape[1] // n_parts
    return [whole[:, part * d : (part + 1) * d] for part in range(n_parts)]


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
    """[X, X_tilde] of n rows; with m knockoffs of each feature, [X, X_tilde, *more].

    Parameters
    ----------
    X, X_tilde : array, shape (n, n_columns)
    feature_of : array of int, shape (n_columns,)
        The feature that owns each column: a swap exchanges whole features.
    more : tuple of arrays, shape (n, n_columns)
        Further knockoffs, m - 1 of them. X and its m knockoffs can change places feature by feature.
    """

    X: NDArray
    X_tilde: NDArray
    feature_of: NDArray[np.intp]
    more: tuple[NDArray, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[NDArray], feature_of: NDArray[np.intp]) -> Pair:
        """Pair of X and its knockoffs, given as one sequence."""
        X, X_tilde, *more = parts
        return cls(X, X_tilde, feature_of, tuple(more))

    def __len__(self) -> int:
        return len(self.X)

    @property
    def parts(self) -> tuple[NDArray, ...]:
        """X, and then its knockoffs."""
        return self.X, self.X_tilde, *self.more

    @property
    def m(self) -> int:
        """Number of knockoffs of each feature."""
        return 1 + len(self.more)

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
        """[X, X_tilde, *more] as one array, shape (n, (m + 1) n_columns): what a model of y is fitted on.

        Nothing is copied if the parts are views of such an array already, as a swap leaves them.
        """
        whole = self._whole
        return np.hstack(self.parts) if whole is None else whole

    @property
    def _whole(self) -> NDArray | None:
        """The array of which the parts are views, side by side, if there is one."""
        whole, shape = self.X.base, (len(self), (self.m + 1) * self.n_columns)
        if whole is None or any(whole is not part.base for part in self.parts[1:]):
            return None
        if whole.shape != shape or not whole.flags.c_contiguous:
            return None
        return whole if self.X.ctypes.data == whole.ctypes.data else None

    @property
    def copied(self) -> NDArray[np.bool_]:
        """Which features equal their knockoffs in every row, all m of them, shape (n_features,)."""
        moved = np.zeros(self.n_columns, dtype=bool)
        for knockoff in self.parts[1:]:
            moved |= (self.X != knockoff).any(axis=0)
        return np.bincount(self.feature_of, weights=moved, minlength=self.n_features) == 0

    def swap(self, S: ArrayLike) -> Pair:
        """[X, X_tilde]_swap(S), S of shape (n_features,): the columns of the features in S change places.

        >>> pair = Pair(np.array([[1, 2]]), np.array([[10, 20]]), np.array([0, 1]))
        >>> pair.swap([False, True]).stacked
        array([[ 1, 20, 10,  2]])
        """
        return Pair(*swap(self.X, self.X_tilde, S, self.feature_of), self.feature_of)

    def permute(self, place: NDArray[np.intp]) -> Pair:
        """Pair with the parts of each feature in another order, see ``permute`` of this module."""
        return Pair.of(permute(self.parts, place, self.feature_of), self.feature_of)

    def map(self, columns: Columnwise) -> Pair:
        """Do the same to X and to its knockoffs, column by column, so that swaps commute with it."""
        X = columns(self.X)
        return self if X is self.X else Pair.of([X, *map(columns, self.parts[1:])], columns.feature_of)

    def without_knockoffs(self, columns: NDArray[np.intp]) -> Pair:
        """Pair in which some columns are their own knockoffs: a model of y sees nothing of them but themselves.

        >>> Pair(np.array([[1, 2]]), np.array([[10, 20]]), np.array([0, 1])).without_knockoffs(np.array([1])).stacked
        array([[ 1,  2, 10,  2]])
        """
        if not len(columns):
            return self
        knockoffs = [part.copy() for part in self.parts[1:]]
        for part in knockoffs:
            part[:, columns] = self.X[:, columns]
        return Pair.of([self.X, *knockoffs], self.feature_of)

    def rows(self, which: NDArray | slice) -> Pair:
        """Take some of the rows; views of one array stay views of one."""
        whole = self._whole
        if whole is None or isinstance(which, slice):
            return Pair.of([part[which] for part in self.parts], self.feature_of)
        return Pair.of(split_columns(whole[which], self.m + 1), self.feature_of)


def stack_pairs(pairs: Sequence[Pair]) -> Pair:
    """Pair of the rows of all, one after another."""
    parts = (np.concatenate(part) for part in zip(*(pair.parts for pair in pairs), strict=True))
    return Pair.of(tuple(parts), pairs[0].feature_of)
