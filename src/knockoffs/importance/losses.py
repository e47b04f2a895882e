"""Losses: what a model loses on each row; a score is how much the loss rises when a column is faked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.response.cox import partial_likelihood_loss

Needs = Literal["predict", "predict_proba"]
Task = Literal["classification", "regression"]
SMALLEST_PROBABILITY = 1e-15  # log-loss is bounded by -log of it, 34.5
SMALLEST_MEAN = 1e-15  # of a count: a model that predicts less, or a negative number, has this mean


@dataclass(frozen=True)
class Loss:
    """A loss of each row, computed from the prediction that it names."""

    name: str
    needs: Needs  # method of the model that it is computed from
    task: Task | None  # what y must be; None for either
    # (y, prediction, classes) -> (n,): y as the user gave it, the prediction of shape (n,), or (n, n_classes) for
    # "predict_proba", and the model's ``classes_`` (None for a regressor)
    function: Callable[[NDArray, NDArray, NDArray | None], NDArray]

    def __call__(self, y: NDArray, prediction: NDArray, classes: NDArray | None = None) -> NDArray:
        """Loss of each row, shape (n,)."""
        return self.function(y, prediction, classes)


def class_codes(y: ArrayLike, classes: ArrayLike) -> NDArray[np.intp]:
    """Place of each label among the model's classes.

    >>> class_codes(["b", "a", "b"], ["a", "b"])
    array([1, 0, 1])
    """
    labels, known = np.asarray(y), np.asarray(classes)
    order = np.argsort(known)
    place = np.searchsorted(known, labels, sorter=order)
    codes = order[np.minimum(place, len(known) - 1)]
    unseen = known[codes] != labels
    if np.any(unseen):
        names = np.unique(labels[unseen]).tolist()
        raise InputError(
            f"y has classes that the model was not fitted on: {name_some(names)}; "
            f"it knows {name_some(known.tolist())}. Fit it on rows of every class, or leave those rows out."
        )
    return codes


def _accuracy(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    return (np.asarray(y) != prediction).astype(float)


def _of_own_class(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    assert classes is not None
    return np.take_along_axis(prediction, class_codes(y, classes)[:, None], axis=1)[:, 0]


def _log_loss(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    return -np.log(np.clip(_of_own_class(y, prediction, classes), SMALLEST_PROBABILITY, 1.0))


def _brier(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    # sum_k (p_k - 1{k = y})^2 = sum_k p_k^2 + 1 - 2 p_y
    return (prediction**2).sum(axis=1) + 1.0 - 2.0 * _of_own_class(y, prediction, classes)


def _squared_error(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    return (y - prediction) ** 2


def check_counts(y: NDArray) -> NDArray:
    """Refuse negative numbers where the loss is one of counts."""
    counts = np.asarray(y, dtype=float)
    if counts.size and counts.min() < 0:
        raise InputError(f"loss='poisson_deviance' is for counts, and y holds {counts.min():g}: use 'squared_error'.")
    return counts


def _poisson_deviance(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    y = check_counts(y)
    mean = np.maximum(prediction, SMALLEST_MEAN)
    # rounding leaves a perfect fit a little below zero
    return np.maximum(2.0 * (mean - y + xlogy(y, y / mean)), 0.0)


def _partial_likelihood(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
    # risk sets are those of these rows alone; a constant may come with a number for each column of y
    return partial_likelihood_loss(y, prediction if prediction.ndim == 1 else prediction[:, 0])


LOSSES: dict[str, Loss] = {
    # the 0-1 loss: its rise is a drop in accuracy
    "accuracy": Loss("accuracy", "predict", "classification", _accuracy),
    "log_loss": Loss("log_loss", "predict_proba", "classification", _log_loss),
    "brier": Loss("brier", "predict_proba", "classification", _brier),
    "squared_error": Loss("squared_error", "predict", "regression", _squared_error),
    "poisson_deviance": Loss("poisson_deviance", "predict", "regression", _poisson_deviance),
    "partial_likelihood": Loss("partial_likelihood", "predict", "regression", _partial_likelihood),
}

LossLike = str | Loss | Callable[[NDArray, NDArray], NDArray] | None


def resolve_loss(loss: LossLike, model: object) -> Loss:
    """Loss for a fitted model, checked to fit what the model predicts and the methods it has.

    It is a name of ``LOSSES``; a ``Loss``; a function ``(y, prediction) -> (n,)`` of what ``model.predict`` says; or
    None, which is accuracy for a classifier (it has ``classes_``) and the squared error for a regressor.
    """
    task: Task = "classification" if hasattr(model, "classes_") else "regression"
    if loss is None:
        loss = "accuracy" if task == "classification" else "squared_error"
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise unknown_option("loss", loss, LOSSES)
        loss = LOSSES[loss]
    elif callable(loss) and not isinstance(loss, Loss):
        loss = _from_function(loss)
    elif not isinstance(loss, Loss):
        raise InputError(f"loss={loss!r} is neither a name ({', '.join(map(repr, LOSSES))}) nor a function.")
    if loss.task not in (None, task):
        fitting = [name for name, known in LOSSES.items() if known.task == task]
        kind = "classes" if task == "classification" else "numbers"
        remedy = " If it predicts labels, let its fit set classes_." if task == "regression" else ""
        raise InputError(
            f"loss={loss.name!r} is a loss for {loss.task}, and {type(model).__name__} predicts {kind}. "
            f"Use {', '.join(map(repr, fitting))}.{remedy}"
        )
    if not hasattr(model, loss.needs):
        usable = [name for name, known in LOSSES.items() if known.task == task and hasattr(model, known.needs)]
        remedy = (
            f"With this model use loss={' or '.join(map(repr, usable))}, or a model with that method."
            if usable
            else f"No accuracy-drop score works without it: give the model a method {loss.needs}."
        )
        raise InputError(f"{type(model).__name__} has no {loss.needs}, which loss={loss.name!r} needs. {remedy}")
    return loss


def _from_function(function: Callable[[NDArray, NDArray], NDArray]) -> Loss:
    name = getattr(function, "__name__", type(function).__name__)

    def by_row(y: NDArray, prediction: NDArray, classes: NDArray | None) -> NDArray:
        losses = np.asarray(function(y, prediction), dtype=float)
        if losses.shape != (len(y),):
            raise InputError(
                f"loss={name} gave shape {losses.shape} for {len(y)} rows: it must give one loss a row, not a mean."
            )
        return losses

    return Loss(name, "predict", None, by_row)


def predict_for(loss: Loss, model: object, XX: NDArray) -> NDArray:
    """Predict what the loss is computed from: shape (n,), or (n, n_classes) for probabilities."""
    prediction = np.asarray(getattr(model, loss.needs)(XX))
    one_column = loss.needs == "predict" and prediction.ndim == 2 and prediction.shape[1] == 1
    return prediction[:, 0] if one_column else prediction
