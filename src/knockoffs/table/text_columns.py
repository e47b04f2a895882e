"""Columns of text that hold dates or amounts become numbers, and say so; what cannot be told is a problem."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning
from knockoffs.table.cells import Problem, Raw, stray
from knockoffs.table.columns import Column
from knockoffs.table.delimited_cells import NO_NUMBER
from knockoffs.table.written import formats_of, is_date, read_text

MOST_STRAY = 5  # different texts among dates that are pointed at; a column with more of them holds no dates
FEWEST_TOLD = 10  # different dates from which on a text among them is a stray one


def values_from_text(raw: Raw, known: Sequence[Column] = ()) -> Raw:
    """Table whose columns of dates and amounts written as text are numbers.

    Parameters
    ----------
    raw : Raw
        Changed in place.
    known : sequence of Column
        Columns of a table that was read before, whose formats hold here too.

    Warns
    -----
    KnockoffWarning
        For dashes and the like among them, which are taken as missing cells.
    """
    for j, column in enumerate(raw.columns):
        if column.dtype != "string" or not column.levels:
            continue
        words = [level for level in column.levels if not isinstance(level, str) or level.strip() not in NO_NUMBER]
        formats = [known[j].written] if known and known[j].written else formats_of(words)
        if not formats:
            problem = _stray_text(column, raw.X[:, j])
            raw.problems += [] if problem is None else [problem]
            continue
        values = [read_text(list(map(str, column.levels)), word) for word in formats]
        if any(not np.array_equal(values[0], other, equal_nan=True) for other in values[1:]):
            if len(words) > 2:  # of two labels none comes first
                raw.problems.append(_day_or_month(column, formats))
            continue
        _take(raw, j, values[0], formats[0])
    return raw


def _take(raw: Raw, j: int, values: NDArray, word: str) -> None:
    column, codes = raw.columns[j], raw.X[:, j]
    missing = np.isnan(codes)
    raw.X[:, j] = np.where(missing, np.nan, values[np.where(missing, 0, codes).astype(np.intp)])
    dtype = (
        "date" if is_date(word) else "integer" if (np.isnan(values) | (values == np.rint(values))).all() else "number"
    )
    raw.columns[j] = replace(column, dtype=dtype, levels=None, written=word)
    gone = np.isnan(raw.X[:, j]) & ~missing
    if gone.any():
        texts = [repr(level) for level, value in zip(column.levels or (), values, strict=True) if value != value]
        warnings.warn(
            f"column {column.name!r} holds {', '.join(texts)} in {gone.sum()} cells among "
            f"{'dates' if dtype == 'date' else 'numbers'}: taken as missing.",
            KnockoffWarning,
            stacklevel=5,
        )


def _day_or_month(column: Column, formats: Sequence[str]) -> Problem:
    return Problem(
        column.name,
        f"holds dates, for instance {(column.levels or ('',))[0]!r}: {' or '.join(formats)}, and no cell tells which",
        "write them as 2012-01-31, or make dates of them",
    )


def _stray_text(column: Column, values: NDArray) -> Problem | None:
    """Say which texts are odd in a column of dates or amounts."""
    levels = [str(level) for level in column.levels or ()]
    for some in (levels[0], levels[len(levels) // 2], levels[-1]):
        for word in formats_of([some]):
            odd = np.flatnonzero(np.isnan(read_text(levels, word)))
            if 0 < len(odd) <= MOST_STRAY and len(levels) - len(odd) >= FEWEST_TOLD:
                rows = np.flatnonzero(np.isin(values, odd))
                what = "dates" if is_date(word) else "numbers"
                return stray(column.name, f"{what} written as {word}", [(int(i), levels[int(values[i])]) for i in rows])
    return None
