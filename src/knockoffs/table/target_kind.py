"""What y is: two classes, several, a count, an ordered scale, a number or a survival time.

A survival time (time, event and perhaps entry) is one signed number a row, negative where the row is censored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option, warn
from knockoffs.table.cells import ReadColumn
from knockoffs.table.columns import ROWS_A_VALUE, looks_like_counts, one_peak
from knockoffs.table.frames import as_array, is_frame, open_frame
from knockoffs.table.table import Table
from knockoffs.table.types import Label

TargetKind = Literal["number", "count", "binary", "classes", "ordinal", "survival"]

MOST_CLASSES = 10  # more distinct integers than this are taken for a number

# every word a user may say for a task
KINDS_OF_TASK = {
    "binary": "classification",
    "multiclass": "classification",
    "classification": "classification",
    "numeric": "regression",
    "regression": "regression",
    "count": "regression",
    "ordinal": "regression",
    "survival": "regression",
}
IF_IT_IS = {
    "regression": "it is a number",
    "count": "it is a count",
    "ordinal": "it is a scale",
    "classification": "its values are classes",
}


def infer_kind(
    y: ArrayLike,
    task: str | None = None,
    *,
    most_classes: int = MOST_CLASSES,
    rows_a_class: int = ROWS_A_VALUE,
    fewest_grades: int = 5,
    most_dispersed: float = 100.0,
) -> TargetKind:
    """Kind of a target.

    Labels and booleans are classes. Numbers with decimals are a number. Whole numbers are a scale, ordinal, where they
    are the grades 1 to 5; a count where they look like counts (see ``knockoffs.table.columns.looks_like_counts``) and
    vary no more than counts do; a scale where they are few, have one peak and a rare end; and otherwise classes if they
    are few, and a number if there are more.

    No value is missing. A ``task``, a key of ``KINDS_OF_TASK``, overrules the rule.

    Parameters
    ----------
    most_classes, rows_a_class : int
        Whole numbers are few if they have at most so many values, each in so many rows on average.
    fewest_grades : int
        Fewer whole numbers than this are no scale: three classes often have one peak. Exactly so many, from 1 on, are
        grades.
    most_dispersed : float
        Variance over mean, above which whole numbers are no count: 0 to 1,999 dollars are a number.

    >>> infer_kind(np.repeat([0, 1, 2, 3, 4, 5], [27, 54, 54, 36, 18, 7]))
    'count'
    >>> infer_kind(np.repeat([1, 2, 3, 4, 5], [5, 20, 60, 40, 8]))
    'ordinal'
    >>> infer_kind(np.repeat([1, 2, 3], 50)), infer_kind(np.repeat([1, 2, 3, 4, 5], 50))
    ('classes', 'ordinal')
    """
    values = np.asarray(y)
    distinct, counts = np.unique(values, return_counts=True)
    m = len(distinct)
    classes: TargetKind = "binary" if m == 2 else "classes"
    if task is not None:
        return _as_asked(values, task, m, classes)
    if values.dtype.kind not in "iuf":
        return classes
    if (distinct != np.round(distinct)).any():
        return "number"
    if m == 2:
        return "binary"
    repeats = len(values) >= rows_a_class * m
    if repeats and m == fewest_grades and (distinct[0], distinct[-1]) == (1, m):
        return "ordinal"
    if looks_like_counts(distinct, counts) and (repeats or distinct[0] <= 1):
        return "count" if values.astype(float).var() <= most_dispersed * values.mean() else "number"
    if m > most_classes or not repeats:
        return "number"
    rare_end = min(counts[0], counts[-1]) <= counts.max() / 5
    return "ordinal" if m >= fewest_grades and rare_end and one_peak(counts) else "classes"


def _as_asked(values: NDArray, task: str, n_distinct: int, classes: TargetKind) -> TargetKind:
    if task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    if KINDS_OF_TASK[task] == "classification":
        if task == "binary" and n_distinct > 2:
            raise InputError(f"task='binary', but y has {n_distinct} distinct values.")
        return classes
    if values.dtype.kind not in "biuf":
        raise InputError(f"task={task!r}, but y holds labels ({values[0]!r}): encode them as numbers, or classify.")
    if task == "count":
        numbers = values.astype(float)
        odd = numbers[(numbers < 0) | (numbers != np.round(numbers))]
        if odd.size:
            what = "a negative number" if odd[0] < 0 else "a fraction"
            raise InputError(f"task='count', but y holds {odd[0]:g}, {what}: use 'regression'.")
        return "count"
    return "ordinal" if task == "ordinal" else "number"


def too_many_classes(n_distinct: int, n: int, most_classes: int = MOST_CLASSES) -> bool:
    """Whether labels are so many that they are no classes.

    >>> too_many_classes(10, 10), too_many_classes(11, 20), too_many_classes(11, 22)
    (False, True, False)
    """
    return n_distinct > most_classes and 2 * n_distinct > n


def other_tasks(y: NDArray, kind: TargetKind) -> list[str]:
    """Tasks that y could be taken for instead, all of which would be accepted; none for labels and for fractions.

    >>> other_tasks(np.array([3, 1, 40, 17]), "number"), other_tasks(np.array([0.5, 1.25, 40]), "number")
    (['count', 'ordinal', 'classification'], [])
    """
    if y.dtype.kind not in "iuf":
        return []
    distinct = np.unique(y)
    whole = bool((distinct == np.round(distinct)).all())
    tasks = {
        "number": (["count"] if distinct[0] >= 0 else []) + ["ordinal", "classification"] if whole else [],
        "count": ["regression", "classification"],
        "ordinal": ["regression", "classification"],
        "binary": ["regression"],
        "classes": ["regression", "ordinal"],
    }[kind]
    return [task for task in tasks if task != "classification" or not too_many_classes(len(distinct), len(y))]


def describe_kind(y: NDArray, kind: TargetKind, levels: Sequence[Label] | None = None) -> str:
    """Sentence that says what y was taken for: y without missing values, ranks where it has ``levels``.

    >>> describe_kind(np.array(["yes", "no", "no"]), "binary")
    "y has two classes, 'no' (2 rows) and 'yes' (1 row)"
    >>> describe_kind(np.array([0.0, 2.0, 1.0]), "count")
    'y is a count, whole numbers from 0 to 2 that thin out upwards'
    >>> describe_kind(np.array([0.0, 2.0, 1.0]), "ordinal", ("low", "mid", "high"))
    "y is ordinal, 'low', 'mid', 'high', and predicted by its ranks"
    """
    if kind in ("binary", "classes"):
        distinct, counts = np.unique(y, return_counts=True)
        classes = distinct.tolist()
        if kind == "binary":
            rows = [f"{c!r} ({k} row{'' if k == 1 else 's'})" for c, k in zip(classes, counts, strict=True)]
            return "y has two classes, " + " and ".join(rows)
        return f"y has {len(classes)} classes: {', '.join(map(repr, classes[:5]))}{', ...' if len(classes) > 5 else ''}"
    if levels is not None:
        return f"y is ordinal, {name_some(levels)}, and predicted by its ranks"
    if kind == "survival":
        signed, entry = (y, "") if y.ndim == 1 else (y[:, 0], ", each row from its entry on")
        times, events = np.abs(signed), int((signed > 0).sum())
        return (
            f"y is a survival time between {times.min():g} and {times.max():g}: {events} events, "
            f"{len(y) - events} censored rows{entry}"
        )
    low, high = f"{y.min():g}", f"{y.max():g}"
    return {
        "number": f"y is a number between {low} and {high}",
        "count": f"y is a count, whole numbers from {low} to {high} that thin out upwards",
        "ordinal": f"y is ordinal, a scale from {low} to {high}, and predicted as a number",
    }[kind]


# ---- survival times --------------------------------------------------------------------------------------------------
CALLED_TIME = re.compile(
    r"(fu|follow.?up|surv|survival|event|stop|os|pfs|dfs|to.?event)?.?(time|times|days|weeks|months)"
    r"|duration|follow.?up|tstop|tte|(days|weeks|months|time).?to.?\w+"
)
# names of a time beside a target that is itself called as an event is
PERHAPS_TIME = re.compile(r"t|time.*|duration.*|len.?fol|.+\W?_?(days|weeks|months)")
CALLED_EVENT = re.compile(
    r"e|d|c|delta|events?|status|(vital|f).?stat(us)?|died|dead|deaths?|deceased|cens\w*|observed|fail(ed|ure)?|relapsed?"
)
HOW = "y=(time, event), two columns of a data frame, or a structured array; --event COLUMN=VALUE"


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

    It is a tuple (time, event) or (time, event, entry), a structured array, or a data frame of two or three columns; an
    array with as many columns if the task is "survival".
    """
    if isinstance(y, tuple) and len(y) in (2, 3) and all(np.ndim(part) == 1 for part in y):  # type: ignore[arg-type]
        names = [name for name in dict.fromkeys(str(getattr(part, "name", None) or "") for part in y) if name]
        return dict(zip(names if len(names) == len(y) else ("time", "event", "entry"), y, strict=False))
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        return {name: y[name] for name in y.dtype.names}
    if is_frame(y) and hasattr(y, "__len__") and len(y.columns) in (2, 3):  # a lazy frame has no length
        frame = open_frame(y, "y")
        return {name: frame[name].to_native() for name in frame.columns}
    if task == "survival" and isinstance(y, np.ndarray | list):
        values = as_array(y, "y")
        if values.ndim == 2 and values.shape[1] in (2, 3):
            return {f"column {j}": column for j, column in enumerate(values.T)}
    return None


