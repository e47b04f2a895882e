"""A first look at a table: its columns, what they were taken for, and what is wrong with them."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from knockoffs.app.examples import EXAMPLES
from knockoffs.errors import KnockoffWarning
from knockoffs.report.formatting import short
from knockoffs.table.cells import Raw
from knockoffs.table.column_checks import suspicious_columns, warn_of_indexes
from knockoffs.table.columns import Column, recognise_kinds
from knockoffs.table.decoding import from_days, own_values
from knockoffs.table.files import read_table_file, write_table_file
from knockoffs.table.frames import read_columns
from knockoffs.table.moments import MOMENTS, say_duration, unit_of

MOST_ORDERED = 30  # labels whose order can be given in the page
MOST_SHOWN = 4  # values of a column


class Told(TypedDict):
    """One column, as the page shows it."""

    name: str
    shown: str
    kind: str
    may: list[str]
    why: str
    missing: int
    values: str
    levels: list[str] | None
    labels: list[str] | None
    problem: str | None


class Look(TypedDict):
    """A table, as the page shows it."""

    name: str
    n_rows: int
    warnings: list[str]
    columns: list[Told]


def look_at_file(folder: Path, path: str) -> Look:
    """Look at a file that was sent, in its own folder, so that nothing that is said tells where that is."""
    os.chdir(Path(path).parent)
    return look(Path(Path(path).name))


def look_at_example(folder: Path, path: str, key: str) -> Look:
    """Write a table to try, and look at it."""
    write_table_file(EXAMPLES[key].make(), Path(path))
    return look_at_file(folder, path)


def look(path: Path) -> Look:
    """Rows, columns and what was said of a table, as JSON has it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KnockoffWarning)
        frame = read_table_file(path)
        raw = read_columns(frame, "the table")
        columns = recognise_kinds(raw.X, raw.columns, raw.ordered)
        problems = {p.name: f"It {p.what}." for p in (*raw.problems, *suspicious_columns(raw, columns, ()))}
        warn_of_indexes(raw, "the table")
    said = dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, KnockoffWarning))
    return {
        "name": path.name,
        "n_rows": len(raw.X),
        "warnings": list(said),
        "columns": [_told(raw, j, column, problems.get(column.name)) for j, column in enumerate(columns)],
    }


def _told(raw: Raw, j: int, column: Column, problem: str | None) -> Told:
    """One column; what is shown of it is printable, and its name is also told as it is."""
    why = column.why.replace("{name}", repr(short(column.name)))
    levels = column.levels or ()
    texts = [level for level in levels if isinstance(level, str)]
    orderable = 2 < len(levels) <= MOST_ORDERED and len(texts) == len(levels)
    return {
        "name": column.name,
        "shown": short(column.name, 80),
        "kind": column.kind,
        "may": kinds_for(column, raw.X[:, j]),
        "why": short(why.split("; if they are codes")[0], 160),
        "missing": column.n_missing,
        "values": "" if problem else _some_values(column, raw.X[:, j]),
        "levels": texts if orderable else None,
        "labels": [short(level, 40) for level in texts] if orderable else None,
        "problem": problem and short(problem, 300),
    }


def kinds_for(column: Column, values: NDArray) -> list[str]:
    """Kinds that a column may be said to be; what the data speak against is not among them.

    >>> kinds_for(Column("colour", "string", ("blue", "green", "red"), "nominal"), np.zeros(3))
    ['nominal', 'ordinal']
    >>> kinds_for(Column("visits", "integer", None, "count"), np.arange(3.0))
    ['count', 'continuous', 'ordinal', 'nominal']
    """
    if column.levels is not None:
        listed = ["nominal", "ordinal"]
    else:
        whole = column.dtype == "integer" and not np.nanmin(values, initial=0.0) < 0
        codes = column.kind != "continuous"  # else they are too many
        listed = ["continuous", *(["count"] if whole else []), "ordinal", *(["nominal"] if codes else [])]
    return list(dict.fromkeys([column.kind, *listed]))


def _some_values(column: Column, values: NDArray) -> str:
    present = values[:1000][~np.isnan(values[:1000])]
    _, first = np.unique(present, return_index=True)
    some = present[np.sort(first)[:MOST_SHOWN]]
    if column.dtype == "duration":
        words = [say_duration(value, unit_of(present)) for value in some.tolist()]
    elif column.dtype in MOMENTS:
        whole = bool((some == np.rint(some)).all())
        words = [str(day)[: 10 if whole else 16].replace("T", " ") for day in from_days(some, "datetime64[us]")]
    elif column.levels is None:
        words = [f"{value:g}" for value in some]
    else:
        words = [str(value) for value in own_values(column, some)]
    return ", ".join(short(word, 20) for word in words)
