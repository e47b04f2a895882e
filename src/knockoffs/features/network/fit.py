"""Fit the tables of a discrete network, and its tree where no graph is given (Chow and Liu)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.features.network.model import MAX_TABLE, DiscreteNetwork, write_entries

MOST_STATES = 2**14  # of all columns together, in the search for a tree: a table of 1 GiB


def fit_discrete_network(
    X: ArrayLike,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    parents: Mapping[str, Sequence[str]] | None = None,
    names: Sequence[str] | None = None,
    pseudo_count: float = 1.0,
    max_table: int = MAX_TABLE,
) -> DiscreteNetwork:
    """Fit the tables of a network of observed columns.

    Parameters
    ----------
    X : array, shape (n, n_columns)
        Codes 0, 1, ... of the states.
    rng, n_jobs
        Not needed here: the fit has no random part.
    parents : mapping of column name to names of its parents, optional
        The graph. Left out, it is the tree of largest likelihood (Chow and Liu), whose conjugate costs O(K^2) a column.
    names : sequence of str, optional
        Names of the columns, "0", "1", ... if left out.
    pseudo_count : float
        Every row of a table borrows this many rows with the law of the whole column.
    max_table : int
        Entries of the largest table that is fitted.

    Returns
    -------
    DiscreteNetwork
        With all columns observed. A network with hidden nodes is written down, or fitted as ``fit_naive_bayes``.
    """
    X = np.asarray(X)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"X has shape {X.shape}: expected (n, n_columns).")
    if not (np.issubdtype(X.dtype, np.number) or X.dtype == bool) or not ((X >= 0) & (X == np.floor(X))).all():
        raise InputError("X must hold the codes 0, 1, ... of the states of each column.")
    if pseudo_count < 0:
        raise InputError(f"pseudo_count={pseudo_count:g} must not be negative.")
    codes = X.astype(np.intp)
    labels = tuple(map(str, range(X.shape[1]) if names is None else names))
    if len(labels) != X.shape[1] or len(set(labels)) < len(labels):
        raise InputError(f"names must name each of the {X.shape[1]} columns, and none twice.")
    graph = _chow_liu(codes, labels) if parents is None else {name: tuple(parents.get(name, ())) for name in labels}
    for name in graph:
        for parent in graph[name]:
            if parent not in labels:
                raise unknown_option(f"parents[{name!r}]", parent, labels)
    column = {name: codes[:, j] for j, name in enumerate(labels)}
    size = {name: int(values.max()) + 1 for name, values in column.items()}
    tables: dict[str, ArrayLike] = {}
    for name in labels:
        shape = [size[other] for other in (*graph[name], name)]
        if math.prod(shape) > max_table:
            raise InputError(
                f"the table of {name!r} has {write_entries(math.prod(shape))} entries, more than {max_table:,}."
            )
        flat = np.ravel_multi_index([column[other] for other in (*graph[name], name)], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        overall = np.bincount(column[name], minlength=size[name]) / len(X)
        borrowed = np.where(counts.sum(axis=-1, keepdims=True) + pseudo_count > 0, pseudo_count, 1.0) * overall
        tables[name] = (counts + borrowed) / (counts + borrowed).sum(axis=-1, keepdims=True)
    return DiscreteNetwork(graph, tables, labels)


def _chow_liu(codes: NDArray, labels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Parents of the tree that maximises the sum of mutual informations (Prim's algorithm, from the first column)."""
    information = _mutual_information(codes)
    parents: dict[str, tuple[str, ...]] = {labels[0]: ()}
    best, link, left = information[0].copy(), np.zeros(len(labels), dtype=int), set(range(1, len(labels)))
    while left:
        current = max(left, key=lambda j: best[j])
        left.remove(current)
        parents[labels[current]] = (labels[link[current]],)
        better = information[current] > best
        best[better], link[better] = information[current][better], current
    return parents


def _mutual_information(codes: NDArray) -> NDArray:
    """Mutual information of every two columns, shape (n_columns, n_columns), from one table of all pairs of states."""
    n_states = codes.max(axis=0) + 1
    starts = np.concatenate([[0], np.cumsum(n_states)])
    if starts[-1] > MOST_STATES:
        raise InputError(
            f"the columns have {starts[-1]:,} states together (column {n_states.argmax()} has {n_states.max():,}), "
            f"too many to search for a tree (the limit is {MOST_STATES:,}): pass parents, or join rare states."
        )
    pairs = np.zeros((starts[-1], starts[-1]), dtype=np.float32)  # counts below 2^24 are exact
    for first in range(0, len(codes), 4096):
        block = codes[first : first + 4096] + starts[:-1]
        one_hot = np.zeros((len(block), starts[-1]), dtype=np.float32)
        np.put_along_axis(one_hot, block, 1.0, axis=1)
        pairs += one_hot.T @ one_hot
    p = np.diag(pairs).astype(float) / len(codes)
    out = np.empty((codes.shape[1], codes.shape[1]))
    for j in range(codes.shape[1]):
        rows = slice(starts[j], starts[j + 1])
        joint = pairs[rows].astype(float) / len(codes)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(joint > 0, joint * np.log(joint / (p[rows, None] * p)), 0.0)
        out[j] = np.add.reduceat(terms.sum(axis=0), starts[:-1])
    return out