def signed_times(cells: Mapping[str, ReadColumn], *, in_order: bool = False) -> tuple[NDArray, str]:
    """Signed times, (n,) or, with times of entry, (n, 2), NaN where a row lacks one; and the name of the time.

    Columns are time, event (and entry) ``in_order``, or called so, or have any names. The event is then the column
    that is 0 or 1 (or, as in R, 1 or 2), and the entry the column that is below the time in every row.
    """
    cells = {name: _numbers(column) for name, column in cells.items()}
    for name, column in cells.items():
        if column.levels is not None:
            raise InputError(
                f"y: column {name!r} holds labels, for instance {column.levels[0]!r}. Pass numbers: the time, and 1 "
                f"where the event was seen, 0 where the row is censored ({HOW})."
            )
    in_order = in_order or tuple(cells)[:2] == ("time", "event")
    event_name = list(cells)[1] if in_order else _find_event(cells)
    event = _as_event(cells[event_name].values, event_name)
    times = {name: column.values for name, column in cells.items() if name != event_name}
    time_name = next(iter(times)) if in_order or len(times) == 1 else "time" if "time" in times else _later(times)
    time = times.pop(time_name)
    for name, values in ((time_name, time), *times.items()):
        wrong = np.isinf(values) | (values < 0 if name == time_name else False)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"y: {name!r} is {values[row]:g} in row {row}. Times are finite and not negative.")
    # only the order of times counts: a time of 0, which has no sign, becomes half of the smallest other
    positive = time[time > 0]
    if not positive.size:
        raise InputError(f"y: {time_name!r} is 0 or missing in every row. Name the column of times.")
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


