"""Selection: what the knockoff filter found, with everything it rests on, and what it means in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import name_some
from knockoffs.features import FeatureModel
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import remedy_for_few_features

NEAR = 0.99  # correlation of a feature with its knockoff, above which it takes some fifty times the rows to find it


@dataclass(frozen=True)
class Selection:
    """What the knockoff filter found, with everything it rests on.

    Attributes
    ----------
    feature_names : tuple of str
    scores : Scores
        Importance of the features, Z, and of their knockoffs, Z_tilde.
    W : array, shape (n_features,)
        Feature statistics.
    threshold : float
        Features with W >= threshold are selected; infinity if no threshold holds the level.
    q_values : array, shape (n_features,)
        Smallest level at which each feature is selected.
    selected : array of bool, shape (n_features,)
    fdr, offset
        The level asked for, and 1 for knockoff+ or 0 for knockoff.
    pair : Pair
        X (with its missing cells filled) and the knockoffs that were drawn.
    feature_model : FeatureModel or None
        P^X; None when the knockoffs were brought along.
    notes : mapping
        What was chosen where nothing was asked for, in words.
    """

    feature_names: tuple[str, ...]
    scores: Scores
    W: NDArray
    threshold: float
    q_values: NDArray
    selected: NDArray[np.bool_]
    fdr: float
    offset: int
    pair: Pair
    feature_model: FeatureModel | None
    notes: Mapping[str, str]

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the selected features, largest W first."""
        order = np.argsort(-self.W, kind="stable")
        return tuple(self.feature_names[j] for j in order if self.selected[j])

    @property
    def X_tilde(self) -> NDArray:
        """The knockoffs that were drawn, shape (n, n_columns)."""
        return self.pair.X_tilde

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was."""
        return _explain_selection(self) if self.selected.any() else _explain_nothing(self)


def _explain_selection(selection: Selection) -> str:
    n, d, q = int(selection.selected.sum()), len(selection.W), selection.fdr
    if selection.offset == 1:
        promise = (
            f"On average over repeated data sets at most {percent(q)} of the selected features are false discoveries, "
            f"which do not matter given all the others (false discovery rate {q:g})"
        )
    else:
        promise = (
            f"With offset=0 the false discovery rate itself is not held (where no feature matters it can be one half), "
            f"only a modified one: on average at most {percent(q)} of the selected features and {1 / q:.3g} more are "
            "false discoveries, which do not matter given all the others"
        )
    return (
        f"{n} of {d} features are selected (W >= {selection.threshold:.4g}). {promise}, provided that P^X, the model "
        "of the features, is right; nothing is assumed about the model of the target."
    )


def _explain_nothing(selection: Selection) -> str:
    d, q = len(selection.W), selection.fdr
    positive, negative = int((selection.W > 0).sum()), int((selection.W < 0).sum())
    needed = int(np.ceil(1 / q - 1e-9))
    parts = [f"Nothing is selected: no threshold holds the false discovery rate at {q:g}."]
    if selection.offset == 1:
        parts.append(
            f"Knockoff+ at {q:g} selects {needed} features or more, or none: {needed} if no knockoff beats them, "
            f"{needed} more for every knockoff that does."
        )
    parts.append(f"Here W is positive for {positive} of {d} features and negative for {negative}.")
    if needed > d and selection.offset == 1:
        parts.append(f"With {d} features that can never happen. {remedy_for_few_features(d)}")
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
    return " ".join(parts)


def near_copies(pair: Pair) -> NDArray[np.bool_]:
    """Features all of whose columns have a correlation above NEAR with their knockoffs, shape (n_features,)."""
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
