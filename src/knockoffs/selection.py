"""Selection: what the knockoff filter found, with everything it rests on, and what it means in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.verdict import Verdict
from knockoffs.errors import name_some
from knockoffs.features import FeatureModel
from knockoffs.filter import remedy_for_few_features
from knockoffs.filter.e_values import Combined
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import Pair

NEAR = 0.99  # correlation of a feature with its knockoff, above which it takes some fifty times the rows to find it
BY_GHOSTS = (
    "provided that the correlations are those of the study's columns and the z-scores are nearly Gaussian, as those of "
    "many rows are; nothing is assumed about the model of the target."
)
PROVIDED = "provided that P^X, the model of the features, is right; nothing is assumed about the model of the target."


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
    method : {"knockoffs", "conditional_test", "ghost"}
        "ghost": knockoffs of the z-scores of a study, without its rows.
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
    n_knockoffs : int
        Knockoffs that every feature was compared with. With several, W is the largest score less the median of the
        others, positive where it is the feature's; ``pair`` holds the first, and Z_tilde is the largest of theirs.
    evidence : Combined or None
        Of several draws, or a level chosen after looking: e-values, frequencies, levels and the promise.
    draws : array, shape (n_draws, n_features)
        W of every draw.
    p_values : array, shape (n_features,), or None
        Of the conditional tests.
    test_scores : array, shape (n_features,), or None
        Statistics of the conditional tests in standard deviations of their draws. They order features with the same
        p-value, and have no part in the error rate.
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
    n_knockoffs: int = 1
    evidence: Combined | None = None
    draws: NDArray | None = None
    p_values: NDArray | None = None
    test_scores: NDArray | None = None
    verdict: Verdict | None = None

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the selected features, the surest first."""
        return tuple(self.feature_names[j] for j in self.surest_first if self.selected[j])

    @property
    def surest_first(self) -> NDArray[np.intp]:
        """Places of all features, the surest first: by q-value, then by W, or by p-value and score of the test."""
        if self.p_values is None:
            return np.lexsort((-np.nan_to_num(self.W), self.q_values))
        score = np.zeros(len(self.p_values)) if self.test_scores is None else -self.test_scores
        return np.lexsort((score, self.p_values, self.q_values))

    @property
    def X_tilde(self) -> NDArray:
        """The knockoffs that were drawn, shape (n, n_columns)."""
        return self.pair.X_tilde

    def explain(self) -> str:
        """Say in one paragraph what was selected, what it means and on which P^X it rests, or why nothing was."""
        told = explain_selection(self) if self.selected.any() else explain_nothing(self)
        if "feature_model" in self.notes:
            told += f" {self.notes['feature_model']}"
        if self.verdict is not None and self.verdict.word != "good":
            told += f" The knockoffs look {self.verdict.word}: the promise rests on a P^X that does not fit (verdict)."
        return told

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the answer, and the surest features."""
        from knockoffs.report.notebook import answer_html

        return answer_html(self)


# What it means, in words


def explain_selection(selection: Selection) -> str:
    """Say how many features were selected and what is promised of them."""
    n, d, q = int(selection.selected.sum()), len(selection.W), selection.fdr
    provided = BY_GHOSTS if selection.method == "ghost" else PROVIDED
    found = f"{n} of {d} features {'is' if n == 1 else 'are'} selected"
    if selection.method == "conditional_test":
        return (
            f"{found} by their p-values, each for the hypothesis that the feature does not matter given all the others "
            f"(conditional randomization test). The false discovery rate is held at {q:g} by the rule of Benjamini and "
            f"Hochberg, for p-values that are independent or positively dependent, {PROVIDED}"
        )
    if selection.evidence is not None:
        n_draws = 1 if selection.draws is None else len(selection.draws)
        each = "" if selection.n_knockoffs == 1 else f", {selection.n_knockoffs} of each feature"
        return (
            f"{found} by the e-values of {n_draws} draw{'s' if n_draws > 1 else ''} of knockoffs{each}. "
            f"{selection.evidence.promise} It holds {provided}"
        )
    beaten = "" if selection.n_knockoffs == 1 else f", each against {selection.n_knockoffs} knockoffs of it"
    if selection.offset == 1:
        promise = (
            f"On average over repeated data sets at most {percent(q)} of the selected features are false discoveries, "
            f"which do not matter given all the others (false discovery rate {q:g})"
        )
    else:
        promise = (
            f"With offset=0 the false discovery rate itself is not held (where no feature matters it can be one half), "
            "only a modified one: the false discoveries, which do not matter given all the others, are on average at "
            f"most {percent(q)} of (the number of selected features + {1 / q:.3g})"
        )
    return f"{found} (W >= {selection.threshold:.4g}{beaten}). {promise}, {provided}"


def explain_nothing(selection: Selection) -> str:
    """Say why nothing was selected and what would help."""
    d, q = len(selection.W), selection.fdr
    positive, negative = int((selection.W > 0).sum()), int((selection.W < 0).sum())
    m = selection.n_knockoffs
    needed = int(np.ceil(1 / (m * q) - 1e-9))
    if selection.p_values is not None:
        return (
            f"Nothing is selected: the smallest p-value of {d} features is {selection.p_values.min():.3g}, and the "
            f"rule of Benjamini and Hochberg selects a first feature at {q:g} from {q / d:.3g} on (smallest q-value "
            f"{selection.q_values.min():.3g}). More rows, a model of the target that predicts better, or a larger fdr "
            "may help."
        )
    parts = [f"Nothing is selected: no threshold holds the false discovery rate at {q:g}."]
    if selection.evidence is not None:
        parts = [f"Nothing is selected: the e-values of the draws are too small for a level of {q:g}."]
    elif selection.offset == 1 and m > 1:
        parts.append(
            f"Knockoff+ with {m} knockoffs of each feature selects {needed} features or more at {q:g}, or none: "
            f"{needed} if no knockoff beats them, and {int(np.ceil(1 / q - 1e-9))} more for every {m} that do."
        )
    elif selection.offset == 1:
        parts.append(
            f"Knockoff+ at {q:g} selects {needed} features or more, or none: {needed} if no knockoff beats them, "
            f"{needed} more for every knockoff that does."
        )
    parts.append(f"Here W is positive for {positive} of {d} features and negative for {negative}.")
    if needed > d and selection.offset == 1 and selection.evidence is None:
        remedy = remedy_for_few_features(d) if m == 1 else "Use a larger fdr, or more knockoffs of each feature."
        parts.append(f"With {d} features that can never happen. {remedy}")
    nearest = float(np.min(selection.q_values, initial=np.inf))
    if np.isfinite(nearest) and nearest < 1:
        n_then = int((selection.q_values <= nearest).sum())
        parts.append(f"The smallest level that selects anything is {nearest:.3g}, with {n_then} features.")
    elif positive == 0:
        parts.append("No feature was more important than its knockoff: the model of the target learned nothing.")
    else:
        parts.append("No level below 1 selects anything: the features are not told apart from their knockoffs.")
    copies = near_copies(selection.pair)
    if copies.any():
        names = name_some(name for name, near in zip(selection.feature_names, copies, strict=True) if near)
        parts.append(
            f"The knockoffs of {int(copies.sum())} features ({names}) are nearly their copies, because the other "
            "columns determine them: no model tells them apart. Drop or join columns that say the same, or group them."
        )
    else:
        parts.append("More rows, a model of the target that predicts better, or a larger fdr may help.")
    above = int((selection.W > -np.min(selection.W, initial=0.0)).sum())  # features whose W no knockoff reaches
    few = 0 < above < needed <= d and m == selection.offset == 1 and selection.evidence is None
    if few and hasattr(selection.feature_model, "conditional"):
        parts.append(
            f"{above} {'stands' if above == 1 else 'stand'} above every knockoff: where so few matter, "
            "method='conditional_test' needs no smallest number, and n_knockoffs=5 with a linear model needs "
            f"{int(np.ceil(1 / (5 * q) - 1e-9))}. Settle it beforehand, or use new rows: two tries promise less."
        )
    return " ".join(parts)


def near_copies(pair: Pair) -> NDArray[np.bool_]:
    """Features all of whose columns have a correlation above NEAR with their knockoffs, shape (n_features,)."""
    if len(pair) < 2:  # z-scores, of which there is one row
        return np.zeros(pair.n_features, dtype=bool)
    X, X_tilde = (np.asarray(part, dtype=float) - part.mean(axis=0) for part in (pair.X, pair.X_tilde))
    scale = np.sqrt((X**2).sum(axis=0) * (X_tilde**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = ~(np.abs((X * X_tilde).sum(axis=0) / scale) > NEAR)
    apart[scale == 0] = False
    return np.bincount(pair.feature_of, weights=apart, minlength=pair.n_features) == 0


def percent(share: float) -> str:
    """Share in percent, not rounded to a whole one.

    >>> percent(0.125), percent(0.004), percent(0.1)
    ('12.5%', '0.4%', '10%')
    """
    return f"{100 * share:.10g}%"
