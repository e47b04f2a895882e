"""What y is: two classes, several classes, a count, an ordered scale, a number or a survival time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.table.columns import ROWS_A_VALUE, looks_like_counts, one_peak
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

    Parameters
    ----------
    y : array-like, shape (n,)
        Without missing values.
    task : str, optional
        "classification", "regression", "binary", "multiclass", "numeric", "count" or "ordinal": overrules the rule.
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
