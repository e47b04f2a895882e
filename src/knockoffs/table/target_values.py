"""What came as y, checked: its values and labels, its index, its name, and the weights of the rows."""

from __future__ import annotations

import datetime
import numbers
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.table.cells import LARGEST, SMALLEST, as_float, is_number, merges
from knockoffs.table.table import Table, is_frame, is_missing, is_pandas, is_sparse
from knockoffs.table.target_kinds import MOST_CLASSES
from knockoffs.table.types import Label
from knockoffs.table.written import formats_of, is_date, read_text

MOMENTS = (datetime.date, datetime.timedelta, datetime.time)
MOST_STRAY = 5  # rows of a target of numbers as text that may hold none


def check_source(y: object, table: Table) -> None:
    """Refuse what is no target: nothing, a sparse matrix, another index, a name that a feature has."""
    if y is None:
        raise InputError("y is None: this estimator requires y to be passed, but the target y is None.")
    if is_sparse(y):
        raise InputError("y is a sparse matrix: pass an array with one value for each row of X.")
    if hasattr(y, "collect") and not hasattr(y, "to_numpy"):
        raise InputError("y is a lazy frame: pass y.collect().")
    _check_index(table.native, y)
    name = target_name(y)
    if name is not None and table.named and name in table.names:
        raise InputError(
            f"y is called {name!r}, and X has a column {name!r} too: drop it from X, or rename y if it is another."
        )


def check_length(values: NDArray, table: Table) -> None:
    """Refuse a target of other rows than the table has."""
    if len(values) != len(table.X):
        raise InputError(f"y has {len(values)} values and X has {len(table.X)} rows: they must have one row for each.")


def _check_index(X: object, y: object) -> None:
    if not (is_pandas(X) and is_pandas(y)) or len(X) != len(y) or X.index.equals(y.index):
        return
    row = int(np.argmax(np.asarray(X.index != y.index)))
    left, right = X.index[[row]].tolist()[0], y.index[[row]].tolist()[0]
    order = " They hold the same labels in another order." if set(X.index) == set(y.index) else ""
    raise InputError(
        f"the indexes of X and y disagree, first in row {row}: {left!r} in X and {right!r} in "
        f"y.{order} Align them (y.loc[X.index]), or reset both indexes if the rows "
        "do belong together."
    )


def target_name(y: object) -> str | None:
    """Name of a series, or of the only column of a frame."""
    name = getattr(y, "name", None)
    if name is None and is_frame(y) and len(y.columns) == 1:
        name = y.columns[0]
    return None if name is None or name == "" else str(name)


def ordered_categories(y: object) -> list[Label] | None:
    """Return the categories of an ordered column, in their order; None for another."""
    dtype = getattr(y, "dtype", None)
    if dtype is None and is_frame(y) and len(y.columns) == 1 and is_pandas(y):
        dtype = y.dtypes.iloc[0]
    categories = getattr(dtype, "categories", None)
    if categories is None or not getattr(dtype, "ordered", type(dtype).__name__ == "Enum"):
        return None
    return list(categories)


def target_values(y: object) -> NDArray:
    """One value a row, as it came; what a mask covers is None."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.getmaskarray(y).any():
        mask, y = np.ma.getmaskarray(y), np.ma.getdata(y).astype(object)
        y[mask] = None
    try:
        values = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    except ValueError:
        raise InputError(
            "y holds lists of different lengths: y should be a 1d array, one value for each row."
        ) from None
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
        raise InputError(f"y has shape {values.shape}: y should be a 1d array, one value for each row of X.")
    return values


def is_unknown(values: NDArray) -> NDArray[np.bool_]:
    """Rows in which a target is missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind == "O":
        return np.fromiter(map(is_missing, values.tolist()), bool, len(values))
    return np.zeros(len(values), dtype=bool)


