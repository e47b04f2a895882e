"""Discoveries: single features where the data can tell, groups where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from knockoffs.conditional_tests.sequential import plan_looks
from knockoffs.conditional_tests.tests import GroupTests, MergedTests
from knockoffs.conditional_tests.tree import TreeNode, column_tree, named_tree, reject_nodes
from knockoffs.table.groups import Nested

RESOLUTIONS = ("auto", "columns")
TREE_NOTE = (
    "groups are tested in a tree, from the top down (sequential rejection; Goeman and Solari, 2010), whatever the "
    "dependence of the p-values"
)


@dataclass(frozen=True)
class Discovery:
    """A feature, or a group of features of which at least one matters.

    Parameters
    ----------
    p_value : float
        Of the hypothesis that none of them matters given all other features; NaN of knockoffs.
    level : float
        Smallest level at which it is found: the adjusted p-value in the tree of tests.
    score : float
        Statistic in standard deviations of its draws, for the order among equal p-values; at least the normal quantile
        of 1 - p, as a few huge draws can make their standard deviation useless. E-value of knockoffs.

    >>> str(Discovery(("bmi",), 0.001, 0.01, 5.0)), str(Discovery(("s3", "s4", "s5"), 0.001, 0.01, 5.0))
    ('bmi', 'one of s3, s4, s5')
    """

    features: tuple[str, ...]
    p_value: float
    level: float
    score: float

    def __str__(self) -> str:
        return discovery_name(self.features)

    @property
    def sentence(self) -> str:
        """What is claimed.

        >>> Discovery(("radius", "area"), 0.001, 0.01, 5.0).sentence
        'One of radius, area matters; the data cannot say which.'
        """
        if len(self.features) == 1:
            return f"{self.features[0]} matters, given all other features."
        return f"O{str(self)[1:]} matters; the data cannot say which."


def discovery_name(features: Sequence[str]) -> str:
    """Name of a feature, or of a group of features of which at least one matters."""
    return features[0] if len(features) == 1 else f"one of {', '.join(features)}"


@dataclass(frozen=True)
class Discovered:
    """Discoveries, and what was found of each feature.

    Parameters
    ----------
    discoveries : tuple of Discovery
        Surest first.
    levels : array, shape (n_features,)
        Level of the discovery that contains a feature, or of the finest group that was tested with it.
    p_values, scores : array, shape (n_features,)
        Of the finest group that was tested with a feature; of the feature itself where the tree came down to it.
    """

    discoveries: tuple[Discovery, ...]
    levels: NDArray
    p_values: NDArray
    scores: NDArray
    notes: dict[str, str]


def discover(
    tests: GroupTests | MergedTests,
    names: Sequence[str],
    feature_of: NDArray[np.intp],
    level: float,
    n_jobs: int | None = None,
    *,
    tree: Nested | None = None,
    enough: tuple[int, int] = (25, 1000),
    cells: float = 1e8,
) -> Discovered:
    """Finest rejections of a tree of tests from the root down; the chance of any false one is at most ``level``.

    Parameters
    ----------
    names : sequence of str
        Of the features.
    feature_of : array of int, shape (n_columns,)
        Feature of each column; covariates have numbers beyond the last feature.
    tree : nested tuple of str, optional
        Tree over the names; by default ``column_tree`` makes it.
    enough : tuple of int
        Fewest and most draws that are as large as the observed statistic where a group is just rejected; the standard
        error of a p-value at the level is then p over the root of that number.
    cells : float
        Of the draws of one group, as many as a few seconds allow: between the fewest and the most, this decides.
    """
    score: dict[TreeNode, float] = {}

    def columns(node: TreeNode) -> NDArray[np.intp]:
        return np.flatnonzero(np.isin(feature_of, node.features))

    def p_values(nodes: Sequence[TreeNode], levels: Sequence[float]) -> list[float]:
        looks = [plan_looks((at / merged, level), at_level) for at in levels]  # levels grow as others are rejected
        found = tests.test_all([columns(node) for node in nodes], n_jobs, looks)
        score.update({node: max(one.score, ndtri(1 - one.p_value)) for node, one in zip(nodes, found, strict=True)})
        return [one.p_value for one in found]

    own = feature_of < len(names)  # covariates are numbered last
    at_level = int(np.clip(cells * level / tests.X.size, *enough))  # n times columns times draws is one number
    merged = 2 if isinstance(tests, MergedTests) else 1  # a merged p-value is twice the mean
    if tree is None:
        root = column_tree(tests.X[:, own], tests.nominal[own], feature_of[own])
    else:
        root = named_tree(tree, names)
    results = reject_nodes(root, p_values, level)
    finest = sorted((one for one in results if one.finest), key=lambda one: (one.adjusted, -score[one.node]))
    levels, p, scores = np.ones((3, len(names)))
    for one in sorted(results, key=lambda one: -one.node.n_leaves):  # the last to speak counts
        members = list(one.node.features)
        levels[members], p[members], scores[members] = one.adjusted, one.p_value, score[one.node]
    for one in finest:
        levels[list(one.node.features)] = one.adjusted
    found = (
        Discovery(tuple(names[j] for j in one.node.features), one.p_value, one.adjusted, score[one.node])
        for one in finest
    )
    tested = [one.node for one in results]
    notes = {
        **tests.notes_on([columns(node) for node in tested]),
        "adjustment": TREE_NOTE,
        "tested": f"tests of the tree, from the root downwards: {len(tested)}",
    }
    return Discovered(tuple(found), levels, p, scores, notes)
