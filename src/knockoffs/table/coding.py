"""Labels and whole numbers of a table as codes, and knockoffs that were brought along in the codes of their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_columns, name_some, warn
from knockoffs.table.cells import is_number
from knockoffs.table.columns import CODED, Column, recode
from knockoffs.table.frames import is_frame, is_pandas, read_columns
from knockoffs.table.table import Table, refuse
from knockoffs.table.types import Frame, Label


def code_by(table: Table, levels: Mapping[str, Sequence[Label]], argument: str = "X") -> Table:
    """Table whose labels have the codes that a fitted family has for them."""
    X, columns = table.X.copy(), list(table.columns)
    for j, column in enumerate(columns):
        if column.name in levels and column.dtype in CODED:
            X[:, j], columns[j] = recoded(X[:, j], column, levels[column.name], argument)
    return replace(table, X=X, columns=tuple(columns))


def code_whole_numbers(table: Table, most: int = 100) -> Table:
    """Table whose columns of whole numbers are codes of their distinct values, for families of discrete features.

    >>> from knockoffs.table.table import read_table
    >>> code_whole_numbers(read_table([[3], [7], [3]])).X.tolist()
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
    named = read_columns(knockoffs, "knockoffs", table.columns if is_frame(knockoffs) else None)
    refuse(named.problems[:1], "knockoffs")
    levels = {column.name: column.levels for column in table.columns if column.levels is not None}
    for j, column in enumerate(named.columns):
        if column.levels is not None and column.name in levels:
            named.X[:, j], _ = recoded(named.X[:, j], column, levels[column.name], "knockoffs")
    check_finite(named.X, [column.name for column in named.columns], "knockoffs")
    X_tilde, names = named.X, tuple(column.name for column in named.columns)
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
    if named.named and table.named and names != table.names:
        j = next(j for j, (a, b) in enumerate(zip(names, table.names, strict=True)) if a != b)
        raise InputError(
            f"column {j} is called {names[j]!r} in knockoffs and {table.names[j]!r} in X: bring them in one order."
        )
    if np.array_equal(X_tilde, table.X):
        raise InputError("knockoffs are equal to X: copies are valid knockoffs, but nothing can be selected with them.")
    same = np.flatnonzero((X_tilde == table.X).all(axis=0))
    if same.size:
        listed = name_some([table.names[j] for j in same])
        warn(f"knockoffs equal X in {same.size} columns ({listed}), which can never be selected.")
    return X_tilde


def recoded(values: NDArray, column: Column, known: Sequence[Label], argument: str) -> tuple[NDArray, Column]:
    """Codes of a column in the order of the labels that a fitted family knows, and the column with these labels."""
    present = column.levels or ()
    unseen = sorted({str(level) for level in present} - set(map(str, known)))  # a family may call True "True"
    if unseen:
        raise InputError(
            f"column {column.name!r} of {argument} holds {name_some(unseen)}, and the feature model knows "
            f"{name_some(known)}."
        )
    own = {str(level): level for level in present}
    levels = tuple(own.get(str(level), level) for level in known)
    return recode(values, present, known), replace(column, levels=levels)


def check_finite(X: NDArray[np.float64], names: Sequence[str], argument: str) -> None:
    """Refuse NaN and infinity, naming the columns and the first row."""
    finite = np.isfinite(X)
    if finite.all():
        return
    i, j = (int(k) for k in np.argwhere(~finite)[0])
    bad = [names[int(k)] for k in np.flatnonzero(~finite.all(axis=0))]
    found = "NaN" if np.isnan(X[~finite]).all() else "inf" if not np.isnan(X).any() else "NaN and inf"
    raise InputError(
        f"{argument} contains {found} in {name_columns(bad)}, the first in row {i}, column {names[j]!r}: drop or "
        "impute these values before the selection; fill them in by a model of the features, not of the target."
    )


def code_like(frame: Frame, columns: Sequence[Column], argument: str) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Frame in the codes of a table that was read before and has the same columns.

    And how many cells of each column have a label that the table does not have; they are missing.
    """
    raw = read_columns(frame, argument, columns)
    refuse(raw.problems, argument)
    X, unknown = raw.X, np.zeros(len(columns), dtype=np.intp)
    for j, (mine, column) in enumerate(zip(raw.columns, columns, strict=True)):
        if mine.levels is None and column.levels is None:
            continue
        present = ~np.isnan(X[:, j])
        if not present.any():
            continue
        if column.levels is None:
            labels = mine.levels or ()
            raise InputError(
                f"column {column.name!r} of {argument} holds labels, {name_some(labels, 3)}, where the rows that were "
                "read first held numbers or dates: make the column one kind, or drop it."
            )
        if mine.levels is not None:
            X[:, j] = recode(X[:, j], mine.levels, column.levels)
        else:  # numbers that are labels there
            known = {float(level): k for k, level in enumerate(column.levels) if is_number(level)}  # type: ignore[arg-type]
            values, which = np.unique(X[present, j], return_inverse=True)
            X[present, j] = np.array([known.get(float(value), np.nan) for value in values])[which]
        unknown[j] = int((present & np.isnan(X[:, j])).sum())
    infinite = np.isinf(X)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise InputError(f"column {columns[j].name!r} of {argument} is {X[i, j]} in its row {i}: numbers are finite.")
    return X, unknown
