"""What a linear model says of each column: its absolute coefficient, or what a feature adds to the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance.scores import Scores, sum_by_feature

# scikit-learn's scalers that act on each column alone, and how their scale_ changes a coefficient
SCALERS = {"StandardScaler": -1, "MaxAbsScaler": -1, "RobustScaler": -1, "MinMaxScaler": 1}

COLUMNS_AT_ONCE = 16


def coefficient_magnitude(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator | None = None,
    sample_weight: NDArray | None = None,
    more: Sequence[NDArray] = (),
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
    more : sequence of arrays, shape (n, n_columns)
        Further knockoffs, which the model was fitted on too, after X_tilde.
    """
    parts = (X, X_tilde, *more)
    w = weights_of(X, sample_weight)
    pooled = np.hypot.reduce([deviation(part, w) for part in parts]) / np.sqrt(len(parts))
    coef = coefficients_of(model, len(parts) * X.shape[1])
    size = in_units_of_y(np.abs(coef).sum(axis=0), model, y, w)
    return scores_of_sizes(coef, size, pooled, feature_of)


def contribution(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator | None = None,
    sample_weight: NDArray | None = None,
    more: Sequence[NDArray] = (),
) -> Scores:
    """Deviation of X_g b_g, the part of a feature in a linear prediction: sqrt(b_g' S_g b_g).

    For a feature of one column that is its absolute coefficient in standard deviations, as ``coefficient_magnitude``
    has it. Coefficients of columns that say nearly the same are large and of either sign, and nearly cancel: their sum
    of magnitudes is noise, their contribution is not. S_g is the covariance of the rows of X_g and X_tilde_g together,
    one and the same for both, so swapping a feature and its knockoff swaps their scores. Nothing is drawn. Parts of
    several classes are added up.
    """
    parts = (X, X_tilde, *more)
    coef = in_units_of_y(coefficients_of(model, len(parts) * X.shape[1]), model, y, sample_weight)
    w = weights_of(X, sample_weight)
    Z = np.empty((len(parts), int(feature_of.max()) + 1))
    for g in range(Z.shape[1]):
        columns = np.flatnonzero(feature_of == g)
        S = sum(_covariance(part[:, columns], w) for part in parts) / len(parts)
        for scores, own in zip(Z, np.split(coef, len(parts), axis=1), strict=True):
            half = own[:, columns]
            scores[g] = np.sqrt(np.maximum(np.einsum("ka,ab,kb->k", half, S, half), 0.0)).sum()
    return Scores(Z[0], Z[1], more=tuple(Z[2:]))


def _covariance(X: NDArray, weights: NDArray) -> NDArray:
    centred = X - np.average(X, axis=0, weights=weights)
    return (centred * weights[:, None]).T @ centred / weights.sum()


def weights_of(rows: NDArray, sample_weight: NDArray | None) -> NDArray:
    """Weights of the rows, 1 where none are given."""
    return np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=float)


def scores_of_sizes(coef: NDArray, size: NDArray, pooled: NDArray, feature_of: NDArray[np.intp]) -> Scores:
    """Scores of coefficients, shape (n_outputs, (m + 1) n_columns), from sizes in units of y and pooled deviations."""
    parts = np.split(size, len(size) // len(pooled))
    Z, Z_tilde, *more = (sum_by_feature(part * pooled, feature_of) for part in parts)
    return Scores(Z, Z_tilde, None if more else _slopes(coef, size, pooled, feature_of), tuple(more))


def _slopes(coef: NDArray, size: NDArray, pooled: NDArray, feature_of: NDArray[np.intp]) -> NDArray | None:
    """Coefficients with their signs, shape (2, n_features), where there is one output; NaN for several columns."""
    if len(coef) != 1:
        return None
    signed = (np.sign(coef[0]) * size).reshape(2, -1) * pooled
    alone = np.bincount(feature_of) == 1
    return np.where(alone, np.stack([sum_by_feature(half, feature_of) for half in signed]), np.nan)


def deviation(X: NDArray, weights: NDArray) -> NDArray:
    """Weighted standard deviation of each column, safe from overflow."""
    d = X.shape[1]
    starts = [*range(0, max(d - COLUMNS_AT_ONCE, 0) + 1, COLUMNS_AT_ONCE), d]  # a few at a time: copies are small
    return np.concatenate([_deviation_of_some(X[:, a:b], weights) for a, b in pairwise(starts)])


def _deviation_of_some(X: NDArray, weights: NDArray) -> NDArray:
    unit = np.maximum(X.max(axis=0), -X.min(axis=0))
    unit = np.where(unit > 0, unit, 1.0)
    centred = X / unit
    centred -= np.average(centred, axis=0, weights=weights)
    return unit * np.sqrt(np.average(centred**2, axis=0, weights=weights))


def in_units_of_y(size: NDArray, model: object, y: NDArray, sample_weight: NDArray | None) -> NDArray:
    """Coefficients of a regression in standard deviations of y; those of classes and of log-hazards as they are."""
    if hasattr(model, "classes_") or hasattr(model, "log_hazard") or np.asarray(y).dtype.kind not in "biuf":
        return size
    unit = float(deviation(np.asarray(y, dtype=float)[:, None], weights_of(y, sample_weight))[0])
    return size / unit if unit > 0 else size


def coefficients_of(model: object, n_columns: int | None = None) -> NDArray:
    """Coefficients of a fitted linear model by the columns it was given, shape (n_outputs, n_columns).

    Scalers before the model are undone: its coefficients refer to the scaled columns. Where ``n_columns``, those of
    [X, X_tilde], are not as many, it was fitted on something else.
    """
    model = getattr(model, "best_estimator_", model)  # a grid search has refitted its best
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    *before, last = steps
    if not hasattr(last, "coef_"):
        raise InputError(
            f"importance='coefficients' needs a linear model: {type(last).__name__} has no coef_. Use 'swap', "
            "'permutation' or their integrals."
        )
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
    if n_columns is not None and coef.shape[1] != n_columns:
        d = n_columns // 2
        raise InputError(
            f"{type(model).__name__} has {coef.shape[1]} coefficients for an output: expected {2 * d}, one for each of "
            f"{d} columns and {d} knockoffs. Fit it on [X, X_tilde]."
        )
    return coef
