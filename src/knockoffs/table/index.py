"""Columns that other programs write beside a table: row numbers, row names, a column without a name or a value."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from knockoffs.errors import KnockoffWarning
from knockoffs.table.cells import is_missing
from knockoffs.table.frames import keep_columns, open_frame

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

    FrameT = TypeVar("FrameT", bound=IntoDataFrame)

INDEX = re.compile(r"|__index_level_0__|Unnamed: ?[0-9]+(\.[0-9]+)*")


def without_index(frame: FrameT, label: str, asked: Collection[str] = ()) -> FrameT:
    """Frame without the columns that other programs write beside a table; a warning names them.

    Such a column has no name, or the name that pandas gives it. It counts the rows from 0 or 1, holds a text of its own
    for each of them, or holds nothing.

    Parameters
    ----------
    frame : data frame
    label : str
        What to call it in the warning.
    asked : collection of str
        Columns that the caller names: these are never left out.
    """
    opened = open_frame(frame, label)
    found = {
        name: _as_index(opened.get_column(name))
        for name in opened.columns
        if name not in asked and INDEX.fullmatch(name)
    }
    found = {name: does for name, does in found.items() if does}
    if not found or len(found) == len(opened.columns):
        return frame
    for name, does in found.items():
        warnings.warn(f"{label}: the column {name!r} {does} and is left out.", KnockoffWarning, stacklevel=4)
    return keep_columns(frame, np.array([name not in found for name in opened.columns]))


def _as_index(series: nw.Series) -> str:
    """Say what a column without a name of its own does, if it is no feature."""
    if series.name == "__index_level_0__":
        return "numbers the rows" if series.dtype.is_numeric() else "names the rows"
    values = series.to_numpy()
    n = len(values)
    if values.dtype.kind in "iu" and any(np.array_equal(values, np.arange(k, n + k)) for k in (0, 1)):
        return "numbers the rows"
    cells = values.tolist()
    if n > 1 and len({cell for cell in cells if isinstance(cell, str) and cell}) == n:
        return "names the rows"
    return "has neither a name nor a value" if all(map(is_missing, cells)) else ""
