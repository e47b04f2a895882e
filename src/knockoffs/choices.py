"""What is used where nothing was asked for, and the words that say so.

Strings become things here and in the registries they name: a family of P^X, a model of y, an importance score, a
rule. What was chosen by default is noted, so that the result says it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.registry import load
from knockoffs.sampling.network import BayesianNetwork
from knockoffs.table import Table, as_table, code_whole_numbers

DEFAULT_FDR = 0.1
DEFAULT_FEATURE_MODEL = "mixture"
BEST = "best"  # the default model of y: of these, the one that predicts held-out rows best
BEST_OF = ("lasso", "boosting")
TASKS = ("regression", "classification", "binary", "multiclass", "numeric")
LINEAR = ("lasso", "logistic", "linear")
GRADIENTS = ("gradient", "integrated_gradients")
READ_OFF_THE_MODEL = ("coefficients", "lasso_coefficient_difference")  # scores that look at no rows


@dataclass(frozen=True)
class GivenNetwork:
    """P^X that was written down as a Bayesian network."""

    network: BayesianNetwork

    def as_network(self) -> BayesianNetwork:
        """Return the network itself."""
        return self.network


@dataclass(frozen=True)
class Choice:
    """A model of y, its importance score, and how they are used.

    Parameters
    ----------
    task : {"regression", "classification"}
    estimator : object
        Unfitted; or a ``BestOf``, whose candidates have scores and evaluations of their own.
    importance : Importance
    evaluation : str
    notes : dict
        What was chosen where nothing was asked for.
    """

    task: str
    estimator: Any
    importance: Callable[..., Any]
    evaluation: str
    notes: dict[str, str] = field(default_factory=dict)


# ---- P^X ---------------------------------------------------------------------------------------------------------


def takes_labels(feature_model: Any) -> bool:
    """Whether a family, its fit or a fitted one, takes columns of labels, as codes: they are marked so."""
    return isinstance(feature_model, BayesianNetwork) or bool(_mark(feature_model, "takes_labels"))


def _mark(feature_model: Any, name: str) -> Any:
    function = feature_model.func if isinstance(feature_model, partial) else feature_model
    return getattr(function, name, None)


def load_feature_model(feature_model: Any) -> Any:
    """Family of a name, the network of a .bif file, or what was passed in."""
    if not isinstance(feature_model, str):
        return feature_model
    if feature_model.lower().endswith((".bif", ".bif.gz")):
        from knockoffs.features.discrete_network import read_network

        if not Path(feature_model).is_file():
            raise InputError(f"feature_model={feature_model!r}: there is no such file.")
        return read_network(feature_model)
    from knockoffs.features import FAMILIES

    return load(FAMILIES, "feature_model", feature_model)


def read_features(X: Any, feature_model: Any, *, argument: str = "X", min_rows: int = 1) -> Table:
    """Check a table and read it as a family wants it: labels as codes for those that take them.

    A fitted network has names for its states, and the labels get its codes.
    """
    states = getattr(feature_model, "states", None)
    levels = states if isinstance(states, Mapping) else None
    table = as_table(X, labels=takes_labels(feature_model), levels=levels, argument=argument, min_rows=min_rows)
    one_kind = "emissions" in accepted_options(feature_model)  # a chain's sites hold all labels, or all numbers
    if not (_mark(feature_model, "takes_only_labels") or (one_kind and _has_labels(table))):
        return table
    coded = code_whole_numbers(table)
    _refuse_numbers(coded, argument)
    return coded


def _has_labels(table: Table) -> bool:
    return any(column.levels is not None for column in table.columns)


def _refuse_numbers(table: Table, argument: str) -> None:
    """Refuse columns that have no levels where every column must have them."""
    numbers = [j for j, column in enumerate(table.columns) if column.levels is None]
    if numbers:
        names, example = name_some(table.names[j] for j in numbers), table.X[0, numbers[0]]
        raise InputError(
            f"{argument} has columns of numbers, {names} (for instance {example:g}), and this feature model takes them "
            "as labels, at most 100 in a column, where any column holds labels: cut the numbers into classes, drop the "
            "columns, or use naive-bayes, which takes both."
        )


def observing(feature_model: Any, names: tuple[str, ...]) -> Any:
    """Network with the columns of a table as its observed nodes, where its nodes have these names."""
    if not hasattr(feature_model, "observing") or tuple(feature_model.observed) == names:
        return feature_model
    unknown = [name for name in names if name not in feature_model.parents]
    if 0 < len(unknown) < len(names):
        raise InputError(
            f"columns {name_some(unknown)} of X are no nodes of the network, which has "
            f"{name_some(feature_model.parents)}: drop these columns."
        )
    return feature_model if unknown else feature_model.observing(names)


def feature_model_for(
    feature_model: Any,
    table: Table,
    options: Mapping[str, Any] | None = None,
    feature_of: NDArray[np.intp] | None = None,
) -> Any:
    """P^X as the procedure wants it: fitted, or a function that fits it.

    Parameters
    ----------
    feature_model : str, FeatureModel, BayesianNetwork, callable, or array of shape (n_columns, n_columns)
        A name in ``FAMILIES``; a fitted P^X; a network; how to fit one; or a covariance, which makes the features
        Gaussian around their means.
    table : Table
    options : mapping, optional
        Options of the fit, for instance ``{"diagonal": "mvr"}``.
    feature_of : array of int, shape (n_columns,), optional
        Feature of each column.
    """
    if _is_matrix(feature_model):
        return _from_covariance(feature_model, table, dict(options or {}), feature_of)
    feature_model = load_feature_model(feature_model)
    if isinstance(feature_model, BayesianNetwork):
        feature_model = GivenNetwork(feature_model)
    if hasattr(feature_model, "as_network") and not isinstance(feature_model, type):
        if options:
            raise InputError("feature_model_options are for a family that is yet to be fitted; this one is fitted.")
        feature_model = observing(feature_model, table.names)
        _check_width(feature_model.as_network().n_columns, table)
        return feature_model
    if not callable(feature_model):
        raise InputError(
            f"feature_model={feature_model!r} ({type(feature_model).__name__}): pass a name, a fitted P^X with "
            "as_network, a function that fits one, or a covariance matrix."
        )
    bound = check_options(feature_model, options, "feature_model_options")
    accepted = accepted_options(feature_model)
    if "kinds" in accepted and "kinds" not in bound and any(c.levels for c in table.columns):
        bound["kinds"] = _kinds(table)
    if "emissions" in accepted and _has_labels(table) and bound.setdefault("emissions", "discrete") != "discrete":
        raise InputError(f"emissions={bound['emissions']!r}, and X holds labels: use 'discrete'.")
    if "names" in accepted and "names" not in bound:
        bound["names"] = table.names
    return partial(feature_model, **bound) if bound else feature_model


def _is_matrix(feature_model: Any) -> bool:
    return isinstance(feature_model, np.ndarray | list) or hasattr(feature_model, "iloc")


def _from_covariance(covariance: Any, table: Table, options: dict[str, Any], feature_of: Any) -> Any:
    from knockoffs.features.gaussian import gaussian_features

    names = getattr(covariance, "columns", None)
    if names is not None and table.named and tuple(map(str, names)) != table.names:
        raise InputError("feature_model is a covariance whose columns are not those of X, in the order of X.")
    values = np.asarray(covariance, dtype=float)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise InputError(f"feature_model is a covariance of shape {values.shape}: expected a square matrix.")
    _check_width(len(values), table)
    check_options(gaussian_features, options, "feature_model_options")
    return gaussian_features(table.X.mean(axis=0), values, feature_of=feature_of, **options)


def _check_width(n_columns: int, table: Table) -> None:
    if n_columns != len(table.columns):
        raise InputError(f"feature_model has {n_columns} columns and X has {len(table.columns)}: they must agree.")


def _kinds(table: Table) -> list[str]:
    """Law of each column given the class: labels are categories, numbers what they look like."""
    from knockoffs.features.children import infer_kind

    kind = {True: "bernoulli", False: "categorical"}
    return [
        kind[len(column.levels) <= 2] if column.levels else infer_kind(values)
        for column, values in zip(table.columns, table.X.T, strict=True)
    ]


# ---- options -----------------------------------------------------------------------------------------------------


def accepted_options(function: Callable[..., Any]) -> set[str]:
    """Names of the options that a function takes; those bound already do not count."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return set()
    return {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}


