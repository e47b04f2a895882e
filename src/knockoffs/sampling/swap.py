"""swap(X, X_tilde, S): the one operation every property of knockoffs is stated with."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError


def one_column_a_feature(n_columns: int) -> NDArray[np.intp]:
    """Feature of each column in the common case: column j is feature j."""
    return np.arange(n_columns)


def check_features(feature_of: ArrayLike | None, n_columns: int) -> NDArray[np.intp]:
    """Feature that owns each column, as an array of 0, ..., n_features - 1.

    Parameters
    ----------
    feature_of : array-like of int, shape (n_columns,), optional
        None gives every column a feature of its own.

    Returns
    -------
    array of int, shape (n_columns,)
    """
    if feature_of is None:
        return one_column_a_feature(n_columns)
    owners = np.asarray(feature_of)
    if owners.shape != (n_columns,):
        raise InputError(f"feature_of has shape {owners.shape}: expected one feature for each of {n_columns} columns.")
    missing = np.setdiff1d(np.arange(owners.max() + 1), owners)
    if not np.issubdtype(owners.dtype, np.integer) or owners.min() < 0 or missing.size:
        raise InputError("feature_of must number the features 0, 1, ... without a gap.")
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
    mask = np.asarray(S, dtype=bool)
    columns = mask if feature_of is None else mask[feature_of]
    return np.where(columns, X_tilde, X), np.where(columns, X, X_tilde)
