"""The target comes in: one number or label a row, its name, its index and its weights, all checked before the work."""

from __future__ import annotations

import datetime
import numbers
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.table.cells import LARGEST, SMALLEST, as_float, merges
from knockoffs.table.table import Table, is_frame, is_missing, is_pandas, is_sparse
from knockoffs.table.target_kinds import (
    IF_IT_IS,
    KINDS_OF_TASK,
    TargetKind,
    describe_kind,
    infer_kind,
    other_tasks,
    too_many_classes,
)


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
    levels: tuple[Any, ...] | None = None
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
    y: Any,
    table: Table,
    *,
    task: str | None = None,
    weights: ArrayLike | None = None,
    argument: str = "y",
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
    argument : str
        What to call the target in errors.
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
            raise InputError(
                f"{argument} is a target of {y.n_rows} rows and X has {len(table.X)}: make it of this table."
            )
        return y
    if task is not None and task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    _check_source(y, table, argument)
    categories = None if task in ("classification", "binary", "multiclass") else _ordered_categories(y)
    values = _target_values(y, argument, unbox=False)
    _check_length(values, table, argument)
    observed = ~_missing(values)
    if not observed.any():
        raise InputError(f"{argument} is missing in all {len(values)} rows.")
    values = values[observed]
    if values.dtype.kind == "O":
        values = _unboxed(values, argument)
    _check_target_values(values, argument)
    refuse_copy_of_target(values, table, argument, observed)
    levels = None
    if categories is not None and len(set(values.tolist())) > 2:
        present = set(values.tolist())
        levels = tuple(level for level in categories if level in present)
        rank = {level: k for k, level in enumerate(levels)}
        values = np.array([rank[value] for value in values.tolist()], dtype=float)
        kind: TargetKind = "number" if task in ("regression", "numeric") else "ordinal"
    else:
        kind = infer_kind(values, task)
        _refuse_free_text(values, kind, argument)
        if kind in ("number", "count", "ordinal"):
            values = values.astype(float)
    checked = check_weights(weights, len(observed))
    note = _note(values, kind, levels, observed, task, argument)
    kept = None if checked is None else checked[observed]
    if kept is not None and not kept.any():
        raise InputError(f"sample_weight is zero in every row in which {argument} is known: nothing is left to fit.")
    count = len(values) if kept is None else int((kept > 0).sum())
    if count < min_rows:
        weighed = "" if kept is None else " and weighs more than zero"
        raise InputError(f"{argument} is known{weighed} in {count} of {len(observed)} rows: {min_rows} are needed.")
    return Target(values, kept, kind, observed, _target_name(y), levels, note)


def extend_target(seen: Target, y: NDArray, weights: ArrayLike | None = None, argument: str = "y") -> Target:
    """Target of all rows, of the kind that was told by some of them; little more memory is taken than y itself.

    Parameters
    ----------
    seen : Target
        As ``as_target`` gives it of some of the rows in which y is known.
    y : array, shape (n,)
    weights : array-like, shape (n,), optional
    """
    observed = ~_missing(y)
    values = y if observed.all() else y[observed]
    if seen.kind in ("number", "count", "ordinal"):
        values = values.astype(float)
        wrong = np.isinf(values) | (values < 0 if seen.kind == "count" else False)
        if wrong.any():
            row = int(np.flatnonzero(observed)[np.argmax(wrong)])
            raise InputError(f"{argument} is {y[row]} in row {row}, and is a {seen.kind}: leave the row out.")
    elif seen.values.dtype.kind in "biuf":
        values = values.astype(seen.values.dtype)
    checked = check_weights(weights, len(y))
    kept = None if checked is None else checked[observed]
    missing = len(y) - len(values)
    rows = "1 row is" if missing == 1 else f"{missing} rows are"
    left_out = f" {rows} left out, because {argument} is missing there." if missing else ""
    return replace(seen, values=values, weights=kept, observed=observed, note=seen.note + left_out)


def _note(values: NDArray, kind: TargetKind, levels: Any, observed: NDArray, task: str | None, argument: str) -> str:
    said = describe_kind(values, kind, levels, argument)
    others = [] if task is not None else other_tasks(values, kind)
    overrule = "".join(f"; if {IF_IT_IS[other]}, pass task={other!r}" for other in others)
    missing = int((~observed).sum())
    rows = "1 row is" if missing == 1 else f"{missing} rows are"
    left_out = f" {rows} left out, because {argument} is missing there." if missing else ""
    return f"{said}{overrule}.{left_out}"


