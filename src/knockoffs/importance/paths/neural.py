"""The loss along the lambda paths of one neural network of this package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from knockoffs.errors import InputError, unknown_option
from knockoffs.importance.losses import LOSSES, Loss, class_codes
from knockoffs.importance.paths.batched import DEVICE_LOSSES, REGRESSION_LOSSES, RowLoss, name_of, network_losses
from knockoffs.importance.paths.moves import Moves, trapezoid
from knockoffs.response.networks import as_tensor
from knockoffs.response.neural_model import NeuralModel

CLASSIFIER_LOSSES = tuple(name for name in DEVICE_LOSSES if name not in REGRESSION_LOSSES)


def loss_at(
    model: NeuralModel,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    lams: NDArray,
    loss: str | Loss,
    *,
    feature_of2: NDArray[np.intp],
    sample_weight: NDArray | None = None,
) -> NDArray:
    """Mean loss of a neural network with feature i moved to each lam, shape (2m, L).

    Parameters
    ----------
    model : NeuralClassifier, NeuralRegressor or TorchModel
    XX, XX_fake : array, shape (n, 2 n_columns)
    y : array, shape (n,)
        Labels, or values.
    lams : array, shape (L,)
    loss : str or Loss
        A name of `DEVICE_LOSSES` runs on the device; any other `Loss` is called on the predictions of each block.
    feature_of2 : array of int, shape (2 n_columns,)
    sample_weight : array, shape (n,), optional
    """
    width = getattr(model, "n_features_in_", XX.shape[1])
    if XX.shape[1] != width:
        raise InputError(f"XX has {XX.shape[1]} columns: the model takes {width}.")
    classes = getattr(model, "classes_", None)
    name = name_of(loss)
    row_loss: str | RowLoss = name
    codes = y.astype(float) if classes is None else class_codes(y, classes)
    if isinstance(loss, str) and name not in LOSSES:
        raise unknown_option("loss", name, LOSSES)
    known = LOSSES[name] if isinstance(loss, str) else loss
    if name not in DEVICE_LOSSES or LOSSES[name] is not known:  # a user's may have the same name as one of ours
        row_loss = _on_host(known, classes)
    elif (name in REGRESSION_LOSSES) != (classes is None):
        kind, fitting = ("regressor", REGRESSION_LOSSES) if classes is None else ("classifier", CLASSIFIER_LOSSES)
        raise InputError(f"loss={name!r} does not fit a {kind}: use one of {', '.join(map(repr, fitting))}.")
    weight = None if sample_weight is None else sample_weight[None]
    losses = network_losses(
        model.split(), XX[None], XX_fake[None], codes[None], lams, [row_loss],
        feature_of2=feature_of2, sample_weight=weight,
    )  # fmt: skip
    return next(iter(losses.values()))[0]


@dataclass(frozen=True)
class NeuralPath:
    """A neural network of this package: its first layer changes by a rank-one term."""

    model: NeuralModel
    moves: Moves
    loss: Loss

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return float(self.at(np.zeros(1))[0, 0])

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        moves = self.moves
        return loss_at(
            self.model,
            moves.XX,
            moves.XX_fake,
            moves.y,
            lams,
            self.loss,
            feature_of2=moves.feature_of2,
            sample_weight=moves.weights,
        )

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Trapezoid rule on n_lams equidistant points."""
        return trapezoid(self, low, high, n_lams)


def _on_host(loss: Loss, classes: NDArray | None) -> RowLoss:
    """Turn a `Loss`, a function of arrays, into a function of tensors."""

    def row_loss(output: Tensor, y: Tensor) -> Tensor:
        flat = output.reshape(-1, output.shape[-1]).double()
        codes = y.reshape(-1).cpu().numpy()
        labels = codes if classes is None else classes[codes]
        if classes is None:
            prediction = flat[:, 0].cpu().numpy()
        elif loss.needs == "predict_proba":
            prediction = flat.softmax(-1).cpu().numpy()
        elif loss.needs == "predict":
            prediction = classes[flat.argmax(-1).cpu().numpy()]
        else:
            logits = flat.cpu().numpy()
            prediction = logits - logits[:, :1] if logits.shape[1] == 2 else logits  # as decision_function: (0, f)
        rows = np.asarray(loss.function(labels, prediction, classes), dtype=float)
        return as_tensor(rows, output.device).view(output.shape[:-1])

    return row_loss
