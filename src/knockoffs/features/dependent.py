"""Columns that others determine exactly: one argument leaves a smallest set of them out, whatever the family of P^X."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning
from knockoffs.features.columns import constant_columns, dependent_columns, say_relations, standardise
from knockoffs.table.table import Table


def drop_dependent(table: Table) -> tuple[Table, dict[str, str]]:
    """Table without a smallest set of columns such that the rest is free, a warning that names them, and a note.

    Labels without an order take no part. Missing cells are taken as the mean of their column: copies that are missing
    together are found, combinations of columns with gaps are not.
    """
    relations = _relations(table)
    if not relations:
        return table, {}
    kept = np.ones(len(table.columns), dtype=bool)
    kept[list(relations)] = False
    said = (
        f"dropped as exact combinations of other columns (dependent='drop'): {say_relations(relations, table.names)}. "
        "What is said of the others holds in the table without them"
    )
    warnings.warn(f"{said}.", KnockoffWarning, stacklevel=4)
    return table.keep(kept), {"dependent": said}


def _relations(table: Table) -> dict[int, NDArray[np.intp]]:
    """For each column to leave out, the columns that determine it."""
    numbers = np.array([j for j, kind in enumerate(table.kinds) if kind != "nominal"], dtype=np.intp)
    X = table.X[:, numbers]
    if table.missing:
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    numbers = np.delete(numbers, constant := constant_columns(X))
    if not len(numbers):
        return {}
    found = dependent_columns(standardise(np.delete(X, constant, axis=1))[0])
    return {int(numbers[j]): numbers[of] for j, of in found.items()}
