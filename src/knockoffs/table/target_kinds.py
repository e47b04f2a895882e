"""What y is: two classes, several classes, a count, an ordered scale or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.table.columns import looks_like_counts, one_peak
from knockoffs.table.types import Label

TargetKind = Literal["number", "count", "binary", "classes", "ordinal"]

MOST_CLASSES = 10  # more distinct integers than this are taken for a number
ROWS_A_CLASS = 5  # fewer rows for each distinct integer than this, on average, and they are taken for a number
FEWEST_GRADES = 5  # whole numbers with fewer values than this are no scale: three classes often have one peak

# every word a user may say for a task
KINDS_OF_TASK = {
    "binary": "classification",
    "multiclass": "classification",
    "classification": "classification",
    "numeric": "regression",
    "regression": "regression",
    "count": "regression",
    "ordinal": "regression",
}


def infer_kind(y: ArrayLike, task: str | None = None) -> TargetKind:
    """Tell from y what it is.

    Strings, booleans and categories are classes. Numbers with decimals are a number. Whole numbers are a count where
    they start near 0, have one peak, a rare largest value and a variance like their mean or more (0, 1, 2, ... with a
    long tail); a scale, ordinal, where five or more of them have one peak and a rare end; and otherwise classes if
    there are two, or at most ten with five rows each on average, and a number if there are more.

    Parameters
    ----------
    y : array-like, shape (n,)
    task : str, optional
        "classification", "regression", "binary", "multiclass", "numeric", "count" or "ordinal": says what y is, where
        it looks like something else.

    >>> infer_kind(np.repeat([0, 1, 2, 3, 4, 5], [27, 54, 54, 36, 18, 7]))
    'count'
    >>> infer_kind(np.repeat([1, 2, 3, 4, 5], [5, 20, 60, 40, 8]))
    'ordinal'
    >>> infer_kind(np.repeat([1, 2, 3], 50))
    'classes'
    """
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: expected one value for each row.")
    if task is not None and task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    _refuse_missing(values)
    n_distinct = len(_distinct(values))
    if n_distinct < 2:
        only = _distinct(values)[:1]
        raise InputError(f"y has one value only{f', {only[0]!r}' if only else ''}: there is nothing to predict.")
    classes: TargetKind = "binary" if n_distinct == 2 else "classes"
    if task is not None:
        return _as_asked(values, task, n_distinct, classes)
    if not _is_number(values) or values.dtype.kind == "b" or all(isinstance(v, bool | np.bool_) for v in _some(values)):
        return classes
    if n_distinct == 2 and (values.astype(float) == np.round(values.astype(float))).all():
        return "binary"
    return _kind_of_numbers(values.astype(float))


def _as_asked(values: NDArray, task: str, n_distinct: int, classes: TargetKind) -> TargetKind:
    if KINDS_OF_TASK[task] == "classification":
        if task == "binary" and n_distinct > 2:
            raise InputError(f"task='binary', but y has {n_distinct} distinct values.")
        return classes
    if not _is_number(values):
        raise InputError(f"task={task!r}, but y holds labels ({values[0]!r}): encode them as numbers, or classify.")
    if task == "count":
        numbers = values.astype(float)
        odd = numbers[(numbers < 0) | (numbers != np.round(numbers))]
        if odd.size:
            what = "a negative number" if odd[0] < 0 else "a fraction"
            raise InputError(f"task='count', but y holds {odd[0]:g}, {what}: use 'regression'.")
        return "count"
    return "ordinal" if task == "ordinal" else "number"


def _kind_of_numbers(numbers: NDArray) -> TargetKind:
    """Kind of more than two whole numbers, or of numbers with decimals."""
    distinct, counts = np.unique(numbers, return_counts=True)
    if (distinct != np.round(distinct)).any():
        return "number"
    repeats = len(numbers) >= ROWS_A_CLASS * len(distinct)
    if looks_like_counts(distinct, counts) and (repeats or distinct[0] <= 1):
        return "count"
    if len(distinct) > MOST_CLASSES or not repeats:
        return "number"
    rare_end = min(counts[0], counts[-1]) <= counts.max() / 5
    return "ordinal" if len(distinct) >= FEWEST_GRADES and rare_end and one_peak(counts) else "classes"


IF_IT_IS = {
    "regression": "it is a number",
    "count": "it is a count",
    "ordinal": "it is a scale",
    "classification": "its values are classes",
}


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


def too_many_classes(n_distinct: int, n: int) -> bool:
    """Whether labels are so many that they are no classes.

    >>> too_many_classes(10, 10), too_many_classes(11, 20), too_many_classes(11, 22)
    (False, True, False)
    """
    return n_distinct > MOST_CLASSES and 2 * n_distinct > n


def describe(y: ArrayLike, task: str) -> str:
    """One sentence that says what y was taken for.

    >>> describe(["yes", "no", "no"], "binary")
    "y has two classes, 'no' (2 rows) and 'yes' (1 row)"
    >>> describe([0.5, 1.5, 7.0], "regression")
    'y is a number between 0.5 and 7'
    """
    values = np.asarray(y)
    if task == "regression":
        numbers = values.astype(float)
        return f"y is a number between {numbers.min():g} and {numbers.max():g}"
    levels = _distinct(values)
    if task == "binary":
        counts = [int(np.sum(values == level)) for level in levels]
        rows = [
            f"{level!r} ({count} row{'' if count == 1 else 's'})" for level, count in zip(levels, counts, strict=True)
        ]
        return "y has two classes, " + " and ".join(rows)
    shown = ", ".join(repr(level) for level in levels[:5]) + (", ..." if len(levels) > 5 else "")
    return f"y has {len(levels)} classes: {shown}"


def describe_kind(y: NDArray, kind: TargetKind, levels: Sequence[Label] | None = None, argument: str = "y") -> str:
    """Say what y was taken for, and why: y without missing values, ranks where it has ``levels``.

    >>> describe_kind(np.array([0.0, 2.0, 1.0]), "count")
    'y is a count, whole numbers from 0 to 2 that thin out upwards'
    >>> describe_kind(np.array([0.0, 2.0, 1.0]), "ordinal", ("low", "mid", "high"))
    "y is ordinal, 'low', 'mid', 'high', and predicted by its ranks"
    """
    if kind in ("binary", "classes"):
        return describe(y, "binary" if kind == "binary" else "multiclass").replace("y", argument, 1)
    if kind == "number":
        return describe(y, "regression").replace("y", argument, 1)
    if kind == "count":
        return f"{argument} is a count, whole numbers from {y.min():g} to {y.max():g} that thin out upwards"
    if levels is not None:
        return f"{argument} is ordinal, {name_some(levels)}, and predicted by its ranks"
    return f"{argument} is ordinal, a scale from {y.min():g} to {y.max():g}, and predicted as a number"


def _some(values: NDArray) -> list:
    return values[:1000].tolist() if values.dtype.kind == "O" else [None]


def _is_number(values: NDArray) -> bool:
    if values.dtype.kind == "O":
        return all(isinstance(v, int | float | np.integer | np.floating | np.bool_) for v in values.tolist())
    return values.dtype.kind in "biuf"


def _distinct(values: NDArray) -> list:
    """Distinct values in order; as strings where they cannot be compared."""
    found = set(values.tolist())
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda v: (type(v).__name__, str(v)))


def _refuse_missing(values: NDArray) -> None:
    if values.dtype.kind == "f":
        missing = ~np.isfinite(values)
    elif values.dtype.kind == "O":
        missing = np.array([_is_missing(v) for v in values.tolist()], dtype=bool)
    else:
        return
    rows = np.flatnonzero(missing)
    if rows.size:
        raise InputError(f"y is missing or infinite in {rows.size} rows, the first is row {rows[0]}: drop these rows.")


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and not np.isfinite(value)
