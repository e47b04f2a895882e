"""One column as it is read: numbers, days or codes of labels as floats, or what is wrong with it."""

from __future__ import annotations

import datetime
import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.types import Label

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl


DAY = 86_400_000_000  # microseconds
EXACT = 2**53  # up to which every whole number is a float
LARGEST, SMALLEST = 1e300, 1e-300  # numbers beyond these overflow or vanish in squares
REMEDIES = {  # for cells of types that are no numbers, labels or dates, but can become such
    "bytes": "decode them, .str.decode('utf-8')",
    "Decimal": "make floats of them, .astype(float)",
    "Period": "make dates of them, .dt.to_timestamp()",
    "Interval": "make categories of them, .astype('category')",
}


@dataclass(frozen=True)
class Problem:
    """Why a column cannot be used: the rest of a sentence that starts with its name, and the advice that ends it."""

    name: str
    what: str
    remedy: str
    foreign: bool = False  # whether the column holds objects that are neither numbers nor labels


@dataclass(frozen=True)
class ReadColumn:
    """One column as it was read: its values, what they were, their labels, and the kind of text they were read from."""

    values: NDArray
    dtype: str
    levels: tuple[Label, ...] | None = None
    ordered: bool = False
    problem: Problem | None = None
    text: str = ""
    words: frozenset[str] = frozenset()


def read_series(series: nw.Series, kind: str | None = None) -> ReadColumn:
    """Cells of a column of any library; text as the kind that it is, or as the one given."""
    import narwhals as nw

    name, dtype = str(series.name), series.dtype
    if dtype.is_nested():
        return ReadColumn(np.empty(0), "number", problem=_neither(name, str(dtype)))
    if dtype in (nw.Categorical, nw.Enum):
        return _categories(series)
    if dtype == nw.String and series.implementation.is_polars():
        return text_column(name, series.to_native(), kind, polars=True)
    if dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128):  # which numpy does not have
        return ReadColumn(series.cast(nw.Float64).to_numpy(), "number" if dtype.is_decimal() else "integer")
    values = series.to_numpy()
    if not dtype.is_integer():
        return read_values(name, values, kind)
    return ReadColumn(as_floats(values), "integer", problem=merged(name, series.drop_nulls().to_numpy()))


def _categories(series: nw.Series) -> ReadColumn:
    """Codes of the categories that occur, in their order, or sorted where they have none."""
    import narwhals as nw

    dtype = series.dtype
    cells = [None if is_missing(v) else v for v in series.to_list()]
    present = dict.fromkeys(cell for cell in cells if cell is not None)
    try:
        levels = [c for c in dtype.categories if c in present] if isinstance(dtype, nw.Enum) else sorted(present)
    except TypeError:  # of several types
        levels = sorted(present, key=str)
    place = {level: float(k) for k, level in enumerate(levels)}
    codes = np.array([np.nan if cell is None else place[cell] for cell in cells])
    return ReadColumn(codes, "category", tuple(levels), isinstance(dtype, nw.Enum))


def read_values(name: str, values: NDArray, kind: str | None = None) -> ReadColumn:
    """Cells of one column of a numpy array of any type; text as the kind that it is, or as the one given."""
    if values.dtype.kind in "iuf":
        return ReadColumn(values, "number" if values.dtype.kind == "f" else "integer", problem=merged(name, values))
    if values.dtype.kind == "b":
        return boolean_column(values.astype(float))
    if values.dtype.kind in "mM":
        return ReadColumn(days_of(values), "duration" if values.dtype.kind == "m" else "date")
    if values.dtype.kind == "c":
        remedy = "pass real and imaginary parts as columns"
        return ReadColumn(
            np.empty(0), "number", problem=Problem(name, "is complex. Complex data not supported", remedy)
        )
    if values.dtype.kind in "USO":
        return _read_objects(name, values.tolist(), kind)
    return ReadColumn(np.empty(0), "number", problem=_neither(name, str(values.dtype)))


def _read_objects(name: str, values: list, kind: str | None) -> ReadColumn:
    """Cells of a column of Python objects: numbers, text, booleans or dates; a mixture of them is a problem."""
    import polars as pl

    cells = [None if is_missing(value) else value for value in values]
    known = {type(cell): word_of(cell) for cell in cells if cell is not None}
    words = set(known.values())
    if words <= {"number", "boolean"}:
        floats = np.array([np.nan if cell is None else _float(cell) for cell in cells])
        if words == {"boolean"}:
            return boolean_column(floats)
        whole = bool(words) and all(issubclass(one, int | np.integer) for one in known)
        return ReadColumn(floats, "integer" if whole else "number")
    try:
        if words == {"text"}:
            return text_column(name, pl.Series(cells, dtype=pl.String), kind, polars=False)
        if words == {"duration"}:
            return ReadColumn(days_of(np.array(cells, dtype="timedelta64[us]")), "duration")
        if len(words) == 1 and words <= {"date", "time"}:
            return ReadColumn(_days(pl.Series(cells)), words.pop())
    except (UnicodeEncodeError, TypeError, pl.exceptions.PolarsError) as error:
        remedy = "make all cells text in Unicode, numbers or dates of one kind"
        return ReadColumn(np.empty(0), "string", problem=Problem(name, f"cannot be read ({error})", remedy))
    problem = mixture(name, cells, [None if cell is None else known[type(cell)] for cell in cells])
    return ReadColumn(np.empty(0), "string", problem=problem)


