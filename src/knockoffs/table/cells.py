"""One column as it was read, a table of such columns, and what is wrong with them."""

from __future__ import annotations

import datetime
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.columns import Column
from knockoffs.table.types import Label

DAY = 86_400_000_000  # microseconds
EXACT = 2**53  # up to which every whole number is a float
REMEDIES = {  # for cells of types that are no numbers, labels or dates, but can become such
    "bytes": "decode them, .str.decode('utf-8')",
    "Decimal": "make floats of them, .astype(float)",
    "Period": "make dates of them, .dt.to_timestamp()",
    "Interval": "make categories of them, .astype('category')",
}
LARGEST, SMALLEST = 1e300, 1e-300  # numbers beyond these overflow or vanish in squares


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be used, and what to do about it.

    Parameters
    ----------
    name : str
        Of the column.
    what, remedy : str
        Rest of a sentence that starts with the column, and the advice that ends it.
    foreign : bool
        Whether the column holds objects that are neither numbers nor labels.
    """

    name: str
    what: str
    remedy: str
    foreign: bool = False


@dataclass
class Raw:
    """A table as it was read, before anything about it is judged.

    Parameters
    ----------
    X : array of float, shape (n, n_columns)
        Numbers, days, codes of labels; NaN where a cell is missing.
    columns : list of Column
        Without kinds.
    named : bool
        Whether the names came with the table.
    ordered : list of bool
        Whether the labels of a column came in an order.
    problems : list of Problem
    words : dict
        By column, words that were taken as missing cells.
    """

    X: NDArray[np.float64]
    columns: list[Column]
    named: bool
    ordered: list[bool] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    words: dict[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """One column as it was read: its values, what they were, their labels, and the kind of text they were read from."""

    values: NDArray
    dtype: str
    levels: tuple[Label, ...] | None = None
    ordered: bool = False
    problem: Problem | None = None
    text: str = ""
    words: frozenset[str] = frozenset()


def as_floats(values: NDArray) -> NDArray[np.float64]:
    """Array as floats in C order; the array itself where it is one."""
    with np.errstate(over="ignore"):  # infinity is refused by name
        return np.ascontiguousarray(values, dtype=np.float64)


def merges(values: NDArray) -> bool:
    """Whether whole numbers beyond 2^53 are among the values, different ones of which are equal as floats.

    >>> merges(np.array([2**53, 2**53 + 1])), merges(np.array([2**53, 2**53 + 2])), merges(np.array([1.5]))
    (True, False, False)
    """
    if values.dtype.kind not in "iu" or not values.size or max(-int(values.min()), int(values.max())) <= EXACT:
        return False
    return len(np.unique(values)) > len(np.unique(values.astype(float)))


def merged(name: str, values: NDArray) -> Problem | None:
    """Problem of whole numbers that floats cannot hold apart."""
    if not merges(values):
        return None
    return Problem(
        name,
        f"holds whole numbers beyond 2^53, for instance {values[0]}, some of which are equal as floating-point numbers",
        "subtract the smallest from all, make labels of them, or drop it if it is an identifier",
    )


def boolean_cells(values: NDArray) -> Cells:
    """Cells of a column of false and true, as codes of the values that are there; NaN is missing."""
    present = np.unique(values[~np.isnan(values)])
    levels = tuple(bool(value) for value in present)
    return Cells(values - present[0] if len(present) == 1 else values, "boolean", levels)


def days_of(moments: NDArray) -> NDArray[np.float64]:
    """Dates as days since 1970-01-01, durations as days, NaT as NaN."""
    unit = "datetime64[us]" if moments.dtype.kind == "M" else "timedelta64[us]"
    days = moments.astype(unit).astype(np.int64) / DAY
    return np.where(np.isnat(moments), np.nan, days)


def is_number(text: object) -> bool:
    """Whether a label reads as a number."""
    if not isinstance(text, str | SupportsFloat):
        return False
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


# ---- columns of Python objects -----------------------------------------------------------------------------------


def word_of(value: object) -> str:
    """Name for the kind of a Python object: "boolean", "number", "text", "date", "duration", "time" or "object"."""
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, numbers.Real):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, datetime.date | np.datetime64):  # datetime.datetime and pandas' Timestamp are dates too
        return "date"
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return "duration"
    return "time" if isinstance(value, datetime.time) else "object"


def mixture(name: str, cells: Sequence[object], words: Sequence[str | None]) -> Problem:
    """Problem of a column of several kinds of values: names a value of the rarest kind.

    Parameters
    ----------
    name : str
    cells : sequence
    words : sequence of str
        ``word_of`` each cell, None of a missing one.
    """
    if "object" in words:
        row = words.index("object")
        odd = cells[row]
        remedy = REMEDIES.get(
            type(odd).__name__, "every argument must be a string (for families that take labels) or a number"
        )
        return Problem(name, f"holds {odd!r} ({type(odd).__name__}) in row {row}", remedy, foreign=True)
    count = Counter("number" if w == "boolean" and "number" in words else w for w in words if w is not None)
    rarest = min(count, key=lambda word: (count[word], word == "text"))
    row = next(i for i, w in enumerate(words) if w == rarest or (w == "boolean" and rarest == "number"))
    if rarest == "text" and count[rarest] < sum(count.values()) / 2:
        most = max(count, key=lambda word: count[word])
        return stray(name, f"{most}s", [(i, v) for i, v in enumerate(cells) if words[i] == "text"])
    others = " and ".join(sorted({"text": "strings"}.get(w, f"{w}s") for w in count if w != rarest))
    return Problem(name, f"mixes {others} with {cells[row]!r} in row {row}", "make all of them strings, or numbers")


def stray(name: str, of: str, odd: Sequence[tuple[int, object]]) -> Problem:
    """Problem of a few labels among numbers: which, where, how often and what to do."""
    row, first = odd[0]
    values = sorted({repr(value) for _, value in odd})
    more = f" ({len(odd)} cells of {', '.join(values[:5])}{', ...' if len(values) > 5 else ''})" if len(odd) > 1 else ""
    return Problem(
        name,
        f"holds {of}, but {first!r} in row {row}{more}",
        f"make missing cells empty (None, NaN, an empty cell of a file) and all others {of.split()[0]}",
    )
