"""The target among the features: as it is, in other units or words, or as a sum of columns."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.table.redundancy import pattern_of
from knockoffs.table.table import Table

FIRST_ROWS = 64  # which rule out almost every column
FEWEST_ROWS = 20  # of fewer, a column may determine the target by chance


def refuse_copy_of_target(values: NDArray, table: Table, observed: NDArray[np.bool_] | None = None) -> None:
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
            f"column {table.names[candidates[0]]!r} of X equals y in every row: the target is among the "
            "features. Drop that column."
        )


def warn_of_target_in_other_words(values: NDArray, kind: str, table: Table, observed: NDArray[np.bool_]) -> bool:
    """Warn of columns that determine the target and are determined by it; whether there are any.

    Parameters
    ----------
    values : array, shape (n_observed,)
    kind : str
        Of the target: a number may have another scale in the table, classes other labels.
    table : Table
    observed : array of bool, shape (n,)
        Rows in which the target is known.
    """
    if len(values) < FEWEST_ROWS:
        return False
    ordered = kind in ("number", "count") and len(np.unique(values)) >= FEWEST_ROWS
    y = np.unique(values, return_inverse=True)[1].astype(float)
    places = [j for j, column in enumerate(table.kinds) if (column == "continuous") == ordered]
    for rows in (np.flatnonzero(observed)[:FIRST_ROWS], np.flatnonzero(observed)):
        mine = pattern_of(y[: len(rows)], ordered=ordered)
        places = [j for j in places if pattern_of(table.X[rows, j], ordered=ordered) == mine]
        if not places:
            return False
    warnings.warn(
        f"y and {name_some(table.names[j] for j in places)} determine each other in all {len(y)} rows: is that the "
        "target in other units or words? Drop it then; beside it no other column can matter.",
        KnockoffWarning,
        stacklevel=4,
    )
    return True


def warn_of_leaks(
    values: NDArray,
    kind: str,
    table: Table,
    observed: NDArray[np.bool_],
    *,
    most: int = 3,
    enough: float = 0.9995,
    most_rows: int = 4000,
) -> None:
    """Warn of a column, or a sum or difference of a few, that predicts a number almost perfectly on held-out rows.

    Parameters
    ----------
    values, kind, table, observed
        As ``warn_of_target_in_other_words`` has them.
    most : int
        Columns that are added or subtracted.
    enough : float
        Share of the variance of the other half of the rows from which on it is a leak.
    most_rows : int
        Rows that are looked at, evenly spaced, where there are more.
    """
    step = -(-len(values) // most_rows)
    y, X = np.asarray(values)[::step], table.X[np.flatnonzero(observed)[::step]]
    seen = np.random.default_rng(0).permutation(len(y)) % 2 == 0
    if kind not in ("number", "count") or len(y) < 2 * FEWEST_ROWS or not np.ptp(y[seen]) or not np.ptp(y[~seen]):
        return
    numbers = np.array([column != "nominal" for column in table.kinds])
    with np.errstate(over="ignore"):
        unit, spread = np.ptp(y), np.ptp(X[seen], axis=0)
        plain = (spread > 1e-6 * unit) & (spread < 1e6 * unit)  # a sum has parts of its own size
    columns = np.flatnonzero(numbers & np.isfinite(X).all(axis=0) & plain)
    if not 1e-150 < unit < 1e150:
        return
    X, y = X[:, columns] / unit, y / unit
    U, v = X - X[seen].mean(axis=0), y - y[seen].mean()
    chosen: list[int] = []
    residual = v[seen]
    for _ in range(min(most, len(columns))):
        likeness = np.abs(U[seen].T @ residual) / np.sqrt((U[seen] ** 2).sum(axis=0).clip(1e-300))
        likeness[chosen] = 0.0
        chosen.append(int(likeness.argmax()))
        slope = np.linalg.lstsq(U[seen][:, chosen], v[seen], rcond=None)[0]
        residual = v[seen] - U[seen][:, chosen] @ slope
        left = v[~seen] - U[~seen][:, chosen] @ slope
        share = 1 - (left**2).sum() / ((v[~seen] - v[~seen].mean()) ** 2).sum()
        alike = np.ptp(np.abs(slope)) <= 0.01 * np.abs(slope).max()  # a sum or a difference, and no other formula
        if share >= enough and alike:
            names = [table.names[columns[j]] for j in chosen]
            what = names[0] if len(names) == 1 else f"a sum or difference of {name_some(names)}"
            warnings.warn(
                f"y is predicted almost perfectly on held-out rows (R2 = {share:.5f}) by {what!s}: if it is the target "
                f"in other words, use drop={names!r}; beside it no other column can matter.",
                KnockoffWarning,
                stacklevel=4,
            )
            return
