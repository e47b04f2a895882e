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

RESOLUTIONS = ("auto", "columns")
TREE_NOTE = (
    "groups are tested in a tree, from the top down (sequential rejection; Goeman and Solari, 2010): proven for all "
    "p-values"
)


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


def discover(
    tested: Tested, feature_of: NDArray[np.intp], level: float, n_jobs: int | None = None, *, draws_at_level: int = 50
) -> tuple[tuple[Discovery, ...], NDArray]:
    """Finest rejections of a tree of tests, surest first, and the level of each feature.

    The probability of any false discovery is at most ``level``. The level of a feature is that of the discovery that
    contains it, or of the finest group that was tested with it and not rejected.

    Parameters
    ----------
    tested : Tested
        Tests of the single features.
    feature_of : array of int, shape (n_columns,)
        Feature of each column; covariates have numbers beyond the last feature.
    level : float
    n_jobs : int, optional
    draws_at_level : int
        Number of draws as large as the observed statistic at which a group is just rejected; the standard error of a
        p-value at the level is then p / sqrt(draws_at_level).
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

    own = feature_of < len(tested.names)  # covariates are numbered last
    results = reject_nodes(column_tree(tests.X[:, own], tests.nominal[own], feature_of[own]), p_values, level)
    finest = sorted((one for one in results if one.finest), key=lambda one: (one.adjusted, -score[one.node]))
    levels = np.ones(len(tested.names))
    for one in (*sorted(results, key=lambda one: -one.node.n_leaves), *finest):  # the last to speak counts
        levels[list(one.node.features)] = one.adjusted
    found = (
        Discovery(tuple(tested.names[j] for j in one.node.features), one.p_value, one.adjusted, score[one.node])
        for one in finest
    )
    return tuple(found), levels
