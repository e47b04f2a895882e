"""LASSO coefficient difference and absolute regression coefficients: what a linear model says of each column."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance.scores import Scores, sum_by_feature

# scikit-learn's scalers that act on each column alone, and how their scale_ changes a coefficient
SCALERS = {"StandardScaler": -1, "MaxAbsScaler": -1, "RobustScaler": -1, "MinMaxScaler": 1}


def coefficient_magnitude(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator | None = None,
    sample_weight: NDArray | None = None,
) -> Scores:
    """Absolute coefficients in standard deviations: |coef_j| times the pooled deviation of X_j and X_tilde_j.

    With a lasso W = Z - Z_tilde is the LASSO coefficient difference, with logistic regression the statistic of the
    paper's section 5.1. A feature and its knockoff are measured in one and the same unit, so swapping them swaps
    their scores; and W does not change with the units of X, nor, for a regression, with those of y. Coefficients
    are summed over classes and over the columns of a feature. Nothing is drawn.

    Parameters
    ----------
    model : fitted estimator
        With ``coef_``, shape (2 n_columns,) or (n_outputs, 2 n_columns); or a pipeline that ends in one, with
        nothing before it but scalers.
    X, X_tilde : arrays, shape (n, n_columns)
    y : array, shape (n,)
    feature_of : array of int, shape (n_columns,)
    rng : Generator
        Not used.
    sample_weight : array, shape (n,), optional
    """
    d = X.shape[1]
    coef = coefficients_of(model)
    if coef.shape[1] != 2 * d:
        raise InputError(
            f"{type(model).__name__} has {coef.shape[1]} coefficients for an output: expected {2 * d}, one for each of "
            f"{d} columns and {d} knockoffs. Fit it on [X, X_tilde]."
        )
    w = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    y_deviation = 0.0
    if not hasattr(model, "classes_") and np.asarray(y).dtype.kind in "biuf":
        y_deviation = float(_deviation(np.asarray(y, dtype=float)[:, None], w)[0])
    deviations = np.concatenate([_deviation(X, w), _deviation(X_tilde, w)])
    return scores_in_deviations(coef, deviations, y_deviation, feature_of)


def scores_in_deviations(
    coef: NDArray, deviations: NDArray, y_deviation: float, feature_of: NDArray[np.intp]
) -> Scores:
    """Absolute coefficients in standard deviations, those of a column and its knockoff pooled.

    Parameters
    ----------
    coef : array, shape (n_outputs, 2 n_columns)
    deviations : array, shape (2 n_columns,)
    y_deviation : float
        0 for classes, which have none.
    feature_of : array of int, shape (n_columns,)
    """
    d = len(feature_of)
    pooled = np.hypot(deviations[:d], deviations[d:]) / np.sqrt(2)
    size = np.abs(coef).sum(axis=0)
    size = size / y_deviation if y_deviation > 0 else size
    return Scores(sum_by_feature(size[:d] * pooled, feature_of), sum_by_feature(size[d:] * pooled, feature_of))


def _deviation(X: NDArray, weights: NDArray) -> NDArray:
    """Weighted standard deviation of each column, safe from overflow."""
    unit = np.abs(X).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    centred = X / unit
    centred = centred - np.average(centred, axis=0, weights=weights)
    return unit * np.sqrt(np.average(centred**2, axis=0, weights=weights))


def coefficients_of(model: object) -> NDArray:
    """Coefficients of a fitted linear model by the columns it was given, shape (n_outputs, n_columns).

    Scalers before the model are undone: its coefficients refer to the scaled columns.
    """
    model = getattr(model, "best_estimator_", model)  # a grid search has refitted its best
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    *before, last = steps
    if not hasattr(last, "coef_"):
        raise InputError(_without_coefficients(last))
    coef = last.coef_
    if hasattr(coef, "toarray"):
        coef = coef.toarray()
    coef = np.atleast_2d(np.asarray(coef, dtype=float))
    for step in reversed(before):
        if step is None or step == "passthrough":
            continue
        name = type(step).__name__
        if name not in SCALERS:
            raise InputError(
                f"importance='coefficients': {name} stands before {type(last).__name__} in the pipeline, so a "
                f"coefficient does not belong to one column. Use scalers only ({', '.join(sorted(SCALERS))}), or "
                "importance='swap'."
            )
        scale = getattr(step, "scale_", None)  # None where the scaler was told not to scale
        if scale is not None:
            coef = coef * np.asarray(scale, dtype=float) ** SCALERS[name]
    return coef


def _without_coefficients(model: object) -> str:
    import knockoffs.importance

    known = set(getattr(knockoffs.importance, "SCORES", ())) - {"coefficients", "lasso_coefficient_difference"}
    if not hasattr(model, "gradient"):
        known -= {"gradient", "integrated_gradients"}
    allowed = ", ".join(map(repr, sorted(known))) or "'swap', 'permutation'"
    name = type(model).__name__
    return f"importance='coefficients' needs a linear model: {name} has no coef_. Scores it allows: {allowed}."
