"""swap(X, X_tilde, S): the one operation every property of knockoffs is stated with."""

from __future__ import annotations

from collections.abc import Sequence

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

    Parameters
    ----------
    parts : sequence of m + 1 arrays, shape (n, n_columns)
    place : array of int, shape (m + 1, n_features)
        ``place[l, g]`` is the part of feature g that stands l-th.
    feature_of : array of int, shape (n_columns,)

    Returns
    -------
    list of m + 1 arrays, shape (n, n_columns)
        Views of one array, side by side, so that a model can be fitted on it without another copy.
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
