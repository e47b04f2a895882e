"""The whole procedure: table -> P^X -> knockoffs -> Z -> W -> selection."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning, name_some
from knockoffs.features import FeatureModel, FitFeatureModel
from knockoffs.features.columns import constant_columns
from knockoffs.filter import check_fdr, check_offset, difference, knockoff_filter, knockoff_threshold, q_values
from knockoffs.importance.best import settle
from knockoffs.importance.rows import fit_and_score, warn_if_saturated
from knockoffs.importance.scores import Importance, Scores
from knockoffs.sampling.sampler import sample_knockoffs
from knockoffs.sampling.swap import check_features, swap


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
    X_tilde : array, shape (n, n_columns)
        The knockoffs that were drawn.
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
    X_tilde: NDArray
    feature_model: FeatureModel | None
    notes: Mapping[str, str]

    @property
    def selected_names(self) -> tuple[str, ...]:
        """Names of the selected features, largest W first."""
        order = np.argsort(-self.W, kind="stable")
        return tuple(self.feature_names[j] for j in order if self.selected[j])

    def explain(self) -> str:
        """Say in one paragraph what was selected and what it means, or why nothing was."""
        return _explain_selection(self) if self.selected.any() else _explain_nothing(self)


def select_features(
    X: NDArray,
    y: NDArray,
    *,
    feature_model: FeatureModel | FitFeatureModel | None,
    estimator: Any,
    importance: Importance,
    fdr: float = 0.1,
    offset: int = 1,
    rule: Callable[[NDArray, NDArray], NDArray] = difference,
    knockoffs: NDArray | None = None,
    feature_of: NDArray[np.intp] | None = None,
    feature_names: Sequence[str] | None = None,
    evaluation: str = "in_sample",
    n_folds: int = 5,
    n_fits: int = 1,
    sample_weight: NDArray | None = None,
    notes: Mapping[str, str] | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> Selection:
    """Select the features that matter given all the others, with the FDR held at the level asked for.

    Parameters
    ----------
    X : array, shape (n, n_columns)
    y : array, shape (n,)
    feature_model : FeatureModel or callable
        P^X, fitted already or how to fit it. Not looked at when knockoffs are given.
    estimator : object
        Model of y with ``fit`` and what the importance score needs; or a ``BestOf``, of whose candidates the one that
        predicts best is used, with its own score and evaluation.
    importance : Importance
        Score of a fitted model.
    fdr : float
        Target false discovery rate.
    offset : {1, 0}
        1 is knockoff+, which controls the FDR.
    rule : callable
        W from Z and Z_tilde, antisymmetric.
    knockoffs : array, shape (n, n_columns), optional
        X_tilde drawn elsewhere.
    feature_of : array of int, shape (n_columns,), optional
        Feature of each column; one column a feature if left out.
    feature_names : sequence of str, optional
        One name a feature.
    evaluation, n_folds, n_fits
        On which rows a fitted model is scored, and how many fits are averaged: see ``fit_and_score``.
    sample_weight : array, shape (n,), optional
        Weights of the rows in the model of y.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Jobs at a time; the answer does not depend on it.

    Returns
    -------
    Selection
    """
    fdr, offset = check_fdr(fdr), check_offset(offset)
    _check_shapes(X, y, knockoffs, sample_weight)
    owners = check_features(feature_of, X.shape[1])
    names = _check_names(feature_names, int(owners.max()) + 1)
    fit_stream, draw_stream, swap_stream, score_stream, choice_stream = rng.spawn(5)
    notes = dict(notes or {})

    if knockoffs is None:
        model = fit_feature_model(
            feature_model, X, feature_names=names, feature_of=owners, rng=fit_stream, n_jobs=n_jobs
        )
        _check_swaps(model.as_network().feature_of, owners)
        X_tilde = sample_knockoffs(model.as_network(), X, draw_stream)
    else:
        model, X_tilde = None, knockoffs

    # Fit on randomly swapped columns and swap the scores back: flip-sign then holds in distribution for every fitting
    # routine, even one that minds the order of its columns.
    S = swap_stream.random(len(names)) < 0.5
    left, right = swap(X, X_tilde, S, owners)
    estimator, importance, evaluation, said = settle(
        estimator,
        importance,
        evaluation,
        left,
        right,
        y,
        n_folds=n_folds,
        sample_weight=sample_weight,
        rng=choice_stream,
        n_jobs=n_jobs,
    )
    notes |= said
    scores = fit_and_score(
        estimator,
        importance,
        left,
        right,
        y,
        evaluation=evaluation,
        n_folds=n_folds,
        n_fits=n_fits,
        feature_of=owners,
        sample_weight=sample_weight,
        rng=score_stream,
        n_jobs=n_jobs,
    ).swap(S)
    scores = _tie_copies(scores, X, X_tilde, owners)

    W = rule(scores.Z, scores.Z_tilde)
    warn_if_saturated(W, importance)
    return Selection(
        feature_names=names,
        scores=scores,
        W=W,
        threshold=knockoff_threshold(W, fdr, offset=offset),
        q_values=q_values(W, offset=offset),
        selected=knockoff_filter(W, fdr, offset=offset),
        fdr=fdr,
        offset=offset,
        X_tilde=X_tilde,
        feature_model=model,
        notes=notes,
    )


def fit_feature_model(
    feature_model: FeatureModel | FitFeatureModel | None,
    X: NDArray,
    *,
    feature_names: Sequence[str],
    feature_of: NDArray[np.intp] | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> FeatureModel:
    """P^X as it was given, or fitted; errors about columns get the columns' names.

    Parameters
    ----------
    feature_model : FeatureModel or callable
        Fitted already, or how to fit it.
    X : array, shape (n, n_columns)
    feature_names : sequence of str
        One name a feature.
    feature_of : array of int, shape (n_columns,), optional
        Feature of each column; one column a feature if left out.
    rng : numpy.random.Generator
    n_jobs : int, optional
    """
    if hasattr(feature_model, "as_network"):
        return feature_model  # type: ignore[return-value]
    owners = check_features(feature_of, X.shape[1])
    if not callable(feature_model):
        raise InputError(f"feature_model={feature_model!r} is neither a fitted P^X nor a function that fits one.")
    constant = constant_columns(X)
    column_names = [feature_names[feature] for feature in owners]
    if constant.size:
        which = name_some(column_names[column] for column in constant)
        warnings.warn(
            f"columns {which} are constant: they are their own knockoffs and cannot be selected.",
            KnockoffWarning,
            stacklevel=3,
        )
    grouped = {"feature_of": owners} if len(feature_names) < len(owners) and _takes_features(feature_model) else {}
    try:
        return feature_model(X, rng=rng, n_jobs=n_jobs, **grouped)
    except ColumnsError as error:
        raise error.named(column_names) from None
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        options = _options_of(feature_model)
        if not options:
            raise
        raise InputError(f"the feature model could not be fitted with {options}: {error}") from error


def _options_of(fit: Any) -> str:
    """Options that were bound to a fit, in words; names and kinds of the columns come with the table."""
    bound = fit.keywords if isinstance(fit, partial) else {}
    return ", ".join(f"{name}={value!r}" for name, value in bound.items() if name not in ("names", "kinds"))


def _tie_copies(scores: Scores, X: NDArray, X_tilde: NDArray, owners: NDArray[np.intp]) -> Scores:
    """Equal scores for a feature that is its own knockoff, which rounding may set apart by where a column stands."""
    copied = np.bincount(owners, weights=(X != X_tilde).any(axis=0)) == 0
    both = (scores.Z + scores.Z_tilde) / 2
    return Scores(np.where(copied, both, scores.Z), np.where(copied, both, scores.Z_tilde))


def _takes_features(fit: Callable[..., Any]) -> bool:
    """Whether a fit asks which columns go together; knockoffs of a family that does not are valid column by column."""
    parameters = signature(fit).parameters
    return "feature_of" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _check_shapes(X: NDArray, y: NDArray, knockoffs: NDArray | None, sample_weight: NDArray | None) -> None:
    """Refuse tables that numpy would stretch or cut to fit each other."""
    if np.ndim(X) != 2 or np.shape(y) != (len(X),):
        raise InputError(f"X has shape {np.shape(X)} and y {np.shape(y)}: expected (n, n_columns) and (n,).")
    if knockoffs is not None and np.shape(knockoffs) != np.shape(X):
        raise InputError(f"knockoffs have shape {np.shape(knockoffs)} and X {np.shape(X)}: they must be the same.")
    if sample_weight is not None and np.shape(sample_weight) != (len(X),):
        raise InputError(f"sample_weight has shape {np.shape(sample_weight)}: expected ({len(X)},), a weight a row.")


def _check_swaps(exchangeable: NDArray[np.intp], owners: NDArray[np.intp]) -> None:
    """Refuse a P^X whose knockoffs can be swapped in groups of columns only, where a feature is less than a group."""
    first = np.unique(exchangeable, return_index=True)[1][exchangeable]
    bad = np.flatnonzero(owners != owners[first])
    if bad.size:
        raise InputError(
            f"columns {first[bad[0]]} and {bad[0]} are one feature of P^X and two of feature_of: their knockoffs "
            "cannot be swapped one by one. Pass the same feature_of to both."
        )


def _check_names(feature_names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    if feature_names is None:
        return tuple(f"x{j}" for j in range(n_features))
    if len(feature_names) != n_features:
        raise InputError(f"feature_names has {len(feature_names)} names for {n_features} features.")
    return tuple(str(name) for name in feature_names)


def _explain_selection(selection: Selection) -> str:
    n, d = int(selection.selected.sum()), len(selection.W)
    rate = "false discovery rate" if selection.offset == 1 else "modified false discovery rate"
    return (
        f"{n} of {d} features are selected (W >= {selection.threshold:.4g}). On average over repeated data sets at "
        f"most {selection.fdr:.0%} of the selected features are false discoveries, which do not matter given all "
        f"the others ({rate} {selection.fdr:g}), provided that P^X, the model of the features, is right; nothing is "
        "assumed about the model of the target."
    )


def _explain_nothing(selection: Selection) -> str:
    d, q = len(selection.W), selection.fdr
    positive, negative = int((selection.W > 0).sum()), int((selection.W < 0).sum())
    needed = int(np.ceil(1 / q - 1e-9))
    parts = [f"Nothing is selected: no threshold holds the false discovery rate at {q:g}."]
    if selection.offset == 1:
        parts.append(
            f"With knockoff+ at {q:g} at least {needed} features must have W above a threshold that no W falls below "
            f"the negative of, and {needed - 1} more for every one that does."
        )
    parts.append(f"Here W is positive for {positive} of {d} features and negative for {negative}.")
    if needed > d and selection.offset == 1:
        parts.append(f"With {d} features that can never happen: use fdr >= {1 / d:.3g} or offset=0.")
    nearest = float(np.min(selection.q_values, initial=np.inf))
    if np.isfinite(nearest) and nearest < 1:
        n_then = int((selection.q_values <= nearest).sum())
        parts.append(f"The smallest level that selects anything is {nearest:.3g}, with {n_then} features.")
    elif positive == 0:
        parts.append("No feature was more important than its knockoff: the model of the target learned nothing.")
    else:
        parts.append("No level below 1 selects anything: the features are not told apart from their knockoffs.")
    parts.append("More rows, a model of the target that predicts better, or a larger fdr may help.")
    return " ".join(parts)
