"""Arrays, lists and frames of any library read column by column: floats, codes of labels, and what cannot be read.

Nothing is refused here but what has no columns at all. A column that cannot be read becomes a `Problem`, so that the
caller can name all of them at once.
"""

from __future__ import annotations

import datetime
import numbers
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.columns import Column

DAY = 86_400_000_000  # microseconds
_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class PlainFrame:
    """Columns by name: what a csv file is read into where neither polars nor pandas is installed."""

    data: dict[str, NDArray]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.data)


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
    levels: tuple[Any, ...] | None = None
    ordered: bool = False
    problem: Problem | None = None


def read_columns(X: Any, argument: str) -> Raw:
    """Read a table of any format; nothing is copied more than once.

    Raises
    ------
    InputError
        For what is no table: sparse matrices, lazy frames, other dimensions than two, rows of different lengths,
        names given twice, complex numbers, structured arrays.
    """
    if is_sparse(X):
        raise InputError(
            f"{argument} is a sparse matrix, and knockoffs of it would be dense. If {X.shape[0]} x {X.shape[1]} "
            f"numbers fit into memory, pass {argument}.toarray()."
        )
    if isinstance(X, PlainFrame):
        names = column_names(X.columns, argument)
        columns = (_array_cells(name, values) for name, values in zip(names, X.data.values(), strict=True))
        return _assemble(names, columns, len(next(iter(X.data.values()), ())), True)
    if is_pandas(X) and is_frame(X):
        return _read_pandas(X, argument)
    return _read_frame(X, argument) if is_frame(X) else _read_array(X, argument)


def _assemble(names: list[str], cells: Iterable[Cells], n: int, named: bool) -> Raw:
    raw = Raw(np.full((n, len(names)), np.nan), [], named)
    for j, (name, column) in enumerate(zip(names, cells, strict=True)):
        raw.columns.append(Column(name, column.dtype, column.levels))
        raw.ordered.append(column.ordered)
        if column.problem is not None:
            raw.problems.append(column.problem)
        else:
            raw.X[:, j] = column.values
    return raw


# ---- frames ------------------------------------------------------------------------------------------------------


def _read_pandas(X: Any, argument: str) -> Raw:
    names = column_names(list(X.columns), argument)
    kinds = [getattr(dtype, "kind", "") if isinstance(dtype, np.dtype) else "" for dtype in X.dtypes]
    if names and all(kind in "iuf" and kind for kind in kinds):
        columns = [
            Column(name, "number" if kind == "f" else "integer") for name, kind in zip(names, kinds, strict=True)
        ]
        return Raw(as_floats(X.to_numpy()), columns, True, [False] * len(names))
    return _assemble(names, (_pandas_cells(names[j], X.iloc[:, j]) for j in range(len(names))), len(X), True)


