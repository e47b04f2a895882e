"""Data frames of any library, arrays and lists, read column by column through narwhals.

Nothing is refused here but what has no columns at all. A column that cannot be read becomes a `Problem`, so that the
caller can name all of them at once.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.columns import Column

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
    import polars as pl
    import scipy.sparse
    from narwhals.typing import IntoDataFrame
from knockoffs.table.cells import Problem, ReadColumn, as_floats, merged, read_series, read_values

_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")


@dataclass
class Raw:
    """A table as it was read, before anything about it is judged."""

    X: NDArray[np.float64]  # numbers, days, codes of labels; NaN where a cell is missing
    columns: list[Column]  # without kinds
    named: bool  # whether the names came with the table
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class SomeColumns:
    """Some columns of an array, under the names that they have in it."""

    values: NDArray
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)


def read_columns(X: object, argument: str, known: Sequence[Column] | None = None) -> Raw:
    """Columns of a table of any format, as floats; nothing is copied more than once.

    ``known`` are the same columns as they were read from other rows: text is read as the kind that it was there.
    Refused is what is no table: sparse matrices, lazy frames, other dimensions than two, rows of different lengths,
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
    frame = open_frame(X, argument)
    text = [column.text or "label" for column in known] if known is not None else [None] * len(frame.columns)
    cells = (read_series(series, kind) for series, kind in zip(frame.iter_columns(), text, strict=True))
    return _assemble(frame.columns, cells, len(frame), True)


def _assemble(names: Sequence[str], cells: Iterable[ReadColumn], n: int, named: bool) -> Raw:
    raw = Raw(np.full((n, len(names)), np.nan), [], named)
    for j, (name, column) in enumerate(zip(names, cells, strict=True)):
        own = Column(name, column.dtype, column.levels, text=column.text, ordered=column.ordered, words=column.words)
        raw.columns.append(own)
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


# ---- arrays and lists --------------------------------------------------------------------------------------------


def _read_array(X: object, argument: str, named: tuple[str, ...] | None = None) -> Raw:
    values = table_array(X, argument)
    names = list(named or (f"x{j}" for j in range(values.shape[1])))
    if values.dtype.kind in "iuf":
        dtype = "number" if values.dtype.kind == "f" else "integer"
        found = [merged(n, v) for n, v in zip(names, values.T, strict=True)] if values.dtype.kind in "iu" else []
        problems = [problem for problem in found if problem is not None]
        return Raw(as_floats(values), [Column(name, dtype) for name in names], False, problems)
    return _assemble(names, (read_values(n, v) for n, v in zip(names, values.T, strict=True)), len(values), False)


def table_array(X: object, argument: str) -> NDArray:
    """Array of two dimensions of what is no frame; anything else is refused."""
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
    return values


def as_array(X: object, argument: str) -> NDArray:
    """Array of what is no frame; numbers among text stay numbers, and what a mask covers is None."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        cells = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
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
    return as_array(X, "X")[:, kept]


def array_of(frame: nw.DataFrame) -> NDArray:
    """Array of a frame: of numbers, or of Python objects where a column holds something else."""
    columns = [series.to_numpy() for series in frame.iter_columns()]
    if all(column.dtype.kind in "biuf" for column in columns):
        return np.stack(columns, axis=1)
    cells = np.empty(frame.shape, dtype=object)
    for j, series in enumerate(frame.iter_columns()):
        cells[:, j] = series.to_list()
    return cells


def as_polars(frame: nw.DataFrame) -> pl.DataFrame:
    """Frame of polars; sparse columns of pandas, which polars does not take, become dense."""
    native = frame.to_native()
    if is_pandas(native):
        import narwhals as nw

        sparse = {name: dtype.subtype for name, dtype in native.dtypes.items() if hasattr(dtype, "fill_value")}
        frame = nw.from_native(native.astype(sparse), eager_only=True)
    return frame.to_polars()


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


def refuse_dask(table: object) -> None:
    """Refuse what dask holds, and say how its rows can be read; dask is not imported for it."""
    if type(table).__module__.startswith("dask.array"):
        raise InputError("X is a dask array: pass X.compute(), if it fits into memory.")
    if type(table).__module__.partition(".")[0] == "dask":
        raise InputError(
            "a dask DataFrame is not read here: write it, frame.to_parquet(folder), and use "
            "knockoffs.fit_streamed(selector, folder, target)."
        )
