"""Labels and whole numbers of a table as codes, and knockoffs that were brought along in the codes of their table."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.table.columns import CODED
from knockoffs.table.reading import (
    is_pandas,
)
from knockoffs.table.table import Table, as_table, recoded
from knockoffs.table.types import Label


def code_by(table: Table, levels: Mapping[str, Sequence[Label]], argument: str = "X") -> Table:
    """Table whose labels have the codes that a fitted family has for them."""
    X, columns = table.X.copy(), list(table.columns)
    for j, column in enumerate(columns):
        if column.name in levels and column.dtype in CODED:
            X[:, j], columns[j] = recoded(X[:, j], column, levels[column.name], argument)
    return replace(table, X=X, columns=tuple(columns))


def code_whole_numbers(table: Table, most: int = 100) -> Table:
    """Table whose columns of whole numbers are codes of their distinct values, for families of discrete features.

    >>> code_whole_numbers(as_table([[3], [7], [3]])).X.tolist()
    [[0.0], [1.0], [0.0]]
    """
    X, columns = table.X.copy(), list(table.columns)
    for j, column in enumerate(columns):
        if column.levels is not None or not np.array_equal(np.rint(X[:, j]), X[:, j]):
            continue
        values, codes = np.unique(X[:, j], return_inverse=True)
        if len(values) <= most:
            X[:, j] = codes
            levels = values.astype(np.int64) if column.dtype == "integer" else values
            columns[j] = replace(column, levels=tuple(levels.tolist()))
    return replace(table, X=X, columns=tuple(columns))


def check_knockoffs(knockoffs: object, table: Table) -> NDArray[np.float64]:
    """Check knockoffs that were brought along: the shape and names of X, numbers, and not X itself."""
    if callable(knockoffs):
        raise InputError(
            "knockoffs is a function: pass what it makes of X, a table of the same shape. A law that draws them goes "
            "to feature_model."
        )
    levels = {column.name: column.levels for column in table.columns if column.levels is not None}
    named = as_table(knockoffs, labels=bool(levels), levels=levels, argument="knockoffs")
    X_tilde = named.X
    if is_pandas(knockoffs) and is_pandas(table.native) and len(knockoffs) == len(table):
        if not knockoffs.index.equals(table.native.index):
            raise InputError(
                "knockoffs and X have different indexes: bring the rows in one order (knockoffs.loc[X.index]), or "
                "reset both indexes if the rows do belong together."
            )
    if X_tilde.shape != table.X.shape:
        raise InputError(
            f"knockoffs have shape {X_tilde.shape} and X has shape {table.X.shape}: they must be the same."
        )
    if named.named and table.named and named.names != table.names:
        j = next(j for j, (a, b) in enumerate(zip(named.names, table.names, strict=True)) if a != b)
        raise InputError(
            f"column {j} is called {named.names[j]!r} in knockoffs and {table.names[j]!r} in X: "
            "bring them in one order."
        )
    if np.array_equal(X_tilde, table.X):
        raise InputError("knockoffs are equal to X: copies are valid knockoffs, but nothing can be selected with them.")
    same = np.flatnonzero((X_tilde == table.X).all(axis=0))
    if same.size:
        listed = name_some([table.names[j] for j in same])
        warnings.warn(
            f"knockoffs equal X in {same.size} columns ({listed}), which can never be selected.",
            KnockoffWarning,
            stacklevel=3,
        )
    return X_tilde
