"""The target comes in: one number or label a row, its name, its index and its weights, all checked before the work."""

from __future__ import annotations

import dataclasses
import numbers
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.table.table import Table, is_frame, is_missing, is_pandas, is_sparse


@dataclass(frozen=True)
class Target:
    """What is to be explained, one value a row.

    Parameters
    ----------
    values : array, shape (n,)
        Numbers, or labels of classes.
    weights : array, shape (n,), optional
        Weights of the rows in the model of y.
    """

    values: NDArray
    weights: NDArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def rows(self, which: NDArray | slice) -> Target:
        """Take some of the rows."""
        return self.replace(values=self.values[which], weights=None if self.weights is None else self.weights[which])

    def replace(self, **changes: Any) -> Target:
        """Return the same target with some fields changed."""
        return dataclasses.replace(self, **changes)


def as_target(y: Any, n: int) -> Target:
    """Target of n rows; one that is a Target already is kept."""
    target = y if isinstance(y, Target) else Target(np.asarray(y))
    if target.values.shape != (n,):
        raise InputError(f"X has {n} rows and y has shape {target.values.shape}: expected ({n},), a value a row.")
    if target.weights is not None and np.shape(target.weights) != (n,):
        raise InputError(f"sample_weight has shape {np.shape(target.weights)}: expected ({n},), a weight a row.")
    return target


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
    if y is None:
        raise InputError(f"{argument} is None: this estimator requires y to be passed, but the target y is None.")
    if is_sparse(y):
        raise InputError(f"{argument} is a sparse matrix: pass an array with one value for each row of X.")
    _check_index(table.native, y, argument)
    name = _target_name(y)
    if name is not None and table.named and name in table.names:
        raise InputError(f"{argument} is called {name!r}, and X has a column {name!r} too: drop it from X.")
    values = _target_values(y, argument)
    if len(values) != len(table.X):
        raise InputError(
            f"{argument} has {len(values)} values and X has {len(table.X)} rows: they must have one row for each."
        )
    _check_target_values(values, argument)
    _refuse_copy_of_target(values, table, argument)
    return values


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Check sample weights: one finite, non-negative number for each of n rows, not all zero."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one weight for each of {n} rows.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise InputError(f"sample_weight is {weights[bad[0]]} in row {bad[0]}: weights are finite and not negative.")
    if not weights.any():
        raise InputError("sample_weight is zero in every row: nothing is left to fit.")
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


def _target_values(y: Any, argument: str) -> NDArray:
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
    return _unboxed(values, argument) if values.dtype.kind == "O" else values


def _unboxed(values: NDArray, argument: str) -> NDArray:
    """Array of Python objects as an array of numbers or of booleans where it holds nothing else."""
    present = [value for value in values.tolist() if not is_missing(value)]
    kinds = {bool: "booleans", numbers.Real: "numbers", str: "strings", bytes: "strings"}
    found = {next((word for kind, word in kinds.items() if isinstance(v, kind)), type(v).__name__) for v in present}
    if len(found) > 1:
        raise InputError(f"{argument} mixes {' and '.join(sorted(found))}: make all of them one kind.")
    if found & {"numbers", "booleans"} and len(present) == len(values):
        return np.array(present)
    return values


def _check_target_values(values: NDArray, argument: str) -> None:
    if values.dtype.kind == "c":
        raise InputError(f"{argument} is complex. Complex data not supported.")
    if values.dtype.kind in "mM":
        raise InputError(f"{argument} holds dates or durations ({values.dtype}): turn them into numbers or classes.")
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
    if len(values) > 1 and (values[0] == values).all():
        raise InputError(
            f"{argument} has the one value {values.tolist()[0]!r} in all {len(values)} rows (one class only): "
            "nothing can be selected for a target that does not vary."
        )


def _refuse_copy_of_target(values: NDArray, table: Table, argument: str) -> None:
    if values.dtype.kind not in "biuf" or not len(values):
        return
    y = values.astype(float)
    candidates = np.arange(table.X.shape[1])
    block = 1
    while candidates.size:  # a few rows rule out almost every column
        candidates = candidates[(table.X[:block, candidates] == y[:block, None]).all(axis=0)]
        if block >= len(y):
            break
        block = min(block * 8, len(y))
    if candidates.size:
        raise InputError(
            f"column {table.names[candidates[0]]!r} of X equals {argument} in every row: the target is among the "
            "features. Drop that column."
        )