def unboxed(values: NDArray, rows: NDArray[np.intp]) -> NDArray:
    """Known values, Python objects, as an array of numbers or booleans where they are; ``rows`` are those of X."""
    listed = values.tolist()
    kinds = {bool: "booleans", numbers.Real: "numbers", Decimal: "numbers", str: "strings", bytes: "strings"}
    words = [next((word for kind, word in kinds.items() if isinstance(v, kind)), type(v).__name__) for v in listed]
    count = Counter(words)
    if len(count) > 1:
        rarest = min(count, key=lambda word: (count[word], word != "strings"))
        row = words.index(rarest)
        raise InputError(
            f"y mixes {' and '.join(sorted(count))}, for instance {listed[row]!r} in row {rows[row]}: make missing "
            "values empty (None or NaN) and all others one kind."
        )
    if count.keys() == {"strings"} and isinstance(listed[0], str):
        return amounts_in(values)
    if count.keys() & {"numbers", "booleans"}:
        numeric = np.array([float(v) if isinstance(v, Decimal) else v for v in listed])
        # whole numbers beyond 64 bits, and fractions, are still objects
        return numeric if numeric.dtype.kind != "O" else np.array([as_float(v) for v in listed])
    if not isinstance(listed[0], (*MOMENTS, complex, str, bytes)) and type(listed[0]).__name__ != "Period":
        raise InputError(
            f"y holds {listed[0]!r} ({words[0]}) in row {rows[0]}: a target is one number or one label a row; turn "
            "them into numbers or strings."
        )
    return values


def refuse_numbers_as_text(values: NDArray, rows: NDArray[np.intp]) -> None:
    """Refuse a target of numbers as text, and point at what is no number among them; ``rows`` are those of X."""
    numeric = np.array([is_number(value) for value in values.tolist()])
    odd = np.flatnonzero(~numeric)
    if odd.size > max(MOST_STRAY, 0.1 * len(values)):
        return
    what = f"and {values[odd[0]]!s:.40} in row {rows[odd[0]]}, which is none" if odd.size else "as text"
    remedy = (
        "make what is missing empty (None or NaN), and turn the others into numbers"
        if odd.size
        else "turn them into numbers"
    )
    example = values[int(np.argmax(numeric))]
    raise InputError(f"y holds numbers, for instance {example!s:.40}, {what}: {remedy}.")


def amounts_in(values: NDArray) -> NDArray:
    """Numbers of a target written as amounts, such as 12 % or $1,234.50; the values themselves where they are none."""
    levels = sorted(set(values.tolist()))
    formats = [word for word in formats_of(levels) if not is_date(word)] if len(levels) > 2 else []
    return read_text(values.tolist(), formats[0]) if formats else values


def dates_in(values: NDArray) -> str:
    """Format of a target's dates written as text; empty where they are none, or so few that they may be classes."""
    levels = sorted(set(values.tolist()))
    return " or ".join(word for word in formats_of(levels) if is_date(word)) if len(levels) > MOST_CLASSES else ""


def check_values(values: NDArray, rows: NDArray[np.intp]) -> None:
    """Refuse known values that are no target: dates, bytes, infinity, one value alone; ``rows`` are those of X."""
    if values.dtype.kind == "c":
        raise InputError("y is complex. Complex data not supported.")
    if values.dtype.kind in "mM":
        raise InputError(f"y holds dates or durations ({values.dtype}): turn them into numbers or classes.")
    first = values[0]
    if isinstance(first, MOMENTS) or type(first).__name__ == "Period":
        raise InputError(f"y holds dates or durations ({first}): turn them into numbers or classes.")
    if isinstance(first, str) and (words := dates_in(values)):
        raise InputError(f"y holds dates, {words}, for instance {first!r}: turn them into numbers or classes.")
    if isinstance(first, bytes):
        raise InputError(f"y holds bytes, for instance {first!r}: decode them, for instance .astype(str).")
    if merges(values):
        raise InputError(
            f"y holds whole numbers beyond 2^53, for instance {first}, some of which are equal as "
            "floating-point numbers: subtract the smallest from all, or make labels of them."
        )
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


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Check sample weights: one finite, non-negative number for each of n rows, not all zero."""
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
