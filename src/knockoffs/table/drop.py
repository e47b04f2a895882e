"""Columns that a user leaves out, before the table is read: they may hold anything."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.table.frames import SomeColumns, as_array, is_frame, keep_columns, open_frame
from knockoffs.table.table import Table


def without_columns(X: object, names: Sequence[str] | None) -> object:
    """X without some of its columns, which are not looked at; the others keep their names."""
    if names is None or not len(names):
        return X
    listed = dict.fromkeys([names] if isinstance(names, str) else [str(name) for name in names])
    columns = names_of(X)
    known = set(columns)
    for name in listed:
        if name not in known:
            raise unknown_option("drop", name, columns)
    kept = np.array([name not in listed for name in columns])
    if not kept.any():
        raise InputError("drop: no column is left. Leave out those that are features.")
    if isinstance(X, Table):
        return X.keep(kept)
    some = keep_columns(X, kept)
    if not isinstance(some, np.ndarray):
        return some
    return SomeColumns(some, tuple(name for name in columns if name not in listed))


def names_of(X: object) -> list[str]:
    """Names of the columns of a table as it came; x0, x1, ... of an array."""
    if isinstance(X, Table):
        return list(X.names)
    if is_frame(X):
        return list(open_frame(X).columns)
    return [f"x{j}" for j in range(np.shape(X if isinstance(X, np.ndarray) else as_array(X, "X"))[-1])]


def columns_of(features: NDArray[np.bool_], table: Table, names: Sequence[str]) -> NDArray[np.bool_]:
    """Columns of X, as it came with all its names, that belong to some features of the table, and its covariates."""
    kept = np.append(features, np.ones(len(table.covariates), dtype=bool))  # covariates are numbered last
    chosen = {name for name, feature in zip(table.names, table.feature_of, strict=True) if kept[feature]}
    return np.array([name in chosen for name in names])
