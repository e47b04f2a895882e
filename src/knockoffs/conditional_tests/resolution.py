"""Discoveries: single features where the data can tell, groups where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.column_tree import column_tree
from knockoffs.conditional_tests.tests import Tested
from knockoffs.conditional_tests.tree import TreeNode, reject_nodes
from knockoffs.errors import InputError

RESOLUTIONS = ("columns", "auto")


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
    tested: Tested, feature_of: NDArray[np.intp], level: float, n_jobs: int | None = None, *, draws_at_level: int = 20
) -> list[Discovery]:
    """Finest rejections of a tree of tests, surest first: the probability of any false one is at most ``level``.

    Parameters
    ----------
    tested : Tested
        Tests of the single features.
    feature_of : array of int, shape (n_columns,)
        Feature of each column.
    level : float
    n_jobs : int, optional
    draws_at_level : int
        Number of draws as large as the observed statistic at which a group is just rejected.
    """
    tests = tested.tests
    if tests is None:
        raise InputError("resolution='auto' needs the tests behind the p-values.")
    score: dict[TreeNode, float] = {}

    def p_values(nodes: Sequence[TreeNode], levels: Sequence[float]) -> list[float]:
        groups = [(node, at) for node, at in zip(nodes, levels, strict=True) if node.children]
        columns = [np.flatnonzero(np.isin(feature_of, node.features)) for node, _ in groups]
        most = [int(np.ceil(draws_at_level / at)) for _, at in groups]
        found = dict(zip((node for node, _ in groups), tests.test_all(columns, n_jobs, most), strict=True))
        score.update({node: one.score for node, one in found.items()})
        score.update({node: float(tested.scores[node.features[0]]) for node in nodes if not node.children})
        return [found[node].p_value if node.children else float(tested.p_values[node.features[0]]) for node in nodes]

    rejected = reject_nodes(column_tree(tests.X, tests.nominal, feature_of), p_values, level)
    found = [
        Discovery(tuple(tested.names[j] for j in one.node.features), one.p_value, one.adjusted, score[one.node])
        for one in rejected
        if one.finest
    ]
    return sorted(found, key=lambda discovery: (discovery.level, -discovery.score))
