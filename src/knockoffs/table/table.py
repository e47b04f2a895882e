"""A table comes in: numbers, names, kinds of columns, and everything that is checked before the work starts.

Arrays, lists, pandas and polars frames all become one `Table`, whose ``X`` is an array of floats; `Table.decode`
turns an array of the same columns back into the format that came in. Everything a user can get wrong about the
data is refused here, in one pass, so that the rest of the package trusts what it is handed.
"""

from __future__ import annotations

import math
import numbers
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.sampling.swap import check_features

MIN_ROWS = 5  # one row for each fold of the cross-validated models
CODED = ("boolean", "string", "category")  # kinds of column that hold labels, not numbers


class InputTypeError(InputError, TypeError):
    """A value that is neither a number nor a label."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
    kind : {"number", "integer", "boolean", "string", "category"}
        The first two hold numbers, the others labels. A new kind (missing values, ordered labels) is added here,
        in `_read_column` and in `Table.decode`.
    levels : tuple, optional
        Of labels: level k has the code k in X.
    """

    name: str
    kind: str = "number"
    levels: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class PlainFrame:
    """Columns by name: what a csv file is read into where neither polars nor pandas is installed."""

    data: dict[str, NDArray]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.data)


@dataclass(frozen=True)
class Table:
    """A checked table: every value of X is a finite float.

    Parameters
    ----------
    X : array of float, shape (n, n_columns)
        Numbers, and integer codes where a column holds labels.
    columns : tuple of Column
    named : bool
        Whether the names came with the table; a plain array gets x0, x1, ...
    native : object
        What came in; its format, dtypes and index are those that `decode` restores.
    groups : array of int, shape (n_columns,), optional
        Feature that owns each column, where a feature has several.
    """

    X: NDArray[np.float64]
    columns: tuple[Column, ...]
    named: bool = False
    native: Any = field(default=None, repr=False)
    groups: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def grouped(self) -> bool:
        """Whether a feature owns several columns."""
        return self.groups is not None

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature that owns each column, shape (n_columns,)."""
        return np.arange(len(self.columns)) if self.groups is None else self.groups

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature: its column's, or those of its columns together.

        >>> as_table([[1, 2, 3]]).with_groups([0, 0, 1]).feature_names
        ('x0, x1', 'x2')
        """
        if self.groups is None:
            return self.names
        members: list[list[str]] = [[] for _ in range(int(self.groups.max()) + 1)]
        for name, owner in zip(self.names, self.groups, strict=True):
            members[owner].append(name)
        return tuple(
            ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") for names in members
        )

    def with_groups(self, feature_of: ArrayLike | None) -> Table:
        """Table whose features own the columns that feature_of says."""
        if feature_of is None:
            return self
        return replace(self, groups=check_features(feature_of, len(self.columns)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def column_values(self, X: NDArray, j: int) -> NDArray:
        """Values of column j of an array like X, in the column's own kind: labels for codes, integers for integers."""
        column, values = self.columns[j], X[:, j]
        if column.levels is not None:
            codes = values.astype(np.intp)
            if not np.array_equal(codes, values) or codes.min() < 0 or codes.max() >= len(column.levels):
                raise InputError(f"column {column.name!r} holds values that are codes of none of its labels.")
            dtype = {"boolean": bool, "integer": np.int64, "number": float}.get(column.kind, object)
            return np.array(column.levels, dtype=dtype)[codes]
        if column.kind == "integer" and np.array_equal(np.rint(values), values):
            return values.astype(np.int64)
        return values

    def decode(self, X: NDArray) -> Any:
        """X, shape (n, n_columns), in the format that came in: an array, or a frame with its names, dtypes and index.

        A column of integers stays one where its values are whole numbers, and becomes a column of floats otherwise.

        >>> table = as_table([[1.5, "yes"], [2.5, "no"]], labels=True)
        >>> table.X.tolist()
        [[1.5, 1.0], [2.5, 0.0]]
        >>> table.decode(table.X).tolist()
        [[1.5, 'yes'], [2.5, 'no']]
        """
        if isinstance(self.native, PlainFrame):
            return PlainFrame({name: self.column_values(X, j) for j, name in enumerate(self.names)})
        if not is_frame(self.native):
            if all(column.kind == "number" for column in self.columns):
                return X
            values = [self.column_values(X, j) for j in range(len(self.columns))]
            dtype = np.result_type(*values) if all(v.dtype.kind in "iuf" for v in values) else object
            return np.stack([value.astype(dtype) for value in values], axis=1)
        return self._decode_pandas(X) if is_pandas(self.native) else self._decode_frame(X)

    def _keeps_dtype(self, j: int, values: NDArray, is_float: bool) -> bool:
        return self.columns[j].kind in CODED or values.dtype.kind == "i" or is_float

    def _decode_pandas(self, X: NDArray) -> Any:
        import pandas as pd

        index = self.native.index if len(X) == len(self.native) else None
        series = []
        for j, dtype in enumerate(self.native.dtypes):
            values = pd.Series(self.column_values(X, j), index=index)
            keeps = self._keeps_dtype(j, values.to_numpy(), getattr(dtype, "kind", "") == "f")
            series.append(values.astype(dtype) if keeps else values)
        return pd.concat(series, axis=1, keys=self.native.columns)

    def _decode_frame(self, X: NDArray) -> Any:
        import narwhals as nw

        frame = nw.from_native(self.native, eager_only=True)
        backend = nw.get_native_namespace(frame)
        series = {}
        for j, old in enumerate(frame.iter_columns()):
            values = self.column_values(X, j)
            new = nw.new_series(old.name, values.tolist() if values.dtype == object else values, backend=backend)
            series[old.name] = new.cast(old.dtype) if self._keeps_dtype(j, values, old.dtype.is_float()) else new
        return nw.to_native(nw.from_dict(series, backend=backend))


def as_table(
    X: Any,
    *,
    labels: bool = False,
    levels: Mapping[str, Sequence[Any]] | None = None,
    argument: str = "X",
    min_rows: int = 1,
) -> Table:
    """Check a table and read it as numbers.

    Parameters
    ----------
    X : array, list of rows, pandas or polars DataFrame, shape (n, n_columns)
    labels : bool
        Whether columns of strings, booleans and categories are taken, as codes 0, 1, ... of their sorted levels.
        Families of discrete features take them; for the others they are refused by name.
    levels : mapping of column names to labels, optional
        Labels of some columns in the order of their codes, where a fitted family has its own.
    argument : str
        What to call the table in errors.
    min_rows : int
        Fewest rows that will do.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        For NaN or infinity, labels where numbers are needed, names given twice, too few rows, no columns, sparse
        matrices, complex numbers, rows of different lengths.

    >>> as_table([[1, 2], [3, 4]]).names
    ('x0', 'x1')
    """
    if isinstance(X, Table):
        return X
    if is_sparse(X):
        raise InputError(
            f"{argument} is a sparse matrix, and knockoffs of it would be dense. If {X.shape[0]} x {X.shape[1]} "
            f"numbers fit into memory, pass {argument}.toarray()."
        )
    read = _read_plain if isinstance(X, PlainFrame) else _read_frame if is_frame(X) else _read_array
    table = read(X, _ColumnReader(labels, argument, levels or {}))
    n, p = table.X.shape
    if p == 0:
        raise InputError(f"{argument} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n < min_rows:
        raise InputError(f"{argument} has n_samples={n} rows: at least {min_rows} are needed.")
    check_finite(table.X, table.names, argument)
    return table


def code_whole_numbers(table: Table, most: int = 100) -> Table:
    """Table whose columns of whole numbers are codes of their distinct values, for families of discrete features.

    >>> code_whole_numbers(as_table([[3], [7], [3]])).X.tolist()
    [[0.0], [1.0], [0.0]]
    """
    X, columns = table.X.copy(), list(table.columns)
    for j, column in enumerate(columns):
        if column.levels is not None or not np.array_equal(np.rint(X[:, j]), X[:, j]):
            continue
        values, codes = np.unique(X[:, j], return_inverse=True)
        if len(values) <= most:
            X[:, j] = codes
            levels = values.astype(np.int64) if column.kind == "integer" else values
            columns[j] = replace(column, levels=tuple(levels.tolist()))
    return replace(table, X=X, columns=tuple(columns))


def check_finite(X: NDArray[np.float64], names: Sequence[str], argument: str = "X") -> None:
    """Refuse NaN and infinity, naming the columns and the first row.

    The place for missing values: a family that takes them would allow NaN here.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # the usual case costs one pass and no memory
            return
    finite = np.isfinite(X)
    if finite.all():  # only the sum was too large
        return
    i, j = (int(k) for k in np.argwhere(~finite)[0])
    bad = [names[int(k)] for k in np.flatnonzero(~finite.all(axis=0))]
    found = "NaN" if np.isnan(X[~finite]).all() else "inf" if not np.isnan(X).any() else "NaN and inf"
    raise InputError(
        f"{argument} contains {found} in {_columns(bad)}, the first in row {i}, column {names[j]!r}: "
        "drop or impute these values before the selection; fill them in by a model of the features, not of the target."
    )


def check_level(fdr: float, n_features: int, offset: int) -> None:
    """Refuse a level at which knockoff+ can never select, and name the smallest that can.

    >>> check_level(0.05, 10, 1)
    Traceback (most recent call last):
    knockoffs.errors.InputError: fdr=0.05 can never select with 10 features: knockoff+ needs at least 1/fdr = 20
    selections. Use fdr >= 0.1 or offset=0.
    """
    if offset == 0 or 1 / n_features <= fdr:
        return
    needed = math.ceil(1 / fdr - 1e-9)
    smallest = math.ceil(1e4 / n_features - 1e-9) / 1e4  # rounded up, so that it can be used as it is written
    remedy = f"Use fdr >= {smallest:g} or offset=0." if n_features > 1 else "Use offset=0, or more features."
    raise InputError(
        f"fdr={fdr:g} can never select with {n_features} features: knockoff+ needs at least 1/fdr = {needed} "
        f"selections. {remedy}" + (" (n_features=1)" if n_features == 1 else "")
    )


def check_knockoffs(knockoffs: Any, table: Table) -> NDArray[np.float64]:
    """Check knockoffs that were brought along: the shape and names of X, numbers, and not X itself."""
    levels = {column.name: column.levels for column in table.columns if column.levels is not None}
    named = as_table(knockoffs, labels=bool(levels), levels=levels, argument="knockoffs")
    X_tilde = named.X
    if X_tilde.shape != table.X.shape:
        raise InputError(
            f"knockoffs have shape {X_tilde.shape} and X has shape {table.X.shape}: they must be the same."
        )
    if named.named and table.named and named.names != table.names:
        j = next(j for j, (a, b) in enumerate(zip(named.names, table.names, strict=True)) if a != b)
        raise InputError(
            f"column {j} is called {named.names[j]!r} in knockoffs and {table.names[j]!r} in X: "
            "bring them in one order."
        )
    if np.array_equal(X_tilde, table.X):
        raise InputError("knockoffs are equal to X: copies are valid knockoffs, but nothing can be selected with them.")
    same = np.flatnonzero((X_tilde == table.X).all(axis=0))
    if same.size:
        listed = name_some([table.names[j] for j in same])
        warnings.warn(
            f"knockoffs equal X in {same.size} columns ({listed}), which can never be selected.",
            KnockoffWarning,
            stacklevel=3,
        )
    return X_tilde


# ---- reading frames and arrays ----------------------------------------------------------------------------------


def _read_frame(X: Any, reader: _ColumnReader) -> Table:
    import narwhals as nw

    if hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise InputError(f"{reader.argument} is a lazy frame: pass {reader.argument}.collect().")
    if is_pandas(X):  # narwhals refuses names given twice in its own words
        _column_names(list(X.columns), reader.argument)
    frame = nw.from_native(X, eager_only=True)
    names = _column_names(list(frame.columns), reader.argument)
    kinds = [_kind_of_dtype(dtype) for dtype in frame.schema.values()]
    if frame.shape[1] and all(kind in ("number", "integer") for kind in kinds):
        values = frame.to_numpy()
        if values.dtype.kind in "iuf":
            columns = tuple(Column(name, kind) for name, kind in zip(names, kinds, strict=True))
            return Table(_as_floats(values), columns, True, X)
    for name, kind, series in zip(names, kinds, frame.iter_columns(), strict=True):
        if kind == "number" or kind == "integer":
            reader.add_numbers(name, kind, np.asarray(series.to_numpy(), dtype=float))
        elif kind == "other":
            reader.refuse_kind(name, str(series.dtype))
        else:
            reader.add_objects(name, series.to_numpy(), kind, getattr(series.dtype, "categories", None))
    return reader.table(len(frame), True, X)


def _read_plain(X: PlainFrame, reader: _ColumnReader) -> Table:
    for name, values in zip(_column_names(X.columns, reader.argument), X.data.values(), strict=True):
        if values.dtype.kind in "iuf":
            reader.add_numbers(name, "number" if values.dtype.kind == "f" else "integer", values.astype(float))
        else:
            reader.add_objects(name, values, "boolean" if values.dtype.kind == "b" else "unknown")
    return reader.table(len(next(iter(X.data.values()), ())), True, X)


def _kind_of_dtype(dtype: Any) -> str:
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    kind = {"Boolean": "boolean", "String": "string", "Categorical": "category", "Enum": "category"}
    return kind.get(type(dtype).__name__, "unknown" if type(dtype).__name__ == "Object" else "other")


def _read_array(X: Any, reader: _ColumnReader) -> Table:
    argument = reader.argument
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
    if values.dtype.kind in "iuf":
        kind = "number" if values.dtype.kind == "f" else "integer"
        return Table(_as_floats(values), tuple(Column(name, kind) for name in names), False, X)
    if values.dtype.kind not in "bUSO":
        raise InputError(f"{argument} has dtype {values.dtype}, which is neither numbers nor labels.")
    for name, column in zip(names, values.T, strict=True):
        reader.add_objects(name, column, "boolean" if values.dtype.kind == "b" else "unknown")
    return reader.table(len(values), False, X)


def _as_array(X: Any, argument: str) -> NDArray:
    if isinstance(X, np.ndarray):
        return X
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


def _as_floats(values: NDArray) -> NDArray[np.float64]:
    return np.ascontiguousarray(values, dtype=np.float64)


class _ColumnReader:
    """Collects columns of all kinds, and refuses what cannot be read, all offending columns in one error."""

    def __init__(self, labels: bool, argument: str, levels: Mapping[str, Sequence[Any]]) -> None:
        self.labels, self.argument, self.levels = labels, argument, levels
        self.columns: list[Column] = []
        self.values: list[NDArray[np.float64]] = []
        self.text: list[tuple[str, Any]] = []

    def add_numbers(self, name: str, kind: str, values: NDArray[np.float64]) -> None:
        self.columns.append(Column(name, kind))
        self.values.append(values)

    def add_objects(self, name: str, values: NDArray, kind: str, levels: Iterable[Any] | None = None) -> None:
        """Read a column of Python objects: numbers become numbers, labels become codes."""
        listed = values.tolist()
        missing = np.fromiter((is_missing(v) for v in listed), bool, len(listed))
        present = [v for v, gone in zip(listed, missing, strict=True) if not gone]
        if kind == "unknown":
            kind = self._kind_of_values(name, listed, present)
        if kind in ("number", "integer"):
            self.add_numbers(name, kind, np.array([np.nan if m else v for v, m in zip(listed, missing)], dtype=float))  # noqa: B905
            return
        if not self.labels:
            self.text.append((name, present[0] if present else None))
            return
        ordered = self._known_levels(name, present) if name in self.levels else _sorted_levels(present, levels)
        code = {level: k for k, level in enumerate(ordered)}
        # a missing label is refused by check_finite, where the numbers are
        codes = np.array([np.nan if m else code[v] for v, m in zip(listed, missing)], dtype=float)  # noqa: B905
        self.columns.append(Column(name, kind, tuple(ordered)))
        self.values.append(codes)

    def _known_levels(self, name: str, present: list[Any]) -> list[Any]:
        known = list(self.levels[name])
        unseen = sorted({str(value) for value in present} - {str(level) for level in known})
        if unseen:
            raise InputError(
                f"column {name!r} of {self.argument} holds {name_some(unseen)}, and the feature model knows "
                f"{name_some(known)}."
            )
        by_name = {str(value): value for value in present}  # True in the table may be "True" in the model
        return [by_name.get(str(level), level) for level in known]

    def refuse_kind(self, name: str, dtype: str) -> None:
        raise InputError(
            f"column {name!r} of {self.argument} has dtype {dtype}, which is neither numbers nor labels: "
            "turn it into numbers (for dates, for instance days since a date) or drop it."
        )

    def _kind_of_values(self, name: str, listed: list[Any], present: list[Any]) -> str:
        if all(isinstance(v, bool | np.bool_) for v in present) and present:
            return "boolean"
        if all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in present):
            return "integer" if present and all(isinstance(v, numbers.Integral) for v in present) else "number"
        if all(isinstance(v, str | bytes | bool | numbers.Real) for v in present):
            if any(isinstance(v, str | bytes) for v in present) and self.labels:
                if not all(isinstance(v, str | bytes) for v in present):
                    odd = next(v for v in present if not isinstance(v, str | bytes))
                    raise InputError(
                        f"column {name!r} of {self.argument} mixes strings with {odd!r}: make all of them strings."
                    )
                return "string"
            return "string" if any(isinstance(v, str | bytes) for v in present) else "number"
        row, odd = next((i, v) for i, v in enumerate(listed) if not isinstance(v, str | bytes | bool | numbers.Real))
        raise InputTypeError(
            f"{self.argument} holds {odd!r} ({type(odd).__name__}) in row {row}, column {name!r}: "
            "every argument must be a string (for families that take labels) or a number."
        )

    def table(self, n: int, named: bool, native: Any) -> Table:
        if self.text:
            name, example = self.text[0]
            raise InputError(
                f"{self.argument} holds labels, not numbers, in {_columns([name for name, _ in self.text])}, for "
                f"instance {example!r} in column {name!r}. This feature model could not convert string to float: "
                "encode the labels as numbers, drop the columns, or use a feature model that takes labels."
            )
        X = np.stack(self.values, axis=1) if self.values else np.empty((n, 0))
        return Table(_as_floats(X), tuple(self.columns), named, native)


def _sorted_levels(present: list[Any], levels: Iterable[Any] | None) -> list[Any]:
    seen = set(present)
    if levels is not None:  # an Enum has its own order
        return [level for level in levels if level in seen]
    try:
        return sorted(seen)
    except TypeError:
        return sorted(seen, key=lambda level: (type(level).__name__, str(level)))


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, pandas' NA or NaT."""
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _column_names(names: list[Any], argument: str) -> list[str]:
    kinds = sorted({type(name).__name__ for name in names})
    if "str" in kinds and len(kinds) > 1:
        raise InputError(f"the column names of {argument} mix {' and '.join(kinds)}: make all of them strings.")
    listed = [str(name) for name in names]
    twice = [name for name, count in Counter(listed).items() if count > 1]
    if twice:
        raise InputError(
            f"{argument} has two columns of the same name: {name_some(twice)}. Rename or drop one of each."
        )
    return listed


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns ({name_some(names)})"


# ---- formats, recognised without importing their libraries --------------------------------------------------------


def is_frame(X: Any) -> bool:
    """Whether it is a data frame of any of the known libraries."""
    # asked of the class: the columns of a lazy frame are work
    return type(X).__module__.split(".")[0] in _FRAMES and hasattr(type(X), "columns")


_FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")


def is_pandas(X: Any) -> bool:
    """Whether it is a frame or a series of pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame | pandas.Series)


def is_sparse(X: Any) -> bool:
    """Whether it is a sparse matrix or array of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)