def _float(value: SupportsFloat) -> float:
    try:
        return float(value)
    except OverflowError:  # of a whole number; infinity is refused by name
        return np.inf if str(value)[0] != "-" else -np.inf


def _days(moments: pl.Series) -> NDArray[np.float64]:
    """Days of dates or durations of polars; parts of a day of times."""
    import polars as pl

    if moments.dtype == pl.Time:
        moments = moments.cast(pl.Duration("us"))
    return days_of(moments.to_numpy())


def text_column(name: str, cells: pl.Series, kind: str | None, *, polars: bool) -> ReadColumn:
    """Text column as labels, or as the numbers and dates that it stands for; advice is in words of polars or pandas."""
    import polars as pl

    from knockoffs.table.text import describe_doubt, read_text, text_of

    text = text_of(cells)
    if text.in_doubt and kind is None:
        distinct = read_text(cells, "label").drop_nulls().unique(maintain_order=True).to_list()
        doubt = Problem(name, *describe_doubt(name, distinct, polars=polars))
        return ReadColumn(np.empty(0), "string", problem=doubt)
    own = text.kind if kind is None else kind
    if kind not in (None, "label") and not text.blank and kind not in text.fits:
        own = text.kind
    values = read_text(cells, own)
    if own == "label":
        levels = values.unique().drop_nulls().sort()
        codes = values.cast(pl.Enum(levels)).to_physical().cast(pl.Float64).to_numpy()
        return ReadColumn(codes, "string", tuple(levels), words=text.stand_ins)
    if own in ("date", "moment"):
        return ReadColumn(_days(values), "date", text=own, words=text.stand_ins)
    floats = values.cast(pl.Float64).to_numpy()
    if own == "boolean":
        return boolean_column(floats, own, text.stand_ins)
    problem = merged(name, values.drop_nulls().to_numpy()) if own == "integer" else None
    return ReadColumn(
        floats, "integer" if own == "integer" else "number", problem=problem, text=own, words=text.stand_ins
    )


def _neither(name: str, dtype: str) -> Problem:
    return Problem(
        name,
        f"has dtype {dtype}, which is neither numbers nor labels",
        "turn it into numbers (for dates, for instance days since a date) or drop it",
    )


# ---- cells -------------------------------------------------------------------------------------------------------


def as_floats(values: NDArray) -> NDArray[np.float64]:
    """Array as floats in C order; the array itself where it is one."""
    with np.errstate(over="ignore"):  # infinity is refused by name
        return np.ascontiguousarray(values, dtype=np.float64)


def merged(name: str, values: NDArray) -> Problem | None:
    """Problem of whole numbers beyond 2^53, different ones of which are equal as floats."""
    if values.dtype.kind not in "iu" or not values.size or max(-int(values.min()), int(values.max())) <= EXACT:
        return None
    if len(np.unique(values)) == len(np.unique(values.astype(float))):
        return None
    return Problem(
        name,
        f"holds whole numbers beyond 2^53, for instance {values[0]}, some of which are equal as floating-point numbers",
        "subtract the smallest from all, make labels of them, or drop it if it is an identifier",
    )


def boolean_column(values: NDArray, text: str = "", words: frozenset[str] = frozenset()) -> ReadColumn:
    """Column of false and true, as codes of the values that are there; NaN is missing."""
    present = np.unique(values[~np.isnan(values)])
    levels = tuple(bool(value) for value in present)
    codes = values - present[0] if len(present) == 1 else values
    return ReadColumn(codes, "boolean", levels, text=text, words=words)


def days_of(moments: NDArray) -> NDArray[np.float64]:
    """Dates as days since 1970-01-01, durations as days, NaT as NaN."""
    unit = "datetime64[us]" if moments.dtype.kind == "M" else "timedelta64[us]"
    return np.where(np.isnat(moments), np.nan, moments.astype(unit).astype(np.int64) / DAY)


def is_number(text: object) -> bool:
    """Whether a label reads as a number."""
    try:
        return isinstance(text, str | SupportsFloat) and float(text) is not None
    except (TypeError, ValueError):
        return False


def is_missing(value: object) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def word_of(value: object) -> str:
    """Name for the kind of a Python object: "boolean", "number", "text", "date", "duration", "time" or "object"."""
    kinds = {
        "boolean": bool | np.bool_,
        "number": numbers.Real,
        "text": str,
        "date": datetime.date | np.datetime64,  # datetime.datetime and pandas' Timestamp are dates too
        "duration": datetime.timedelta | np.timedelta64,
        "time": datetime.time,
    }
    return next((word for word, kind in kinds.items() if isinstance(value, kind)), "object")


def mixture(name: str, cells: Sequence[object], words: Sequence[str | None]) -> Problem:
    """Problem of a column of several kinds of values (``word_of`` each cell): names a value of the rarest kind."""
    if "object" in words:
        row = words.index("object")
        kind = type(cells[row]).__name__
        remedy = REMEDIES.get(kind, "every argument must be a string (for families that take labels) or a number")
        return Problem(name, f"holds {cells[row]!r} ({kind}) in row {row}", remedy, foreign=True)
    words = ["number" if word == "boolean" and "number" in words else word for word in words]
    count = Counter(word for word in words if word is not None)
    rarest = min(count, key=lambda word: (count[word], word == "text"))
    row = words.index(rarest)
    if rarest == "text" and count[rarest] < count.total() / 2:
        return stray(
            name, f"{count.most_common(1)[0][0]}s", [(i, v) for i, v in enumerate(cells) if words[i] == "text"]
        )
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
