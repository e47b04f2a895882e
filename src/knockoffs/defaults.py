"""A Plan from a user's options: names become things, defaults fill what was not asked for, and notes say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.conditional_tests.choice import choose_method
from knockoffs.conditional_tests.resolution import RESOLUTIONS
from knockoffs.draws import coarser_resolutions
from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features.given import GivenKnockoffs
from knockoffs.features.source import KnockoffSource, is_fixed, knockoff_source
from knockoffs.filter import RULES, ErrorControl, check_fdr, check_offset
from knockoffs.importance import SCORES, Score
from knockoffs.importance.coefficients import contribution
from knockoffs.importance.losses import LOSSES
from knockoffs.importance.model_choice import MOST_CELLS, BestOf
from knockoffs.importance.normal_scores import normal_scores
from knockoffs.importance.statistic import ModelScore, check_linear
from knockoffs.options import ImportanceOptions, importance_options
from knockoffs.procedure import Plan
from knockoffs.registry import find, imported, key_of
from knockoffs.response import ESTIMATORS, Model, kind_of, make_estimator, model_of
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.table.target_kind import KINDS_OF_TASK

DEFAULT_FDR = 0.1
BEST = "best"  # the default model of y: of these, the one that predicts held-out rows best
BEST_OF = ("lasso", "boosting")
BEST_OF_GROUPS = (*BEST_OF, "ridge")  # for a number; columns of a group share what a lasso gives to one of them
FLEXIBLE = "boosting"  # where none of them predicts
WIDE = 2  # columns a row, beyond which boosting costs most of the time and hardly ever predicts better
FEW_ROWS = 100  # a boosted tree needs twenty in a leaf
BEST_NAMES = (BEST,)
TASKS = tuple(KINDS_OF_TASK)


def plan_of(
    options: Mapping[str, Any],
    source: KnockoffSource,
    table: Table,
    target: Target,
    notes: Mapping[str, str],
    *,
    n_rows: int | None,
) -> Plan:
    """Plan by the options of a selector; what cannot be done is refused before the work.

    ``options`` are all parameters of a selector, by name. ``table`` and ``target`` are all rows, or a sample of a table
    that is read in batches; ``n_rows``, the rows of y, is then None. ``notes`` say how the table was read.
    """
    scoring = importance_options(options["importance_options"])
    if options["environments"] is not None:
        options = environment_options(options)
    if is_fixed(source):
        options = fixed_options(options, scoring, target, n_rows)
    control = ErrorControl(
        check_fdr(DEFAULT_FDR if options["fdr"] is None else options["fdr"]),
        check_offset(options["offset"]),
        count_of(options, "n_draws"),
        key_of(str(options["level"])),
        count_of(options, "n_knockoffs"),
    )
    score_by = partial(
        choose,
        target,
        estimator=options["estimator"],
        importance=options["importance"],
        **{name: getattr(scoring, name) for name in ("loss", "rows", "n_folds", "n_fits")},
        n_columns=len(table.columns),
    )
    choice = score_by(grouped=table.grouped, n_knockoffs=control.n_knockoffs)
    method, why = choose_method({**options, **vars(scoring)}, table, target, control, n_rows)
    resolution = find({name: name for name in RESOLUTIONS}, "resolution", str(options["resolution"]))
    said, coarser = {"task": target.note, **why, **notes}, None
    if method == "knockoffs":
        joined = resolution == "auto" and n_rows is not None and options["environments"] is None
        held = control if joined else None
        coarser = coarser_resolutions(table, source, held, lambda m: score_by(grouped=True, n_knockoffs=m).statistic)
    return Plan(
        source,
        choice.statistic,
        method=method,
        test_model=BEST if options["estimator"] is None else options["estimator"],
        resolution=resolution,
        coarser=coarser or (),
        rule=scoring.rule if callable(scoring.rule) else find(RULES, "rule", str(scoring.rule)),
        control=control,
        verdict=options["verdict"],
        notes=said if method == "conditional_test" else said | dict(choice.notes),
    )


def environment_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for several environments: one draw of knockoffs in each; others are refused."""
    for name, default in (("clusters", None), ("knockoffs", None), ("n_draws", 1), ("n_knockoffs", 1)):
        if not (options[name] is default if default is None else options[name] == default):
            raise InputError(f"environments: {name} is not supported beside it. Leave one of them out.")
    if key_of(str(options["method"])) == "conditional_test":
        raise InputError("environments need W of each: use method='knockoffs'.")
    return {**options, "method": "knockoffs"}