def _ordered_categories(y: Any) -> list[Any] | None:
    """Return the categories of an ordered column, in their order; None for another."""
    dtype = getattr(y, "dtype", None)
    if dtype is None and is_frame(y) and len(y.columns) == 1 and is_pandas(y):
        dtype = y.dtypes.iloc[0]
    categories = getattr(dtype, "categories", None)
    if categories is None or not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return None
    return list(categories)


def _missing(values: NDArray) -> NDArray[np.bool_]:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values.tolist()), bool, len(values))
    return np.zeros(len(values), dtype=bool)


def _refuse_free_text(values: NDArray, kind: TargetKind, argument: str) -> None:
    if kind != "classes":
        return
    n, classes = len(values), np.unique(values)
    if too_many_classes(len(classes), n):
        if values.dtype.kind == "f" and (values != np.round(values)).any():
            example = values[values != np.round(values)][0]
            raise InputError(
                f"{argument} holds numbers, for instance {example:g}, and classes were asked for, by task or by an "
                "estimator that is a classifier: make classes of them, or use regression."
            )
        raise InputError(
            f"{argument} has {len(classes)} different labels in {n} rows ({name_some(classes.tolist(), 3)}): too many "
            "for classes. Make fewer classes of them, or numbers."
        )


def check_target(y: Any, table: Table, *, argument: str = "y") -> NDArray:
    """Check the target: one finite value or label for every row of the table, of at least two different values.

    Parameters
    ----------
    y : array, list, pandas or polars Series, shape (n,)
    table : Table
    argument : str
        What to call the target in errors.

    Returns
    -------
    array, shape (n,)
        Numbers or labels, as they came.
    """
    _check_source(y, table, argument)
    values = _target_values(y, argument)
    _check_length(values, table, argument)
    _check_target_values(values, argument)
    refuse_copy_of_target(values, table, argument)
    return values


def _check_source(y: Any, table: Table, argument: str) -> None:
    """Refuse what is no target: nothing, a sparse matrix, another index, a name that a feature has."""
    if y is None:
        raise InputError(f"{argument} is None: this estimator requires y to be passed, but the target y is None.")
    if is_sparse(y):
        raise InputError(f"{argument} is a sparse matrix: pass an array with one value for each row of X.")
    if hasattr(y, "collect") and not hasattr(y, "to_numpy"):
        raise InputError(f"{argument} is a lazy frame: pass {argument}.collect().")
    _check_index(table.native, y, argument)
    name = _target_name(y)
    if name is not None and table.named and name in table.names:
        raise InputError(f"{argument} is called {name!r}, and X has a column {name!r} too: drop it from X.")


def _check_length(values: NDArray, table: Table, argument: str) -> None:
    if len(values) != len(table.X):
        raise InputError(
            f"{argument} has {len(values)} values and X has {len(table.X)} rows: they must have one row for each."
        )


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Check sample weights: one finite, non-negative number for each of n rows, not all zero."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise InputError("sample_weight holds what is no number: weights are numbers, one for each row.") from None
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one weight for each of {n} rows.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise InputError(f"sample_weight is {weights[bad[0]]} in row {bad[0]}: weights are finite and not negative.")
    if not weights.any():
        raise InputError("sample_weight is zero in every row: nothing is left to fit.")
    if weights.max() > LARGEST or weights.max() < SMALLEST:
        raise InputError(f"sample_weight is at most {weights.max():.3g}: divide all weights by it; only ratios matter.")
    return weights


def _target_name(y: Any) -> str | None:
    name = getattr(y, "name", None)
    if name is None and is_frame(y) and len(y.columns) == 1:
        name = y.columns[0]
    return None if name is None or name == "" else str(name)


def _check_index(X: Any, y: Any, argument: str) -> None:
    if not (is_pandas(X) and is_pandas(y)) or len(X) != len(y) or X.index.equals(y.index):
        return
    row = int(np.argmax(np.asarray(X.index != y.index)))
    left, right = X.index[[row]].tolist()[0], y.index[[row]].tolist()[0]
    order = " They hold the same labels in another order." if set(X.index) == set(y.index) else ""
    raise InputError(
        f"the indexes of X and {argument} disagree, first in row {row}: {left!r} in X and {right!r} in "
        f"{argument}.{order} Align them ({argument}.loc[X.index]), or reset both indexes if the rows "
        "do belong together."
    )


