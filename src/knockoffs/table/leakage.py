"""The target among the features: as it is, or in other units or words."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.table.redundancy import pattern_of
from knockoffs.table.table import Table

FIRST_ROWS = 64  # which rule out almost every column
FEWEST_ROWS = 20  # of fewer, a column may determine the target by chance


def refuse_copy_of_target(values: NDArray, table: Table, observed: NDArray[np.bool_] | None = None) -> None:
    """Refuse a table that has a column equal to the target in every row."""
    if values.dtype.kind not in "biuf" or not len(values):
        return
    y = values.astype(float)
    rows = np.arange(len(y)) if observed is None else np.flatnonzero(observed)
    candidates = np.arange(table.X.shape[1])
    block = 1
    while candidates.size:  # a few rows rule out almost every column
        candidates = candidates[(table.X[np.ix_(rows[:block], candidates)] == y[:block, None]).all(axis=0)]
        if block >= len(y):
            break
        block = min(block * 8, len(y))
    if candidates.size:
        raise InputError(
            f"column {table.names[candidates[0]]!r} of X equals y in every row: the target is among the "
            "features. Drop that column."
        )


def warn_of_target_in_other_words(values: NDArray, kind: str, table: Table, observed: NDArray[np.bool_]) -> None:
    """Warn of columns that determine the target and are determined by it.

    Parameters
    ----------
    values : array, shape (n_observed,)
    kind : str
        Of the target: a number may have another scale in the table, classes other labels.
    table : Table
    observed : array of bool, shape (n,)
        Rows in which the target is known.
    """
    if len(values) < FEWEST_ROWS:
        return
    ordered = kind in ("number", "count") and len(np.unique(values)) >= FEWEST_ROWS
    y = np.unique(values, return_inverse=True)[1].astype(float)
    places = [j for j, column in enumerate(table.kinds) if (column == "continuous") == ordered]
    for rows in (np.flatnonzero(observed)[:FIRST_ROWS], np.flatnonzero(observed)):
        mine = pattern_of(y[: len(rows)], ordered=ordered)
        places = [j for j in places if pattern_of(table.X[rows, j], ordered=ordered) == mine]
        if not places:
            return
    warnings.warn(
        f"y and {name_some(table.names[j] for j in places)} determine each other in all {len(y)} rows: is that the "
        "target in other units or words? Drop it then; beside it no other column can matter.",
        KnockoffWarning,
        stacklevel=4,
    )
