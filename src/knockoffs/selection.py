"""Selection: what was found, with everything it depends on, and what it means in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.resolution import Discovery
from knockoffs.diagnostics.near_duplicates import likeness
from knockoffs.diagnostics.verdict import Verdict
from knockoffs.errors import count, name_some, plural
from knockoffs.features import FeatureModel
from knockoffs.filter import FEW_FEATURES, fewest_selected
from knockoffs.filter.e_values import Combined
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import Pair

if TYPE_CHECKING:
    from knockoffs.report.summary import FirstScreen

NEAR = 0.99  # correlation of a feature with its knockoff, above which it takes some fifty times the rows to find it
BY_GHOSTS = (
    "provided that the correlations are those of the study's columns and the z-scores are nearly Gaussian, as with "
    "many rows; nothing is assumed about the model of the target."
)
PROVIDED = "provided that the model of the features, P^X, is right; nothing is assumed about the model of the target."
MAY_HELP = "More rows or a better model of the target may help."


@dataclass(frozen=True)
class Selection:
    """What was found, with everything it depends on.

    Attributes
    ----------
    feature_names : tuple of str
    selected : array of bool, shape (n_features,)
    q_values : array, shape (n_features,)
        Smallest level at which each feature is selected.
    fdr : float
        The level asked for.
    method : {"knockoffs", "conditional_test", "ghost"}
        "ghost" uses knockoffs of z-scores, without rows.
    pair : Pair
        X, with missing cells filled, and the knockoffs of the first draw.
    feature_model : FeatureModel or None
        P^X; None if knockoffs were given.
    notes : mapping
        What was chosen by default, and what P^X is, in words.
    scores : Scores or None
        Importance of the features, Z, and of their knockoffs, Z_tilde; the mean over several draws.
    W : array, shape (n_features,)
        Feature statistics; the mean over several draws, and NaN for conditional tests.
    threshold : float
        Features with W >= threshold are selected; infinity if no threshold controls the level, NaN without one draw.
    offset : {1, 0}
        1 for knockoff+, 0 for knockoff.
    n_knockoffs : int
        Knockoffs per feature. With several, W is the largest score minus the median of the others, positive if the
        largest is the feature's; ``pair`` holds the first knockoff, and Z_tilde is the largest of theirs.
    evidence : Combined or None
        e-values, frequencies, levels and guarantee of several draws, or of a level chosen after looking.
    draws : array, shape (n_draws, n_features)
        W of every draw.
    p_values : array, shape (n_features,), or None
        p-values of the conditional tests; with discoveries, of the finest group that was tested with each feature.
    test_scores : array, shape (n_features,), or None
        Statistics of the conditional tests in standard deviations of their draws. They order features with equal
        p-values and have no part in the error rate.
    discoveries : tuple of Discovery, or None
        With resolution="auto": single features, or groups of features of which one matters, surest first. Of tests,
        and of knockoffs where columns are near copies or a tree of columns was given.
        ``selected`` marks the features of all of them. ``q_values`` holds the level of the discovery that contains a
        feature, or of the finest group with it that was tested.
    verdict : Verdict or None
        Whether the knockoffs are distinguishable from the features.
    covariates : tuple of str
        Columns that every hypothesis conditions on and that are no features. Their knockoffs in ``pair`` are not used.
    rows : array of int, or None
        With clusters: rows of the table that ``pair`` holds, one of each cluster.
    environments : mapping of str to array, or None
        W of each environment, by its name; ``W`` is what they have in common, and ``verdict`` the worst of theirs.
    at_least : int
        In how many of the environments a discovery matters.
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
    discoveries: tuple[Discovery, ...] | None = None
    verdict: Verdict | None = None
    covariates: tuple[str, ...] = ()
    rows: NDArray[np.intp] | None = None
    environments: Mapping[str, NDArray] | None = None
    at_least: int = 0

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the selected features, the surest first."""
        return tuple(self.feature_names[j] for j in self.surest_first if self.selected[j])

    @property
    def surest_first(self) -> NDArray[np.intp]:
        """Indices of all features, ordered by q-value, then by W, or by p-value and score of the test."""
        if self.p_values is None:
            return np.lexsort((-np.nan_to_num(self.W), self.q_values))
        score = np.zeros(len(self.p_values)) if self.test_scores is None else -self.test_scores
        return np.lexsort((score, self.p_values, self.q_values))

    @property
    def ranking(self) -> NDArray[np.intp]:
        """Rank of each feature, 1 for the surest, shape (n_features,)."""
        return np.argsort(self.surest_first) + 1

    @property
    def first_screen(self) -> FirstScreen:
        """What was found, the verdict in one line and one next step: what is shown first, everywhere."""
        from knockoffs.report.summary import first_screen

        return first_screen(self)

    @property
    def feature_columns(self) -> dict[str, list]:
        """Table of the features, by column: what selection.json, selection.csv and ``to_frame`` hold."""
        columns = {"name": list(self.feature_names), "selected": self.selected.tolist()}
        if self.discoveries is not None:
            named = {name: str(found) for found in self.discoveries for name in found.features}
            columns["discovery"] = [named.get(name, "") for name in self.feature_names]
        numbers = {"q_value": self.q_values, "p_value": self.p_values, "score": self.test_scores}
        if self.scores is not None:
            numbers |= {"W": self.W, "Z": self.scores.Z, "Z_tilde": self.scores.Z_tilde}
        if self.evidence is not None:
            numbers |= {"e_value": self.evidence.e_values, "frequency": self.evidence.frequencies}
        return columns | {name: values.tolist() for name, values in numbers.items() if values is not None}

    @property
    def discovery_columns(self) -> dict[str, list]:
        """Table of the discoveries, by column; a selected feature is one where there are no groups."""
        if self.discoveries is None:
            chosen = [int(j) for j in self.surest_first if self.selected[j]]
            columns = {name: [values[j] for j in chosen] for name, values in self.feature_columns.items()}
            return {"discovery": columns.pop("name"), "n_features": [1] * len(chosen)} | columns
        number = "e_value" if self.p_values is None else "p_value"
        return {
            "discovery": [str(found) for found in self.discoveries],
            "n_features": [len(found.features) for found in self.discoveries],
            number: [found.score if self.p_values is None else found.p_value for found in self.discoveries],
            "level": [found.level for found in self.discoveries],
        }

    @property
    def X_tilde(self) -> NDArray:
        """Knockoffs, shape (n, n_columns)."""
        return self.pair.X_tilde

    def explain(self) -> str:
        """Paragraph on what was selected, what it means and which P^X it rests on; or on why nothing was selected."""
        said = explain_selection(self) if self.selected.any() else explain_nothing(self)
        if self.covariates:
            said += f" Features are tested given one another and the covariates {name_some(self.covariates)}."
        said += "".join(f" {self.notes[note]}" for note in ("missing", "feature_model") if note in self.notes)
        if self.verdict is not None and self.verdict.word != "good":
            said += f" Verdict: {self.verdict.word}. {self.verdict.headline} The guarantee may not hold."
        return said

    def __repr__(self) -> str:  # without the arrays
        return f"Selection(method={self.method!r}, fdr={self.fdr:g}: {count_found(self)})"

    def __str__(self) -> str:
        from knockoffs.report.summary import as_text

        return as_text(self.first_screen)

    def _repr_html_(self) -> str:
        """HTML for a notebook: the first screen."""
        from knockoffs.report.page import answer_html

        return answer_html(self)


# What it means, in words


def count_found(selection: Selection) -> str:
    """Words on how much was found: discoveries by name, or selected features by number."""
    if selection.discoveries is not None:
        n = len(selection.discoveries)
        names = f": {'; '.join(map(str, sorted(selection.discoveries, key=lambda one: -one.score)))}" if n else ""
        return f"{count(n, 'discovery', 'discoveries')} among {count(len(selection.W), 'feature')}{names}"
    n = int(selection.selected.sum())
    return f"{n} of {count(len(selection.W), 'feature')} {plural(n, 'is', 'are')} selected"


def explain_selection(selection: Selection) -> str:
    """Words on how many features were selected, and on the guarantee."""
    n, q, m = int(selection.selected.sum()), selection.fdr, selection.n_knockoffs
    provided = BY_GHOSTS if selection.method == "ghost" else getattr(selection.feature_model, "provided", PROVIDED)
    found = count_found(selection)
    if selection.discoveries is not None:
        grouped = any(len(discovery.features) > 1 for discovery in selection.discoveries)
        which = " In a group at least one feature matters; the data cannot say which." if grouped else ""
        if selection.p_values is None:
            return (
                f"{found}. Each discovery matters given all features outside it.{which} On average over repeated data "
                f"sets at most {percent(q)} of the discoveries are false (false discovery rate {q:g}; knockoffs of "
                f"features and of groups, joined by e-values; Gablenz and Sabatti, 2023), {PROVIDED}"
            )
        return (
            f"{found}. Each discovery matters given all features outside it (conditional randomization test).{which} "
            f"The chance that any discovery is false is at most {percent(q)} (sequential rejection in a tree of "
            f"tests; Goeman and Solari, 2010), {PROVIDED}"
        )
    if selection.method == "conditional_test":
        return (
            f"{found} by {plural(n, 'its p-value', 'their p-values')}; a p-value tests that the feature does not "
            "matter given all the others (conditional randomization test). The false discovery rate is controlled at "
            f"{q:g} by the Benjamini-Hochberg rule, for independent or positively dependent p-values, {PROVIDED}"
        )
    if selection.evidence is not None:
        n_draws = 1 if selection.draws is None else len(selection.draws)
        each = "" if m == 1 else f", {m} per feature"
        return (
            f"{found} by the e-values of {count(n_draws, 'draw')} of knockoffs{each}. "
            f"{selection.evidence.promise} It holds {provided}"
        )
    beaten = "" if m == 1 else f", each against {m} knockoffs"
    where = ""
    if selection.environments is not None:
        where = f" in at least {selection.at_least} of {len(selection.environments)} environments"
        provided = f"provided that environments are independent, and in each {provided.removeprefix('provided that ')}"
    if selection.offset == 1:
        promise = (
            f"On average over repeated data sets at most {percent(q)} of the selected features are false discoveries, "
            f"which do not matter given all the others{where} (false discovery rate {q:g})"
        )
    else:
        promise = (
            f"With offset=0 the false discovery rate is not controlled (if no feature matters it can be one half), "
            f"only a modified one: the false discoveries, which do not matter given all the others{where}, are on "
            f"average at most {percent(q)} of (the number of selected features + {1 / q:.3g})"
        )
    return f"{found} (W >= {selection.threshold:.4g}{beaten}). {promise}, {provided}"


def explain_nothing(selection: Selection) -> str:
    """Words on why nothing was selected, and on what may help."""
    d, q, m = len(selection.W), selection.fdr, selection.n_knockoffs
    positive, negative = int((selection.W > 0).sum()), int((selection.W < 0).sum())
    if selection.discoveries is not None and selection.p_values is not None:
        return (
            f"Nothing is selected: the p-value of all features together is {selection.q_values.max():.3g}, above "
            f"{q:g}. {MAY_HELP}"
        )
    if selection.p_values is not None:
        return (
            f"Nothing is selected: the smallest p-value of {count(d, 'feature')} is {selection.p_values.min():.3g}, "
            f"and the Benjamini-Hochberg rule at {q:g} needs at most {q / d:.3g} for a first feature (the smallest "
            f"q-value is {selection.q_values.min():.3g}). {MAY_HELP}"
        )
    needed = fewest_selected(q, m)
    plus = selection.offset == 1 and selection.evidence is None and selection.environments is None
    parts = [f"Nothing is selected: no threshold controls the false discovery rate at {q:g}."]
    if selection.evidence is not None:
        parts = [f"Nothing is selected: the e-values of the draws are too small for a level of {q:g}."]
    elif plus:
        each = "" if m == 1 else f" with {m} knockoffs per feature"
        parts.append(f"Knockoff+{each} selects at least {count(needed, 'feature')} at {q:g}, or none.")
    parts.append(f"Here W is positive for {positive} of {count(d, 'feature')} and negative for {negative}.")
    nearest = float(np.min(selection.q_values, initial=np.inf))
    if np.isfinite(nearest) and nearest < 1:
        n_then = int((selection.q_values <= nearest).sum())
        parts.append(f"The smallest level that selects anything is {nearest:.3g}, with {count(n_then, 'feature')}.")
    elif positive == 0:
        parts.append("No feature is more important than its knockoff: the model of the target learned nothing.")
    else:
        parts.append("No level below 1 selects anything: features and knockoffs are equally important.")
    copies = near_copies(selection.pair)[:d]  # covariates are numbered last
    if copies.any():
        names = name_some(name for name, near in zip(selection.feature_names, copies, strict=True) if near)
        parts.append(
            f"The knockoffs of {count(int(copies.sum()), 'feature')} ({names}) are nearly copies, because other "
            "columns determine them. Drop near-duplicate columns, or group them."
        )
    above = int((selection.W > -np.min(selection.W, initial=0.0)).sum())  # features whose W no knockoff reaches
    if plus and needed > d:
        parts.append(f"With {count(d, 'feature')} that can never happen. {FEW_FEATURES}")
    elif plus and 0 < above < needed and hasattr(selection.feature_model, "conditional"):
        parts.append(
            f"{count(above, 'feature stands', 'features stand')} above every knockoff, which is too few. "
            f"{FEW_FEATURES} Choosing the level after seeing the answer weakens the guarantee: decide "
            "beforehand, or use new rows."
        )
    elif not copies.any():
        parts.append(MAY_HELP)
    return " ".join(parts)


def near_copies(pair: Pair) -> NDArray[np.bool_]:
    """Features all of whose columns have a correlation above NEAR with their knockoffs, shape (n_features,)."""
    apart = likeness(pair, ("continuous",) * pair.n_columns) <= NEAR  # not so for a constant column
    near = np.bincount(pair.feature_of, weights=apart, minlength=pair.n_features) == 0
    return near & (len(pair) > 1)  # z-scores are one row


def percent(share: float) -> str:
    """Share in percent, with its decimals.

    >>> percent(0.125), percent(0.004), percent(0.1)
    ('12.5%', '0.4%', '10%')
    """
    return f"{100 * share:.10g}%"
