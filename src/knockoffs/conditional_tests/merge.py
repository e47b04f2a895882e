"""Merged p-values of the same hypotheses from several sets of rows: twice their mean, however dependent they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.sequential import Looks, Randomization
from knockoffs.conditional_tests.tests import Columns, GroupTests


def merge_p_values(p_values: NDArray) -> NDArray:
    """Twice the mean over the first axis, at most 1: valid for any dependence (Rueschendorf, 1982).

    >>> merge_p_values(np.array([[0.01, 0.5], [0.03, 0.9]]))
    array([0.04, 1.  ])
    """
    return p_values[0] if len(p_values) == 1 else np.minimum(2 * p_values.mean(axis=0), 1.0)


@dataclass(frozen=True)
class MergedTests:
    """Tests of groups of columns, each on several sets of rows."""

    parts: tuple[GroupTests, ...]

    @property
    def X(self) -> NDArray:
        """Rows of the first set, from which a tree of features is made."""
        return self.parts[0].X

    @property
    def nominal(self) -> NDArray[np.bool_]:
        """Columns of labels without an order."""
        return self.parts[0].nominal

    def test_all(self, groups: Sequence[Columns], n_jobs: int | None, looks: Sequence[Looks]) -> list[Randomization]:
        """Test each of several groups."""
        found = [part.test_all(groups, n_jobs, looks) for part in self.parts]
        p_values = merge_p_values(np.array([[one.p_value for one in part] for part in found]))
        scores = np.mean([[one.score for one in part] for part in found], axis=0)
        draws = np.sum([[one.n_draws for one in part] for part in found], axis=0)
        return [Randomization(float(p), int(n), float(s)) for p, n, s in zip(p_values, draws, scores, strict=True)]

    def notes_on(self, groups: Sequence[Columns]) -> dict[str, str]:
        """Words on the models of y, and on how p-values are merged."""
        merged = f"a p-value is twice the mean of those of {len(self.parts)} sets of rows"
        return {**self.parts[0].notes_on(groups), "merged": merged}