def check_options(function: Callable[..., Any], options: Mapping[str, Any] | None, argument: str) -> dict[str, Any]:
    """Options for a function, each of them known to it."""
    allowed = sorted(accepted_options(function) - {"X", "y", "rng", "n_jobs", "model", "X_tilde", "sample_weight"})
    for name in options or {}:
        if name not in allowed:
            raise unknown_option(argument, name, allowed)
    return dict(options or {})


# ---- the model of y and its score ----------------------------------------------------------------------------------


def choose(
    y: NDArray,
    *,
    estimator: Any = None,
    importance: Any = None,
    loss: Any = None,
    evaluation: str | None = None,
    task: str | None = None,
) -> Choice:
    """Model of y, importance score and evaluation, with defaults by task where nothing was asked for.

    Parameters
    ----------
    y : array, shape (n,)
    estimator : str or scikit-learn-style estimator, optional
        "best", or nothing: of ``BEST_OF`` the one that predicts held-out rows best.
    importance : str or callable, optional
    loss : str or callable, optional
        For the scores that take one.
    evaluation : str, optional
        On which rows a fitted model is scored.
    task : {"regression", "classification"}, optional
        What y is; told from y, or by the estimator, if left out.
    """
    notes: dict[str, str] = {}
    if not (estimator is None or isinstance(estimator, str)):
        _check_estimator(estimator)
    task = _task(y, estimator, task, notes)
    asked = {"importance": importance, "loss": loss, "evaluation": evaluation}
    name = estimator.replace("-", "_") if isinstance(estimator, str) else None
    if estimator is not None and name != BEST:
        return _choose_for(estimator, task, notes, **asked)
    alone = _why_lasso_alone(y, task, importance)
    if alone is not None:
        notes["estimator"] = f"estimator='lasso', because {alone}"
        return _choose_for("lasso", task, notes, **asked)
    if evaluation is not None and evaluation.replace("-", "_") == "out_of_bag":
        raise InputError("evaluation='out_of_bag' is for forests: use it with estimator='forest'.")
    return _choose_best(task, notes, **asked)