def _numbers(cells: ReadColumn) -> ReadColumn:
    """Cells of booleans as 0 and 1; others as they are."""
    if cells.dtype != "boolean" or cells.levels is None:
        return cells
    known = ~np.isnan(cells.values)
    values = np.full(len(known), np.nan)
    values[known] = np.array(cells.levels, dtype=float)[cells.values[known].astype(int)]
    return replace(cells, values=values, levels=None)


def _find_event(cells: Mapping[str, ReadColumn], most_kinds: int = 5) -> str:
    """Name of the column that says whether the event was seen.

    A column of at most ``most_kinds`` small whole numbers, the only one, is refused as one of several kinds of events.
    """
    found = [name for name, column in cells.items() if column.dtype == "boolean"]
    if len(found) != 1:
        found = [name for name, column in cells.items() if _codes(column.values) is not None]
    if len(found) == 1:
        return found[0]
    few = {name: np.unique(column.values[~np.isnan(column.values)]) for name, column in cells.items()}
    kinds = [name for name, codes in few.items() if len(codes) <= most_kinds and set(codes) <= set(range(most_kinds))]
    if not found and len(kinds) == 1:
        _as_event(cells[kinds[0]].values, kinds[0])
    what = "none of them is" if not found else f"{' and '.join(map(repr, found))} are"
    raise InputError(
        f"y has {len(cells)} columns, and {what} 0 or 1. y should be a 1d array, one value for each row of X; for a "
        "survival time pass y=(time, event), with event 1 where it was seen and 0 where the row is censored."
    )


