"""The target comes in: one number or label a row, its name, its index and its weights, all checked before the work."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, name_some, unknown_option, warn
from knockoffs.table.cells import LARGEST, SMALLEST, ReadColumn, read_series, read_values
from knockoffs.table.column_checks import warn_of_target
from knockoffs.table.columns import Column, origins, own_values
from knockoffs.table.derived import (
    refuse_copy_of_target,
    warn_of_leaks,
    warn_of_steps,
    warn_of_target_in_other_words,
)
from knockoffs.table.frames import as_array, is_frame, is_pandas, is_sparse, open_frame
from knockoffs.table.moments import MOMENTS
from knockoffs.table.table import Table
from knockoffs.table.target_kind import (
    IF_IT_IS,
    KINDS_OF_TASK,
    TargetKind,
    describe_kind,
    infer_kind,
    other_tasks,
    signed_times,
    split_times,
    survival_columns,
    too_many_classes,
    warn_of_lone_event,
)
from knockoffs.table.types import Label


@dataclass(frozen=True)
class Target:
    """The target of a table, and the rows in which it is known.

    Parameters
    ----------
    values : array, shape (n_observed,)
        Numbers; labels of classes as they came; ranks 0, 1, ... of ordered categories; signed survival times, with
        times of entry shape (n_observed, 2): see ``knockoffs.table.target_kind``.
    weights : array, shape (n_observed,), optional
        Of the rows in the model of y.
    kind : {"number", "count", "binary", "classes", "ordinal", "survival"}
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
    def centred(self) -> Target:
        """Target as models of y see it: numbers far from zero less their origin; see `knockoffs.table.columns`.

        Numbers whose squares would overflow or vanish are divided by a power of two, which costs no digit.
        """
        if self.kind != "number":
            return self
        origin = origins(self.values[:, None])[0]
        values = self.values - origin if origin else self.values
        exponent = int(np.frexp(np.abs(values).max(initial=0.0))[1])
        if abs(exponent) > 400:  # twice it, and the sums of squares, stay below the 1023 of floats
            values = np.ldexp(values, -exponent)
        return self if values is self.values else replace(self, values=values)

    @property
    def n_rows(self) -> int:
        """Rows of the table that it is the target of."""
        return len(self.values) if self.observed is None else len(self.observed)

    @property
    def known_rows(self) -> NDArray[np.bool_] | slice:
        """Rows of the table whose target is known; a slice where all are, which copies nothing."""
        return slice(None) if self.observed is None or self.observed.all() else self.observed

    @property
    def task(self) -> Literal["classification", "regression", "count", "survival"]:
        """What a model of y is made for: "count" is a regression by the Poisson deviance."""
        if self.kind in ("binary", "classes"):
            return "classification"
        return self.kind if self.kind in ("count", "survival") else "regression"


