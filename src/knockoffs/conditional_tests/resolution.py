"""Discoveries: single features where the data can tell, groups where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.sequential import Randomization
from knockoffs.conditional_tests.tests import GroupTests
from knockoffs.conditional_tests.tree import TreeNode, reject_nodes


@dataclass(frozen=True)
class Discovery:
    """A feature, or a group of features of which at least one matters.

    Parameters
    ----------
    features : tuple of str
    p_value : float
        Of the hypothesis that none of them matters given all other features.
    level : float
        Smallest level at which the tree of tests finds it: the adjusted p-value.
    score : float
        Statistic in standard deviations of its draws, for the order among equal p-values.
    """

    features: tuple[str, ...]
    p_value: float
    level: float
    score: float

    @property
    def sentence(self) -> str:
        """What is claimed.

        >>> Discovery(("radius", "area"), 0.001, 0.01, 5.0).sentence
        'radius or area matters; the data cannot say which.'
        """
        if len(self.features) == 1:
            return f"{self.features[0]} matters, given all other features."
        if len(self.features) == 2:
            return f"{self.features[0]} or {self.features[1]} matters; the data cannot say which."
        return f"One of {', '.join(self.features)} matters; the data cannot say which."


def discover(
    tests: GroupTests,
    tree: TreeNode,
    alone: Sequence[Randomization],
    names: Sequence[str],
    feature_of: NDArray[np.intp],
    level: float,
    n_jobs: int | None = None,
    *,
    draws_at_level: int = 20,
) -> list[Discovery]:
    """Finest rejections of the tree of tests, surest first: the chance of any false one is at most ``level``.

    Parameters
    ----------
    tests : GroupTests
    tree : TreeNode
        Of the features.
    alone : sequence of Randomization
        Tests of the single features.
    names : sequence of str
    feature_of : array of int, shape (n_columns,)
        Feature of each column.
    level : float
    n_jobs : int, optional
    draws_at_level : int
        Draws as large as the observed statistic that a group has at the level at which it is tested.
    """
    outcome: dict[TreeNode, Randomization] = {}

    def p_values(nodes: Sequence[TreeNode], levels: Sequence[float]) -> list[float]:
        groups = [(node, at) for node, at in zip(nodes, levels, strict=True) if node.children]
        columns = [np.flatnonzero(np.isin(feature_of, node.features)) for node, _ in groups]
        found = tests.test_all(columns, n_jobs, [int(np.ceil(draws_at_level / at)) for _, at in groups])
        outcome.update({node: one for (node, _), one in zip(groups, found, strict=True)})
        outcome.update({node: alone[node.features[0]] for node in nodes if not node.children})
        return [outcome[node].p_value for node in nodes]

    found = [
        Discovery(
            tuple(names[feature] for feature in rejection.node.features),
            rejection.p_value,
            rejection.adjusted,
            outcome[rejection.node].score,
        )
        for rejection in reject_nodes(tree, p_values, level)
        if rejection.finest
    ]
    return sorted(found, key=lambda discovery: (discovery.level, -discovery.score))
