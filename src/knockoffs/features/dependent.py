"""Columns that others determine exactly: copies in other units, on another scale or under other labels, and sums.

Given the others such a column can never matter, nor can those that it was made of beside it: as long as all are in the
table, P^X would have to copy them into their own knockoffs. What is left without the later ones is free.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning
from knockoffs.features.columns import SAME, constant_columns, dependent_columns, say_relations, standardise
from knockoffs.table.patterns import pattern_of
from knockoffs.table.table import Table

MOST_ROWS = 5000  # or four for each column, on which relations are looked for; what is found is checked on all rows

Relations = dict[int, NDArray[np.intp]]  # for each column to leave out, the columns that determine it


def drop_dependent(table: Table, dependent: str = "drop") -> tuple[Table, dict[str, str]]:
    """Table without a smallest set of columns such that the rest is free, a warning that names them, and a note.

    ``dependent`` is what was asked for: "auto" keeps the columns of one feature together.
    """
    relations = find_relations(table)
    if dependent == "auto":
        relations = _between_features(table, relations)
    if not relations:
        return table, {}
    kept = np.ones(len(table.columns), dtype=bool)
    kept[list(relations)] = False
    said = (
        f"dropped as copies or exact combinations of other columns (dependent={dependent!r}): "
        f"{say_relations(relations, table.names)}. What is said of the others holds in the table without them"
    )
    warnings.warn(f"{said}.", KnockoffWarning, stacklevel=4)
    return table.keep(kept), {"dependent": said}


def warn_of_dependent(table: Table) -> None:
    """Name the columns that others determine, where they are kept."""
    relations = _between_features(table, find_relations(table))
    if relations:
        warnings.warn(
            f"columns are copies or exact combinations of others: {say_relations(relations, table.names)}. Given the "
            "others none of those involved can matter, and the knockoffs of all of them are nearly themselves: "
            f"drop={[table.names[j] for j in relations]!r} leaves the rest free, as dependent='drop' does, and groups= "
            "makes one feature of them.",
            KnockoffWarning,
            stacklevel=4,
        )


def find_relations(table: Table) -> Relations:
    """Columns that others determine: copies, and linear combinations where there are more rows than columns.

    Constant columns are no copies of one another. Labels without an order are copies of other labels at most. Cells are
    missing together in copies; in combinations a missing cell counts as the mean of its column.

    >>> from knockoffs.table.table import read_table
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> find_relations(read_table(np.column_stack([X, np.exp(X[:, 1]), X.sum(axis=1)])))
    {3: array([1]), 4: array([0, 1, 2])}
    """
    n, d = table.X.shape
    varying = np.delete(np.arange(d), constant_columns(table.X))
    some = np.unique(np.linspace(0, n - 1, min(n, max(MOST_ROWS, 4 * d))).astype(np.intp)) if n else np.arange(0)
    copies = find_copies(table, varying, some)
    numbers = [j for j in varying if j not in copies and table.kinds[j] != "nominal"]
    found = copies | _combinations(table, np.array(numbers, dtype=np.intp), some)
    return dict(sorted(found.items()))


# Copies


def find_copies(table: Table, columns: Iterable[int], some: NDArray[np.intp]) -> Relations:
    """Columns that say the same as an earlier one: in the same or the reverse order, labels and steps in any."""
    alike: dict[bytes, list[int]] = {}
    for j in columns:
        alike.setdefault(_pattern(table, j, some), []).append(int(j))
    suspects = [j for same in alike.values() if len(same) > 1 for j in same]
    if len(some) < len(table):
        alike = {}
        for j in suspects:
            alike.setdefault(_pattern(table, j, slice(None)), []).append(j)
    return {j: np.array(same[:1]) for same in alike.values() for j in same[1:]}


def _pattern(table: Table, j: int, rows: NDArray[np.intp] | slice) -> bytes:
    """Key of what a column says."""
    return pattern_of(table.X[rows, j], ordered=table.kinds[j] == "continuous")


# Combinations


def _combinations(table: Table, numbers: NDArray[np.intp], some: NDArray[np.intp]) -> Relations:
    """Columns that are linear combinations of those before them."""
    if len(some) <= len(numbers) or not len(numbers):  # every column is one, then
        return {}
    found = _combinations_in(table.X[some], numbers)
    if len(some) < len(table) and not all(_holds(table.X, j, of) for j, of in found.items()):
        found = _combinations_in(table.X, numbers)
    return found


def _combinations_in(X: NDArray, numbers: NDArray[np.intp]) -> Relations:
    X = _filled(X[:, numbers])
    varies = np.ptp(X, axis=0) > 0  # in these rows
    numbers = numbers[varies]
    if not len(numbers):
        return {}
    found = dependent_columns(standardise(X[:, varies])[0])
    return {int(numbers[j]): numbers[of] for j, of in found.items()}


def _holds(X: NDArray, j: int, of: NDArray[np.intp]) -> bool:
    """Whether a combination that was found in some rows holds in all."""
    Z = standardise(_filled(X[:, [j, *of]]))[0]
    residual = Z[:, 0] - Z[:, 1:] @ np.linalg.lstsq(Z[:, 1:], Z[:, 0], rcond=None)[0]
    return bool(residual @ residual <= SAME * len(Z))


def _filled(X: NDArray) -> NDArray:
    missing = np.isnan(X)
    return np.where(missing, np.nan_to_num(X).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1), X)


def _between_features(table: Table, relations: Relations) -> Relations:
    """Relations of columns that are not all of one feature, where they do no harm."""
    owner = table.feature_of
    return {j: of for j, of in relations.items() if (owner[of] != owner[j]).any()}