def _why_lasso_alone(y: NDArray, task: str, importance: Any) -> str | None:
    """Why boosting is no candidate, if it is none."""
    from knockoffs.importance.accuracy_drop import accuracy_drop

    if isinstance(importance, str) and importance.replace("-", "_") in (*READ_OFF_THE_MODEL, *GRADIENTS):
        return f"importance={importance!r} is for linear models"
    function = importance.func if isinstance(importance, partial) else importance
    if importance is not None and not isinstance(importance, str) and function is not accuracy_drop:
        return "an importance score of your own may ask for a linear model; pass another estimator if it does not"
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            return (
                f"class {name_some(classes[counts < 2].tolist())} has a single row, so no model can be held out on it"
            )
    return None


def _choose_best(task: str, notes: dict[str, str], **asked: Any) -> Choice:
    """Candidates with their own scores; which of them is used is said when their losses are known."""
    from knockoffs.importance.best import BestOf, Candidate

    candidates = []
    for name in BEST_OF:
        own: dict[str, str] = {}
        choice = _choose_for(name, task, own, **asked)
        candidates.append(Candidate(name, choice.estimator, choice.importance, choice.evaluation, own))
    best = BestOf(tuple(candidates), default_loss(task, candidates[0].estimator))
    return Choice(task, best, candidates[0].importance, candidates[0].evaluation, notes)


def _choose_for(
    estimator: Any, task: str, notes: dict[str, str], *, importance: Any, loss: Any, evaluation: str | None
) -> Choice:
    """Score and evaluation of one model of y."""
    from knockoffs.importance import SCORES
    from knockoffs.importance.evaluation import EVALUATIONS

    name = estimator.replace("-", "_") if isinstance(estimator, str) else None
    model = _make_estimator(estimator, task)
    if importance is None:
        importance = "coefficients" if _is_linear(name, model) and loss is None else "swap"
        notes["importance"] = f"importance={importance!r}, the default for {type(model).__name__}"
    if isinstance(importance, str):
        importance = importance.replace("-", "_")
        _check_score_of_named(name, importance)
    score = load(SCORES, "importance", importance) if isinstance(importance, str) else importance
    if not callable(score):
        raise InputError(f"importance={importance!r}: pass the name of a score or a function.")
    score = _bind_loss(score, importance, loss, task, model, notes)
    if evaluation is None:
        evaluation = default_evaluation(name, model, importance)
        notes["evaluation"] = f"evaluation={evaluation!r}, the default for {type(model).__name__}"
    evaluation = evaluation.replace("-", "_")
    if evaluation not in EVALUATIONS:
        raise unknown_option("evaluation", evaluation, EVALUATIONS)
    return Choice(task, model, score, evaluation, notes)


