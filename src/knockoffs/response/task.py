"""What is to be predicted, in the words of the models of y: two classes, several classes or a number."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from knockoffs.errors import unknown_option
from knockoffs.table.target_kinds import KINDS_OF_TASK, describe, infer_kind

__all__ = ["Task", "describe", "infer_task", "kind_of"]

Task = Literal["binary", "multiclass", "regression"]


def infer_task(y: ArrayLike, task: str | None = None) -> Task:
    """Infer from y what is to be predicted: classes, or a number (``infer_kind`` separates counts and scales).

    Parameters
    ----------
    y : array-like, shape (n,)
    task : {"classification", "regression", "binary", "multiclass", "numeric", "count", "ordinal"}, optional
        What y is, where it looks like something else.

    >>> infer_task(["yes", "no", "no"])
    'binary'
    >>> infer_task(10 * [0, 1, 2])
    'multiclass'
    >>> infer_task([0.5, 1.5, 7.0])
    'regression'
    """
    kind = infer_kind(y, task)
    return "binary" if kind == "binary" else "multiclass" if kind == "classes" else "regression"


def kind_of(task: str) -> Literal["classification", "regression"]:
    """Whether a task, in any of its words, is classification or regression."""
    if task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    return "regression" if KINDS_OF_TASK[task] == "regression" else "classification"
