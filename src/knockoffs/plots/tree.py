"""The tree of groups that were tested, with the discoveries in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from knockoffs.conditional_tests.tree import TreeNode, column_tree
from knockoffs.errors import InputError, count
from knockoffs.plots.style import QUIET, SELECTED, finish, legend_below, name_rows, new_axes
from knockoffs.selection import Selection
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_tree(selection: Selection, table: Table, *, ax: Axes | Figure | None = None, most: int = 60) -> Axes:
    """Draw the tree of features, those that say much about one another side by side; discoveries are blue and thick.

    It is of tests with resolution="auto", of at most ``most`` features.
    """
    if selection.discoveries is None or selection.p_values is None:
        raise InputError("there is no tree of groups: it is of tests with resolution='auto'.")
    d, pair = len(selection.feature_names), selection.pair
    if not 1 < d <= most or not len(pair):
        raise InputError(f"a tree of {d} features cannot be drawn: expected 2 to {most}, and rows in memory.")
    own = pair.feature_of < d
    nominal = np.array([column.kind == "nominal" for column in table.columns])
    tree = column_tree(np.asarray(pair.X, dtype=float)[:, own], nominal[own], pair.feature_of[own])
    found = {frozenset(selection.feature_names.index(name) for name in one.features) for one in selection.discoveries}
    if not found <= _nodes(tree):
        raise InputError("the discoveries are of another tree, which was given by groups=: it cannot be drawn.")
    ax = new_axes(ax, 6.4, 1.0 + 0.22 * d)
    leaves: list[int] = []
    _draw(ax, tree, found, leaves, blue=False)
    name_rows(ax, [selection.feature_names[j] for j in leaves], [bool(selection.selected[j]) for j in leaves])
    ax.plot([], [], color=SELECTED, linewidth=3, label="discovery")
    ax.plot([], [], color=QUIET, linewidth=1, label="not found")
    legend_below(ax, letters=0.5)
    ax.xaxis.set_visible(False)
    ax.spines[["left", "bottom"]].set_visible(False)
    groups = sum(len(one) > 1 for one in found)
    discoveries = count(len(found), "discovery", "discoveries")
    return finish(
        ax, f"Tree of groups: {discoveries}, {groups or 'none'} {'is a group' if groups == 1 else 'are groups'}"
    )


def _nodes(node: TreeNode) -> set[frozenset[int]]:
    """Features of a node and of all nodes below it."""
    return {frozenset(node.features)}.union(*(_nodes(child) for child in node.children))


def _draw(
    ax: Axes, node: TreeNode, found: set[frozenset[int]], leaves: list[int], *, blue: bool
) -> tuple[float, float]:
    """Draw a node and all below it; return its depth (levels to the farthest leaf) and its height."""
    blue = blue or frozenset(node.features) in found
    colour, width = (SELECTED, 3.0) if blue else (QUIET, 1.0)
    if not node.children:
        leaves.append(node.features[0])
        return 0.0, float(len(leaves) - 1)
    parts = [_draw(ax, child, found, leaves, blue=blue) for child in node.children]
    depth, height = max(part[0] for part in parts) + 1, float(np.mean([part[1] for part in parts]))
    for child, (below, y) in zip(node.children, parts, strict=True):
        own = blue or frozenset(child.features) in found
        ax.plot([below, depth], [y, y], color=SELECTED if own else QUIET, linewidth=3.0 if own else 1.0)
    ax.plot([depth, depth], [parts[0][1], parts[-1][1]], color=colour, linewidth=width)
    return depth, height
