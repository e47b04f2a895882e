"""Rows in the order of time: how far apart rows must be to count as independent, and rows that far apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import rankdata

from knockoffs.errors import InputError, unknown_option
from knockoffs.table.clusters import column_of
from knockoffs.table.columns import design
from knockoffs.table.drop import names_of, without_columns
from knockoffs.table.survival import split_times
from knockoffs.table.table import Table
from knockoffs.table.target import Target


def take_order(order: object, X: object) -> tuple[NDArray[np.intp] | None, object]:
    """Rows from the first to the last, shape (n,), and X without the column that says so; None if nothing is asked for.

    Parameters
    ----------
    order : str, array-like of shape (n,), or None
        A column of X, or a date or number for each row. Equal ones stay in the order of the rows.
    X : array or data frame, shape (n, n_columns)

    >>> rows, rest = take_order("x0", np.array([[7, 1], [5, 2], [6, 3]]))
    >>> rows.tolist(), rest.names
    ([1, 2, 0], ('x1',))
    """
    if order is None:
        return None, X
    values, rest = order, X
    if isinstance(order, str):
        names = names_of(X)
        if order not in names:
            raise unknown_option("order", order, names)
        values, rest = column_of(X, names.index(order), order), without_columns(X, [order])
    times = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
    if len(times) != len(X):  # type: ignore[arg-type]
        raise InputError(f"order has {len(times)} values and X has {len(X)} rows: expected one for each row.")  # type: ignore[arg-type]
    missing = [i for i, value in enumerate(times) if value is None or value != value]
    if missing:
        raise InputError(f"order: row {missing[0]} has no time. Give it one, or leave the row out.")
    try:
        return np.array(sorted(range(len(times)), key=times.__getitem__), dtype=np.intp), rest
    except TypeError:
        raise InputError("order holds values of several types: pass dates or numbers.") from None


def gap_of(
    table: Table,
    target: Target,
    order: NDArray[np.intp],
    *,
    excess: float = 0.1,
    fewest: int = 30,
    lags: int = 20,
    noise: float = 3.0,
) -> int:
    """Smallest distance at which rows, taken one after another, are nearly independent for the purpose of a test.

    The covariance of a column with y, over rows g apart, has 1 + 2 sum_m a(m g) b(m g) times the variance that it would
    have if rows were independent, a and b the autocorrelations of the column and of y. The distance is the smallest
    at which that excess is small for every column, and for what the other columns leave of both.

    Parameters
    ----------
    table, target : Table, Target
    order : array of int, shape (n,)
    excess : float
        Largest share by which the variance may be larger.
    fewest : int
        Fewest rows that must be left; a distance that leaves fewer is refused.
    lags, noise : int, float
        Autocorrelations count up to n / lags rows, and from noise / sqrt(n) on: others are mostly noise.
    """
    rows = order if target.observed is None else order[target.observed[order]]
    X, Y = (_ranks(columns[rows]) for columns in (design(table.columns)(table.X), _numbers(target, table)))
    pairs = [(X, Y)]
    if len(X) > 3 * X.shape[1]:
        precision = np.linalg.pinv(X.T @ X, hermitian=True)
        pairs.append((X @ precision, Y - X @ (precision @ (X.T @ Y))))
    found = [[np.where(np.abs(r) * np.sqrt(len(r)) > noise, r, 0.0) for r in map(_autocorrelations, p)] for p in pairs]
    last = len(rows) // lags + 1
    for gap in range(1, max(len(rows) // fewest, 1) + 1):
        if all(2 * (a[gap:last:gap].T @ b[gap:last:gap]).max(initial=0.0) <= excess for a, b in found):
            return gap
    raise InputError(
        f"order: rows depend on one another over more than {max(len(rows) // fewest, 1)} rows, as in a random walk, a "
        f"trend or a season, so fewer than {fewest} rows are nearly independent. Take differences of X and y from one "
        "row to the next, or more rows."
    )


def _numbers(target: Target, table: Table) -> NDArray:
    """Target as columns of numbers, one row for each row of the table, NaN where it is not known."""
    values = target.values
    if target.kind == "survival":
        time, event, _ = split_times(values)
        columns = np.column_stack([time, event])
    elif target.task == "classification":
        columns = (values[:, None] == np.unique(values)).astype(float)
    else:
        columns = values.astype(float)[:, None]
    found = np.full((len(table), columns.shape[1]), np.nan)
    found[target.known_rows] = columns
    return found


def _ranks(X: NDArray) -> NDArray:
    """Ranks of each column (heavy tails hide nothing) with variance 1; missing cells and constant columns are 0."""
    ranks = rankdata(X, axis=0, nan_policy="omit")
    centred = np.nan_to_num(ranks - (1 + (~np.isnan(X)).sum(axis=0)) / 2)
    scale = np.sqrt((centred**2).mean(axis=0))
    return centred / np.where(scale > 0, scale, np.inf)


def _autocorrelations(X: NDArray) -> NDArray:
    """Autocorrelations of each column at lags 0 to n - 1, shape (n, n_columns), 0 of constant columns."""
    n = len(X)
    size = next_fast_len(2 * n, real=True)
    found = irfft(np.abs(rfft(X - X.mean(axis=0), size, axis=0)) ** 2, size, axis=0)[:n]
    return found / np.where(found[0] > 0, found[0], np.inf)


def places_in_blocks(order: NDArray[np.intp], gap: int) -> NDArray[np.intp]:
    """Place of each row in its block of ``gap`` rows: rows of the same place are that far apart.

    >>> places_in_blocks(np.array([3, 0, 1, 2]), 2)
    array([1, 0, 1, 0])
    """
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order)) % gap
    return places
