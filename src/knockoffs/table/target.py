"""The target comes in: one number or label a row, its name, its index and its weights, all checked before the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.table.column_checks import warn_of_stand_ins_of_target
from knockoffs.table.leakage import refuse_copy_of_target, warn_of_target_in_other_words
from knockoffs.table.table import Table
from knockoffs.table.target_kinds import (
    IF_IT_IS,
    KINDS_OF_TASK,
    TargetKind,
    describe_kind,
    infer_kind,
    other_tasks,
    too_many_classes,
)
from knockoffs.table.target_values import (
    amounts_in,
    check_length,
    check_source,
    check_values,
    check_weights,
    is_unknown,
    ordered_categories,
    refuse_numbers_as_text,
    target_name,
    target_values,
    unboxed,
)
from knockoffs.table.types import Label


@dataclass(frozen=True)
class Target:
    """The target of a table: what is to be predicted, in the rows where it is known.

    Parameters
    ----------
    values : array, shape (n_observed,)
        Numbers; labels of classes as they came; ranks 0, 1, ... of ordered categories.
    weights : array, shape (n_observed,), optional
        Of the rows in the model of y.
    kind : {"number", "count", "binary", "classes", "ordinal"}
    observed : array of bool, shape (n,), optional
        Rows of the table in which the target is known: those of ``values`` and ``weights``; all if left out.
    name : str, optional
    levels : tuple, optional
        Of ordered categories: what rank k was called.
    note : str
        What the target was taken for, what was left out, and how to overrule it.
    """

    values: NDArray
    weights: NDArray[np.float64] | None = None
    kind: TargetKind = "number"
    observed: NDArray[np.bool_] | None = field(default=None, repr=False)
    name: str | None = None
    levels: tuple[Label, ...] | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, which: NDArray | slice) -> Target:
        """Take some of the rows, counted among the observed ones."""
        weights = None if self.weights is None else self.weights[which]
        return replace(self, values=self.values[which], weights=weights, observed=None)

    def at(self, which: NDArray[np.intp]) -> Target:
        """Target of some rows of the table, counted among all of them, in ascending order."""
        if self.observed is None or len(self.observed) == len(self.values) or not len(which):
            return self.rows(which)
        known, start = self.observed[which], which[0]
        before = np.count_nonzero(self.observed[:start])
        places = before + np.cumsum(self.observed[start : which[-1] + 1])[which[known] - start] - 1
        return replace(self.rows(places), observed=known)

    @property
    def n_rows(self) -> int:
        """Rows of the table that it is the target of."""
        return len(self.values) if self.observed is None else len(self.observed)

    @property
    def known_rows(self) -> NDArray[np.bool_] | slice:
        """Rows of the table whose target is known; a slice where all are, which copies nothing."""
        return slice(None) if self.observed is None or self.observed.all() else self.observed

    @property
    def task(self) -> Literal["classification", "regression", "count"]:
        """What a model of y is made for: "count" is a regression by the Poisson deviance."""
        if self.kind in ("binary", "classes"):
            return "classification"
        return "count" if self.kind == "count" else "regression"


def as_target(
    y: object,
    table: Table,
    *,
    task: str | None = None,
    weights: ArrayLike | None = None,
    min_rows: int = 1,
) -> Target:
    """Check the target, leave out the rows in which it is missing, and tell what it is.

    Parameters
    ----------
    y : array, list, pandas or polars Series, shape (n,); or a Target
    table : Table
    task : {"classification", "regression", "binary", "multiclass", "numeric", "count", "ordinal"}, optional
        Says what y is, where it looks like something else; told from y by the rule of
        ``knockoffs.table.target_kinds.infer_kind`` if left out.
    weights : array, shape (n,), optional
    min_rows : int
        Fewest rows with a target and a weight above zero that will do.

    Returns
    -------
    Target

    >>> from knockoffs.table.table import read_table
    >>> target = as_target([0, 1, None, 1], read_table([[1.5], [2.5], [3.5], [0.5]]))
    >>> target.values.tolist(), target.kind, target.observed.tolist()
    ([0, 1, 1], 'binary', [True, True, False, True])
    """
    if isinstance(y, Target):
        if y.n_rows != len(table.X):
            raise InputError(f"y is a target of {y.n_rows} rows and X has {len(table.X)}: make it of this table.")
        return y
    if task is not None and task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    check_source(y, table)
    categories = None if task in ("classification", "binary", "multiclass") else ordered_categories(y)
    values = target_values(y)
    check_length(values, table)
    observed = ~is_unknown(values)
    if not observed.any():
        raise InputError(f"y is missing in all {len(values)} rows.")
    values, rows = values[observed], np.flatnonzero(observed)
    if values.dtype.kind == "O":
        values = unboxed(values, rows)
    elif values.dtype.kind == "U":
        values = amounts_in(values)
    check_values(values, rows)
    refuse_copy_of_target(values, table, observed)
    warn_of_stand_ins_of_target(values)
    levels = None
    if categories is not None and len(set(values.tolist())) > 2:
        present = set(values.tolist())
        levels = tuple(level for level in categories if level in present)
        rank = {level: k for k, level in enumerate(levels)}
        values = np.array([rank[value] for value in values.tolist()], dtype=float)
        kind: TargetKind = "number" if task in ("regression", "numeric") else "ordinal"
    else:
        kind = infer_kind(values, task)
        _refuse_free_text(values, kind, rows)
        if kind in ("number", "count", "ordinal"):
            values = values.astype(float)
    warn_of_target_in_other_words(values, kind, table, observed)
    checked = check_weights(weights, len(observed))
    note = _note(values, kind, levels, observed, task)
    kept = None if checked is None else checked[observed]
    if kept is not None and not kept.any():
        raise InputError("sample_weight is zero in every row in which y is known: nothing is left to fit.")
    count = len(values) if kept is None else int((kept > 0).sum())
    if count < min_rows:
        weighed = "" if kept is None else " and weighs more than zero"
        raise InputError(f"y is known{weighed} in {count} of {len(observed)} rows: {min_rows} are needed.")
    if kept is not None and (seen := values[kept > 0])[0] == seen[-1] and (seen == seen[0]).all():
        raise InputError(
            f"y has the one value {seen.tolist()[0]!r} in all rows that weigh more than zero: nothing can be selected "
            "for a target that does not vary. Weigh others too."
        )
    return Target(values, kept, kind, observed, target_name(y), levels, note)


def extend_target(seen: Target, y: NDArray, weights: ArrayLike | None = None) -> Target:
    """Target of all rows, of the kind that was told by some of them; little more memory is taken than y itself.

    Parameters
    ----------
    seen : Target
        As ``as_target`` gives it of some of the rows in which y is known.
    y : array, shape (n,)
    weights : array-like, shape (n,), optional
    """
    observed = ~is_unknown(y)
    values = y if observed.all() else y[observed]
    if seen.kind in ("number", "count", "ordinal"):
        values = values.astype(float)
        wrong = np.isinf(values) | (values < 0 if seen.kind == "count" else False)
        if wrong.any():
            row = int(np.flatnonzero(observed)[np.argmax(wrong)])
            raise InputError(f"y is {y[row]} in row {row}, and is a {seen.kind}: leave the row out.")
    elif seen.values.dtype.kind in "biuf":
        values = values.astype(seen.values.dtype)
    checked = check_weights(weights, len(y))
    kept = None if checked is None else checked[observed]
    of_some, of_all = (describe_kind(known, seen.kind, seen.levels, "y") for known in (seen.values, values))
    note = seen.note.replace(of_some, of_all, 1) + _left_out(observed)
    return replace(seen, values=values, weights=kept, observed=observed, note=note)


def _note(
    values: NDArray, kind: TargetKind, levels: Sequence[Label] | None, observed: NDArray, task: str | None
) -> str:
    said = describe_kind(values, kind, levels, "y")
    others = [] if task is not None else other_tasks(values, kind)
    overrule = "".join(f"; if {IF_IT_IS[other]}, pass task={other!r}" for other in others)
    return f"{said}{overrule}.{_left_out(observed)}"


def _left_out(observed: NDArray[np.bool_]) -> str:
    """Say how many rows have no target."""
    missing = int((~observed).sum())
    rows = "1 row is" if missing == 1 else f"{missing} rows are"
    return f" {rows} left out, because y is missing there." if missing else ""


def _refuse_free_text(values: NDArray, kind: TargetKind, rows: NDArray[np.intp]) -> None:
    if kind != "classes":
        return
    n, classes = len(values), np.unique(values)
    if too_many_classes(len(classes), n):
        if values.dtype.kind == "f" and (values != np.round(values)).any():
            example = values[values != np.round(values)][0]
            raise InputError(
                f"y holds numbers, for instance {example:g}, and classes were asked for, by task or by an "
                "estimator that is a classifier: make classes of them, or use regression."
            )
        refuse_numbers_as_text(values, rows)
        raise InputError(
            f"y has {len(classes)} different labels in {n} rows ({name_some(classes.tolist(), 3)}): too many "
            "for classes. Make fewer classes of them, or numbers."
        )
