"""A table comes in: numbers, names, kinds of columns, and everything that is checked before the work starts.

Arrays, lists, pandas and polars frames all become one `Table`, whose ``X`` is an array of floats; `Table.decode`
turns an array of the same columns back into the format that came in. Everything a user can get wrong about the
data is refused here, in one pass, so that the rest of the package trusts what it is handed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.auto_groups import auto_groups, score_correlation
from knockoffs.table.cells import PlainFrame, Problem, Raw, SomeColumns, is_missing
from knockoffs.table.column_checks import suspicious_columns, warn_of_indexes, warn_of_rows, warn_of_stand_ins
from knockoffs.table.columns import CODED, Column, Design, design, overrule, recognise_kinds
from knockoffs.table.decoding import dates_like, from_days, narwhals_series, own_values, pandas_series
from knockoffs.table.groups import Groups, as_groups
from knockoffs.table.moments import MOMENTS, to_units, unit_of
from knockoffs.table.reading import is_frame, is_pandas, is_sparse, keep_columns, read_columns
from knockoffs.table.text_columns import values_from_text
from knockoffs.table.types import Frame, Kinds, Label

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "MIN_ROWS",
    "Column",
    "InputTypeError",
    "PlainFrame",
    "Table",
    "as_table",
    "check_finite",
    "is_frame",
    "is_missing",
    "is_pandas",
    "is_sparse",
    "read_table",
]

MIN_ROWS = 5  # one row for each fold of the cross-validated models


class InputTypeError(InputError, TypeError):
    """A value that is neither a number nor a label."""


@dataclass(frozen=True)
class Table:
    """A table that was read and checked.

    Parameters
    ----------
    X : array of float, shape (n, n_columns)
        Numbers, days where a column holds dates, and codes 0, 1, ... where it holds labels. NaN where a cell is
        missing; infinity is refused.
    columns : tuple of Column
    named : bool
        Whether the names came with the table; a plain array gets x0, x1, ...
    native : object
        What came in; its format, dtypes and index are those that `decode` restores.
    groups : Groups, optional
        Which columns are one feature, where a feature has several.
    ordered : bool
        Whether the columns follow each other, as sites of a chromosome do: automatic groups are then of neighbours.
    """

    X: NDArray[np.float64]
    columns: tuple[Column, ...]
    named: bool = False
    native: Any = field(default=None, repr=False)
    groups: Groups | None = None
    ordered: bool = False

    def __len__(self) -> int:
        return len(self.X)

    @property
    def grouped(self) -> bool:
        """Whether a feature owns several columns."""
        return self.groups is not None

    @cached_property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature that owns each column, shape (n_columns,)."""
        return np.arange(len(self.columns)) if self.groups is None else self.groups.feature_of

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each feature: its column's, or its group's."""
        return self.names if self.groups is None else self.groups.names

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """What the columns hold: "continuous", "count", "ordinal", "binary" or "nominal"."""
        return tuple(column.kind for column in self.columns)

    @cached_property
    def missing(self) -> bool:
        """Whether any cell is missing."""
        return bool(np.isnan(self.X.sum())) and bool(np.isnan(self.X).any())

    def with_groups(self, groups: object) -> Table:
        """Table some of whose columns are one feature; "auto" joins those whose knockoffs would be twins.

        >>> read_table([[1, 2, 3], [2, 2, 1], [2, 1, 1]]).with_groups({"pair": ["x0", "x1"]}).feature_names
        ('pair', 'x2')
        """
        if groups is None:
            return self
        if isinstance(groups, str) and groups == "auto":
            return replace(self, groups=auto_groups(score_correlation(self.X), self.names, ordered=self.ordered))
        return replace(self, groups=as_groups(groups, self.names))

    def keep(self, kept: NDArray[np.bool_]) -> Table:
        """Table of some of the columns, under their names; a group keeps those of its columns that stay."""
        columns = tuple(column for column, stays in zip(self.columns, kept, strict=True) if stays)
        groups = None if self.groups is None else self.groups.keep(kept)
        native = None if self.native is None else keep_columns(self.native, kept)
        return replace(self, X=self.X[:, kept], columns=columns, native=native, groups=groups)

    def without(self, names: Sequence[str]) -> Table:
        """Table without some of its columns.

        >>> read_table([[1, 2, 3], [2, 2, 1], [2, 1, 1]]).without(["x1"]).names
        ('x0', 'x2')
        """
        return self.keep(np.array([name not in names for name in self.names]))

    def rows(self, which: NDArray | slice) -> Table:
        """Take some of the rows; ``decode`` then gives back no index."""
        return replace(self, X=self.X[which])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def column_values(self, X: NDArray, j: int) -> NDArray:
        """Values of column j of an array like X, in the column's own type: labels for codes, integers for integers."""
        return own_values(self.columns[j], X[:, j])

    def design(self, feature_of: NDArray[np.intp] | None = None) -> Design:
        """How the columns become numbers for a model of y: nominal ones blocks of indicators, the others themselves."""
        return design(self.columns, feature_of)

    def decode(self, X: NDArray) -> Any:
        """X, shape (n, n_columns), in the format that came in: an array, or a frame with its names, dtypes and index.

        A column of integers stays one where its values are whole numbers, and becomes a column of floats otherwise.
        Dates and durations that were whole days, hours, minutes or seconds stay so. NaN is a missing cell again.

        >>> table = as_table([[1.5, "yes"], [2.5, "no"]], labels=True)
        >>> table.X.tolist()
        [[1.5, 1.0], [2.5, 0.0]]
        >>> table.decode(table.X).tolist()
        [[1.5, 'yes'], [2.5, 'no']]
        """
        X = self._whole_units(X)
        if isinstance(self.native, PlainFrame):
            return PlainFrame({name: self._plain_values(X, j) for j, name in enumerate(self.names)})
        if not is_frame(self.native):
            return self._decode_array(X)
        return self._decode_pandas(X) if is_pandas(self.native) else self._decode_frame(X)

    def _whole_units(self, X: NDArray) -> NDArray:
        """Round dates and durations to the unit that they came in: their knockoffs stay in the support."""
        places = [j for j, column in enumerate(self.columns) if column.dtype in MOMENTS and column.levels is None]
        X = X.copy() if places else X
        for j in places:
            X[:, j] = to_units(X[:, j], unit_of(self.X[:, j]))
        return X

    def _plain_values(self, X: NDArray, j: int) -> NDArray:
        values = self.column_values(X, j)
        if self.columns[j].written:
            return values
        if self.columns[j].dtype not in MOMENTS or self.columns[j].levels is not None:
            return values
        native = self.native.data[self.names[j]] if isinstance(self.native, PlainFrame) else np.asarray(self.native)
        if native.dtype.kind in "mM":
            return from_days(values, "datetime64[us]" if native.dtype.kind == "M" else "timedelta64[us]").astype(
                native.dtype
            )
        cells = native if native.ndim == 1 else native[:, j]
        made = np.empty(len(values), dtype=object)
        made[:] = dates_like(values, next((value for value in cells if not is_missing(value)), None))
        return made

    def _decode_array(self, X: NDArray) -> NDArray:
        masked = isinstance(self.native, np.ma.MaskedArray)
        if all(column.dtype == "number" and column.levels is None for column in self.columns):
            return np.ma.masked_invalid(X) if masked else X
        values = [self._plain_values(X, j) for j in range(len(self.columns))]
        kinds = {v.dtype.kind for v in values}
        alike = kinds <= set("iuf") or len(kinds) == 1
        dtype = np.result_type(*values) if alike else np.dtype(object)
        stacked = np.stack([value.astype(dtype) for value in values], axis=1)
        if dtype.kind == "O" and np.isnan(X).any():
            stacked[np.isnan(X)] = None
        return np.ma.array(stacked, mask=np.isnan(X)) if masked else stacked

    def _decode_pandas(self, X: NDArray) -> pd.DataFrame:
        import pandas as pd

        index = self.native.index if len(X) == len(self.native) else None
        if all(dtype == np.float64 for dtype in self.native.dtypes) and all(c.levels is None for c in self.columns):
            return pd.DataFrame(X, index=index, columns=self.native.columns)
        series = [
            pandas_series(column, values, native, index)
            for column, values, (_, native) in zip(self.columns, X.T, self.native.items(), strict=True)
        ]
        return pd.concat(series, axis=1, keys=self.native.columns)

    def _decode_frame(self, X: NDArray) -> Frame:
        import narwhals as nw

        frame = nw.from_native(self.native, eager_only=True)
        backend = nw.get_native_namespace(frame)
        series = {
            old.name: narwhals_series(self.columns[j], X[:, j], old, backend)
            for j, old in enumerate(frame.iter_columns())
        }
        return nw.to_native(nw.from_dict(series, backend=backend))