def _pandas_cells(name: str, series: Any) -> Cells:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _known_categories(series.cat.codes.to_numpy(), list(dtype.categories), bool(dtype.ordered))
    if isinstance(dtype, pd.PeriodDtype):
        return Cells(_days(series.dt.to_timestamp().to_numpy()), "date")
    if isinstance(dtype, pd.IntervalDtype):
        codes, levels = pd.factorize(series, sort=True)
        return _known_categories(np.asarray(codes), list(levels), True)
    if getattr(dtype, "kind", "") == "c":
        return _complex(name)
    if pd.api.types.is_bool_dtype(dtype):
        return _boolean(series.to_numpy(dtype=float, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(dtype):
        kind = "integer" if pd.api.types.is_integer_dtype(dtype) else "number"
        return Cells(series.to_numpy(dtype=float, na_value=np.nan), kind)
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None) if zone_of(dtype) else series
        if hasattr(dtype, "pyarrow_dtype"):  # whose dates without a time numpy does not take
            moments = moments.astype("timestamp[us][pyarrow]")
        return Cells(_days(moments.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT"))), "date")
    if kind == "m":
        return Cells(_days(series.to_numpy(dtype="timedelta64[us]", na_value=np.timedelta64("NaT"))), "date")
    return read_objects(name, series.to_numpy(dtype=object, na_value=None))


def zone_of(dtype: Any) -> Any:
    """Time zone of a dtype of pandas; None if it has none."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def _known_categories(codes: NDArray, categories: list[Any], ordered: bool) -> Cells:
    """Codes of categories as codes of those that are there; missing ones are -1."""
    present = np.unique(codes[codes >= 0])
    place = np.full(len(categories) + 1, np.nan)  # the last is for -1
    place[present] = np.arange(len(present))
    return Cells(place[codes], "category", tuple(categories[k] for k in present), ordered)


def _boolean(values: NDArray) -> Cells:
    present = np.unique(values[~np.isnan(values)])
    levels = tuple(bool(value) for value in present)
    return Cells(values - present[0] if len(present) == 1 else values, "boolean", levels)


def _complex(name: str) -> Cells:
    problem = Problem(name, "is complex. Complex data not supported", "pass real and imaginary parts as columns")
    return Cells(np.empty(0), "number", problem=problem)


def _days(moments: NDArray) -> NDArray[np.float64]:
    """Dates as days since 1970-01-01, durations as days, NaT as NaN."""
    unit = "datetime64[us]" if moments.dtype.kind == "M" else "timedelta64[us]"
    days = moments.astype(unit).astype(np.int64) / DAY
    return np.where(np.isnat(moments), np.nan, days)


def _read_frame(X: Any, argument: str) -> Raw:
    import narwhals as nw

    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise InputError(f"{argument} is a lazy frame: pass {argument}.collect().")
    frame = nw.from_native(X, eager_only=True)
    names = column_names(list(frame.columns), argument)
    types = list(frame.schema.values())
    if names and all(dtype.is_integer() or dtype.is_float() for dtype in types):
        values = frame.to_numpy()
        if values.dtype.kind in "iuf":
            columns = [Column(n, "integer" if t.is_integer() else "number") for n, t in zip(names, types, strict=True)]
            return Raw(as_floats(values), columns, True, [False] * len(names))
    return _assemble(
        names, (_series_cells(n, s) for n, s in zip(names, frame.iter_columns(), strict=True)), len(frame), True
    )


def _series_cells(name: str, series: Any) -> Cells:
    """Read a narwhals series: polars, pyarrow and others."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric():
        kind = "integer" if dtype.is_integer() else "number"
        return Cells(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float), kind)
    if dtype == nw.Boolean:
        return _boolean(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float))
    if isinstance(dtype, nw.Enum):
        categories = list(dtype.categories)
        place = {category: k for k, category in enumerate(categories)}
        codes = np.array([-1 if v is None else place[v] for v in series.to_list()], dtype=np.intp)
        return _known_categories(codes, categories, True)
    if dtype == nw.Categorical:
        cells = read_objects(name, np.array(series.to_list(), dtype=object))
        return replace(cells, dtype="category", levels=cells.levels or ())
    if dtype == nw.Date:
        return Cells(_days(np.array(series.to_list(), dtype="datetime64[D]")), "date")
    if dtype in (nw.Datetime, nw.Duration):
        return Cells(_days(series.to_numpy()), "date")
    if dtype in (nw.String, nw.Time, nw.Binary, nw.Object):
        return read_objects(name, np.array(series.to_list(), dtype=object))
    if series.null_count() == len(series):
        return Cells(np.full(len(series), np.nan), "number")
    return Cells(np.empty(0), "number", problem=_neither(name, str(dtype)))


def _neither(name: str, dtype: str) -> Problem:
    return Problem(
        name,
        f"has dtype {dtype}, which is neither numbers nor labels",
        "turn it into numbers (for dates, for instance days since a date) or drop it",
    )


# ---- arrays ------------------------------------------------------------------------------------------------------


def _read_array(X: Any, argument: str) -> Raw:
    if isinstance(X, str | bytes | dict) or X is None or np.isscalar(X):
        raise InputError(f"{argument} is {type(X).__name__}: pass an array or a data frame, one row for each sample.")
    values = _as_array(X, argument)
    if values.dtype.names:
        raise InputError(f"{argument} is a structured array: pass a data frame, or one array of numbers.")
    if values.ndim != 2:
        raise InputError(
            f"{argument} has {values.ndim} dimensions, expected 2D array, one row for each sample. Reshape your data: "
            f"{argument}.reshape(-1, 1) is one feature, {argument}.reshape(1, -1) is one sample."
        )
    if values.dtype.kind == "c":
        raise InputError(
            f"{argument} is complex. Complex data not supported: pass real and imaginary parts as columns."
        )
    names = [f"x{j}" for j in range(values.shape[1])]
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None  # what a mask covers is missing
    if values.dtype.kind in "iuf":
        dtype = "number" if values.dtype.kind == "f" else "integer"
        floats = as_floats(values) if mask is None else np.where(mask, np.nan, values.astype(float))
        return Raw(floats, [Column(name, dtype) for name in names], False, [False] * len(names))
    if mask is not None:
        dates = values.dtype.kind in "mM"
        values = values.copy() if dates else values.astype(object)
        values[mask] = np.array("NaT", dtype=values.dtype) if dates else None
    return _assemble(names, (_array_cells(n, v) for n, v in zip(names, values.T, strict=True)), len(values), False)


def _array_cells(name: str, values: NDArray) -> Cells:
    """Read one column of a numpy array of any type."""
    kind = values.dtype.kind
    if kind in "iuf":
        return Cells(values, "number" if kind == "f" else "integer")
    if kind == "b":
        return _boolean(values.astype(float))
    if kind in "mM":
        return Cells(_days(values), "date")
    return (
        read_objects(name, values)
        if kind in "USO"
        else Cells(values, "number", problem=_neither(name, str(values.dtype)))
    )


def _as_array(X: Any, argument: str) -> NDArray:
    if isinstance(X, np.ndarray):
        return np.ma.getdata(X)
    try:
        values = np.asarray(X)
        # numpy turns [[1, "a"]] into strings and would hide which column was text
        return np.asarray(X, dtype=object) if values.dtype.kind in "US" else values
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in X]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
        raise InputError(
            f"{argument} has rows of different lengths: row 0 has {lengths[0]} values, row {odd} has {lengths[odd]}."
        ) from None


