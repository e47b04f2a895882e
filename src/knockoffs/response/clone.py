"""Unfitted models of y: copies with their own random states, and what is known before the fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar, cast

from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.table.target_kind import KINDS_OF_TASK


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


Model = TypeVar("Model")


def fresh(estimator: Model, rng: Generator) -> Model:
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
