"""Y given [X, X_tilde]: what a model of the target is, those that have a name, and scikit-learn's trees."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.registry import find, imported
from knockoffs.table.target_kind import KINDS_OF_TASK

if TYPE_CHECKING:
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

FOREST_TREES = 200  # on each of five folds
FOREST_COLUMNS = 300  # of [X, X_tilde] that a split of a number is chosen among: all of 2000 take four times as long
BOOSTING_LEAVES = 15  # of a boosted tree: half of scikit-learn's, which predict worse where rows are few
BOOSTING_BINS = 63  # of a column: a quarter of scikit-learn's predict as well, in half the time
LEAF_RIDGE = 1.0  # on the leaves: without it a class of a few rows among thousands drives the scores to infinity


class FittedModel(Protocol):
    """A model of y that has been fitted."""

    def predict(self, XX: NDArray, /) -> NDArray:
        """Predict numbers or labels."""


class Classifier(FittedModel, Protocol):
    """A fitted model of y that gives each class a probability."""

    def predict_proba(self, XX: NDArray, /) -> NDArray:
        """Probabilities of the classes, shape (n, n_classes)."""


class Estimator(Protocol):
    """A model of y, unfitted, as scikit-learn has them."""

    @property
    def fit(self) -> Callable[..., FittedModel]:
        """``fit(XX, y)``, and ``sample_weight=`` where it takes weights; gives the fitted model."""


@dataclass(frozen=True)
class Model:
    """A model of y that has a name.

    Parameters
    ----------
    make : str or callable
        "module:factory", imported when first used; called with (task, random_state=, n_jobs=).
    offers : tuple of str
        What scores may ask it for: "coefficients", "gradient".
    score : str
        Its importance score, a name of ``SCORES``, where none is asked for.
    rows : str
        On which rows it is scored by default: unseen ones for models that remember the rows they were fitted on.
    package : str, optional
        Of an extra, without which it cannot be made.
    """

    make: str | Callable[..., object]
    offers: tuple[str, ...] = ()
    score: str = "swap"
    rows: str = "cross_fitted"
    package: str | None = None


def linear_model(make: str | Callable[..., object]) -> Model:
    """Linear model, scored by its coefficients."""
    return Model(make, ("coefficients", "gradient"), "coefficients", "in_sample")


ESTIMATORS: dict[str, Model] = {
    "lasso": linear_model("knockoffs.response.linear:make_lasso"),
    "logistic": linear_model("knockoffs.response.plain:make_logistic"),
    "linear": linear_model("knockoffs.response.plain:make_linear"),
    # its columns say nearly the same, else a lasso would do: what they add together is what counts
    "ridge": Model("knockoffs.response.plain:make_ridge", ("coefficients", "gradient"), "contribution", "in_sample"),
    "forest": Model("knockoffs.response:make_forest", score="swap_integral"),
    "boosting": Model("knockoffs.response:make_boosting", score="swap_integral"),
    # a network stops early: scored by log-loss in sample it finds as much as cross-fitted, in one fit
    "neural": Model("knockoffs.response.neural:make_neural", offers=("gradient",), rows="in_sample", package="torch"),
}
SURVIVAL_MODELS = ("lasso", "boosting")  # by name; others take signed times and predict a log-hazard


def make_estimator(
    name: str, task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> Estimator:
    """Unfitted model of y under a name of ``ESTIMATORS``.

    The task is "classification" ("binary", "multiclass"), "regression" ("numeric"), "count" or "survival".

    >>> make_estimator("lasso", "binary")
    LogisticPathCV()
    """
    if task == "survival" and name in ESTIMATORS and name not in SURVIVAL_MODELS:
        raise InputError(f"estimator={name!r} has no version for survival times: use 'best', 'lasso' or 'boosting'.")
    return imported(find(ESTIMATORS, "estimator", name).make)(task, random_state=random_state, n_jobs=n_jobs)


def model_of(estimator: object) -> Model:
    """Model that describes an unfitted estimator without a name.

    Linear models of scikit-learn and of this package, tree ensembles whose integrals are exact, networks of this
    package; of any other only that it predicts.
    """
    from knockoffs.response.tree_arrays import has_trees

    if _is_linear(estimator):
        return linear_model(type(estimator))
    if has_trees(estimator):
        return Model(type(estimator), score="swap_integral")
    offers = ("gradient",) if hasattr(estimator, "gradient") else ()
    if hasattr(estimator, "split_first_layer"):
        return Model(type(estimator), offers, rows="in_sample")
    return Model(type(estimator), offers)


def _is_linear(estimator: object) -> bool:
    """Whether it is a linear model of this package or of scikit-learn, or made from one."""
    from sklearn import linear_model as theirs

    from knockoffs.response.linear import LinearClassifier, LinearRegressor, PenaltyPath

    return isinstance(estimator, LinearClassifier | LinearRegressor | PenaltyPath) or any(
        getattr(theirs, kind.__name__, None) is kind for kind in type(estimator).__mro__
    )


# Copies with their own random states, and what is known before the fit


Unfitted = TypeVar("Unfitted")


def fresh(estimator: Unfitted, rng: Generator) -> Unfitted:
    """Unfitted copy whose open random states are drawn from rng."""
    from sklearn.base import clone

    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    model = clone(estimator)
    states = {
        name: int(rng.integers(2**31 - 1))
        for name, value in sorted(model.get_params().items())
        if value is None and name.split("__")[-1] == "random_state"
    }
    return model.set_params(**states) if states else model


def fitted_copy(estimator: Estimator, XX: NDArray, y: NDArray, rng: Generator, **weights: NDArray) -> FittedModel:
    """Fresh copy of a model, fitted; the ``fit`` of a user-defined model may return nothing."""
    model = fresh(estimator, rng)
    fitted = model.fit(XX, y, **weights)
    return cast(FittedModel, model) if fitted is None else fitted


def kind_of(task: str) -> Literal["classification", "regression"]:
    """Classification or regression: what a task, in any of its words, is."""
    if task not in KINDS_OF_TASK:
        raise unknown_option("task", task, KINDS_OF_TASK)
    return "regression" if KINDS_OF_TASK[task] == "regression" else "classification"


def task_of(kind: str) -> str:
    """Task for which a model of a target of this kind is made: "classification", "survival" or "regression"."""
    return {"binary": "classification", "classes": "classification", "survival": "survival"}.get(kind, "regression")


def predicts_classes(estimator: object) -> bool:
    """Whether an unfitted model is a classifier."""
    from sklearn.base import is_classifier

    if hasattr(estimator, "__sklearn_tags__"):
        return is_classifier(estimator)
    return getattr(estimator, "_estimator_type", None) == "classifier" or hasattr(estimator, "predict_proba")


def check_takes_weights(estimator: object) -> None:
    """Refuse weights for a model that takes none."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__}.fit takes no sample_weight. Leave the weights out, or use a model that takes "
            "them, for instance a forest, boosting or a logistic regression."
        )