def read_table(X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
    """Read a table as it comes: numbers, labels, booleans, dates, missing cells, and the kind of every column.

    Parameters
    ----------
    X : array, masked array, list of rows, pandas or polars DataFrame, shape (n, n_columns); or a Table
        Missing cells may be NaN, None, pandas' NA or NaT, polars' null or masked.
    kinds : mapping of column names to kinds, optional
        Overrules what was recognised: "continuous", "count", "ordinal", "binary" or "nominal", or a list of a
        column's labels in their order, which is ordinal.
    argument : str
        What to call the table in errors.
    min_rows : int
        Fewest rows that will do.

    Raises
    ------
    InputError
        For columns that cannot be used, all of them in one error: identifiers and free text, an index, labels among
        numbers, infinity, too few cells. And for what is no table.

    Warns
    -----
    KnockoffWarning
        For a column that counts the rows under another name than an index has, and for rows without any value.

    >>> table = read_table([[1.5, "yes"], [2.5, "no"], [None, "yes"], [0.5, "no"]])
    >>> table.X.tolist()
    [[1.5, 1.0], [2.5, 0.0], [nan, 1.0], [0.5, 0.0]]
    >>> [column.kind for column in table.columns]
    ['continuous', 'binary']
    """
    if isinstance(X, Table):
        return _with_kinds(X, kinds, argument)
    raw = values_from_text(read_columns(X, argument))
    _check_shape(raw.X, argument, min_rows)
    columns = recognise_kinds(raw.X, raw.columns, raw.ordered)
    refuse([*raw.problems, *suspicious_columns(raw, columns, kinds or {})], argument)
    warn_of_indexes(raw, argument)
    warn_of_stand_ins(raw, argument)
    warn_of_rows(raw.X, argument)
    native = X.values if isinstance(X, SomeColumns) else X
    return _with_kinds(Table(raw.X, columns, raw.named, native), kinds, argument)


def _with_kinds(table: Table, kinds: Kinds, argument: str) -> Table:
    if not kinds:
        return table
    X, columns = overrule(table.X, table.columns, kinds, argument)
    return replace(table, X=X, columns=columns)


def refuse(problems: Sequence[Problem], argument: str, most: int = 10) -> None:
    """Raise one error for all columns that cannot be used."""
    if not problems:
        return
    error = InputTypeError if any(problem.foreign for problem in problems) else InputError
    if len(problems) == 1:
        only = problems[0]
        raise error(f"column {only.name!r} of {argument} {only.what}: {only.remedy}.")
    lines = [f"  {problem.name!r} {problem.what}: {problem.remedy}." for problem in problems[:most]]
    more = [f"  and {len(problems) - most} more."] if len(problems) > most else []
    lines = [f"{argument} has {len(problems)} columns that cannot be used as they are:", *lines, *more]
    names = [problem.name for problem in problems]
    remedy = [f"To leave all of them out: drop={names!r}."] if len(names) <= 5 * most else []
    raise error("\n".join([*lines, *remedy]))


def as_table(
    X: object,
    *,
    labels: bool = False,
    levels: Mapping[str, Sequence[Label]] | None = None,
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
    raw = read_columns(X, argument)
    if raw.problems:
        refuse(raw.problems[:1], argument)
    _refuse_dates(raw, argument)
    if not labels:
        _refuse_labels(raw, argument)
    for j, column in enumerate(raw.columns):
        if levels and column.name in levels and column.dtype in CODED:
            raw.X[:, j], raw.columns[j] = recoded(raw.X[:, j], column, levels[column.name], argument)
    _check_shape(raw.X, argument, min_rows)
    check_finite(raw.X, [column.name for column in raw.columns], argument)
    return Table(raw.X, recognise_kinds(raw.X, raw.columns, raw.ordered), raw.named, X)


def _check_shape(X: NDArray, argument: str, min_rows: int) -> None:
    n, p = X.shape
    if p == 0:
        raise InputError(f"{argument} has 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required.")
    if n < min_rows:
        raise InputError(f"{argument} has n_samples={n} rows: at least {min_rows} are needed.")


def _refuse_dates(raw: Raw, argument: str) -> None:
    dates = [column for column in raw.columns if column.dtype in MOMENTS]
    if dates:
        raise InputError(
            f"column {dates[0].name!r} of {argument} holds {dates[0].dtype}s, which are neither numbers nor labels: "
            "turn it into numbers (for dates, for instance days since a date) or drop it."
        )


def _refuse_labels(raw: Raw, argument: str) -> None:
    text = [j for j, column in enumerate(raw.columns) if column.levels is not None]
    if text:
        column, codes = raw.columns[text[0]], raw.X[:, text[0]]
        present = codes[~np.isnan(codes)]
        example = column.levels[int(present[0])] if present.size and column.levels else None
        raise InputError(
            f"{argument} holds labels, not numbers, in {_columns([raw.columns[j].name for j in text])}, for "
            f"instance {example!r} in column {column.name!r}. This feature model could not convert string to float: "
            "encode the labels as numbers, drop the columns, or use a feature model that takes labels."
        )


def recoded(values: NDArray, column: Column, known: Sequence[Label], argument: str) -> tuple[NDArray, Column]:
    """Codes of the levels in the order of a fitted family, which may call True "True"."""
    present = column.levels or ()
    place = {str(level): k for k, level in enumerate(known)}
    unseen = sorted({str(level) for level in present} - set(place))
    if unseen:
        raise InputError(
            f"column {column.name!r} of {argument} holds {name_some(unseen)}, and the feature model knows "
            f"{name_some(known)}."
        )
    own = {str(level): level for level in present}
    codes = np.array([place[str(level)] for level in present], dtype=float)
    missing = np.isnan(values)
    new = np.where(missing, np.nan, codes[np.where(missing, 0, values).astype(np.intp)]) if present else values
    return new, replace(column, levels=tuple(own.get(str(level), level) for level in known))


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


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r}" if len(names) == 1 else f"{len(names)} columns ({name_some(names)})"
