"""Arrays, lists and frames of any library read column by column: floats, codes of labels, and what cannot be read.

Nothing is refused here but what has no columns at all. A column that cannot be read becomes a `Problem`, so that the
caller can name all of them at once.
"""

from __future__ import annotations

import datetime
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.cells import (
    Cells,
    PlainFrame,
    Problem,
    Raw,
    SomeColumns,
    as_floats,
    boolean_cells,
    days_of,
    merged,
    merges,
    read_objects,
)
from knockoffs.table.columns import Column
from knockoffs.table.types import Frame, Label

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    import scipy.sparse
    from narwhals.typing import IntoDataFrame

_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")


def read_columns(X: object, argument: str) -> Raw:
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
            f"numbers fit into memory, pass {argument}.toarray(); in a pipeline, OneHotEncoder(sparse_output=False) "
            "and ColumnTransformer(sparse_threshold=0) make arrays."
        )
    if isinstance(X, PlainFrame):
        names = column_names(X.columns, argument)
        columns = (_array_cells(name, values) for name, values in zip(names, X.data.values(), strict=True))
        return _assemble(names, columns, len(X), True)
    if is_pandas(X) and is_frame(X):
        return _read_pandas(X, argument)
    if isinstance(X, SomeColumns):
        return _read_array(X.values, argument, X.names)
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


def _read_pandas(X: pd.DataFrame, argument: str) -> Raw:
    names = column_names(list(X.columns), argument)
    kinds = [getattr(dtype, "kind", "") if isinstance(dtype, np.dtype) else "" for dtype in X.dtypes]
    if names and all(kind in "iuf" and kind for kind in kinds):
        columns = [
            Column(name, "number" if kind == "f" else "integer") for name, kind in zip(names, kinds, strict=True)
        ]
        whole = ((j, X.iloc[:, j].to_numpy()) for j, kind in enumerate(kinds) if kind in "iu")
        problems = _merged(names, whole)
        return Raw(as_floats(X.to_numpy()), columns, True, [False] * len(names), problems)
    return _assemble(names, (_pandas_cells(names[j], X.iloc[:, j]) for j in range(len(names))), len(X), True)


def _merged(names: list[str], columns: Iterable[tuple[int, NDArray]]) -> list[Problem]:
    found = (merged(names[j], values) for j, values in columns)
    return [problem for problem in found if problem is not None]


def _pandas_cells(name: str, series: pd.Series) -> Cells:
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _known_categories(series.cat.codes.to_numpy(), list(dtype.categories), bool(dtype.ordered))
    if isinstance(dtype, pd.PeriodDtype):
        return Cells(days_of(series.dt.to_timestamp().to_numpy()), "date")
    if isinstance(dtype, pd.IntervalDtype):
        codes, levels = pd.factorize(series, sort=True)
        return _known_categories(np.asarray(codes), list(levels), True)
    if getattr(dtype, "kind", "") == "c":
        return _complex(name)
    if pd.api.types.is_bool_dtype(dtype):
        return boolean_cells(series.to_numpy(dtype=float, na_value=np.nan))
    if pd.api.types.is_numeric_dtype(dtype):
        floats = series.to_numpy(dtype=float, na_value=np.nan)
        if not pd.api.types.is_integer_dtype(dtype):
            return Cells(floats, "number")
        return Cells(floats, "integer", problem=merged(name, series.dropna().to_numpy()))
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        moments = series.dt.tz_convert("UTC").dt.tz_localize(None) if zone_of(dtype) else series
        if hasattr(dtype, "pyarrow_dtype"):  # whose dates without a time numpy does not take
            moments = moments.astype("timestamp[us][pyarrow]")
        return Cells(days_of(moments.to_numpy(dtype="datetime64[us]", na_value=np.datetime64("NaT"))), "date")
    if kind == "m":
        return Cells(days_of(series.to_numpy(dtype="timedelta64[us]", na_value=np.timedelta64("NaT"))), "duration")
    if isinstance(dtype, np.dtype):  # pandas would compare every cell
        return read_objects(name, series.to_numpy(dtype=object))
    return read_objects(name, series.to_numpy(dtype=object, na_value=None))


def zone_of(dtype: object) -> datetime.tzinfo | str | None:
    """Time zone of a dtype of pandas; None if it has none."""
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def _known_categories(codes: NDArray, categories: Sequence[Label], ordered: bool) -> Cells:
    """Codes of categories as codes of those that are there; missing ones are -1."""
    present = np.unique(codes[codes >= 0])
    place = np.full(len(categories) + 1, np.nan)  # the last is for -1
    place[present] = np.arange(len(present))
    return Cells(place[codes], "category", tuple(categories[k] for k in present), ordered)


