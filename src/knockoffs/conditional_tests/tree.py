"""Discoveries at the resolution the data allow: tests of groups of columns in a tree, from the root down.

A node of the tree is a group of columns; its null hypothesis says that y does not depend on the group given all other
columns. A node is tested only where its parent was rejected, at the level

    level * (leaves of the node) / (leaves that can still be null),

where the second count takes the rejections so far as true, and the node itself as null. The probability of any false
rejection is then at most the level, for any dependence between the p-values: this is a sequentially rejective procedure
(Goeman and Solari, 2010). It rejects all that Meinshausen's (2008) rejects, for which the second count is all leaves.

A tree is made without a look at y: features that say much about one another, given all others, lie together. A group
can be found where it varies given the columns outside of it. So a group is cut where its parts depend least on one
another given the rest: what is cut off there is not determined by what stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.covariance import ledoit_wolf

from knockoffs.errors import InputError
from knockoffs.table.groups import Nested


@dataclass(frozen=True, eq=False)
class TreeNode:
    """A group of columns and the smaller groups it is made of.

    Parameters
    ----------
    children : tuple of TreeNode
        Disjoint groups that together are this one; empty for a leaf, which is not divided further.
    """

    features: tuple[int, ...]
    children: tuple[TreeNode, ...] = ()

    def __post_init__(self) -> None:
        together = sorted(feature for child in self.children for feature in child.features)
        if self.children and (len(self.children) < 2 or together != sorted(self.features)):
            raise InputError(f"features {self.features}: the children of a group must be two or more that make it up.")

    @cached_property
    def n_leaves(self) -> int:
        """Number of leaves below the node; 1 for a leaf."""
        return sum(child.n_leaves for child in self.children) if self.children else 1

    def walk(self) -> Iterator[TreeNode]:
        """Yield the node and all nodes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def named_tree(tree: Nested, names: Sequence[str]) -> TreeNode:
    """Tree of features by their places among ``names``.

    >>> [child.features for child in named_tree((("a", "c"), "b"), ["a", "b", "c"]).children]
    [(0, 2), (1,)]
    """
    if isinstance(tree, str):
        return TreeNode((list(names).index(tree),))
    children = tuple(named_tree(part, names) for part in tree)
    return TreeNode(tuple(sorted(feature for child in children for feature in child.features)), children)


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


PValues = Callable[[Sequence[TreeNode], Sequence[float]], Sequence[float]]


@dataclass(frozen=True)
class NodeResult:
    """A node that was tested.

    Parameters
    ----------
    adjusted : float
        Smallest level at which the procedure rejects the node; a bound on it where the node is not rejected.
    finest : bool
        Whether it is rejected and no child of it is: a discovery.
    """

    node: TreeNode
    p_value: float
    adjusted: float
    rejected: bool
    finest: bool


def reject_nodes(root: TreeNode, p_values: PValues, level: float) -> list[NodeResult]:
    """Nodes that are tested, the rejected ones first; the probability that any of those is null is at most ``level``.

    Parameters
    ----------
    p_values : callable
        p-values of some nodes, given them and the levels at which they are tested at first. It is asked for the
        children of a node that is rejected, and once.
    level : float
        Bound on the family-wise error rate.
    """
    p: dict[TreeNode, float] = {}

    def smallest_levels(nodes: Collection[TreeNode], rejected: Collection[TreeNode]) -> dict[TreeNode, float]:
        return {node: p[node] * most_null(root, rejected, node) / node.n_leaves for node in nodes}

    opened, reached, ready = [root], set[TreeNode](), [root]
    while ready:  # all that is rejected in the end, many at a time: a rejection never hinders another
        if opened:
            levels = [level * node.n_leaves / most_null(root, reached, node) for node in opened]
            p.update(zip(opened, p_values(opened, levels), strict=True))
        open_nodes = [node for node in p if node not in reached]
        ready = [node for node, at in smallest_levels(open_nodes, reached).items() if at <= level]
        reached.update(ready)
        opened = [child for node in ready for child in node.children]
    rejected: dict[TreeNode, tuple[float, float]] = {}
    active, adjusted = [root], 0.0
    while active:  # the same again in the order of the levels
        smallest = smallest_levels(active, rejected)
        node = min(active, key=smallest.__getitem__)
        if smallest[node] > level:
            break
        adjusted = max(adjusted, smallest[node])
        rejected[node] = (p[node], adjusted)
        active.remove(node)
        active.extend(node.children)
    others = {node: (p[node], min(max(adjusted, smallest[node]), 1.0)) for node in active}
    return [
        NodeResult(node, *found, node in rejected, node in rejected and rejected.keys().isdisjoint(node.children))
        for node, found in (rejected | others).items()
    ]


def most_null(node: TreeNode, rejected: Collection[TreeNode], null: TreeNode) -> int:
    """Largest number of leaves of ``node`` that can be null if all ``rejected`` nodes are not, and ``null`` is.

    A group is null exactly where all of its leaves are (the intersection property of conditional independence, which
    holds for columns that do not determine one another), so every rejected group holds a leaf that is not null.
    """
    if node is null:
        return node.n_leaves
    if not node.children:
        return int(node not in rejected)
    among = sum(most_null(child, rejected, null) for child in node.children)
    return among - int(node in rejected and among == node.n_leaves)
