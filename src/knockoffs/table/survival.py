"""Survival times: time, event and perhaps entry, as one signed number a row (negative where the row is censored)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.cells import Cells
from knockoffs.table.frames import is_frame, open_frame
from knockoffs.table.table import Table

CALLED_TIME = re.compile(
    r"(fu|follow.?up|surv|survival|event|stop|os|pfs|dfs|to.?event)?.?(time|times|days|weeks|months)"
    r"|duration|follow.?up|tstop|tte|(days|weeks|months|time).?to.?\w+"
)
HOW = "pass y=(time, event), two columns of a data frame, or a structured array"


def split_times(y: NDArray) -> tuple[NDArray, NDArray[np.bool_], NDArray | None]:
    """Return times, whether each is that of an event, and times of entry (or None), from signed times.

    >>> time, event, entry = split_times(np.array([3.0, -2.0]))
    >>> time.tolist(), event.tolist(), entry
    ([3.0, 2.0], [True, False], None)
    """
    signed, entry = (y, None) if y.ndim == 1 else (y[:, 0], y[:, 1])
    return np.abs(signed), signed > 0, entry


def survival_columns(y: object, task: str | None = None) -> dict[str, object] | None:
    """Columns of a target that is a survival time, by name, or None if it is none.

    Parameters
    ----------
    y : object
        A tuple (time, event) or (time, event, entry), a structured array, or a data frame of two or three columns; an
        array with as many columns if the task is "survival".
    task : str, optional
    """
    if isinstance(y, tuple) and len(y) in (2, 3) and all(np.ndim(part) == 1 for part in y):  # type: ignore[arg-type]
        return dict(zip(("time", "event", "entry"), y, strict=False))
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        return {name: y[name] for name in y.dtype.names}
    if is_frame(y) and hasattr(y, "__len__") and len(y.columns) in (2, 3):  # a lazy frame has no length
        frame = open_frame(y, "y")
        return {name: frame[name].to_native() for name in frame.columns}
    columns = np.asarray(y).T if task == "survival" else np.empty(0)
    return {f"column {j}": column for j, column in enumerate(columns)} if columns.ndim == 2 else None


def signed_times(cells: Mapping[str, Cells]) -> tuple[NDArray, str]:
    """Signed times, (n,) or, with times of entry, (n, 2), NaN where a row lacks one; and the name of the time.

    Parameters
    ----------
    cells : mapping of str to Cells
        Columns called time, event (and entry), or any names: the event is then the column that is 0 or 1 (or, as in
        R, 1 or 2), and the entry the column that is below the time in every row.
    """
    cells = {name: _numbers(column) for name, column in cells.items()}
    for name, column in cells.items():
        if column.levels is not None:
            raise InputError(
                f"y: column {name!r} holds labels, for instance {column.levels[0]!r}. Pass numbers: the time, and 1 "
                f"where the event was seen, 0 where the row is censored ({HOW})."
            )
    event_name = "event" if tuple(cells)[:2] == ("time", "event") else _find_event(cells)
    event = _as_event(cells[event_name].values, event_name)
    times = {name: column.values for name, column in cells.items() if name != event_name}
    time_name = next(iter(times)) if len(times) == 1 or "time" in times else _later(times)
    time = times.pop(time_name)
    for name, values in ((time_name, time), *times.items()):
        wrong = np.isinf(values) | (values < 0 if name == time_name else False)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"y: {name!r} is {values[row]:g} in row {row}. Times are finite and not negative.")
    # only the order of times counts: a time of 0, which has no sign, becomes half of the smallest other
    positive = time[time > 0]
    if not positive.size:
        raise InputError(f"y: {time_name!r} is 0 in every row. Name the column of times.")
    signed = np.where(time == 0, positive.min() / 2, time) * np.where(event == 1, 1.0, -1.0)
    signed[np.isnan(event)] = np.nan
    if not (signed > 0).any():
        raise InputError(f"y has no event: {event_name!r} is 0 in every row, so nothing can be selected.")
    for name, entry in times.items():
        late = entry >= np.abs(signed)
        if late.any():
            row = int(np.argmax(late))
            raise InputError(
                f"y: row {row} enters at {entry[row]:g} ({name!r}) and leaves at {time[row]:g}. A row enters before it "
                "leaves: leave such rows out."
            )
        both = np.column_stack([signed, entry])
        both[np.isnan(both).any(axis=1)] = np.nan
        return both, time_name
    return signed, time_name


def _numbers(cells: Cells) -> Cells:
    """Cells of booleans as 0 and 1; others as they are."""
    if cells.dtype != "boolean" or cells.levels is None:
        return cells
    known = ~np.isnan(cells.values)
    values = np.full(len(known), np.nan)
    values[known] = np.array(cells.levels, dtype=float)[cells.values[known].astype(int)]
    return replace(cells, values=values, levels=None)


def _find_event(cells: Mapping[str, Cells]) -> str:
    """Name of the column that says whether the event was seen."""
    found = [name for name, column in cells.items() if column.dtype == "boolean"]
    if len(found) != 1:
        found = [name for name, column in cells.items() if _codes(column.values) is not None]
    if len(found) == 1:
        return found[0]
    what = "none of them is" if not found else f"{' and '.join(map(repr, found))} are"
    raise InputError(
        f"y has {len(cells)} columns, and {what} 0 or 1. y should be a 1d array, one value for each row of X; for a "
        "survival time pass y=(time, event), with event 1 where it was seen and 0 where the row is censored."
    )


def _codes(values: NDArray) -> tuple[float, ...] | None:
    """Codes of a column that may be an event: (0, 1), or (1, 2)."""
    distinct = set(np.unique(values[~np.isnan(values)]).tolist())
    return next((codes for codes in ((0.0, 1.0), (1.0, 2.0)) if distinct <= set(codes)), None)


def _as_event(values: NDArray, name: str) -> NDArray:
    """Events as 1 and 0, NaN where they are missing."""
    codes = _codes(values)
    if codes is None:
        some = ", ".join(f"{value:g}" for value in np.unique(values[~np.isnan(values)])[:4])
        raise InputError(
            f"y: {name!r} has the values {some}. An event is 1 where it was seen and 0 where the row is censored: of "
            f"several kinds of events pick one, for instance table[{name!r}] == 1."
        )
    if codes == (1.0, 2.0):
        said = f"y: {name!r} is 1 or 2. As in R, 2 is taken for the event and 1 for a censored row."
        warnings.warn(said, KnockoffWarning, stacklevel=5)
    return np.where(np.isnan(values), np.nan, (values == codes[1]).astype(float))


def _later(times: Mapping[str, NDArray]) -> str:
    """Name of the time of two columns of times: the later in every row; the other is the entry."""
    (first, a), (second, b) = times.items()
    known = ~(np.isnan(a) | np.isnan(b))
    if (a < b)[known].all() or (a > b)[known].all():
        return second if (a < b)[known].all() else first
    raise InputError(
        f"y: neither of {first!r} and {second!r} is the later in every row. Pass y=(time, event, entry), with entries "
        "before times."
    )


def warn_of_lone_event(values: NDArray, table: Table) -> None:
    """Warn of a target of two classes beside a column that is called as its time would be."""
    if set(np.unique(values).tolist()) not in ({0, 1}, {1, 2}):
        return
    kinds = zip(table.names, table.kinds, strict=True)
    times = [j for j, (called, kind) in enumerate(kinds) if CALLED_TIME.fullmatch(called.lower()) and kind != "nominal"]
    times = [j for j in times if np.nanmin(table.X[:, j]) >= 0 and len(np.unique(table.X[:, j])) > 2]
    if not times:
        return
    time = table.names[times[0]]
    warnings.warn(
        f"y is 0 or 1 beside the column {time!r}: is it an event, and {time!r} the time until then? Then drop {time!r} "
        f"from X and pass y=(table[{time!r}], y), or --time {time} --event COLUMN in place of --target.",
        KnockoffWarning,
        stacklevel=4,
    )
