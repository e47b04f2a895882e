"""Saliency: how steeply the model's output rises in each column, averaged over the rows (the paper's section 4).

The output that is explained is, for each row, that of the class the model predicts: its logit less the mean of all
logits, which does not change when a constant is added to all of them and does not flatten where the model is certain. A
regressor has one output, its prediction.

Models need ``gradient(XX, direction) -> (n, n_columns)``, the gradient of sum_c direction_c output_c in each row, and
``decision(XX) -> (n, n_outputs)``: `NeuralClassifier`, `NeuralRegressor` and `TorchModel` have them. The gradient of a
linear model, also after scalers in a Pipeline, is its coefficients.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.importance.coefficients import coefficients_of, weights_of
from knockoffs.importance.scores import Scores, sum_by_feature
from knockoffs.progress import track

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
) -> Scores:
    """Gradient saliency: Z_j = s_j mean_i |d output_c(x_i) / d x_ij|, added over the columns of a feature.

    s_j^2 is the mean of the variances of column j and of its knockoff: units cancel, and the pair stays symmetric. The
    model has ``gradient`` and ``decision``, or is linear. Nothing is drawn, and y is not used.
    """
    smooth, XX, weight = _prepare(model, X, X_tilde, sample_weight)
    total = np.zeros(XX.shape[1])
    for rows in _row_blocks(XX):
        direction = smooth.direction(smooth.decision(XX[rows]))
        total += weight[rows] @ np.abs(smooth.gradient(XX[rows], direction))
    center = weight @ XX
    variance = weight @ (XX - center) ** 2
    scale = np.sqrt(np.mean(np.split(variance, 2), axis=0))
    Z, Z_tilde = (sum_by_feature(half * scale, feature_of) for half in np.split(total, 2))
    return Scores(Z, Z_tilde)


def integrated_gradients(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator,
    sample_weight: NDArray | None = None,
    n_steps: int = 50,
) -> Scores:
    """Integrated gradients: Z_j = mean_i |A_ij|, A_ij = (x_ij - b_j) int_0^1 d output_c(b + t (x_i - b)) / d x_j dt.

    The baseline b is the mean row. Attributions of a row add up to the change of its output from the baseline
    (completeness); the integral is a midpoint rule, so they do so up to its error, and a `KnockoffWarning` says when
    the mean gap is more than 2% of the mean change. Attributions of a feature's columns are added, then made absolute.
    ``n_steps`` are the points of the integral.
    """
    if n_steps < 1:
        raise InputError(f"n_steps={n_steps!r}: expected at least 1 point; 50 is the default.")
    smooth, XX, weight = _prepare(model, X, X_tilde, sample_weight)
    n_features = int(feature_of.max()) + 1
    members = np.eye(2 * n_features)[np.concatenate([feature_of, feature_of + n_features])]
    baseline = weight @ XX
    total, gap, change = np.zeros(2 * n_features), 0.0, 0.0
    for rows in track(list(_row_blocks(XX)), "integrated gradients"):
        output = smooth.decision(XX[rows])
        direction = smooth.direction(output)
        attribution = attributions(smooth, XX[rows], baseline, direction, n_steps)
        difference = ((output - smooth.decision(baseline[None])) * direction).sum(axis=1)
        gap += weight[rows] @ np.abs(attribution.sum(axis=1) - difference)
        change += weight[rows] @ np.abs(difference)
        total += weight[rows] @ np.abs(attribution @ members)
    if gap > COMPLETE_WITHIN * change + 1e-12:
        warnings.warn(
            f"integrated gradients miss the change of the output by {gap / max(change, 1e-300):.1%} on average with "
            f"n_steps={n_steps} (at most {COMPLETE_WITHIN:.0%} is expected): use more steps.",
            KnockoffWarning,
            stacklevel=2,
        )
    return Scores(total[:n_features], total[n_features:])


def attributions(smooth: Smooth, XX: NDArray, baseline: NDArray, direction: NDArray, n_steps: int = 50) -> NDArray:
    """Integrated gradients of sum_c direction_c output_c, of each row and column, shape (n, n_columns)."""
    mean_slope = np.zeros_like(XX)
    for t in (np.arange(n_steps) + 0.5) / n_steps:
        mean_slope += smooth.gradient(baseline + t * (XX - baseline), direction) / n_steps
    return (XX - baseline) * mean_slope


@dataclass(frozen=True)
class Smooth:
    """A model as its outputs and their gradient."""

    decision: Callable[[NDArray], NDArray]  # (n, n_columns) -> (n, n_outputs): logits, or the prediction of a regressor
    # (n, n_columns), direction (n, n_outputs) -> (n, n_columns): gradient of sum_c direction_c decision_c
    gradient: Callable[[NDArray, NDArray], NDArray]

    def direction(self, output: NDArray) -> NDArray:
        """Weights of the outputs in what is explained, (n, n_outputs): the largest logit less the mean of all."""
        n_outputs = output.shape[1]
        unit = np.eye(n_outputs)[output.argmax(axis=1)]
        return unit if n_outputs == 1 else unit - 1 / n_outputs


def as_smooth(model: object) -> Smooth:
    """Find the outputs and the gradient of a model, or say what is missing."""
    if hasattr(model, "gradient") and hasattr(model, "decision"):
        return Smooth(model.decision, model.gradient)
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    if hasattr(last, "coef_"):
        return _linear(model)
    missing = "decision" if hasattr(model, "gradient") else "gradient"
    raise InputError(
        f"{type(model).__name__} has no method {missing!r} (nor is it linear, with coef_), which the scores "
        "'gradient' and 'integrated_gradients' need: gradient(XX, direction) -> (n, n_columns) and "
        "decision(XX) -> (n, n_outputs). Use 'swap', 'permutation' or their integrals, which need predict alone."
    )


def _linear(model: object) -> Smooth:
    """Linear model, as its scores but for a constant in a regression: one score f of two classes is logits (0, f)."""
    coef, classes = coefficients_of(model), getattr(model, "classes_", None)
    two = classes is not None and len(classes) == 2 and len(coef) == 1
    if two:
        coef = np.vstack([np.zeros_like(coef), coef])
    expected = 1 if classes is None else len(classes)
    if len(coef) != expected:
        raise InputError(f"coef_ has {len(coef)} rows: expected {expected}, one for each class (or 1 for a regressor).")

    def decision(XX: NDArray) -> NDArray:
        if not hasattr(model, "decision_function"):
            return XX @ coef.T
        scores = model.decision_function(XX)
        return np.column_stack([np.zeros_like(scores), scores]) if two else scores

    return Smooth(decision, lambda XX, direction: direction @ coef)


def _prepare(
    model: object, X: NDArray, X_tilde: NDArray, sample_weight: NDArray | None
) -> tuple[Smooth, NDArray, NDArray]:
    """Model, [X, X_tilde] and weights of sum 1."""
    smooth = as_smooth(model)
    XX = np.hstack([X, X_tilde]).astype(float, copy=False)
    width = getattr(model, "n_features_in_", XX.shape[1])
    if width != XX.shape[1]:
        raise InputError(f"{type(model).__name__} takes {width} columns, but [X, X_tilde] has {XX.shape[1]}.")
    weight = weights_of(XX, sample_weight)
    return smooth, XX, weight / weight.sum()


def _row_blocks(XX: NDArray) -> Iterator[slice]:
    size = max(1, BYTES_AT_ONCE // (8 * XX.shape[1]))
    for start in range(0, len(XX), size):
        yield slice(start, start + size)