def _check_score_of_named(name: str | None, importance: str) -> None:
    """Refuse a score that a model of this name never has, before anything is fitted."""
    lacks = {"forest": "coefficients nor gradients", "boosting": "coefficients nor gradients", "neural": "coefficients"}
    needs = importance in READ_OFF_THE_MODEL or (importance in GRADIENTS and name != "neural")
    if name in lacks and needs:
        word = "neither" if "nor" in lacks[name] else "no"
        raise InputError(
            f"importance={importance!r} does not work with estimator={name!r}, which has {word} {lacks[name]}: "
            "use 'swap', 'permutation', 'swap_integral' or 'permutation_integral'."
        )


def _task(y: NDArray, estimator: Any, task: str | None, notes: dict[str, str]) -> str:
    from knockoffs.response.task import describe, infer_task, kind_of

    asked = None if task is None else kind_of(task)
    if not (estimator is None or isinstance(estimator, str)):
        kind = _made_for(estimator)
        if kind is not None and asked is not None and kind != asked:
            raise InputError(f"task={task!r}, but estimator {type(estimator).__name__} is made for {kind}.")
        task = task or kind
    found = infer_task(y, task)
    if found != "regression" and y.dtype.kind == "f" and (y != np.round(y)).any():
        by = f"estimator {type(estimator).__name__} is made for classification" if asked is None else f"task={task!r}"
        value = y[y != np.round(y)][0]
        raise InputError(f"{by}, but y holds numbers, for instance {value:g}: make classes of them, or use regression.")
    if asked is None:
        notes["task"] = f"{describe(y, found)}: {found}"
    return kind_of(found)


def _make_estimator(estimator: Any, task: str) -> Any:
    if isinstance(estimator, str):
        from knockoffs.response import ESTIMATORS, make_estimator

        if estimator.replace("-", "_") not in ESTIMATORS:
            raise unknown_option("estimator", estimator, [BEST, *ESTIMATORS])
        return make_estimator(estimator.replace("-", "_"), task)
    return estimator


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type):
        raise InputError(f"estimator is the class {estimator.__name__}: pass an instance, {estimator.__name__}().")
    missing = [method for method in ("fit", "predict") if not callable(getattr(estimator, method, None))]
    if missing:
        raise InputError(f"estimator {type(estimator).__name__} lacks {' and '.join(missing)}.")


def _made_for(estimator: Any) -> str | None:
    """Task that an estimator is made for, if it says so."""
    from sklearn.base import is_classifier, is_regressor

    try:
        return "classification" if is_classifier(estimator) else "regression" if is_regressor(estimator) else None
    except AttributeError:  # scikit-learn's methods without its base class
        return "classification" if hasattr(estimator, "predict_proba") else None


def _is_linear(name: str | None, model: Any) -> bool:
    module = type(model).__module__
    return name in LINEAR or module == "knockoffs.response.linear" or ".linear_model." in module + "."


def _bind_loss(score: Any, importance: Any, loss: Any, task: str, model: Any, notes: dict[str, str]) -> Any:
    if "loss" not in accepted_options(score):
        if loss is not None:
            raise InputError(f"loss={loss!r} is not used by importance={importance!r}: leave it out, or use 'swap'.")
        return score
    if isinstance(loss, str):
        from knockoffs.importance.losses import LOSSES

        loss = loss.replace("-", "_")
        if loss not in LOSSES:
            raise unknown_option("loss", loss, LOSSES)
        if LOSSES[loss].task != task:
            fitting = [name for name, known in LOSSES.items() if known.task == task]
            raise InputError(f"loss={loss!r} is not for {task}: use {', '.join(map(repr, fitting))}.")
    if loss is None and importance in ("swap", "permutation"):
        loss = default_loss(task, model)
        notes["loss"] = f"loss={loss!r}, the default for {task} with {type(model).__name__}"
    return score if loss is None else partial(score, loss=loss)


def default_loss(task: str, model: Any) -> str:
    """Loss that does not saturate: log-loss where there are probabilities, squared error for numbers."""
    if task == "regression":
        return "squared_error"
    return "log_loss" if hasattr(model, "predict_proba") else "accuracy"


def _stops_early(model: Any) -> bool:
    """Whether it is a network of ours: scored by log-loss in sample it finds as much as cross-fitted, in one fit."""
    return any(kind.__module__ == "knockoffs.response.neural" for kind in type(model).__mro__)


def default_evaluation(name: str | None, model: Any, importance: Any) -> str:
    """Rows on which a fitted model is scored: unseen ones for models that remember the rows they were fitted on."""
    if importance in READ_OFF_THE_MODEL or _is_linear(name, model) or _stops_early(model):
        return "in_sample"
    if getattr(model, "bootstrap", False) and hasattr(model, "oob_score"):  # a forest
        return "out_of_bag"
    return "cross_fitted"
