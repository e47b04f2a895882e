"""The cells of one column as numbers, codes or dates, and what is wrong with them, wherever they come from."""

from __future__ import annotations

import datetime
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.columns import Column
from knockoffs.table.types import Label

DAY = 86_400_000_000  # microseconds
EXACT = 2**53  # up to which every whole number is a float
LARGEST, SMALLEST = 1e300, 1e-300  # numbers beyond these, and their squares even sooner, are no numbers any more


@dataclass(frozen=True)
class PlainFrame:
    """Columns by name: what a csv file is read into where neither polars nor pandas is installed."""

    data: dict[str, NDArray]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.data)

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), ()))


@dataclass(frozen=True)
class SomeColumns:
    """Some columns of an array, under the names that they have in it."""

    values: NDArray
    names: tuple[str, ...]


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
    ordered : list of bool
        Whether the labels of a column came in an order.
    named : bool
    problems : list of Problem
    """

    X: NDArray[np.float64]
    columns: list[Column]
    named: bool
    ordered: list[bool] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Cells:
    """One column as it was read: its values, what they were, and their labels."""

    values: NDArray
    dtype: str
    levels: tuple[Label, ...] | None = None
    ordered: bool = False
    problem: Problem | None = None


def as_floats(values: NDArray) -> NDArray[np.float64]:
    """Array as floats in C order; the array itself where it is one."""
    with np.errstate(over="ignore"):  # infinity is refused by name
        return np.ascontiguousarray(values, dtype=np.float64)


def as_float(value: float | Decimal) -> float:
    """Any real number as a float; one that is too large is infinity."""
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def merges(values: NDArray) -> bool:
    """Whether whole numbers beyond 2^53 are among the values, different ones of which are equal as floats.

    >>> merges(np.array([2**53, 2**53 + 1])), merges(np.array([2**53, 2**53 + 2])), merges(np.array([1.5]))
    (True, False, False)
    """
    if values.dtype.kind not in "iu" or not values.size or max(-int(values.min()), int(values.max())) <= EXACT:
        return False
    return len(np.unique(values)) > len(np.unique(values.astype(float)))


def merged(name: str, values: NDArray) -> Problem | None:
    """Problem of whole numbers that a table of floats cannot hold apart."""
    if not merges(values):
        return None
    return Problem(
        name,
        f"holds whole numbers beyond 2^53, for instance {values[0]}, some of which are equal as floating-point numbers",
        "subtract the smallest from all, make labels of them, or drop it if it is an identifier",
    )


def read_objects(name: str, values: NDArray) -> Cells:
    """Read a column of Python objects: numbers, labels, booleans, dates; a mixture of them is a problem.

    >>> read_objects("colour", np.array(["red", None, "blue"], dtype=object))
    Cells(values=array([ 1., nan,  0.]), dtype='string', levels=('blue', 'red'), ordered=False, problem=None)
    """
    listed = values.tolist()
    types = set(map(type, listed))
    if types <= {str} or types <= {bytes}:
        missing = np.zeros(len(listed), dtype=bool)
    else:
        missing = np.fromiter(map(is_missing, listed), bool, len(listed))
    present = [v for v, gone in zip(listed, missing, strict=True) if not gone] if missing.any() else listed
    words = {_word(kind) for kind in set(map(type, present))}
    if words == {"text"}:
        texts: list[str | bytes] = sorted(set(present), key=_text_key)
        return _coded("string", listed, missing, texts)
    if words == {"boolean"}:
        return boolean_cells(np.array([np.nan if gone else float(v) for v, gone in zip(listed, missing, strict=True)]))
    if words <= {"number", "boolean"}:
        whole = bool(present) and all(isinstance(v, numbers.Integral) for v in present)
        floats = np.array([np.nan if gone else as_float(v) for v, gone in zip(listed, missing, strict=True)])
        return Cells(floats, "integer" if whole else "number")
    if len(words) == 1 and words <= {"date", "duration", "time"}:
        days = np.array([np.nan if gone else _day(v) for v, gone in zip(listed, missing, strict=True)])
        return Cells(days, words.pop())
    return Cells(np.empty(0), "string", problem=_mixture(name, listed, missing, words))


def _word(kind: type) -> str:
    """Name what a type of value is."""
    if issubclass(kind, bool | np.bool_):
        return "boolean"
    if issubclass(kind, numbers.Real | Decimal):
        return "number"
    if issubclass(kind, str | bytes):
        return "text"
    if issubclass(kind, datetime.date | np.datetime64):  # datetime.datetime and pandas' Timestamp are dates too
        return "date"
    if issubclass(kind, datetime.timedelta | np.timedelta64):
        return "duration"
    return "time" if issubclass(kind, datetime.time) else "object"


def _day(value: datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64) -> float:
    if isinstance(value, datetime.time):
        return (value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6) / 86400
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return float(np.timedelta64(value, "us") / np.timedelta64(DAY, "us"))
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    moment = value if isinstance(value, np.datetime64) else np.datetime64(value, "us")
    return float((moment.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")) / np.timedelta64(DAY, "us"))


def _coded(dtype: str, listed: list[Label], missing: NDArray[np.bool_], levels: Sequence[Label]) -> Cells:
    code: dict[Label, float] = {level: float(k) for k, level in enumerate(levels)}
    codes = [np.nan if gone else code[v] for v, gone in zip(listed, missing.tolist(), strict=True)]
    return Cells(np.array(codes, dtype=float), dtype, tuple(levels))


def _text_key(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _mixture(name: str, listed: list[Label], missing: NDArray[np.bool_], words: set[str]) -> Problem:
    """Say which value is odd in a column of several kinds of value: the one of the rarer kind, not an innocent one."""
    word_of = [None if gone else _word(type(v)) for v, gone in zip(listed, missing, strict=True)]
    if "object" in words:
        row = word_of.index("object")
        odd = listed[row]
        return Problem(
            name,
            f"holds {odd!r} ({type(odd).__name__}) in row {row}",
            "every argument must be a string (for families that take labels) or a number",
            foreign=True,
        )
    count = Counter("number" if w == "boolean" and "number" in words else w for w in word_of if w is not None)
    rarest = min(count, key=lambda word: (count[word], word == "text"))
    row = next(i for i, w in enumerate(word_of) if w == rarest or (w == "boolean" and rarest == "number"))
    if rarest == "text" and count[rarest] < sum(count.values()) / 2:
        most = max(count, key=lambda word: count[word])
        return stray(name, f"{most}s", [(i, v) for i, v in enumerate(listed) if word_of[i] == "text"])
    others = " and ".join(sorted({"text": "strings"}.get(w, f"{w}s") for w in count if w != rarest))
    return Problem(name, f"mixes {others} with {listed[row]!r} in row {row}", "make all of them strings, or numbers")


def stray(name: str, of: str, odd: Sequence[tuple[int, object]]) -> Problem:
    """Labels among numbers: which, where, how often and what to do."""
    row, first = odd[0]
    values = sorted({repr(value) for _, value in odd})
    more = f" ({len(odd)} cells of {', '.join(values[:5])}{', ...' if len(values) > 5 else ''})" if len(odd) > 1 else ""
    return Problem(
        name,
        f"holds {of}, but {first!r} in row {row}{more}",
        f"make missing cells empty (None, NaN, an empty cell of a file) and all others {of.split()[0]}",
    )


def is_number(text: object) -> bool:
    """Whether a label reads as a number."""
    if not isinstance(text, str | bytes | SupportsFloat):
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
    if isinstance(value, Decimal):
        return value.is_nan()  # a signalling one refuses to be compared
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


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
