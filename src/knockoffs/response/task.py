"""Whether a task, in any of its words, is classification or regression."""

from __future__ import annotations

from typing import Literal

from knockoffs.errors import unknown_option
from knockoffs.table.target_kind import KINDS_OF_TASK


def kind_of(task: str) -> Literal["classification", "regression"]:
    """Classification or regression: what a task, in any of its words, is."""
    if task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    return "regression" if KINDS_OF_TASK[task] == "regression" else "classification"
