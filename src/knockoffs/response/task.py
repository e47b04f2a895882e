"""What y is: two classes, several classes or a number."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, unknown_option

Task = Literal["binary", "multiclass", "regression"]

MOST_CLASSES = 10  # more distinct integers than this are taken for a number
ROWS_A_CLASS = 5  # fewer rows for each distinct integer than this, on average, and they are taken for a number

# every word a user may say for a task
_KINDS = {
    "binary": "classification",
    "multiclass": "classification",
    "classification": "classification",
    "numeric": "regression",
    "regression": "regression",
}


def infer_task(y: ArrayLike, task: str | None = None) -> Task:
    """Tell from y what is to be predicted.

    Strings, booleans and categories are classes. Numbers with a fractional part are a number. Whole numbers are
    classes if there are two distinct ones, or at most 10 with five rows each or more on average.

    Parameters
    ----------
    y : array-like, shape (n,)
    task : {"classification", "regression", "binary", "multiclass", "numeric"}, optional
        Says what y is, where it looks like something else.

    >>> infer_task(["yes", "no", "no"])
    'binary'
    >>> infer_task(np.repeat([0, 1, 2], 10))
    'multiclass'
    >>> infer_task([0.5, 1.5, 7.0])
    'regression'
    """
    values = np.asarray(y)
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: expected one value for each row.")
    if task is not None and task not in _KINDS:
        raise unknown_option("task", task, _KINDS)
    _refuse_missing(values)
    n_distinct = len(_distinct(values))
    if n_distinct < 2:
        only = _distinct(values)[:1]
        raise InputError(f"y has one value only{f', {only[0]!r}' if only else ''}: there is nothing to predict.")
    classes: Task = "binary" if n_distinct == 2 else "multiclass"
    if task is not None:
        if task == "binary" and n_distinct > 2:
            raise InputError(f"task='binary', but y has {n_distinct} distinct values.")
        if _KINDS[task] == "regression" and not _is_number(values):
            raise InputError(f"task={task!r}, but y holds labels ({values[0]!r}): encode them as numbers, or classify.")
        return "regression" if _KINDS[task] == "regression" else classes
    if not _is_number(values) or values.dtype.kind == "b" or all(isinstance(v, bool | np.bool_) for v in _some(values)):
        return classes
    numbers = values.astype(float)
    if (numbers != np.round(numbers)).any():
        return "regression"
    few = n_distinct == 2 or (n_distinct <= MOST_CLASSES and len(values) >= ROWS_A_CLASS * n_distinct)
    return classes if few else "regression"


def describe(y: ArrayLike, task: Task) -> str:
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


def kind_of(task: str) -> Literal["classification", "regression"]:
    """Whether a task, in any of its words, is classification or regression."""
    if task not in _KINDS:
        raise unknown_option("task", task, _KINDS)
    return "regression" if _KINDS[task] == "regression" else "classification"


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