def as_floats(values: NDArray) -> NDArray[np.float64]:
    """Array as floats in C order; the array itself where it is one."""
    return np.ascontiguousarray(values, dtype=np.float64)


# ---- columns of Python objects -----------------------------------------------------------------------------------


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
        return _coded("string", listed, missing, sorted(set(present), key=_text_key))
    if words == {"boolean"}:
        return _boolean(np.array([np.nan if gone else float(v) for v, gone in zip(listed, missing, strict=True)]))
    if words <= {"number", "boolean"}:
        whole = bool(present) and all(isinstance(v, numbers.Integral) for v in present)
        floats = np.array([np.nan if gone else float(v) for v, gone in zip(listed, missing, strict=True)])
        return Cells(floats, "integer" if whole else "number")
    if len(words) == 1 and words <= {"date", "duration", "time"}:
        return Cells(np.array([np.nan if gone else _day(v) for v, gone in zip(listed, missing, strict=True)]), "date")
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


def _day(value: Any) -> float:
    if isinstance(value, datetime.time):
        return (value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6) / 86400
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return float(np.timedelta64(value, "us") / np.timedelta64(DAY, "us"))
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return float((np.datetime64(value, "us") - np.datetime64("1970-01-01", "us")) / np.timedelta64(DAY, "us"))


def _coded(dtype: str, listed: list[Any], missing: NDArray[np.bool_], levels: Sequence[Any]) -> Cells:
    code: dict[Any, float] = {level: float(k) for k, level in enumerate(levels)}
    codes = [np.nan if gone else code[v] for v, gone in zip(listed, missing.tolist(), strict=True)]
    return Cells(np.array(codes, dtype=float), dtype, tuple(levels))


def _text_key(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _mixture(name: str, listed: list[Any], missing: NDArray[np.bool_], words: set[str]) -> Problem:
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


def stray(name: str, of: str, odd: Sequence[tuple[int, Any]]) -> Problem:
    """Labels among numbers: which, where, how often and what to do."""
    row, first = odd[0]
    values = sorted({repr(value) for _, value in odd})
    more = f" ({len(odd)} cells of {', '.join(values[:5])}{', ...' if len(values) > 5 else ''})" if len(odd) > 1 else ""
    return Problem(
        name,
        f"holds {of}, but {first!r} in row {row}{more}",
        "make missing cells empty (None, NaN, an empty cell of a file) and all others numbers",
    )


# ---- text that is something else ---------------------------------------------------------------------------------


def dates_in_text(cells_levels: Sequence[Any]) -> NDArray[np.float64] | None:
    """Days of labels that are all dates like 2024-02-29, shape (n_levels,); None if any is not."""
    if not cells_levels or not all(isinstance(v, str) and _ISO_DAY.fullmatch(v) for v in cells_levels):
        return None
    try:
        return _days(np.array(cells_levels, dtype="datetime64[D]"))
    except ValueError:  # the 31st of a short month
        return None


def is_number(text: Any) -> bool:
    """Whether a label reads as a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


# ---- names, and formats recognised without importing their libraries ----------------------------------------------


def column_names(names: list[Any], argument: str) -> list[str]:
    """Names as strings; several levels of names are joined by dots."""
    kinds = sorted({type(name).__name__ for name in names})
    if "str" in kinds and len(kinds) > 1:
        raise InputError(f"the column names of {argument} mix {' and '.join(kinds)}: make all of them strings.")
    listed = [".".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    twice = [name for name, count in Counter(listed).items() if count > 1]
    if twice:
        raise InputError(
            f"{argument} has two columns of the same name: {name_some(twice)}. Rename or drop one of each."
        )
    return listed


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating | Decimal):
        return bool(value != value)
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def is_frame(X: Any) -> bool:
    """Whether it is a data frame of any of the known libraries."""
    # asked of the class: the columns of a lazy frame are work
    return type(X).__module__.split(".")[0] in _FRAMES and hasattr(type(X), "columns")


def is_pandas(X: Any) -> bool:
    """Whether it is a frame or a series of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame | pandas.Series)


def is_sparse(X: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)
