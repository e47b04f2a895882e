"""Rows that depend on one another: clusters, environments, and rows in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Sized

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.stats import rankdata

from knockoffs.errors import InputError, unknown_option
from knockoffs.table.columns import design
from knockoffs.table.frames import SomeColumns, is_frame, open_frame
from knockoffs.table.table import MIN_ROWS, Table, names_of, without_columns
from knockoffs.table.target import Target
from knockoffs.table.target_kind import split_times


def take_clusters(clusters: object, X: object) -> tuple[NDArray[np.intp] | None, object]:
    """Clusters of the rows, numbered, shape (n,), and X without the column that says so; None if nothing is asked for.

    >>> codes, rest = take_clusters("x0", np.array([[7, 1], [5, 2], [7, 3], [1, 4], [2, 5], [3, 6]]))
    >>> codes.tolist(), rest.names
    ([4, 3, 4, 0, 1, 2], ('x1',))
    """
    labels, rest = labels_of(clusters, X, "clusters")
    if labels is None:
        return None, X
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    n_clusters = int(codes.max()) + 1
    if n_clusters < MIN_ROWS:
        raise InputError(f"clusters: there are {n_clusters}, and at least {MIN_ROWS} are needed, as of rows.")
    return codes, rest


def labels_of(given: object, X: object, option: str) -> tuple[list | None, object]:
    """Label of each row, none missing, from a column of X or from labels; and X without that column.

    None if nothing is asked for.
    """
    if given is None:
        return None, X
    labels, rest = given, X
    if isinstance(given, str):
        names = names_of(X)
        if given not in names:
            raise unknown_option(option, given, names)
        labels, rest = _column(X, names.index(given), given), without_columns(X, [given])
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels) if isinstance(labels, Iterable) else labels
    if not isinstance(values, list):
        raise InputError(f"{option}={given!r}: expected the name of a column of X, or a label for each row.")
    n = len(X) if isinstance(X, Sized) else 0
    if len(values) != n:
        raise InputError(f"{option} has {len(values)} labels and X has {n} rows: expected a label for each row.")
    missing = [i for i, value in enumerate(values) if value is None or value != value]
    if missing:
        raise InputError(f"{option}: row {missing[0]} has no label. Give it one, or leave the row out.")
    return values, rest


def split_environments(labels: list, target: Target, at_least: int | None) -> tuple[dict[str, NDArray[np.intp]], int]:
    """Rows of each environment by its name, and in how many of them a discovery must hold: all, or as asked for."""
    names, codes = np.unique([str(label) for label in labels], return_inverse=True)
    sites = {str(name): np.flatnonzero(codes == k) for k, name in enumerate(names)}
    if len(sites) < 2:
        raise InputError(f"environments: all rows are of {str(labels[0])!r}, and at least two environments are needed.")
    if at_least is not None and not 1 <= at_least <= len(sites):
        raise InputError(f"min_environments={at_least}: there are {len(sites)} environments.")
    for name, rows in sites.items():
        n = len(target.at(rows))
        if n < MIN_ROWS:
            raise InputError(
                f"environments: {name!r} has {n} rows with a target, and at least {MIN_ROWS} are needed. Leave them "
                "out, or join it with another."
            )
    return sites, at_least or len(sites)


def _column(X: object, j: int, name: str) -> object:
    if is_frame(X):
        return open_frame(X)[name].to_list()
    return np.asarray(X.X if isinstance(X, Table) else X.values if isinstance(X, SomeColumns) else X)[:, j]


def one_row_each(clusters: NDArray[np.intp], rng: Generator) -> NDArray[np.intp]:
    """One row of each cluster, drawn at random, in ascending order.

    >>> rows = one_row_each(np.array([0, 0, 1, 2, 2]), np.random.default_rng(0))
    >>> len(rows), 2 in rows
    (3, True)
    """
    order = rng.permutation(len(clusters))
    return np.sort(order[np.unique(clusters[order], return_index=True)[1]])


def rows_with_target(
    clusters: NDArray[np.intp], target: Target, rng: Generator, *, spaced: bool = False
) -> NDArray[np.intp]:
    """One row of each cluster, among those whose target is known; all classes of a target must be there.

    If ``spaced``, the numbers are places in blocks of rows in order, and the rows are those of one place.
    """
    known = np.arange(len(clusters))[target.known_rows]
    place = rng.integers(clusters.max() + 1) if spaced else 0
    some = np.flatnonzero(clusters[known] == place) if spaced else one_row_each(clusters[known], rng)
    if target.task == "classification" and len(np.unique(target.values[some])) < len(np.unique(target.values)):
        raise InputError(
            f"{'order' if spaced else 'clusters'}: the rows of a draw lack a class of y. Join rare classes, or leave "
            "their rows out."
        )
    return known[some]


# ---- rows in the order of time ---------------------------------------------------------------------------------------
def take_order(order: object, X: object, clusters: object = None) -> tuple[NDArray[np.intp] | None, object]:
    """Rows from the first to the last, shape (n,), and X without the column that says so; None if nothing is asked for.

    ``order`` is a column of X, or a date or number for each row; equal ones stay in the order of the rows.

    >>> rows, rest = take_order("x0", np.array([[7, 1], [5, 2], [6, 3]]))
    >>> rows.tolist(), rest.names
    ([1, 2, 0], ('x1',))
    """
    times, rest = labels_of(order, X, "order")
    if times is None:
        return None, X
    if clusters is not None:
        raise InputError("clusters and order: rows belong together or follow one another. Leave one of them out.")
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
    excess : float
        Largest share by which the variance may be larger.
    fewest : int
        Fewest rows that must be left; a distance that leaves fewer is refused, as are fewer rows to begin with.
    lags, noise : int, float
        Autocorrelations count up to n / lags rows, and from noise / sqrt(n) on: others are mostly noise.
    """
    rows = order if target.observed is None else order[target.observed[order]]
    if len(rows) < fewest:
        raise InputError(
            f"order: there are {len(rows)} rows with a target, and at least {fewest} are needed to see how far apart "
            "rows are independent. Use more rows."
        )
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
