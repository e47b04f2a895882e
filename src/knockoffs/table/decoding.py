"""An array of a table's columns back in the format that came in: dtypes, categories, dates, missing cells, index."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.cells import DAY, is_missing
from knockoffs.table.columns import Column
from knockoffs.table.moments import MOMENTS
from knockoffs.table.reading import zone_of
from knockoffs.table.written import write_text

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd


Cell = TypeVar("Cell")


def own_values(column: Column, values: NDArray) -> NDArray:
    """Values of one column in its own type: labels for codes, integers where all are whole, days for dates, text.

    Parameters
    ----------
    column : Column
    values : array of float, shape (n,)
        NaN where a cell is missing, which is None among labels.
    """
    if column.written:
        numbers = values if column.levels is None else own_values(replace(column, written=""), values).astype(float)
        texts = np.empty(len(values), dtype=object)
        texts[:] = write_text(numbers, column.written)
        return texts
    if column.levels is None:
        whole = column.dtype == "integer" and np.array_equal(np.rint(values), values)
        return values.astype(np.int64) if whole and (np.abs(values) < 2.0**63).all() else values
    missing = np.isnan(values)
    codes = np.where(missing, 0, values).astype(np.intp)
    present = values[~missing]
    if present.size and (present != codes[~missing]).any() | (present.min() < 0) | (
        present.max() >= len(column.levels)
    ):
        raise InputError(f"column {column.name!r} holds values that are codes of none of its labels.")
    if missing.any():
        labels = np.empty(len(values), dtype=object)
        labels[:] = [None if gone else column.levels[k] for k, gone in zip(codes, missing, strict=True)]
        return labels
    levels = np.empty(len(column.levels), dtype=object)
    levels[:] = column.levels
    floats = dict.fromkeys(("number", *MOMENTS), float)
    dtype = {"boolean": bool, "integer": np.int64, **floats}.get(column.dtype, object)
    return levels.astype(dtype)[codes]


def from_days(days: NDArray, unit: str) -> NDArray:
    """Days as datetime64[us] or timedelta64[us], NaN as NaT.

    >>> from_days(np.array([0.5]), "datetime64[us]")
    array(['1970-01-01T12:00:00.000000'], dtype='datetime64[us]')
    """
    missing = np.isnan(days)
    moments = np.rint(np.where(missing, 0, days) * DAY).astype(np.int64).astype(unit)
    moments[missing] = "NaT"
    return moments


def dates_like(days: NDArray, like: Any) -> list[object]:
    """Days as Python objects of the type of ``like``: text, a date, a time, a datetime, a duration."""
    if isinstance(like, datetime.time):
        noon = datetime.datetime(1970, 1, 1)
        return [None if d != d else (noon + datetime.timedelta(days=min(d, 1 - 1e-11))).time() for d in days.tolist()]
    duration = isinstance(like, datetime.timedelta | np.timedelta64)
    moments = from_days(days, "timedelta64[us]" if duration else "datetime64[us]")
    if isinstance(like, str):
        return [None if np.isnat(m) else str(m) for m in moments.astype("datetime64[D]")]
    if isinstance(like, np.datetime64 | np.timedelta64):
        return list(moments)
    if isinstance(like, datetime.date) and not isinstance(like, datetime.datetime):
        return moments.astype("datetime64[D]").tolist()
    zone = getattr(like, "tzinfo", None)
    made = moments.tolist()
    if zone is not None:
        made = [None if m is None else m.replace(tzinfo=datetime.UTC).astimezone(zone) for m in made]
    return made if type(like) in (datetime.datetime, datetime.timedelta) else [m and type(like)(m) for m in made]


def first_present(cells: Iterable[Cell]) -> Cell | None:
    """First cell that is not missing; None if there is none."""
    return next((value for value in cells if not is_missing(value)), None)


def pandas_series(column: Column, values: NDArray, native: pd.Series, index: pd.Index) -> pd.Series:
    """One column as a series of the dtype of ``native``; integers become floats where they must."""
    import pandas as pd

    dtype, kind = native.dtype, getattr(native.dtype, "kind", "O")
    own = own_values(column, values)
    made: pd.Series | pd.Categorical | pd.api.extensions.ExtensionArray
    if column.written:
        absent = next((value for value in native if is_missing(value)), None)
        made = pd.Series([absent if v is None else v for v in own.tolist()], dtype=object).astype(dtype)
    elif column.dtype in MOMENTS and column.levels is None:
        made = _pandas_dates(own, native, kind)
    elif isinstance(dtype, pd.CategoricalDtype):
        made = pd.Categorical(own, dtype=dtype)
    elif kind == "O" and isinstance(dtype, np.dtype):
        absent = next((value for value in native if is_missing(value)), None)
        made = pd.Series([absent if is_missing(v) else v for v in own.tolist()], dtype=object)
    elif column.levels is None and column.dtype == "integer" and not _whole(values):
        made = pd.Series(values)  # a number between two integers
    elif np.isnan(values).any() and not isinstance(dtype, np.dtype):
        missing = np.isnan(values)
        filled = [None if gone else v for v, gone in zip(own.tolist(), missing, strict=True)]
        if column.levels is None and column.dtype == "integer":
            filled = [None if v is None else int(v) for v in filled]
        made = pd.array(filled, dtype=dtype)
    elif np.isnan(values).any() and kind in "iub":
        made = pd.Series(own)  # the cell was not missing when it came in
    else:
        made = pd.Series(own.tolist() if own.dtype == object else own).astype(dtype)
    return pd.Series(made.array if isinstance(made, pd.Series) else made, index=index, dtype=made.dtype)


def _whole(values: NDArray) -> bool:
    present = values[~np.isnan(values)]
    return bool((present == np.rint(present)).all())


def _pandas_dates(days: NDArray, native: pd.Series, kind: str) -> pd.Series:
    import pandas as pd

    if isinstance(native.dtype, pd.PeriodDtype):
        return pd.Series(from_days(days, "datetime64[us]")).dt.to_period(native.dtype.freq)
    if kind == "m":
        return pd.Series(from_days(days, "timedelta64[us]")).astype(native.dtype)
    if kind != "M":
        made = dates_like(days, first_present(native))
        absent = next((value for value in native if is_missing(value)), None)
        return pd.Series([absent if is_missing(v) else v for v in made], dtype=object).astype(native.dtype)
    moments = pd.Series(from_days(days, "datetime64[us]"))
    zone = zone_of(native.dtype)
    if zone is not None:
        moments = moments.dt.tz_localize("UTC").dt.tz_convert(zone)
    return moments.astype(native.dtype)


def narwhals_series(column: Column, values: NDArray, native: nw.Series, backend: ModuleType) -> nw.Series:
    """One column as a series of polars, pyarrow or another library, of the dtype of ``native``, a narwhals series."""
    import narwhals as nw

    name, dtype = native.name, native.dtype
    own = own_values(column, values)
    if column.dtype in MOMENTS and column.levels is None and not column.written:
        if dtype in (nw.Date, nw.Datetime, nw.Duration):
            return _narwhals_dates(own, native, backend)
        return nw.new_series(name, dates_like(own, first_present(native.to_list())), dtype, backend=backend)
    if own.dtype == object:
        return (
            nw.new_series(name, own.tolist(), nw.String, backend=backend).cast(dtype)
            if dtype
            in (
                nw.Categorical,
                nw.Enum,
            )
            else nw.new_series(name, own.tolist(), dtype, backend=backend)
        )
    missing = np.isnan(values)
    listed: NDArray | list[object] = own
    if missing.any() and native.null_count():  # cells that were null, not NaN
        listed = [None if gone else v for v, gone in zip(own.tolist(), missing, strict=True)]
    made = nw.new_series(name, listed, backend=backend)
    keeps = column.dtype != "integer" or _whole(values)
    return made.cast(dtype) if keeps else made


def _narwhals_dates(days: NDArray, native: nw.Series, backend: ModuleType) -> nw.Series:
    import narwhals as nw

    dtype = native.dtype
    moments = from_days(days, "timedelta64[us]" if dtype == nw.Duration else "datetime64[us]")
    if dtype == nw.Date:
        return nw.new_series(native.name, moments.astype("datetime64[D]").tolist(), nw.Date, backend=backend)
    listed = moments.tolist()
    zone = getattr(dtype, "time_zone", None)
    if zone is None:
        return nw.new_series(native.name, listed, backend=backend).cast(dtype)
    made = nw.new_series(native.name, listed, nw.Datetime("us"), backend=backend)
    return made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).cast(dtype)