def fixed_options(
    options: Mapping[str, Any], scoring: ImportanceOptions, target: Target, n_rows: int | None
) -> dict[str, Any]:
    """Options for a fixed design, whose scores depend on the rows through [X, X_tilde]'[X, X_tilde, y] alone.

    Others are refused. No verdict is given: exchangeable rows are not claimed.
    """
    from knockoffs.response.linear import LassoPathAIC

    wrong = None
    if n_rows is None:
        wrong = "needs all rows in memory. Use fewer rows, or feature_model='auto'"
    elif target.kind != "number":
        wrong = f"is for a number with Gaussian noise, and y is {target.kind}. Use feature_model='auto'"
        wrong += ", or task='regression'" if target.kind in ("count", "ordinal") else ""
    elif target.weights is not None:
        wrong = "takes no weights: leave them out"
    elif key_of(str(options["method"])) == "conditional_test":
        wrong = "has no tests: use method='knockoffs'"
    elif not (options["estimator"] is None or options["estimator"] in (BEST, "lasso", "linear")):
        wrong = "takes the linear models estimator='lasso' and 'linear', which use the products of the columns alone"
    elif options["importance"] not in (None, "coefficients", "lasso_coefficient_difference", "contribution"):
        wrong = "takes importance='coefficients' and 'contribution', which use the products of the columns alone"
    elif scoring.rows not in (None, "in_sample") or scoring.n_fits > 1:
        wrong = "scores all rows at once: leave out the importance options rows and n_fits"
    if wrong:
        raise InputError(f"feature_model='fixed' {wrong}.")
    model = "linear" if options["estimator"] == "linear" else LassoPathAIC()
    return {**options, "estimator": model, "verdict": False}


def source_of(options: Mapping[str, Any]) -> KnockoffSource:
    """Source of knockoffs by the options of a selector: given knockoffs, or P^X."""
    if options["knockoffs"] is None:
        return knockoff_source(options["feature_model"], options["feature_model_options"])
    default = options["feature_model"] is None or str(options["feature_model"]) == "auto"
    if not default or options["feature_model_options"]:
        raise InputError("knockoffs are used as they are: leave out feature_model and its options, or knockoffs.")
    if options["clusters"] is not None:
        raise InputError("clusters: given knockoffs are of all rows, and each draw uses one row of each cluster.")
    if options["order"] is not None:
        raise InputError("order: given knockoffs are of all rows, and each draw uses rows that are far apart.")
    if options["n_draws"] != 1:
        raise InputError(f"n_draws={options['n_draws']!r}: given knockoffs are one draw. Leave it out.")
    return GivenKnockoffs(options["knockoffs"])


def count_of(options: Mapping[str, Any], name: str) -> int:
    """Option that is a whole number, at least 1."""
    value = options[name]
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name}={value!r}: expected a whole number of at least 1.")
    return int(value)


@dataclass(frozen=True)
class Choice:
    """The statistic that is used, and notes on what was chosen by default."""

    statistic: ModelScore | BestOf
    notes: Mapping[str, str] = field(default_factory=dict)


def choose(
    target: Target,
    *,
    estimator: object = None,
    importance: object = None,
    loss: object = None,
    rows: str | None = None,
    n_folds: int = 5,
    n_fits: int = 1,
    n_columns: int | None = None,
    grouped: bool = False,
    n_knockoffs: int = 1,
) -> Choice:
    """Statistic by a model of y and its score, with defaults by task where nothing was asked for.

    Without an estimator, or with "best", it is that of ``BEST_OF``, and the lasso on normal scores of columns that are
    far from normal, that predicts held-out rows best; of a number with heavy tails, or of its normal scores. Rows of
    weight 0 do not count. There may be so many columns that boosting is no candidate, or so many cells that a model
    which is scored on each of five folds by default is scored on one. Where features are groups of columns, ridge
    regression is a candidate for a number too. Several knockoffs of a feature take linear models, and no boosting.
    """
    notes: dict[str, str] = {}
    name = _name_of(estimator)
    task = target.task
    if task == "classification" and not (estimator is None or name):
        _refuse_numbers(target.values, estimator)
    score, asked = _score_asked_for(importance)
    rows = None if rows is None else key_of(rows)
    options: dict[str, Any] = {"score": score, "asked": asked, "loss": loss, "rows": rows}
    options |= {"n_folds": n_folds, "n_fits": n_fits}
    options["large"] = 2 * len(target.values) * (n_columns or 0) > MOST_CELLS
    if estimator is None or name == BEST:
        y = target.values if target.weights is None else target.values[target.weights > 0]
        alone = _why_lasso_alone(y, task, score, asked, n_columns or 0)
        if alone is None:
            names: tuple[str, ...] = BEST_OF_GROUPS if grouped and task == "regression" else BEST_OF
            names = names if n_knockoffs == 1 else tuple(name for name in names if name != "boosting")
            lasso, *others = (_model_score(name, task, {}, **options) for name in names)
            on_scores = replace(lasso, transform=normal_scores, name=f"{lasso.name} on normal scores")
            favoured = names[-1] if names[-1] == BEST_OF_GROUPS[-1] else ""
            told = default_loss(task, lasso.estimator)
            by_scores = task == "regression" and loss is None  # a loss that was asked for is of y as it is
            best = BestOf((lasso, *others, on_scores), told, favoured, FLEXIBLE, by_scores)
            return Choice(best if n_knockoffs == 1 else _of_several(best, asked, n_knockoffs), notes)
        notes["estimator"] = f"estimator='lasso', because {alone}"
        estimator = "lasso"
    one = _model_score(estimator, task, notes, **options)
    statistic = one if n_knockoffs == 1 else _of_several(one, asked, n_knockoffs)
    return Choice(statistic, statistic.notes if isinstance(statistic, ModelScore) else notes)


