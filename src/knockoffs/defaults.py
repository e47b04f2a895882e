"""The model of y, its score and evaluation: what is used where nothing was asked for, and the words that say so.

Strings become things here and in the registries they name: a model of y, an importance score. What was chosen by
default is noted, so that the result says it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.registry import accepted_options, load

DEFAULT_FDR = 0.1
BEST = "best"  # the default model of y: of these, the one that predicts held-out rows best
BEST_OF = ("lasso", "boosting")
FEW_ROWS = 100  # a boosted tree needs twenty in a leaf
TASKS = ("regression", "classification", "binary", "multiclass", "numeric")
LINEAR = ("lasso", "logistic", "linear")
GRADIENTS = ("gradient", "integrated_gradients")
READ_OFF_THE_MODEL = ("coefficients", "lasso_coefficient_difference")  # scores that look at no rows


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


def choose(
    y: NDArray,
    *,
    estimator: Any = None,
    importance: Any = None,
    loss: Any = None,
    evaluation: str | None = None,
    task: str | None = None,
    sample_weight: NDArray | None = None,
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
    sample_weight : array, shape (n,), optional
        Rows of weight 0 do not count.
    """
    notes: dict[str, str] = {}
    if not (estimator is None or isinstance(estimator, str)):
        _check_estimator(estimator)
    task = _task(y, estimator, task, notes)
    asked = {"importance": importance, "loss": loss, "evaluation": evaluation}
    name = estimator.replace("-", "_") if isinstance(estimator, str) else None
    if estimator is not None and name != BEST:
        return _choose_for(estimator, task, notes, **asked)
    if evaluation is not None and evaluation.replace("-", "_") == "out_of_bag":
        raise InputError("evaluation='out_of_bag' is for forests: use it with estimator='forest'.")
    alone = _why_lasso_alone(y if sample_weight is None else y[sample_weight > 0], task, importance)
    if alone is not None:
        notes["estimator"] = f"estimator='lasso', because {alone}"
        return _choose_for("lasso", task, notes, **asked)
    return _choose_best(task, notes, **asked)


def _why_lasso_alone(y: NDArray, task: str, importance: Any) -> str | None:
    """Why boosting is no candidate, if it is none."""
    from knockoffs.importance.accuracy_drop import accuracy_drop

    if isinstance(importance, str) and importance.replace("-", "_") in (*READ_OFF_THE_MODEL, *GRADIENTS):
        return f"importance={importance!r} is for linear models"
    function = importance.func if isinstance(importance, partial) else importance
    if importance is not None and not isinstance(importance, str) and function is not accuracy_drop:
        return "an importance score of your own may ask for a linear model; pass another estimator if it does not"
    if len(y) < FEW_ROWS:
        return f"{len(y)} rows are few for boosting, which is considered from {FEW_ROWS}"
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
    from knockoffs.importance.rows import EVALUATIONS

    name = estimator.replace("-", "_") if isinstance(estimator, str) else None
    model = _make_estimator(estimator, task)
    by_default = importance is None
    if by_default:
        importance = default_importance(name, model, loss)
        notes["importance"] = f"importance={importance!r}, the default for {type(model).__name__}"
    if isinstance(importance, str):
        importance = importance.replace("-", "_")
        _check_score_of_named(name, importance)
    score = load(SCORES, "importance", importance) if isinstance(importance, str) else importance
    if not callable(score):
        raise InputError(f"importance={importance!r}: pass the name of a score or a function.")
    if loss is None and (by_default or importance in ("swap", "permutation")) and "loss" in accepted_options(score):
        loss = default_loss(task, model)
        notes["loss"] = f"loss={loss!r}, the default for {task} with {type(model).__name__}"
    score = _bind_loss(score, importance, loss, task)
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


def _bind_loss(score: Any, importance: Any, loss: Any, task: str) -> Any:
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
    return score if loss is None else partial(score, loss=loss)


def default_importance(name: str | None, model: Any, loss: Any) -> str:
    """Coefficients of a linear model; the integral where it is exact and finds most, for trees; Swap for others."""
    if _is_linear(name, model) and loss is None:
        return "coefficients"
    return "swap_integral" if _has_trees(model) and (loss is None or isinstance(loss, str)) else "swap"


def _has_trees(model: Any) -> bool:
    module = type(model).__module__
    return module.split(".")[0] in ("xgboost", "lightgbm") or module.startswith(
        ("sklearn.ensemble._forest", "sklearn.ensemble._gb", "sklearn.ensemble._hist_gradient_boosting")
    )


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
    return "cross_fitted"