def _complex(name: str) -> Cells:
    problem = Problem(name, "is complex. Complex data not supported", "pass real and imaginary parts as columns")
    return Cells(np.empty(0), "number", problem=problem)


def _read_frame(X: IntoDataFrame, argument: str) -> Raw:
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
            whole = ((j, _whole_numbers(series)) for j, series in enumerate(frame.iter_columns()))
            return Raw(as_floats(values), columns, True, [False] * len(names), _merged(names, whole))
    return _assemble(
        names, (_series_cells(n, s) for n, s in zip(names, frame.iter_columns(), strict=True)), len(frame), True
    )


def _series_cells(name: str, series: nw.Series) -> Cells:
    """Read a narwhals series: polars, pyarrow and others."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric():
        floats = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
        kind = "integer" if dtype.is_integer() else "number"
        return Cells(floats, kind, problem=merged(name, _whole_numbers(series)))
    if dtype == nw.Boolean:
        return boolean_cells(np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float))
    if isinstance(dtype, nw.Enum):
        categories = list(dtype.categories)
        place = {category: k for k, category in enumerate(categories)}
        codes = np.array([-1 if v is None else place[v] for v in series.to_list()], dtype=np.intp)
        return _known_categories(codes, categories, True)
    if dtype == nw.Categorical:
        cells = read_objects(name, np.array(series.to_list(), dtype=object))
        return replace(cells, dtype="category", levels=cells.levels or ())
    if dtype == nw.Date:
        return Cells(days_of(np.array(series.to_list(), dtype="datetime64[D]")), "date")
    if dtype in (nw.Datetime, nw.Duration):
        return Cells(days_of(series.to_numpy()), "duration" if dtype == nw.Duration else "date")
    if dtype in (nw.String, nw.Time, nw.Binary, nw.Object):
        return read_objects(name, np.array(series.to_list(), dtype=object))
    if series.null_count() == len(series):
        return Cells(np.full(len(series), np.nan), "number")
    return Cells(np.empty(0), "number", problem=_neither(name, str(dtype)))


def _whole_numbers(series: nw.Series) -> NDArray:
    """Whole numbers of a narwhals series, those that there are; none of 128 bits, which numpy does not have."""
    import narwhals as nw

    if not series.dtype.is_integer() or series.dtype in (nw.Int128, nw.UInt128):
        return np.empty(0, dtype=np.int64)
    return series.drop_nulls().to_numpy()


def _neither(name: str, dtype: str) -> Problem:
    return Problem(
        name,
        f"has dtype {dtype}, which is neither numbers nor labels",
        "turn it into numbers (for dates, for instance days since a date) or drop it",
    )


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
        problems = _merged(names, enumerate(values.T)) if merges(values) else []
        return Raw(floats, [Column(name, dtype) for name in names], False, [False] * len(names), problems)
    if mask is not None:
        dates = values.dtype.kind in "mM"
        values = values.copy() if dates else values.astype(object)
        values[mask] = np.array("NaT", dtype=values.dtype) if dates else None
    return _assemble(names, (_array_cells(n, v) for n, v in zip(names, values.T, strict=True)), len(values), False)


def _array_cells(name: str, values: NDArray) -> Cells:
    """Read one column of a numpy array of any type."""
    kind = values.dtype.kind
    if kind in "iuf":
        return Cells(values, "number" if kind == "f" else "integer", problem=merged(name, values))
    if kind == "b":
        return boolean_cells(values.astype(float))
    if kind in "mM":
        return Cells(days_of(values), "duration" if kind == "m" else "date")
    return (
        read_objects(name, values)
        if kind in "USO"
        else Cells(values, "number", problem=_neither(name, str(values.dtype)))
    )


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


def keep_columns(X: object, kept: NDArray[np.bool_]) -> Frame | NDArray:
    """Take some of the columns of a frame or an array, in its own format."""
    if isinstance(X, PlainFrame):
        return PlainFrame({name: values for (name, values), stays in zip(X.data.items(), kept, strict=True) if stays})
    if is_pandas(X):
        return X.loc[:, kept]
    if is_frame(X):
        import narwhals as nw

        return nw.to_native(nw.from_native(X, eager_only=True)[:, np.flatnonzero(kept).tolist()])
    return X[:, kept] if isinstance(X, np.ma.MaskedArray) else as_array(X, "X")[:, kept]


def column_names(names: Sequence[object], argument: str) -> list[str]:
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
