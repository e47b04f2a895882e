"""Discoveries at the resolution the data allow: tests of groups of columns in a tree, from the root down.

A node of the tree is a group of columns; its null hypothesis says that y does not depend on the group given all other
columns. A node is tested only where its parent was rejected, at the level

    level * (leaves of the node) / (leaves that can still be null),

where the second count takes the rejections so far as true, and the node itself as null. The probability of any false
rejection is then at most the level, for any dependence between the p-values: this is a sequentially rejective procedure
(Goeman and Solari, 2010). It rejects all that Meinshausen's (2008) rejects, for which the second count is all leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from knockoffs.errors import InputError
from knockoffs.table.groups import Nested


@dataclass(frozen=True, eq=False)
class TreeNode:
    """A group of columns and the smaller groups it is made of.

    Parameters
    ----------
    features : tuple of int
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


PValues = Callable[[Sequence[TreeNode], Sequence[float]], Sequence[float]]


@dataclass(frozen=True)
class NodeResult:
    """A node that was tested.

    Parameters
    ----------
    node : TreeNode
    p_value : float
    adjusted : float
        Smallest level at which the procedure rejects the node; a bound on it where the node is not rejected.
    rejected : bool
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
    root : TreeNode
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
