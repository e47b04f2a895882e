"""Rows that belong together: which cluster or environment each row is of, and one row of each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sized

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.table.drop import names_of, without_columns
from knockoffs.table.frames import SomeColumns, is_frame, open_frame
from knockoffs.table.table import MIN_ROWS, Table
from knockoffs.table.target import Target


def take_clusters(clusters: object, X: object) -> tuple[NDArray[np.intp] | None, object]:
    """Clusters of the rows, numbered, shape (n,), and X without the column that says so; None if nothing is asked for.

    Parameters
    ----------
    clusters : str, array-like of shape (n,), or None
        A column of X, or a label for each row.
    X : array or data frame, shape (n, n_columns)

    >>> codes, rest = take_clusters("x0", np.array([[7, 1], [5, 2], [7, 3], [1, 4], [2, 5], [3, 6]]))
    >>> codes.tolist(), rest.names
    ([4, 3, 4, 0, 1, 2], ('x1',))
    """
    labels, rest = take_labels(clusters, X, "clusters")
    if labels is None:
        return None, X
    codes = np.unique(labels, return_inverse=True)[1]
    n_clusters = int(codes.max()) + 1
    if n_clusters < MIN_ROWS:
        raise InputError(f"clusters: there are {n_clusters}, and at least {MIN_ROWS} are needed, as of rows.")
    return codes, rest


def take_labels(labels: object, X: object, argument: str) -> tuple[list[str] | None, object]:
    """Label of each row, as text, and X without the column that holds them; None if nothing is asked for."""
    if labels is None:
        return None, X
    values, rest = labels_of(labels, X, argument)
    return [str(value) for value in values], rest


def labels_of(given: object, X: object, option: str) -> tuple[list, object]:
    """Label of each row, none missing, from a column of X or from labels; and X without that column."""
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


def split_environments(
    labels: list[str], target: Target, at_least: int | None
) -> tuple[dict[str, NDArray[np.intp]], int]:
    """Rows of each environment by its name, and in how many of them a discovery must hold: all, or as asked for."""
    names, codes = np.unique(labels, return_inverse=True)
    sites = {str(name): np.flatnonzero(codes == k) for k, name in enumerate(names)}
    if len(sites) < 2:
        raise InputError(f"environments: all rows are of {labels[0]!r}, and at least two environments are needed.")
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
