"""The tree of tests keeps its family-wise error rate: the two conditions of its theorem, by enumeration.

A sequentially rejective procedure (Goeman and Solari, 2010) keeps the level for any dependence of the p-values if
(1) the levels of the null hypotheses add up to at most the level once exactly the false ones are rejected, and (2) the
level of a hypothesis never falls as more are rejected. Both are checked for all trees of up to five leaves and all sets
of null leaves.
"""

from itertools import combinations, product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.conditional_tests.tree import TreeNode, most_null, reject_nodes


def trees(columns):
    """All trees over the columns in their order, every node with two or three children."""
    if len(columns) == 1:
        return [TreeNode(columns)]
    found = []
    for parts in (2, 3):
        for cuts in combinations(range(1, len(columns)), parts - 1):
            pieces = [columns[a:b] for a, b in zip((0, *cuts), (*cuts, len(columns)), strict=True)]
            found += [TreeNode(columns, children) for children in product(*map(trees, pieces))]
    return found


SMALL = [tree for n in range(1, 6) for tree in trees(tuple(range(n)))]


def false_nodes(root, false):
    return {node for node in root.walk() if set(node.features) & set(false)}


def active(root, rejected):
    """Nodes that may be tested: not rejected, their parent rejected."""
    found = [root] if root not in rejected else []
    return found + [child for node in rejected for child in node.children if child not in rejected]


def given(p):
    return lambda nodes, levels: [p[node] for node in nodes]


def subsets(n):
    return [some for size in range(n + 1) for some in combinations(range(n), size)]


def closed_sets(root):
    """All sets of nodes that hold the parents of their members: what can have been rejected."""

    def below(node):
        without = [frozenset()]
        return without + [
            frozenset({node}).union(*parts) for parts in product(*(below(child) for child in node.children))
        ]

    return below(root)


@pytest.mark.parametrize("rule", [most_null])
def test_levels_of_null_nodes_add_up_to_the_level(rule):
    assert worst_sum(rule) <= 1 + 1e-12


def test_the_condition_sees_a_leaf_too_many_taken_off():
    def always_one_less(node, rejected, null):
        return max(most_null(node, rejected, null) - 1, null.n_leaves)

    assert worst_sum(always_one_less) > 1.2


def worst_sum(rule):
    sums = []
    for root in SMALL:
        for false in subsets(root.n_leaves):
            rejected = false_nodes(root, false)
            sums.append(sum(node.n_leaves / rule(root, rejected, node) for node in active(root, rejected)))
    return max(sums)


def test_levels_never_fall_as_more_is_rejected():
    for root in (tree for tree in SMALL if tree.n_leaves <= 4):
        for fewer, more in product(closed_sets(root), repeat=2):
            if not fewer < more:
                continue
            for node in set(active(root, fewer)) & set(active(root, more)):
                assert most_null(root, fewer, node) >= most_null(root, more, node)


def test_most_null_is_the_largest_number_over_all_sets_of_null_leaves():
    for root in SMALL:
        for rejected in closed_sets(root):
            for null in active(root, rejected):
                possible = [
                    root.n_leaves - len(false)
                    for false in subsets(root.n_leaves)
                    if not set(false) & set(null.features) and rejected <= false_nodes(root, false)
                ]
                assert most_null(root, rejected, null) == max(possible)


def rejections(*arguments):
    return [one for one in reject_nodes(*arguments) if one.rejected]


def test_error_rate_over_all_p_values_of_a_small_tree():
    """Independent p-values on a grid of sixths, all combinations, at a level of 1/2: every level of a node is on it."""
    root = TreeNode((0, 1, 2), (TreeNode((0, 1), (TreeNode((0,)), TreeNode((1,)))), TreeNode((2,))))
    nodes, grid = list(root.walk()), np.arange(1, 7) / 6
    for false in subsets(3):
        not_null = false_nodes(root, false)
        null = [node for node in nodes if node not in not_null]
        wrong = ungated = 0
        for values in product(grid, repeat=len(null)):
            p = dict.fromkeys(not_null, 0.0) | dict(zip(null, values, strict=True))
            wrong += any(found.node in null for found in rejections(root, given(p), 0.5))
            ungated += any(p[node] <= 0.5 * node.n_leaves / most_null(root, not_null, node) + 1e-12 for node in null)
        assert wrong <= 0.5 * len(grid) ** len(null) + 1e-9
        if not false:
            assert ungated > 0.5 * len(grid) ** len(null)  # nodes tested before their parents


def test_it_rejects_what_meinshausen_rejects_and_adjusted_values_are_the_levels():
    rng = np.random.default_rng(0)
    for _ in range(300):
        root = SMALL[rng.integers(len(SMALL))]
        p = {node: rng.uniform() ** 4 for node in root.walk()}
        found = rejections(root, given(p), 0.2)
        rejected = {one.node for one in found}
        plain = set()
        for node in root.walk():
            parent = next((other for other in root.walk() if node in other.children), None)
            if p[node] * root.n_leaves / node.n_leaves <= 0.2 and (parent is None or parent in plain):
                plain.add(node)
        assert plain <= rejected
        for one in found:
            assert one.node in {again.node for again in rejections(root, given(p), one.adjusted)}
            below = rejections(root, given(p), one.adjusted * (1 - 1e-9))
            assert one.node not in {again.node for again in below}
            assert one.finest == (not any(child in rejected for child in one.node.children))


def test_p_values_are_asked_for_below_rejected_nodes_alone_at_their_levels():
    """Of four leaves in pairs: once the root is rejected, three leaves can be null beside a null pair."""
    pairs = tuple(TreeNode(pair, tuple(TreeNode((leaf,)) for leaf in pair)) for pair in ((0, 1), (2, 3)))
    root, asked = TreeNode((0, 1, 2, 3), pairs), []

    def p_values(nodes, levels):
        asked.append(dict(zip(nodes, levels, strict=True)))
        return [0.0 if node is root else 1.0 for node in nodes]

    reject_nodes(root, p_values, 0.1)
    assert asked == [{root: 0.1}, dict.fromkeys(pairs, 0.1 * 2 / 3)]


def test_a_tree_that_is_none():
    refuses("two or more", TreeNode, (0, 1), (TreeNode((0,)),))
    refuses("make it up", TreeNode, (0, 1), (TreeNode((0,)), TreeNode((2,))))
