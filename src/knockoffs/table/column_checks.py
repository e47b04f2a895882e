"""Columns that are no features: identifiers, free text, an index that was written with the table, too few cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import name_some, warn
from knockoffs.table.cells import LARGEST, SMALLEST, Problem, is_missing, is_number, stray
from knockoffs.table.columns import SCALE, Column, ends, few_digits
from knockoffs.table.frames import Raw, keep_columns, open_frame

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

    FrameT = TypeVar("FrameT", bound=IntoDataFrame)


FEWEST_CELLS = 10  # a column with most of its cells missing needs so many observed ones,
MOST_MISSING = 0.95  # and may lack this share of them: the rest says too little about its law
MOST_LABELS = 1000  # of a nominal column
FEWEST_ROWS = 5  # labels that are all different in fewer rows may be just few rows
FEWEST_COUNTED = 10  # fewer rows may be counted by chance
# numbers that are often written for a missing one; -127 is what readers of .bed files write for a missing call
STAND_INS = (-9, -99, -127, -999, -9999, -99999, 99, 999, 9999, 99999)
FAR = "far from the other numbers: if that stands for a missing value, make these cells empty."


def suspicious_columns(raw: Raw, columns: Sequence[Column], overruled: Collection[str]) -> list[Problem]:
    """Columns that cannot be features, those that were read; ``overruled`` are names whose kind a user gave."""
    unread = {problem.name for problem in raw.problems}
    low, high = ends(raw.X)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
    extreme = (np.fmax(-low, high) > LARGEST) | ((span > 0) & (span < SMALLEST))  # of which computing makes 0 or inf
    found = []
    for j, column in enumerate(columns):
        if column.name in unread:
            continue
        values = raw.X[:, j]
        problem = _extreme(column, values) if extreme[j] else _too_few(column, len(values))
        if problem is None and column.levels is not None and column.kind == "nominal":
            problem = _no_category(column, values, column.name in overruled)
        if problem is not None:
            found.append(problem)
    return found


def _extreme(column: Column, values: NDArray) -> Problem:
    rows = np.flatnonzero(np.isinf(values))
    if rows.size:
        many = f"{len(rows)} cells, the first in row {rows[0]}" if len(rows) > 1 else f"row {rows[0]}"
        return Problem(column.name, f"holds infinity in {many}", "make these cells missing, or finite numbers")
    largest = np.nanmax(np.abs(values))
    if largest > LARGEST:
        return Problem(column.name, f"holds numbers as large as {largest:.3g}", "divide it by a power of ten")
    return Problem(column.name, f"varies by less than {SMALLEST:g}", "multiply it by a power of ten")


def _too_few(column: Column, n: int) -> Problem | None:
    observed = n - column.n_missing
    if column.n_missing == 0:
        return None
    if observed == 0:
        return Problem(column.name, f"is missing in all {n} rows", "drop it")
    if (observed >= FEWEST_CELLS or 2 * observed > n) and column.n_missing <= MOST_MISSING * n:
        return None
    return Problem(
        column.name,
        f"has {observed} observed cells in {n} rows, too few for a model of it (at least {FEWEST_CELLS} and "
        f"{100 * (1 - MOST_MISSING):.0f} % are needed)",
        "drop it, or make it a column that says whether the cell is there",
    )


def _no_category(column: Column, values: NDArray, overruled: bool) -> Problem | None:
    """Refuse labels that are identifiers, free text, or numbers with a stray word among them."""
    levels = column.levels or ()
    m, n = len(levels), len(values) - column.n_missing
    if m == n and n >= FEWEST_ROWS:
        return _stray_word(column, values, fewest=2) or Problem(
            column.name,
            f"has a different label in each of {n} rows, for instance {levels[0]!r}: an identifier, or text",
            "drop it, or make categories, numbers or dates of it",
        )
    if overruled or m <= SCALE:
        return None
    if 2 * m > n or m > MOST_LABELS:
        return _stray_word(column, values, fewest=2) or Problem(
            column.name,
            f"has {m} different labels in {n} rows, for instance {levels[0]!r}: free text, or too many categories",
            "drop it, or make fewer categories, numbers or dates of it",
        )
    return _stray_word(column, values)


def _stray_word(column: Column, values: NDArray, fewest: int = SCALE) -> Problem | None:
    """Problem of a column of numbers as text with a few words among them; None if it is none."""
    levels = column.levels or ()
    numeric = np.array([is_number(level) for level in levels], dtype=bool)
    most = max(1, min(5, 0.1 * len(levels)))
    if numeric.sum() <= fewest or (~numeric).sum() > most or numeric.all():
        return None
    words = set(np.flatnonzero(~numeric).tolist())
    rows = np.flatnonzero(np.isin(values, list(words)))
    return stray(column.name, "numbers", [(int(i), levels[int(values[i])]) for i in rows])


# ---- what is said, not refused ------------------------------------------------------------------------------------


def warn_of_words(raw: Raw, argument: str) -> None:
    """Warn of words in text columns that are taken as missing cells, such as NA or a question mark."""
    for words in sorted({tuple(sorted(column.words)) for column in raw.columns if column.words}):
        names = name_some(column.name for column in raw.columns if tuple(sorted(column.words)) == words)
        warn(
            f"{argument}: {name_some(words)} taken as missing in {names}; a column of categories keeps them as labels."
        )


def warn_of_indexes(raw: Raw, argument: str) -> None:
    """Warn of columns that count the rows, or are called an identifier and never repeat.

    Such a column may be a feature, the order of the measurements; what is called an index is left out before.
    """
    X = raw.X
    n = len(X)
    if n < FEWEST_COUNTED:
        return
    suspects = ((X[0] == 0) | (X[0] == 1)) & (X[-1] == X[0] + n - 1)
    counted = [j for j in np.flatnonzero(suspects) if (np.diff(X[:, j]) == 1).all()]
    called = [
        (j, len(np.unique(X[:, j])))
        for j, column in enumerate(raw.columns)
        if raw.named and column.dtype == "integer" and _says_id(column.name)
    ]
    found = sorted({*map(int, counted), *(j for j, n_distinct in called if n_distinct == n)})
    repeating = [j for j, n_distinct in called if n / 2 < n_distinct < n and j not in found]
    if repeating:
        listed = name_some(raw.columns[j].name for j in repeating)
        warn(
            f"column{'' if len(repeating) == 1 else 's'} {listed} of {argument}: the name says identifier, and most "
            "values occur once or twice. Drop what is no measurement."
        )
    if found:
        listed = name_some(raw.columns[j].name for j in found)
        column, verb = ("column", "numbers") if len(found) == 1 else ("columns", "number")
        names = ", ".join(repr(raw.columns[j].name) for j in found[:5])
        warn(f"{column} {listed} of {argument} {verb} the rows. Drop an index or identifier: drop=[{names}] (--drop).")


def _says_id(name: str) -> bool:
    words = name.strip().lower().replace("-", "_").replace(" ", "_").split("_")
    return "id" in words or name.endswith(("Id", "ID"))


def warn_of_stand_ins(raw: Raw, argument: str) -> None:
    """Warn of a -999 or the like that repeats and lies further from all other numbers than these from one another."""
    found = []
    for end in ends(raw.X):
        for j in np.flatnonzero(np.isin(end, STAND_INS)):
            if raw.columns[j].levels is None and (count := _stands_apart(raw.X[:, j], end[j])):
                found.append(f"{end[j]:g} in {count} cells of column {raw.columns[j].name!r}")
    if found:
        warn(f"{argument} holds {', '.join(found[:5])}, {FAR}")


def warn_of_target(values: NDArray, kind: str) -> None:
    """Warn of a -999 or the like in a target, and of a number so far from zero that digits are lost."""
    if values.dtype.kind in "iuf":
        for end in (float(values.min()), float(values.max())):
            if end in STAND_INS and (count := _stands_apart(values.astype(float), end)):
                warn(f"y is {end:g} in {count} rows, {FAR}")
    if kind == "number" and few_digits(values[:, None].astype(float))[0]:
        warn(f"y {_lost_digits(values)}")


def _stands_apart(values: NDArray, end: float) -> int:
    """How often the least or largest number repeats further from the others than these are from one another, or 0."""
    count = int((values == end).sum())
    others = values[~np.isnan(values) & (values != end)]
    if count < 2 or not len(others):
        return 0
    gap = max(others.min() - end, end - others.max())
    return count if 0 < np.ptp(others) < gap else 0


def warn_of_rows(X: NDArray, argument: str) -> None:
    """Warn of rows in which every cell is missing: their features are drawn from P^X alone."""
    rows = np.flatnonzero(np.isnan(X).all(axis=1))
    if rows.size:
        warn(
            f"{argument} has no value at all in {rows.size} row{'' if rows.size == 1 else 's'}, the first is row "
            f"{rows[0]}: such rows say nothing about the features; drop them."
        )


def warn_of_lost_digits(raw: Raw, argument: str) -> None:
    """Warn of columns so far from zero that floating-point numbers keep few digits of what varies."""
    found = np.flatnonzero(few_digits(raw.X))
    if found.size:
        names = name_some([raw.columns[j].name for j in found])
        warn(f"{argument}: {names} {_lost_digits(raw.X[:, found[0]])}")


def _lost_digits(values: NDArray) -> str:
    largest = np.nanmax(np.abs(values))
    return (
        f"lies so far from zero that digits are lost: its range is {np.nanmax(values) - np.nanmin(values):.3g}, and "
        f"floating-point numbers near {largest:.3g} are {np.spacing(largest):.3g} apart. Subtract a constant where the "
        "numbers are made."
    )


# ---- an index that was written beside the table ----------------------------------------------------------------------
INDEX = re.compile(r"|__index_level_0__|Unnamed: ?[0-9]+(\.[0-9]+)*|\s*(?i:index|level_0|row|row\.?names?)\s*")


def without_index(frame: FrameT, label: str, asked: Collection[str] = ()) -> FrameT:
    """Frame without the columns that other programs write beside a table; a warning names them.

    Such a column has no name, or one that other programs give it. It counts the rows from 0 or 1, holds a text of its
    own for each of them, or holds nothing.
    Columns that the caller names, ``asked``, are never left out.
    """
    opened = open_frame(frame, label)
    found = {
        name: _as_index(opened.get_column(name))
        for name in opened.columns
        if name not in asked and INDEX.fullmatch(name)
    }
    found = {name: does for name, does in found.items() if does}
    if not found or len(found) == len(opened.columns):
        return frame
    for name, does in found.items():
        warn(f"{label}: the column {name!r} {does} and is left out.")
    return keep_columns(frame, np.array([name not in found for name in opened.columns]))


def _as_index(series: nw.Series) -> str:
    """Say what a column without a name of its own does, if it is no feature."""
    if series.name == "__index_level_0__":
        return "numbers the rows" if series.dtype.is_numeric() else "names the rows"
    values = series.to_numpy()
    n = len(values)
    if values.dtype.kind in "iu" and any(np.array_equal(values, np.arange(k, n + k)) for k in (0, 1)):
        return "numbers the rows"
    cells = values.tolist()
    if n > 1 and len({cell for cell in cells if isinstance(cell, str) and cell}) == n:
        return "names the rows"
    return "holds nothing" if all(map(is_missing, cells)) else ""