def _codes(values: NDArray) -> tuple[float, ...] | None:
    """Codes of a column that may be an event: (0, 1), or (1, 2)."""
    distinct = set(np.unique(values[~np.isnan(values)]).tolist())
    return next((codes for codes in ((0.0, 1.0), (1.0, 2.0)) if distinct <= set(codes)), None)


def _as_event(values: NDArray, name: str, most_kinds: int = 10) -> NDArray:
    """Events as 1 and 0, NaN where they are missing; of at most ``most_kinds`` values one may be the event."""
    codes = _codes(values)
    if codes is None:
        distinct = np.unique(values[~np.isnan(values)])
        if len(distinct) > most_kinds:
            raise InputError(
                f"y: {name!r} has {len(distinct)} different values, from {distinct[0]:g} to {distinct[-1]:g}. An event "
                "is 1 where it was seen, else 0. Name the column that says so."
            )
        raise InputError(
            f"y: {name!r} has the values {', '.join(f'{value:g}' for value in distinct)}. An event is 1 where it was "
            f"seen, else 0. Choose one kind of event, for instance y=(time, table[{name!r}] == {distinct[-1]:g}) or "
            f"--event {name}={distinct[-1]:g}."
        )
    if codes == (1.0, 2.0):
        said = f"y: {name!r} is 1 or 2. As in R, 2 is taken for the event and 1 for a censored row."
        warn(said)
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


def warn_of_lone_event(values: NDArray, table: Table, name: str | None = None) -> None:
    """Warn of a target of two classes, called ``name``, beside a column that is called as its time would be.

    Of several such columns it is one whose name holds that of the target, as time.to.relapse holds relapse.
    """
    if set(np.unique(values).tolist()) not in ({0, 1}, {1, 2}):
        return
    kinds = zip(table.names, table.kinds, strict=True)
    known = [CALLED_TIME, PERHAPS_TIME] if CALLED_EVENT.fullmatch((name or "").lower()) else [CALLED_TIME]
    times = [
        j
        for j, (called, kind) in enumerate(kinds)
        if kind != "nominal" and any(pattern.fullmatch(called.lower()) for pattern in known)
    ]
    times = [j for j in times if np.nanmin(table.X[:, j]) >= 0 and len(np.unique(table.X[:, j])) > 2]
    if not times:
        return
    known_as = (name or "").lower()
    time = table.names[max(times, key=lambda j: bool(known_as) and known_as in table.names[j].lower())]
    warn(
        f"y is 0 or 1 beside the column {time!r}: is it an event, and {time!r} the time until then? Then drop {time!r} "
        f"from X and pass y=(table[{time!r}], y), or --time {time} --event {name or 'COLUMN'} in place of --target."
    )