# Trees of scikit-learn


def make_forest(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> RandomForestClassifier | RandomForestRegressor:
    """Random forest, unfitted: the estimator "forest"; options are those of scikit-learn's.

    >>> make_forest("regression", n_estimators=10)
    RandomForestRegressor(max_features=300, n_estimators=10)
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    own: dict[str, object] = {"n_estimators": FOREST_TREES, "random_state": _whole(random_state), "n_jobs": n_jobs}
    if kind_of(task) != "regression":
        return RandomForestClassifier(**own | options)
    return RandomForestRegressor(**{"max_features": FOREST_COLUMNS} | own | options)


def make_boosting(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Histogram gradient boosting, unfitted: the estimator "boosting"; options are those of scikit-learn's.

    Counts, and log-hazards of survival times, are fitted by the Poisson deviance. Threads are OpenMP's.

    >>> make_boosting("binary", max_iter=50).max_iter
    50
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if kind_of(task) == "regression" else HistGradientBoostingClassifier
    if task == "survival":
        from knockoffs.response.cox_boosting import CoxBoosting as kind
    own: dict[str, object] = {
        "max_bins": BOOSTING_BINS,
        "max_leaf_nodes": BOOSTING_LEAVES,
        "l2_regularization": LEAF_RIDGE,
    }
    if task in ("count", "survival"):
        own["loss"] = "poisson"
    # early stopping would set rows aside by class, which a class of one row does not survive
    return kind(**{"early_stopping": False, "random_state": _whole(random_state), **own, **options})


def _whole(random_state: int | Generator | None) -> int | None:
    """Seed for scikit-learn, which knows no generators."""
    return int(random_state.integers(2**31 - 1)) if isinstance(random_state, Generator) else random_state
