"""An array of a table's columns in the format that came in: dtypes, categories, dates, missing cells, index."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.cells import DAY, is_missing
from knockoffs.table.columns import Column, own_values
from knockoffs.table.frames import is_pandas, open_frame
from knockoffs.table.moments import MOMENTS
from knockoffs.table.types import Frame

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame


def decimals_of(values: NDArray, most: int = 12, first: int = 100) -> int:
    """Decimals with which every number is written; 0 if all are whole, or if some have more than ``most``.

    Decimals that do not suffice for the ``first`` numbers are not tried on the others.

    >>> decimals_of(np.array([72.08, 0.5, np.nan])), decimals_of(np.array([1 / 3, 0.5])), decimals_of(np.array([7.0]))
    (2, 0, 0)
    """
    present = values[~np.isnan(values)]
    if not present.size or np.abs(present).max() > 1e15:
        return 0
    fits = (k for k in range(most + 1) if all((np.round(some, k) == some).all() for some in (present[:first], present)))
    return next(fits, 0)


def from_days(days: NDArray, unit: str) -> NDArray:
    """Days as datetime64[us] or timedelta64[us], NaN as NaT.

    >>> from_days(np.array([0.5]), "datetime64[us]")
    array(['1970-01-01T12:00:00.000000'], dtype='datetime64[us]')
    """
    missing = np.isnan(days)
    moments = np.rint(np.where(missing, 0, days) * DAY).astype(np.int64).astype(unit)
    moments[missing] = "NaT"
    return moments


def _moments(column: Column, days: NDArray, like: object) -> NDArray | list[object]:
    """Days as dates, times or durations: Python objects where ``like``, a cell of the column, is one."""
    if column.dtype == "time":
        start = datetime.datetime(1970, 1, 1)
        return [None if d != d else (start + datetime.timedelta(days=min(d, 1 - 1e-11))).time() for d in days.tolist()]
    moments = from_days(days, "timedelta64[us]" if column.dtype == "duration" else "datetime64[us]")
    if column.text == "date" or (isinstance(like, datetime.date) and not isinstance(like, datetime.datetime)):
        return moments.astype("datetime64[D]").tolist()
    zone = getattr(like, "tzinfo", None)
    if zone is not None:
        return [None if m is None else m.replace(tzinfo=datetime.UTC).astimezone(zone) for m in moments.tolist()]
    return moments


# ---- frames ------------------------------------------------------------------------------------------------------


def decode_frame(native: IntoDataFrame, columns: Sequence[Column], X: NDArray) -> Frame:
    """X, shape (n, n_columns), as a frame of the library of ``native``, with its dtypes and, of pandas, its index."""
    import narwhals as nw

    frame = open_frame(native)
    backend = nw.get_native_namespace(frame)
    floats = all(dtype == nw.Float64 for dtype in frame.schema.values()) and all(c.levels is None for c in columns)
    numpys = not is_pandas(native) or all(dtype == np.float64 for dtype in native.dtypes)
    if floats and numpys and not np.isnan(X).any():
        made = nw.from_numpy(X, schema=frame.schema, backend=backend)
    else:
        series = [_decode(*each, backend) for each in zip(columns, X.T, frame.iter_columns(), strict=True)]
        made = nw.concat([one.to_frame() for one in series], how="horizontal")
    result = nw.to_native(made)
    if is_pandas(result) and is_pandas(native):
        result.columns = native.columns
        if len(result) == len(native):
            result.index = native.index
    return result


def _decode(column: Column, values: NDArray, old: nw.Series, backend: ModuleType) -> nw.Series:
    """One column as a series of the dtype of ``old``; integers become floats where they must."""
    import narwhals as nw

    own: NDArray | list[object] = own_values(column, values)
    objects = old.dtype in (nw.Object, nw.Date)
    if column.dtype in MOMENTS and column.levels is None:
        first = next((cell for cell in old.to_list() if not is_missing(cell)), None) if objects else None
        own = _moments(column, values, first)
    if column.text:
        own = [None if is_missing(cell) else str(cell) for cell in own]
    elif np.isnan(values).any() and old.null_count():
        own = [None if is_missing(cell) else cell for cell in (own.tolist() if isinstance(own, np.ndarray) else own)]
    elif column.levels is not None and isinstance(own, np.ndarray) and own.dtype == object:
        own = own.tolist()
    present = values[~np.isnan(values)]
    if column.dtype == "integer" and column.levels is None and (present != np.rint(present)).any():
        return nw.new_series(old.name, values, backend=backend)
    if is_pandas(old.to_native()) and (objects or old.to_native().dtype == object):
        import pandas as pd

        made = pd.Series(own, name=old.name, dtype=object).astype(old.to_native().dtype)
        return nw.from_native(made, series_only=True)
    made = nw.new_series(old.name, own, backend=backend)
    zone = getattr(old.dtype, "time_zone", None)
    if zone is not None:
        made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return _in_dtype(made, old)


def _in_dtype(made: nw.Series, old: nw.Series) -> nw.Series:
    """Series in the dtype of another one; pandas has several dtypes for one of narwhals."""
    import narwhals as nw

    if not is_pandas(old.to_native()):
        return made.cast(old.dtype)
    try:
        return nw.from_native(made.to_native().astype(old.to_native().dtype), series_only=True)
    except (TypeError, ValueError):  # cells are missing that were not
        return made


# ---- arrays ------------------------------------------------------------------------------------------------------


def decode_array(native: object, columns: Sequence[Column], X: NDArray) -> NDArray:
    """X, shape (n, n_columns), as an array of the dtype of ``native``, or of objects."""
    if all(column.dtype == "number" and column.levels is None and not column.text for column in columns):
        return X
    cells = np.asarray(native) if native is not None else None
    values = [
        _array_values(column, X[:, j], None if cells is None else cells[:, j]) for j, column in enumerate(columns)
    ]
    kinds = {v.dtype.kind for v in values}
    alike = kinds <= set("iuf") or len(kinds) == 1
    dtype = np.result_type(*values) if alike else np.dtype(object)
    stacked = np.stack([value.astype(dtype) for value in values], axis=1)
    if dtype.kind == "O" and np.isnan(X).any():
        stacked[np.isnan(X)] = None
    return stacked


def _array_values(column: Column, values: NDArray, old: NDArray | None) -> NDArray:
    own: NDArray | list[object] = own_values(column, values)
    if column.dtype in MOMENTS and column.levels is None:
        if old is not None and old.dtype.kind in "mM":
            return from_days(values, f"{'timedelta' if old.dtype.kind == 'm' else 'datetime'}64[us]").astype(old.dtype)
        first = None if old is None else next((cell for cell in old if not is_missing(cell)), None)
        own = _moments(column, values, first)
        own = own.tolist() if isinstance(own, np.ndarray) else own
    if column.text or isinstance(own, list):
        made = np.empty(len(values), dtype=object)
        made[:] = [None if is_missing(v) else str(v) if column.text else v for v in own]
        return made
    return own