def as_target(
    y: object,
    table: Table,
    *,
    task: str | None = None,
    weights: ArrayLike | None = None,
    min_rows: int = 1,
    sample: NDArray[np.intp] | None = None,
) -> Target:
    """Target of a table: checked, without the rows in which it is missing, and with its kind.

    Parameters
    ----------
    y : array, list, pandas or polars Series, shape (n,); or a Target
        For a survival time: (time, event) or (time, event, entry), a frame of these columns, or a structured array.
    task : {"classification", "regression", "binary", "multiclass", "numeric", "count", "ordinal", "survival"}, optional
        Says what y is; inferred if left out, by the rule of ``knockoffs.table.target_kind.infer_kind``.
    weights : array, shape (n,), optional
    min_rows : int
        Fewest rows with a target and a weight above zero that will do.
    sample : array of int, optional
        Rows of y that are those of the table, ascending, if the table is a sample.

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
    columns = survival_columns(y, task)
    if columns is not None and task not in (None, "regression", "survival"):  # models of numbers take signed times
        raise InputError(f"task={task!r}, but y is a survival time, of {len(columns)} columns: pass one of them.")
    if columns is not None or task == "survival":
        return _survival_target(y, columns, table, weights, min_rows)
    _check_source(y, table)
    cells = _read(y)
    if sample is None and len(cells.values) != len(table.X):
        raise InputError(
            f"y has {len(cells.values)} values and X has {len(table.X)} rows: they must have one row for each."
        )
    observed = ~np.isnan(cells.values)
    if not observed.any():
        raise InputError(f"y is missing in all {len(observed)} rows.")
    rows = np.flatnonzero(observed)
    ranked = cells.ordered and len(cells.levels or ()) > 2 and KINDS_OF_TASK.get(task or "") != "classification"
    levels = cells.levels if ranked else None
    values = cells.values[observed] if ranked else _values(cells, observed)
    _check_values(values, rows)
    if ranked:
        kind: TargetKind = "number" if task in ("regression", "numeric") else "ordinal"
    else:
        kind = infer_kind(values, task)
        _refuse_free_text(values, kind)
        if kind in ("number", "count", "ordinal"):
            values = values.astype(float)
    kept = _weights_of(weights, observed, values, min_rows)
    said = describe_kind(values, kind, levels)
    others = [] if task is not None else other_tasks(values, kind)
    overrule = "".join(f"; if {IF_IT_IS[other]}, pass task={other!r}" for other in others)
    note = f"{said}{overrule}.{_left_out(observed)}"
    target = Target(values, kept, kind, observed, target_name(y), levels, note)
    _check_beside(target if sample is None else target.at(sample), table, task)
    return target


def _check_beside(target: Target, table: Table, task: str | None) -> None:
    """Refuse or warn of columns of the table that are the target, or determine it."""
    values, kind = target.values, target.kind
    observed = np.ones(len(table), dtype=bool) if target.observed is None else target.observed
    if not len(values):
        raise InputError(f"y is missing in all {len(table)} rows of the sample.")
    refuse_copy_of_target(values, table, observed)
    warn_of_target(values, kind)
    if kind == "binary" and task is None:
        warn_of_lone_event(values, table, target.name)
    for warn_of in (warn_of_target_in_other_words, warn_of_leaks, warn_of_steps):  # the worst alone is said
        if warn_of(values, kind, table, observed):
            return


def _survival_target(
    y: object, columns: Mapping[str, object] | None, table: Table, weights: ArrayLike | None, min_rows: int
) -> Target:
    """Target of survival times, from its columns or from signed numbers."""
    if columns is None:
        _check_source(y, table)
        cells = _read(y)
        if cells.levels is not None:
            raise InputError("task='survival', but y holds labels: pass y=(time, event).")
        events = np.where(np.isnan(cells.values), np.nan, cells.values > 0)
        parts = {"time": replace(cells, values=np.abs(cells.values)), "event": replace(cells, values=events)}
    else:
        _check_index(table.native, y)
        for name in columns:
            _refuse_name(name if is_frame(y) else None, table)
        parts = {name: _read(column) for name, column in columns.items()}
    for name, cells in parts.items():
        if len(cells.values) != len(table.X):
            raise InputError(f"y: {name!r} has {len(cells.values)} values and X has {len(table.X)} rows.")
    every, name = signed_times(parts, in_order=isinstance(y, tuple))
    observed = ~np.isnan(every if every.ndim == 1 else every[:, 0])
    values = every[observed]
    time, event, _ = split_times(values)
    for part, kind, what in ((time, "number", "the time of y"), (event.astype(float), "binary", "the event of y")):
        refuse_copy_of_target(part, table, observed)
        warn_of_target_in_other_words(part, kind, table, observed, what=what)
    kept = _weights_of(weights, observed, time, min_rows)
    note = f"{describe_kind(values, 'survival')}.{_left_out(observed)}"
    return Target(values, kept, "survival", observed, target_name(y) or name, None, note)


def _left_out(observed: NDArray[np.bool_]) -> str:
    """Say how many rows have no target."""
    missing = int((~observed).sum())
    rows = "1 row is" if missing == 1 else f"{missing} rows are"
    return f" {rows} left out, because y is missing there." if missing else ""


def _refuse_free_text(values: NDArray, kind: TargetKind) -> None:
    """Refuse classes that are so many that they are none."""
    n, classes = len(values), np.unique(values)
    if kind != "classes" or not too_many_classes(len(classes), n):
        return
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        example = values[values != np.round(values)][0]
        raise InputError(
            f"y holds numbers, for instance {example:g}, and classes were asked for, by task or by an estimator that "
            "is a classifier: make classes of them, or use regression."
        )
    raise InputError(
        f"y has {len(classes)} different labels in {n} rows ({name_some(classes.tolist(), 3)}): too many for classes. "
        "Make fewer classes of them, or numbers."
    )


# ---- what came as y ----------------------------------------------------------------------------------------------


def _check_source(y: object, table: Table) -> None:
    """Refuse what is no target: nothing, a sparse matrix, another index, a name that a feature has."""
    if y is None:
        raise InputError("y is None: this estimator requires y to be passed, but the target y is None.")
    if is_sparse(y):
        raise InputError("y is a sparse matrix: pass an array with one value for each row of X.")
    if hasattr(y, "collect") and not hasattr(y, "to_numpy"):
        raise InputError("y is a lazy frame: pass y.collect().")
    _check_index(table.native, y)
    _refuse_name(target_name(y), table)


def _refuse_name(name: str | None, table: Table) -> None:
    if name is not None and table.named and name in table.names:
        raise InputError(
            f"y is called {name!r}, and X has a column {name!r} too: drop it from X, or rename y if it is another."
        )


def _check_index(X: object, y: object) -> None:
    if not (is_pandas(X) and is_pandas(y)) or len(X) != len(y) or X.index.equals(y.index):
        return
    row = int(np.argmax(np.asarray(X.index != y.index)))
    left, right = X.index[[row]].tolist()[0], y.index[[row]].tolist()[0]
    order = " They hold the same labels in another order." if set(X.index) == set(y.index) else ""
    raise InputError(
        f"the indexes of X and y disagree, first in row {row}: {left!r} in X and {right!r} in y.{order} Align them "
        "(y.loc[X.index]), or reset both indexes if the rows do belong together."
    )


def target_name(y: object) -> str | None:
    """Name of a series, or of the only column of a frame."""
    name = getattr(y, "name", None)
    if name is None and is_frame(y) and len(y.columns) == 1:
        name = y.columns[0]
    return None if name is None or name == "" else str(name)


def _read(y: Any) -> ReadColumn:
    """Cells of a target of any format, read by the rules of columns."""
    import narwhals as nw

    if is_frame(y) and len(y.columns) == 1:
        _warn_of_column(len(y))
        series = open_frame(y, "y")[:, 0]
    else:
        series = nw.from_native(y, series_only=True, pass_through=True)
    cells = read_series(series.alias("y")) if isinstance(series, nw.Series) else read_values("y", _one_column(y))
    if cells.problem is not None:
        remedy = cells.problem.remedy.replace("X['y']", "y").replace("pl.col('y')", "y")
        raise InputError(f"y {cells.problem.what}: {remedy}.")
    if cells.dtype in MOMENTS:
        raise InputError(f"y holds dates or durations ({cells.dtype}s): turn them into numbers or classes.")
    if cells.words:
        warn(f"y: {name_some(sorted(cells.words))} taken as missing.")
    return cells


def _one_column(y: object) -> NDArray:
    """Array of one value a row."""
    if isinstance(y, str):
        raise InputError(f"y is the text {y!r}: pass the column, and leave it out of X, as in y=table[{y!r}].")
    values = as_array(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        _warn_of_column(len(values))
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}: y should be a 1d array, one value for each row of X.")
    return values


def _warn_of_column(n: int) -> None:
    from sklearn.exceptions import DataConversionWarning

    text = f"A column-vector y was passed when a 1d array was expected: its {n} rows are used as they are."
    warnings.warn(text, DataConversionWarning, stacklevel=5)


def _values(cells: ReadColumn, observed: NDArray[np.bool_]) -> NDArray:
    """Known values of a target: numbers, or labels as they came."""
    values = own_values(Column("y", cells.dtype, cells.levels), cells.values[observed])
    kinds = {type(level) for level in cells.levels or ()} if cells.dtype == "category" else set()
    if kinds and kinds <= {int, float}:
        return np.array(values.tolist())
    return values.astype(str) if len(kinds) > 1 else values  # labels of several types have no order


def _check_values(values: NDArray, rows: NDArray[np.intp]) -> None:
    """Refuse known values that are no target: infinity, one value alone; ``rows`` are those of X."""
    bad = np.flatnonzero(np.isinf(values)) if values.dtype.kind == "f" else np.empty(0, dtype=int)
    if bad.size:
        raise InputError(
            f"y is infinity in {bad.size} rows, the first is row {rows[bad[0]]}: drop these rows of X and y. "
            "Input contains NaN or infinity."
        )
    if values.dtype.kind == "f" and (worst := float(np.abs(values).max())) > LARGEST:
        raise InputError(f"y holds numbers as large as {worst:.3g}: divide all of them by a power of ten.")
    if len(values) > 1 and (values[0] == values).all():
        raise InputError(
            f"y has the one value {values.tolist()[0]!r} in all {len(values)} rows (one class only): "
            "nothing can be selected for a target that does not vary."
        )


# ---- weights -----------------------------------------------------------------------------------------------------


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Weights of n rows: finite numbers that are not negative and not all zero; None if there are none."""
    if sample_weight is None:
        return None
    if getattr(getattr(sample_weight, "dtype", None), "kind", "") == "c":
        raise InputError("sample_weight is complex: weights are numbers that are not negative.")
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


def _weights_of(
    weights: ArrayLike | None, observed: NDArray[np.bool_], values: NDArray, min_rows: int
) -> NDArray[np.float64] | None:
    """Weights of the rows in which y is known; refused where too few of them weigh more than zero."""
    checked = check_weights(weights, len(observed))
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
    return kept
