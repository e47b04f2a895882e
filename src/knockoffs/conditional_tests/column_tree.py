"""A tree of features, without a look at y: features that say much about one another, given all others, lie together.

A group can be found where it varies given the columns outside of it. So a group is cut where its parts depend least on
one another given the rest: what is cut off there is not determined by what stays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.covariance import ledoit_wolf

from knockoffs.conditional_tests.tree import TreeNode


def column_tree(X: NDArray, nominal: NDArray[np.bool_], feature_of: NDArray[np.intp]) -> TreeNode:
    """Tree by joining, again and again, the two groups with the largest dependence per pair of features.

    The dependence of A and B is their mutual information given all other columns, twice log det(P_A) det(P_B) /
    det(P_AB), where P is the inverse of the correlation matrix of ``tree_scores``, shrunk as Ledoit and Wolf do, less
    what is due to chance.

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
    scores, column_of = tree_scores(X, nominal)
    precision = np.linalg.inv(ledoit_wolf(scores)[0])
    nodes = [TreeNode((feature,)) for feature in range(d)]
    places = [np.flatnonzero(feature_of[column_of] == feature) for feature in range(d)]
    log_det = [_log_det(precision, own) for own in places]
    dependence = np.full((d, d), -np.inf)

    def compare(i: int, j: int) -> float:
        together = log_det[i] + log_det[j] - _log_det(precision, np.append(places[i], places[j]))
        by_chance = len(places[i]) * len(places[j]) / len(scores)
        return (together - by_chance) / (len(nodes[i].features) * len(nodes[j].features))

    for i in range(d):
        dependence[i, :i] = [compare(i, j) for j in range(i)]
    for _ in range(d - 1):
        i, j = (int(place) for place in np.unravel_index(dependence.argmax(), dependence.shape))
        children = tuple(sorted((nodes[i], nodes[j]), key=lambda node: (len(node.features), node.features)))
        nodes[i] = TreeNode(tuple(sorted(nodes[i].features + nodes[j].features)), children)
        places[i] = np.append(places[i], places[j])
        log_det[i] = _log_det(precision, places[i])
        dependence[j], dependence[:, j], places[j] = -np.inf, -np.inf, places[j][:0]
        for other in range(d):
            if other != i and places[other].size:
                dependence[max(i, other), min(i, other)] = compare(i, other)
    return max(nodes, key=lambda node: len(node.features))


def _log_det(precision: NDArray, places: NDArray[np.intp]) -> float:
    return float(np.linalg.slogdet(precision[np.ix_(places, places)])[1])


def tree_scores(
    X: NDArray, nominal: NDArray[np.bool_], *, most_levels: int = 12, most_rows: int = 5000
) -> tuple[NDArray, NDArray[np.intp]]:
    """Standardised functions of the columns, shape (n, n_functions), and the column of each.

    A column of numbers has its normal scores and their sizes, so that x and x^2 are seen to belong together; a column
    of labels has the indicators of its levels.

    Parameters
    ----------
    X, nominal
        As ``column_tree`` has them.
    most_levels : int
        Levels of labels with an indicator, the most frequent ones.
    most_rows : int
        Rows that are looked at, evenly spaced, where there are more.
    """
    X = X[:: -(-len(X) // most_rows)]
    found, column_of = [], []
    for j, x in enumerate(X.T):
        values, counts = np.unique(x, return_counts=True)
        if nominal[j]:
            frequent = values[np.argsort(-counts, kind="stable")[:most_levels]]
            parts = np.equal.outer(frequent, x).astype(float)
        else:
            z = ndtri((rankdata(x) - 0.5) / len(x))
            parts = np.stack([z, np.abs(z)] if len(values) > 2 else [z])
        found.append(parts)
        column_of += [j] * len(parts)
    scores = np.concatenate(found).T
    scores = scores - scores.mean(axis=0)
    spread = scores.std(axis=0)
    return scores / np.where(spread > 0, spread, 1.0), np.array(column_of, dtype=np.intp)
