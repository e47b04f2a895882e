"""A tree of features, without a look at y: features that say much about one another lie near one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata

from knockoffs.conditional_tests.tree import TreeNode


def column_tree(X: NDArray, nominal: NDArray[np.bool_], feature_of: NDArray[np.intp]) -> TreeNode:
    """Tree by average linkage on 1 - association, features of several columns by the mean over pairs of columns.

    Parameters
    ----------
    X : array, shape (n, n_columns)
        Numbers, or codes of labels; complete.
    nominal : array of bool, shape (n_columns,)
        Columns of labels without an order.
    feature_of : array of int, shape (n_columns,)
        Feature of each column: the leaves of the tree.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((2, 300))
    >>> tree = column_tree(np.column_stack([a, b, a**2]), np.zeros(3, bool), np.arange(3))
    >>> [child.features for child in tree.children]
    [(1,), (0, 2)]
    """
    d = int(feature_of.max()) + 1
    owners = np.eye(d)[feature_of] / np.bincount(feature_of)[feature_of][:, None]
    distance = 1 - owners.T @ association(X, nominal) @ owners
    distance = (distance + distance.T) / 2
    np.fill_diagonal(distance, 0.0)
    nodes = [TreeNode((feature,)) for feature in range(d)]
    for left, right in linkage(squareform(distance.clip(0), checks=False), method="average")[:, :2].astype(int):
        children = tuple(sorted((nodes[left], nodes[right]), key=lambda node: (len(node.features), node.features)))
        nodes.append(TreeNode(tuple(sorted(nodes[left].features + nodes[right].features)), children))
    return nodes[-1]


def association(X: NDArray, nominal: NDArray[np.bool_], *, n_bins: int = 20, most_rows: int = 5000) -> NDArray:
    """How much columns say about one another by any function, between 0 and 1, shape (n_columns, n_columns).

    The larger of |rank correlation| and the root of the share of a column's variance that its means over bins of the
    other explain, in either direction: the correlation ratio for ranks, Goodman and Kruskal's tau for labels.

    Parameters
    ----------
    X, nominal
        As ``column_tree`` has them.
    n_bins : int
        Bins of a column of numbers, with equally many rows.
    most_rows : int
        Rows that are looked at, evenly spaced, where there are more.
    """
    X = X[:: -(-len(X) // most_rows)]
    n, d = X.shape
    ranks = np.apply_along_axis(rankdata, 0, X)
    parts = [
        np.equal.outer(x, np.unique(x)) if labels else r[:, None]
        for x, labels, r in zip(X.T, nominal, ranks.T, strict=True)
    ]
    Y = np.hstack(parts).astype(float)
    Y -= Y.mean(axis=0)
    column_of = np.repeat(np.arange(d), [part.shape[1] for part in parts])
    total = np.bincount(column_of, (Y**2).sum(axis=0), d)
    total[total == 0] = np.inf
    explained = np.empty((d, d))
    for i in range(d):
        bins = X[:, i] if nominal[i] else np.ceil(ranks[:, i] * n_bins / n)
        values, place = np.unique(bins, return_inverse=True)
        sums = np.array([np.bincount(place, y, len(values)) for y in Y.T])
        between = np.bincount(column_of, (sums**2 / np.bincount(place)).sum(axis=1), d) / total
        explained[i] = 1 - (1 - between) * (n - 1) / max(n - len(values), 1)  # less what bins explain by chance
    found = np.sqrt(np.maximum(explained, explained.T).clip(0, 1))
    numbers = np.flatnonzero(~nominal & (np.ptp(X, axis=0) > 0))
    found[np.ix_(numbers, numbers)] = np.maximum(
        found[np.ix_(numbers, numbers)], np.abs(np.corrcoef(ranks[:, numbers], rowvar=False)).reshape(2 * numbers.shape)
    )
    np.fill_diagonal(found, 1.0)
    return found
