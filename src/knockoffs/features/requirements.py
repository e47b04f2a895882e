"""What a family of P^X can take of a table: labels, numbers, missing cells."""

from __future__ import annotations

import numpy as np

from knockoffs.errors import InputError, name_columns, name_some
from knockoffs.features import FAMILIES
from knockoffs.table.table import Table


def check_takes(table: Table, takes: tuple[str, ...], argument: str) -> None:
    """Refuse columns that a family cannot model, by name, and say which can."""
    if "labels" not in takes:
        labels = [c for c in table.columns if c.levels is not None and c.dtype not in ("boolean", "number", "integer")]
        if labels:
            example = next(iter(labels[0].levels or ("",)))
            raise InputError(
                f"{argument} holds labels, not numbers, in {name_columns([c.name for c in labels])}, for instance "
                f"{example!r} in column {labels[0].name!r}. This feature model could not convert string to "
                f"float: use one that takes labels ({_families_that_take('labels')}), or drop the columns."
            )
    if "missing" not in takes and table.missing:
        empty = np.isnan(table.X)
        i, j = (int(k) for k in np.argwhere(empty)[0])
        bad = [table.names[int(k)] for k in np.flatnonzero(empty.any(axis=0))]
        raise InputError(
            f"{argument} contains NaN in {name_columns(bad)}, the first in row {i}, column {table.names[j]!r}: use a "
            f"feature model that takes missing cells ({_families_that_take('missing')}), or drop or impute these "
            "values before the selection; fill them in by a model of the features, not of the target."
        )


def _families_that_take(word: str) -> str:
    return ", ".join(repr(name) for name, family in FAMILIES.items() if word in family.takes) or "none yet"


def has_labels(table: Table) -> bool:
    """Whether any column holds labels."""
    return any(column.levels is not None for column in table.columns)


def refuse_numbers(table: Table, argument: str) -> None:
    """Refuse columns that have no levels where every column must have them."""
    numbers = [j for j, column in enumerate(table.columns) if column.levels is None]
    if numbers:
        names, example = name_some(table.names[j] for j in numbers), table.X[0, numbers[0]]
        raise InputError(
            f"{argument} has columns of numbers, {names} (for instance {example:g}), and this feature model takes them "
            "as labels, at most 100 in a column, where any column holds labels: cut the numbers into classes, drop the "
            "columns, or use naive-bayes, which takes both."
        )


def check_width(n_columns: int, table: Table) -> None:
    """Refuse a table of another width than a given P^X."""
    if n_columns != len(table.columns):
        raise InputError(f"feature_model has {n_columns} columns and X has {len(table.columns)}: they must agree.")
