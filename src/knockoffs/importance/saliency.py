"""Saliency: how steeply the model's output rises in each column, averaged over the rows (the paper's section 4).

The output that is explained is, for each row, that of one class: the class the model predicts (or the true one, with
``of="true"``). ``output="logit"`` is its logit less the mean of all logits, which does not change when a constant is
added to all of them and does not flatten where the model is certain; ``output="log_probability"`` is the log of
its probability. A regressor has one output, its prediction.

Models need ``gradient(XX, direction) -> (n, n_columns)``, the gradient of sum_c direction_c output_c in each row, and
``decision(XX) -> (n, n_outputs)``: `NeuralClassifier`, `NeuralRegressor` and `TorchModel` have them. Linear models
(``coef_`` and ``intercept_``, also after a StandardScaler in a Pipeline) are differentiated here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, unknown_option
from knockoffs.importance.losses import class_codes
from knockoffs.importance.scores import Scores, sum_by_feature
from knockoffs.progress import track
from knockoffs.response.neural_model import softmax

OUTPUTS = ("logit", "log_probability")
CLASSES = ("predicted", "true")
COMPLETE_WITHIN = 0.02  # mean gap of completeness over mean change of the output, above which there is a warning
BYTES_AT_ONCE = 2**28  # of inputs in flight


def gradient_saliency(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator,
    sample_weight: NDArray | None = None,
    output: str = "logit",
    of: str = "predicted",
) -> Scores:
    """Gradient saliency: Z_j = s_j mean_i |d output_c(x_i) / d x_ij|, added over the columns of a feature.

    s_j^2 is the mean of the variances of column j and of its knockoff: units cancel, and the pair stays symmetric.

    Parameters
    ----------
    model : object
        Fitted on ``np.hstack([X, X_tilde])``, with ``gradient`` and ``decision``, or linear.
    X, X_tilde : array, shape (n, n_columns)
    y : array, shape (n,)
        Used with ``of="true"`` only.
    feature_of : array of int, shape (n_columns,)
    rng : numpy.random.Generator
        Nothing is drawn.
    sample_weight : array, shape (n,), optional
    output : {"logit", "log_probability"}
    of : {"predicted", "true"}
        The class whose output is explained in a row.

    Returns
    -------
    Scores
    """
    smooth, XX, weight = _prepare(model, X, X_tilde, output, of, sample_weight)
    total = np.zeros(XX.shape[1])
    for rows in _row_blocks(XX):
        logits = smooth.decision(XX[rows])
        direction = smooth.direction(logits, smooth.explained(logits, y[rows], of), output)
        total += weight[rows] @ np.abs(smooth.gradient(XX[rows], direction))
    center = weight @ XX
    variance = weight @ (XX - center) ** 2
    m = X.shape[1]
    scale = np.sqrt((variance[:m] + variance[m:]) / 2)
    return Scores(sum_by_feature(total[:m] * scale, feature_of), sum_by_feature(total[m:] * scale, feature_of))


def integrated_gradients(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator,
    sample_weight: NDArray | None = None,
    output: str = "logit",
    of: str = "predicted",
    n_steps: int = 50,
) -> Scores:
    """Integrated gradients: Z_j = mean_i |A_ij|, A_ij = (x_ij - b_j) int_0^1 d output_c(b + t (x_i - b)) / d x_j dt.

    The baseline b is the mean row. Attributions of a row add up to the change of its output from the baseline
    (completeness); the integral is a midpoint rule, so they do so up to its error, and a `KnockoffWarning` says when
    the mean gap is more than 2% of the mean change. Attributions of a feature's columns are added, then made absolute.

    Parameters
    ----------
    model, X, X_tilde, y, feature_of, rng, sample_weight, output, of
        As in `gradient_saliency`.
    n_steps : int
        Points of the integral.

    Returns
    -------
    Scores
    """
    if n_steps < 1:
        raise InputError(f"n_steps={n_steps!r}: expected at least 1 point; 50 is the default.")
    smooth, XX, weight = _prepare(model, X, X_tilde, output, of, sample_weight)
    n_features = int(feature_of.max()) + 1
    members = np.eye(2 * n_features)[np.concatenate([feature_of, feature_of + n_features])]
    baseline = weight @ XX
    total, gap, change = np.zeros(2 * n_features), 0.0, 0.0
    for rows in track(list(_row_blocks(XX)), "integrated gradients"):
        explained = smooth.explained(smooth.decision(XX[rows]), y[rows], of)
        attribution = attributions(smooth, XX[rows], baseline, explained, output, n_steps)
        difference = smooth.value(XX[rows], explained, output) - smooth.value(baseline[None], explained, output)
        gap += weight[rows] @ np.abs(attribution.sum(axis=1) - difference)
        change += weight[rows] @ np.abs(difference)
        total += weight[rows] @ np.abs(attribution @ members)
    _warn_incomplete(gap, change, n_steps)
    return Scores(total[:n_features], total[n_features:])


def attributions(
    model: object, XX: NDArray, baseline: NDArray, explained: NDArray[np.intp], output: str = "logit", n_steps: int = 50
) -> NDArray:
    """Integrated gradients of each row and column, shape (n, n_columns); `explained` is the output of each row."""
    smooth = model if isinstance(model, Smooth) else as_smooth(model)
    mean_slope = np.zeros_like(XX)
    for t in (np.arange(n_steps) + 0.5) / n_steps:
        point = baseline + t * (XX - baseline)
        logits = smooth.decision(point) if output == "log_probability" else np.zeros((len(XX), smooth.n_outputs))
        mean_slope += smooth.gradient(point, smooth.direction(logits, explained, output)) / n_steps
    return (XX - baseline) * mean_slope


# A model with a gradient


@dataclass(frozen=True)
class Smooth:
    """A model as its outputs and their gradient.

    Parameters
    ----------
    decision : callable
        (n, n_columns) -> (n, n_outputs): logits, or the prediction of a regressor.
    gradient : callable
        (n, n_columns), direction (n, n_outputs) -> (n, n_columns): gradient of sum_c direction_c decision_c.
    n_outputs : int
    classes : array, optional
        None for a regressor.
    """

    decision: Callable[[NDArray], NDArray]
    gradient: Callable[[NDArray, NDArray], NDArray]
    n_outputs: int
    classes: NDArray | None

    def explained(self, logits: NDArray, y: NDArray, of: str) -> NDArray[np.intp]:
        """Output that is explained in each row."""
        if self.classes is None:
            return np.zeros(len(logits), dtype=np.intp)
        if of == "predicted":
            return logits.argmax(axis=1)
        return class_codes(y, self.classes)

    def direction(self, logits: NDArray, explained: NDArray[np.intp], output: str) -> NDArray:
        """Differentiate the explained output with respect to the logits, (n, n_outputs)."""
        unit = np.eye(self.n_outputs)[explained]
        if self.classes is None:
            return unit
        return unit - (softmax(logits) if output == "log_probability" else 1 / self.n_outputs)

    def value(self, XX: NDArray, explained: NDArray[np.intp], output: str) -> NDArray:
        """Explained output, (n,)."""
        logits = np.broadcast_to(self.decision(XX), (len(explained), self.n_outputs))
        own = logits[np.arange(len(explained)), explained]
        if self.classes is None:
            return own
        if output == "logit":
            return own - logits.mean(axis=1)
        return np.log(softmax(logits)[np.arange(len(explained)), explained].clip(1e-300))


def as_smooth(model: object) -> Smooth:
    """Find the outputs and the gradient of a model, or say what is missing."""
    classes = getattr(model, "classes_", None)
    if hasattr(model, "gradient") and hasattr(model, "decision"):
        return Smooth(model.decision, model.gradient, 1 if classes is None else len(classes), classes)
    line = _linear_part(model)
    if line is not None:
        return _linear(*line, classes)
    missing = "decision" if hasattr(model, "gradient") else "gradient"
    raise InputError(
        f"{type(model).__name__} has no method {missing!r} (nor is it linear, with coef_), which the scores "
        "'gradient' and 'integrated_gradients' need: gradient(XX, direction) -> (n, n_columns) and "
        "decision(XX) -> (n, n_outputs). "
        + (
            "With this model use 'permutation', 'swap', 'permutation_integral' or 'swap_integral'."
            if hasattr(model, "predict")
            else "It has no 'predict' either, so no other score can use it."
        )
    )


def _linear_part(model: object) -> tuple[NDArray, NDArray] | None:
    """Coefficients (k, n_columns) and intercepts (k,) in the units of the columns, or None."""
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    coef = getattr(last, "coef_", None)
    if coef is None:
        return None
    coef = np.atleast_2d(np.asarray(coef, dtype=float))
    intercept = np.broadcast_to(np.asarray(getattr(last, "intercept_", 0.0), dtype=float).ravel(), len(coef)).copy()
    for _, step in reversed(steps[:-1] if steps else []):
        if step == "passthrough":
            continue
        if type(step).__name__ != "StandardScaler":
            return None
        if step.scale_ is not None:
            coef = coef / step.scale_
        if step.mean_ is not None:
            intercept = intercept - coef @ step.mean_
    return coef, intercept


def _linear(coef: NDArray, intercept: NDArray, classes: NDArray | None) -> Smooth:
    """Linear model: one decision value f of two classes becomes the logits (0, f)."""
    if classes is not None and len(classes) == 2 and len(coef) == 1:
        coef = np.vstack([np.zeros_like(coef), coef])
        intercept = np.append(0.0, intercept)
    expected = 1 if classes is None else len(classes)
    if len(coef) != expected:
        raise InputError(f"coef_ has {len(coef)} rows: expected {expected}, one for each class (or 1 for a regressor).")
    return Smooth(lambda XX: XX @ coef.T + intercept, lambda XX, direction: direction @ coef, expected, classes)


def _prepare(
    model: object, X: NDArray, X_tilde: NDArray, output: str, of: str, sample_weight: NDArray | None
) -> tuple[Smooth, NDArray, NDArray]:
    """Check the options; model, [X, X_tilde] and weights of sum 1."""
    if output not in OUTPUTS:
        raise unknown_option("output", output, OUTPUTS)
    if of not in CLASSES:
        raise unknown_option("of", of, CLASSES)
    smooth = as_smooth(model)
    XX = np.hstack([X, X_tilde]).astype(float, copy=False)
    width = getattr(model, "n_features_in_", XX.shape[1])
    if width != XX.shape[1]:
        raise InputError(f"{type(model).__name__} takes {width} columns, but [X, X_tilde] has {XX.shape[1]}.")
    weight = np.ones(len(XX)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    return smooth, XX, weight / weight.sum()


def _row_blocks(XX: NDArray) -> Iterator[slice]:
    size = max(1, BYTES_AT_ONCE // (8 * XX.shape[1]))
    for start in range(0, len(XX), size):
        yield slice(start, start + size)


def _warn_incomplete(gap: float, change: float, n_steps: int) -> None:
    """Warn where the attributions do not add up to the change of the output."""
    if gap > COMPLETE_WITHIN * change + 1e-12:
        warnings.warn(
            f"integrated gradients miss the change of the output by {gap / max(change, 1e-300):.1%} on average with "
            f"n_steps={n_steps} (at most {COMPLETE_WITHIN:.0%} is expected): use more steps.",
            KnockoffWarning,
            stacklevel=3,
        )