def _of_several(statistic: ModelScore | BestOf, asked: str, n_knockoffs: int) -> ModelScore | BestOf:
    """Statistic for several knockoffs of a feature: linear models, scored by contribution unless told otherwise."""
    if isinstance(statistic, ModelScore):
        return _by_contribution(statistic, asked, n_knockoffs)
    candidates = tuple(_by_contribution(one, asked, n_knockoffs) for one in statistic.candidates)
    return replace(statistic, candidates=candidates, by_scores=False)


def _by_contribution(statistic: ModelScore, asked: str, n_knockoffs: int) -> ModelScore:
    check_linear(statistic, n_knockoffs)
    said = "importance='contribution', the default for several knockoffs"
    return statistic if asked else replace(statistic, score=contribution, notes={**statistic.notes, "importance": said})


def _score_asked_for(importance: object) -> tuple[Score | None, str]:
    """Score, and how it was asked for: by a name, ours or one's own, or not at all."""
    if importance is None:
        return None, ""
    if isinstance(importance, str):
        return find(SCORES, "importance", importance), key_of(importance)
    if isinstance(importance, Score):
        return importance, "a score"
    if not callable(importance):
        raise InputError(f"importance={importance!r}: pass the name of a score or a function.")
    ours = next((score for score in SCORES.values() if imported(score.function) is importance), None)
    return (ours, "a score") if ours is not None else (Score(importance), "one's own")


def _why_lasso_alone(y: NDArray, task: str, score: Score | None, asked: str, n_columns: int) -> str | None:
    """Why boosting is no candidate, if it is none."""
    if score is not None and score.needs is not None:
        return f"importance={asked!r} is for linear models"
    if asked == "one's own":
        return "an importance score of your own may ask for a linear model; pass another estimator if it does not"
    if len(y) < FEW_ROWS:
        return f"{len(y)} rows are few for boosting, which is considered from {FEW_ROWS}"
    if n_columns > WIDE * len(y):
        return f"{n_columns} columns of {len(y)} rows are too many for boosting, which rarely wins there"
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            return (
                f"class {name_some(classes[counts < 2].tolist())} has a single row, so no model can be held out on it"
            )
    return None


def _model_score(
    estimator: Any,
    task: str,
    notes: dict[str, str],
    *,
    score: Score | None,
    asked: str,
    loss: object,
    rows: str | None,
    n_folds: int,
    n_fits: int,
    large: bool,
) -> ModelScore:
    """Statistic of one model of y: its score, loss and rows, by default those that the model is registered with."""
    named = isinstance(estimator, str)
    model = find(ESTIMATORS, "estimator", estimator) if named else model_of(estimator)
    unfitted = make_estimator(estimator, task) if named else estimator
    kind = type(unfitted).__name__
    if score is None:
        asked = default_importance(model, loss)
        score = SCORES[asked]
        notes["importance"] = f"importance={asked!r}, the default for {kind}"
        loss_by_default = True
    else:
        _check_offers(score, asked, model, estimator if named else None)
        loss_by_default = asked in ("swap", "permutation")
    loss = key_of(loss) if isinstance(loss, str) else loss
    if loss is not None:
        _check_loss(score, asked, loss, task)
    elif score.loss and loss_by_default:
        loss = default_loss(task, unfitted)
        notes["loss"] = f"loss={loss!r}, the default for {task} with {kind}"
    if rows is None:
        rows = model.rows if score.rows else "in_sample"
        why = f"the default for {kind}"
        if rows == "cross_fitted" and large:
            rows, why = "held_out", f"because the table is large: {kind} is fitted once"
        notes["rows"] = f"rows={rows!r}, {why}"
    options = {} if loss is None else {"loss": loss}
    return ModelScore(
        unfitted,
        imported(score.function),
        options,
        rows,
        n_folds,
        n_fits,
        name=key_of(estimator) if named else kind,
        saturates=score.loss,
        notes=notes,
    )


