"""Data frames of any library, arrays and lists, read column by column through narwhals.

Nothing is refused here but what has no columns at all. A column that cannot be read becomes a `Problem`, so that the
caller can name all of them at once.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeGuard

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.cells import (
    Cells,
    Problem,
    Raw,
    as_floats,
    boolean_cells,
    days_of,
    is_missing,
    merged,
    merges,
    mixture,
    word_of,
)
from knockoffs.table.columns import Column

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    import polars as pl
    import scipy.sparse
    from narwhals.typing import IntoDataFrame

_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")


@dataclass(frozen=True)
class SomeColumns:
    """Some columns of an array, under the names that they have in it."""

    values: NDArray
    names: tuple[str, ...]


def read_columns(X: object, argument: str, known: Sequence[Column] | None = None) -> Raw:
    """Columns of a table of any format, as floats; nothing is copied more than once.

    Parameters
    ----------
    X : data frame, array, list of rows
    argument : str
        What to call it in errors.
    known : sequence of Column, optional
        The same columns as they were read from other rows: text is read as the kind that it was there.

    Raises
    ------
    InputError
        For what is no table: sparse matrices, lazy frames, other dimensions than two, rows of different lengths,
        names given twice, complex numbers, structured arrays.
    """
    if is_sparse(X):
        raise InputError(
            f"{argument} is a sparse matrix, and knockoffs of it would be dense. If {X.shape[0]} x {X.shape[1]} "
            f"numbers fit into memory, pass {argument}.toarray(); in a pipeline, OneHotEncoder(sparse_output=False) "
            "and ColumnTransformer(sparse_threshold=0) make arrays."
        )
    if isinstance(X, SomeColumns):
        return _read_array(X.values, argument, X.names)
    return _read_frame(X, argument, known) if is_frame(X) else _read_array(X, argument)


def _read_frame(X: IntoDataFrame, argument: str, known: Sequence[Column] | None) -> Raw:
    import narwhals as nw

    frame = open_frame(X, argument)
    names, types = frame.columns, list(frame.schema.values())
    beyond = (nw.Int128, nw.UInt128)  # which numpy does not have
    if names and all((dtype.is_integer() or dtype.is_float()) and dtype not in beyond for dtype in types):
        values = frame.to_numpy()
        if values.dtype.kind in "iuf":
            columns = [Column(n, "integer" if t.is_integer() else "number") for n, t in zip(names, types, strict=True)]
            whole = [merged(s.name, _whole_numbers(s)) for s in frame.iter_columns() if s.dtype.is_integer()]
            return Raw(as_floats(values), columns, True, [False] * len(names), [p for p in whole if p is not None])
    text = [column.text or "label" for column in known] if known is not None else [None] * len(names)
    cells = (read_series(series, kind) for series, kind in zip(frame.iter_columns(), text, strict=True))
    return _assemble(names, cells, len(frame), True)


def _assemble(names: Sequence[str], cells: Iterable[Cells], n: int, named: bool) -> Raw:
    raw = Raw(np.full((n, len(names)), np.nan), [], named)
    for j, (name, column) in enumerate(zip(names, cells, strict=True)):
        raw.columns.append(Column(name, column.dtype, column.levels, text=column.text))
        raw.ordered.append(column.ordered)
        if column.words:
            raw.words[name] = column.words
        if column.problem is not None:
            raw.problems.append(column.problem)
        else:
            raw.X[:, j] = column.values
    return raw


def open_frame(X: IntoDataFrame, argument: str = "X") -> nw.DataFrame:
    """Frame of narwhals whose columns are named by strings; names of several levels are joined by dots."""
    import narwhals as nw

    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise InputError(f"{argument} is a lazy frame: pass {argument}.collect().")
    if is_pandas(X):
        return nw.from_native(X.set_axis(column_names(list(X.columns), argument), axis=1), eager_only=True)
    frame = nw.from_native(X, eager_only=True)
    column_names(frame.columns, argument)
    return frame


def column_names(names: Sequence[object], argument: str) -> list[str]:
    """Names as strings; names of several levels are joined by dots."""
    kinds = sorted({type(name).__name__ for name in names})
    if "str" in kinds and len(kinds) > 1:
        raise InputError(f"the column names of {argument} mix {' and '.join(kinds)}: make all of them strings.")
    listed = [".".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names]
    broken = [name for name in listed if not name.isascii() and re.search("[\ud800-\udfff]", name)]
    if broken:
        raise InputError(f"the column name {broken[0]!r} of {argument} is not valid Unicode: rename the column.")
    twice = [name for name, count in Counter(listed).items() if count > 1]
    if twice:
        raise InputError(
            f"{argument} has two columns of the same name: {name_some(twice)}. Rename or drop one of each."
        )
    return listed


# ---- one column --------------------------------------------------------------------------------------------------


def read_series(series: nw.Series, kind: str | None = None) -> Cells:
    """Cells of a column of any library; text as the kind that it is, or as the one given."""
    import narwhals as nw

    name, dtype = str(series.name), series.dtype
    if dtype.is_nested():
        return Cells(np.empty(0), "number", problem=_neither(name, str(dtype)))
    if dtype in (nw.Categorical, nw.Enum):
        return _categories(series)
    if dtype == nw.String and series.implementation.is_polars():
        return text_cells(name, series.to_native(), kind, polars=True)
    if dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128):  # which numpy does not have
        return Cells(series.cast(nw.Float64).to_numpy(), "number" if dtype.is_decimal() else "integer")
    values = series.to_numpy()
    if not dtype.is_integer():
        return read_values(name, values, kind)
    return Cells(as_floats(values), "integer", problem=merged(name, _whole_numbers(series)))


def _whole_numbers(series: nw.Series) -> NDArray:
    return series.drop_nulls().to_numpy()


def _categories(series: nw.Series) -> Cells:
    """Codes of the categories that occur, in their order, or sorted where they have none."""
    import narwhals as nw

    dtype = series.dtype
    cells = [None if is_missing(v) else v for v in series.to_list()]
    present: dict[Any, None] = dict.fromkeys(cell for cell in cells if cell is not None)
    try:
        levels = [c for c in dtype.categories if c in present] if isinstance(dtype, nw.Enum) else sorted(present)
    except TypeError:  # of several types
        levels = sorted(present, key=str)
    place = {level: float(k) for k, level in enumerate(levels)}
    codes = np.array([np.nan if cell is None else place[cell] for cell in cells])
    return Cells(codes, "category", tuple(levels), isinstance(dtype, nw.Enum))


def read_values(name: str, values: NDArray, kind: str | None = None) -> Cells:
    """Cells of one column of a numpy array of any type; text as the kind that it is, or as the one given."""
    if values.dtype.kind in "iuf":
        return Cells(values, "number" if values.dtype.kind == "f" else "integer", problem=merged(name, values))
    if values.dtype.kind == "b":
        return boolean_cells(values.astype(float))
    if values.dtype.kind in "mM":
        return Cells(days_of(values), "duration" if values.dtype.kind == "m" else "date")
    if values.dtype.kind == "c":
        remedy = "pass real and imaginary parts as columns"
        return Cells(np.empty(0), "number", problem=Problem(name, "is complex. Complex data not supported", remedy))
    if values.dtype.kind in "USO":
        return _read_objects(name, values.tolist(), kind)
    return Cells(np.empty(0), "number", problem=_neither(name, str(values.dtype)))


def _read_objects(name: str, values: Sequence[Any], kind: str | None) -> Cells:
    """Cells of a column of Python objects: numbers, text, booleans or dates; a mixture of them is a problem."""
    import polars as pl

    cells = [None if is_missing(value) else value for value in values]
    known = {type(cell): word_of(cell) for cell in cells if cell is not None}
    words = set(known.values())
    if words <= {"number", "boolean"}:
        floats = np.array([np.nan if cell is None else _float(cell) for cell in cells])
        if words == {"boolean"}:
            return boolean_cells(floats)
        whole = bool(words) and all(issubclass(one, int | np.integer) for one in known)
        return Cells(floats, "integer" if whole else "number")
    try:
        if words == {"text"}:
            return text_cells(name, pl.Series(cells, dtype=pl.String), kind, polars=False)
        if len(words) == 1 and words <= {"date", "duration", "time"}:
            return Cells(_days(pl.Series(cells)), words.pop())
    except (UnicodeEncodeError, TypeError, pl.exceptions.PolarsError) as error:
        remedy = "make all cells text in Unicode, numbers or dates of one kind"
        return Cells(np.empty(0), "string", problem=Problem(name, f"cannot be read ({error})", remedy))
    problem = mixture(name, cells, [None if cell is None else known[type(cell)] for cell in cells])
    return Cells(np.empty(0), "string", problem=problem)


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


def text_cells(name: str, cells: pl.Series, kind: str | None, *, polars: bool) -> Cells:
    """Cells of a text column: labels, or the numbers and dates that the text stands for.

    Parameters
    ----------
    name : str
    cells : polars.Series of strings
    kind : str, optional
        As ``knockoffs.table.text`` names it; recognised if left out.
    polars : bool
        Whether the column came from polars: advice is given in its words.
    """
    import polars as pl

    from knockoffs.table.text import describe_doubt, read_text, text_of

    text = text_of(cells)
    if text.in_doubt and cells.n_unique() > 2 and kind is None:
        distinct = read_text(cells, "label").drop_nulls().unique(maintain_order=True).to_list()
        doubt = Problem(name, *describe_doubt(name, distinct, polars=polars))
        return Cells(np.empty(0), "string", problem=doubt)
    own = text.kind if kind is None else kind
    if kind not in (None, "label") and not text.blank and kind not in text.fits:
        own = text.kind
    values = read_text(cells, own)
    if own == "label":
        levels = values.unique().drop_nulls().sort()
        codes = values.cast(pl.Enum(levels)).to_physical().cast(pl.Float64).to_numpy()
        return Cells(codes, "string", tuple(levels), words=text.stand_ins)
    if own in ("date", "moment"):
        return Cells(_days(values), "date", text=own, words=text.stand_ins)
    floats = values.cast(pl.Float64).to_numpy()
    if own == "boolean":
        read = boolean_cells(floats)
        return Cells(read.values, "boolean", read.levels, text=own, words=text.stand_ins)
    problem = merged(name, values.drop_nulls().to_numpy()) if own == "integer" else None
    return Cells(floats, "integer" if own == "integer" else "number", problem=problem, text=own, words=text.stand_ins)


def _neither(name: str, dtype: str) -> Problem:
    return Problem(
        name,
        f"has dtype {dtype}, which is neither numbers nor labels",
        "turn it into numbers (for dates, for instance days since a date) or drop it",
    )


# ---- arrays and lists --------------------------------------------------------------------------------------------


def _read_array(X: object, argument: str, named: tuple[str, ...] | None = None) -> Raw:
    if isinstance(X, str | bytes | dict | set | frozenset) or X is None or np.isscalar(X):
        raise InputError(f"{argument} is {type(X).__name__}: pass an array or a data frame, one row for each sample.")
    values = as_array(X, argument)
    if values.dtype.names:
        raise InputError(f"{argument} is a structured array: pass a data frame, or one array of numbers.")
    if values.ndim == 1 and len(values) and isinstance(values[0], dict):
        raise InputError(
            f"{argument} is a list of dicts: pass a data frame, for instance pandas.DataFrame({argument})."
        )
    if values.ndim != 2:
        raise InputError(
            f"{argument} has {values.ndim} dimensions, expected 2D array, one row for each sample. Reshape your data: "
            f"{argument}.reshape(-1, 1) is one feature, {argument}.reshape(1, -1) is one sample."
        )
    if values.dtype.kind == "c":
        raise InputError(
            f"{argument} is complex. Complex data not supported: pass real and imaginary parts as columns."
        )
    names = list(named or (f"x{j}" for j in range(values.shape[1])))
    mask = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None  # what a mask covers is missing
    if values.dtype.kind in "iuf":
        dtype = "number" if values.dtype.kind == "f" else "integer"
        floats = as_floats(values) if mask is None else np.where(mask, np.nan, values.astype(float))
        found = [merged(n, v) for n, v in zip(names, values.T, strict=True)] if merges(values) else []
        problems = [problem for problem in found if problem is not None]
        return Raw(floats, [Column(name, dtype) for name in names], False, [False] * len(names), problems)
    if mask is not None:
        dates = values.dtype.kind in "mM"
        values = values.copy() if dates else values.astype(object)
        values[mask] = np.array("NaT", dtype=values.dtype) if dates else None
    return _assemble(names, (read_values(n, v) for n, v in zip(names, values.T, strict=True)), len(values), False)


def as_array(X: object, argument: str) -> NDArray:
    """Array of what is no frame, without its mask; numbers among text stay numbers."""
    if isinstance(X, np.ndarray):
        return np.ma.getdata(X)
    try:
        values = np.asarray(X)
        # numpy turns [[1, "a"]] into strings and would hide which column was text
        return np.asarray(X, dtype=object) if values.dtype.kind in "US" else values
    except ValueError:
        lengths = [len(row) if hasattr(row, "__len__") else 0 for row in (X if isinstance(X, Iterable) else ())]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
        if not odd:
            raise InputError(f"{argument} has cells that hold several values: a cell is one number or label.") from None
        raise InputError(
            f"{argument} has rows of different lengths: row 0 has {lengths[0]} values, row {odd} has {lengths[odd]}."
        ) from None


# ---- taking frames apart -----------------------------------------------------------------------------------------


def keep_columns(X: Any, kept: NDArray[np.bool_]) -> Any:
    """Frame or array of some of the columns, in its own format."""
    if is_frame(X):
        import narwhals as nw

        return nw.to_native(nw.from_native(X, eager_only=True)[:, np.flatnonzero(kept).tolist()])
    return X[:, kept] if isinstance(X, np.ma.MaskedArray) else as_array(X, "X")[:, kept]


def array_of(frame: nw.DataFrame) -> NDArray:
    """Array of a frame: of numbers, or of Python objects where a column holds something else."""
    columns = [series.to_numpy() for series in frame.iter_columns()]
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.stack(columns, axis=1)
    cells = np.empty(frame.shape, dtype=object)
    for j, series in enumerate(frame.iter_columns()):
        cells[:, j] = series.to_list()
    return cells


def is_frame(X: object) -> TypeGuard[IntoDataFrame]:
    """Whether it is a data frame of any of the known libraries."""
    # asked of the class and those it extends (geopandas); the columns of a lazy frame are work
    return any(kind.__module__.split(".")[0] in _FRAMES and hasattr(kind, "columns") for kind in type(X).__mro__)


def is_pandas(X: object) -> TypeGuard[pd.DataFrame | pd.Series]:
    """Whether it is a frame or a series of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame | pandas.Series)


def is_sparse(X: object) -> TypeGuard[scipy.sparse.sparray]:
    """Whether it is a sparse matrix or array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)
