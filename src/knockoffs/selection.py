"""Selection: what the knockoff filter found, with everything it rests on, and what it means in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.evidence import Combined
from knockoffs.explanation import explain_nothing, explain_selection
from knockoffs.features import FeatureModel
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import Pair
from knockoffs.validity.verdict import Verdict


@dataclass(frozen=True)
class Selection:
    """What was found, with everything it rests on.

    Attributes
    ----------
    feature_names : tuple of str
    selected : array of bool, shape (n_features,)
    q_values : array, shape (n_features,)
        Smallest level at which each feature is selected.
    fdr : float
        The level asked for.
    method : {"knockoffs", "conditional_test"}
    pair : Pair
        X (with its missing cells filled) and the knockoffs that were drawn, in the first draw.
    feature_model : FeatureModel or None
        P^X; None when the knockoffs were brought along.
    notes : mapping
        What was chosen where nothing was asked for, and what P^X is, in words.
    scores : Scores or None
        Importance of the features, Z, and of their knockoffs, Z_tilde; the mean over several draws.
    W : array, shape (n_features,)
        Feature statistics; the mean over several draws, and NaN where features were tested without knockoffs.
    threshold : float
        Of one draw: features with W >= threshold are selected; infinity if no threshold holds the level. NaN elsewhere.
    offset : {1, 0}
        1 for knockoff+, 0 for knockoff.
    evidence : Combined or None
        Of several draws, or a level chosen after looking: e-values, frequencies, levels and the promise.
    draws : array, shape (n_draws, n_features)
        W of every draw.
    p_values : array, shape (n_features,), or None
        Of the conditional tests.
    verdict : Verdict or None
        Whether the knockoffs could be told from the features.
    """

    feature_names: tuple[str, ...]
    selected: NDArray[np.bool_]
    q_values: NDArray
    fdr: float
    method: str
    pair: Pair
    feature_model: FeatureModel | None
    notes: Mapping[str, str]
    W: NDArray
    scores: Scores | None = None
    threshold: float = float("nan")
    offset: int = 1
    evidence: Combined | None = None
    draws: NDArray | None = None
    p_values: NDArray | None = None
    verdict: Verdict | None = None

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the selected features, the surest first."""
        order = np.lexsort((-np.nan_to_num(self.W), self.q_values))
        return tuple(self.feature_names[j] for j in order if self.selected[j])

    @property
    def X_tilde(self) -> NDArray:
        """The knockoffs that were drawn, shape (n, n_columns)."""
        return self.pair.X_tilde

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was."""
        told = explain_selection(self) if self.selected.any() else explain_nothing(self)
        if self.verdict is not None and self.verdict.word != "good":
            told += f" The knockoffs look {self.verdict.word}: the promise rests on a P^X that does not fit (verdict)."
        return told

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the answer, and the surest features."""
        from knockoffs.report.notebook import answer_html

        return answer_html(self)