def _check_offers(score: Score, asked: str, model: Model, name: str | None) -> None:
    """Refuse a score that a model of this name never has, before anything is fitted."""
    if name is None or score.needs is None or score.needs in model.offers:
        return
    lacking = {"coefficients": "no coefficients", "gradient": "no gradient"}[score.needs]
    raise InputError(
        f"importance={asked!r} does not work with estimator={name!r}, which has {lacking}: "
        "use 'swap', 'permutation', 'swap_integral' or 'permutation_integral'."
    )


def _check_loss(score: Score, asked: str, loss: object, task: str) -> None:
    if not score.loss:
        raise InputError(f"loss={loss!r} is not used by importance={asked!r}: leave it out, or use 'swap'.")
    if not isinstance(loss, str):
        return
    if loss not in LOSSES:
        raise unknown_option("loss", loss, LOSSES)
    general = kind_of(task)  # a count is a number, and may be scored as one
    fitting = [name for name, known in LOSSES.items() if known.task == general]
    fitting = [name for name in fitting if (name == "partial_likelihood") == (task == "survival")]
    if loss not in fitting:
        raise InputError(f"loss={loss!r} is not for {task}: use {', '.join(map(repr, fitting))}.")


def default_importance(model: Model, loss: object) -> str:
    """Score that the model is registered with; Swap where that would not use the loss that was asked for."""
    if loss is None or (SCORES[model.score].loss and isinstance(loss, str)):
        return model.score
    return "swap"


def default_loss(task: str, model: object) -> str:
    """Loss that does not saturate: log-loss where there are probabilities, squared error for numbers."""
    if task == "count":
        return "poisson_deviance" if "poisson_deviance" in LOSSES else "squared_error"
    if task == "survival":
        return "partial_likelihood"
    if task == "regression":
        return "squared_error"
    return "log_loss" if hasattr(model, "predict_proba") else "accuracy"


def task_for(task: str | None, estimator: object) -> str | None:
    """Task that was asked for, or that the model of y is made for; None where y has to tell."""
    if _name_of(estimator) or estimator is None:
        return task
    made_for = _made_for(estimator)
    if made_for is not None and task is not None and kind_of(task) != made_for:
        raise InputError(f"task={task!r}, but estimator {type(estimator).__name__} is made for {made_for}.")
    return task or made_for


def _name_of(estimator: object) -> str | None:
    """Name of a model of y, known or refused; None for an object, which must be able to fit and predict."""
    if isinstance(estimator, str):
        if key_of(estimator) not in (BEST, *ESTIMATORS):
            raise unknown_option("estimator", estimator, [BEST, *ESTIMATORS])
        return key_of(estimator)
    if estimator is not None:
        _check_estimator(estimator)
    return None


def _refuse_numbers(y: NDArray, estimator: object) -> None:
    if y.dtype.kind == "f" and (y != np.round(y)).any():
        value = y[y != np.round(y)][0]
        raise InputError(
            f"estimator {type(estimator).__name__} is made for classification, but y holds numbers, for instance "
            f"{value:g}: make classes of them, or use regression."
        )


def _check_estimator(estimator: object) -> None:
    if isinstance(estimator, type):
        raise InputError(f"estimator is the class {estimator.__name__}: pass an instance, {estimator.__name__}().")
    missing = [method for method in ("fit", "predict") if not callable(getattr(estimator, method, None))]
    if missing:
        raise InputError(f"estimator {type(estimator).__name__} lacks {' and '.join(missing)}.")


def _made_for(estimator: object) -> str | None:
    """Task that an estimator is made for, if it says so."""
    from sklearn.base import is_classifier, is_regressor

    try:
        return "classification" if is_classifier(estimator) else "regression" if is_regressor(estimator) else None
    except AttributeError:  # scikit-learn's methods without its base class
        return "classification" if hasattr(estimator, "predict_proba") else None