def _target_values(y: Any, argument: str, unbox: bool = True) -> NDArray:
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():  # what a mask covers is missing
        mask, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[mask] = None
    values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if values.dtype.kind in "US" and not isinstance(y, np.ndarray):
        values = np.asarray(y, dtype=object)  # numpy would turn [1, "a"] into strings
    if values.ndim == 2 and values.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            f"A column-vector y was passed when a 1d array was expected: its {len(values)} rows are used as they are.",
            DataConversionWarning,
            stacklevel=4,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{argument} has shape {values.shape}: y should be a 1d array, one value for each row of X.")
    return _unboxed(values, argument) if unbox and values.dtype.kind == "O" else values


def _unboxed(values: NDArray, argument: str) -> NDArray:
    """Array of Python objects as an array of numbers or of booleans where it holds nothing else."""
    listed = values.tolist()
    kinds = {bool: "booleans", numbers.Real: "numbers", Decimal: "numbers", str: "strings", bytes: "strings"}
    words = [
        None if is_missing(v) else next((word for kind, word in kinds.items() if isinstance(v, kind)), type(v).__name__)
        for v in listed
    ]
    count = Counter(word for word in words if word is not None)
    if len(count) > 1:
        rarest = min(count, key=lambda word: (count[word], word != "strings"))
        row = words.index(rarest)
        raise InputError(
            f"{argument} mixes {' and '.join(sorted(count))}, for instance {listed[row]!r} in row {row}: make missing "
            "values empty (None or NaN) and all others one kind."
        )
    if count.keys() & {"numbers", "booleans"} and None not in words:
        numeric = np.array([float(v) if isinstance(v, Decimal) else v for v in listed])
        # whole numbers beyond 64 bits, and fractions, are still objects
        return numeric if numeric.dtype.kind != "O" else np.array([as_float(v) for v in listed])
    return values


def _check_target_values(values: NDArray, argument: str) -> None:
    if values.dtype.kind == "c":
        raise InputError(f"{argument} is complex. Complex data not supported.")
    if values.dtype.kind in "mM":
        raise InputError(f"{argument} holds dates or durations ({values.dtype}): turn them into numbers or classes.")
    first = values[0]
    if isinstance(first, datetime.date | datetime.timedelta | datetime.time):
        raise InputError(f"{argument} holds dates or durations ({first}): turn them into numbers or classes.")
    if isinstance(first, bytes):
        raise InputError(f"{argument} holds bytes, for instance {first!r}: decode them, for instance .astype(str).")
    if merges(values):
        raise InputError(
            f"{argument} holds whole numbers beyond 2^53, for instance {first}, some of which are equal as "
            "floating-point numbers: subtract the smallest from all, or make labels of them."
        )
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values))
    elif values.dtype.kind == "O":
        infinite = (float("inf"), float("-inf"))
        bad = np.flatnonzero([is_missing(v) or (isinstance(v, float) and v in infinite) for v in values.tolist()])
    else:
        bad = np.array([], dtype=int)
    if bad.size:
        what = "missing (NaN)" if is_missing(values[bad[0]]) else "infinity"
        raise InputError(
            f"{argument} is {what} in {bad.size} rows, the first is row {bad[0]}: drop these rows of X and {argument}. "
            "Input contains NaN or infinity."
        )
    if values.dtype.kind == "f" and (worst := float(np.abs(values).max())) > LARGEST:
        raise InputError(f"{argument} holds numbers as large as {worst:.3g}: divide all of them by a power of ten.")
    if len(values) > 1 and (values[0] == values).all():
        raise InputError(
            f"{argument} has the one value {values.tolist()[0]!r} in all {len(values)} rows (one class only): "
            "nothing can be selected for a target that does not vary."
        )


def refuse_copy_of_target(
    values: NDArray, table: Table, argument: str, observed: NDArray[np.bool_] | None = None
) -> None:
    """Refuse a table that has a column equal to the target in every row."""
    if values.dtype.kind not in "biuf" or not len(values):
        return
    y = values.astype(float)
    rows = np.arange(len(y)) if observed is None else np.flatnonzero(observed)
    candidates = np.arange(table.X.shape[1])
    block = 1
    while candidates.size:  # a few rows rule out almost every column
        candidates = candidates[(table.X[np.ix_(rows[:block], candidates)] == y[:block, None]).all(axis=0)]
        if block >= len(y):
            break
        block = min(block * 8, len(y))
    if candidates.size:
        raise InputError(
            f"column {table.names[candidates[0]]!r} of X equals {argument} in every row: the target is among the "
            "features. Drop that column."
        )
