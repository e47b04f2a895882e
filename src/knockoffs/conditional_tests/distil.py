"""What the other features say of y: residuals of a model without X_j, and the features X_j may interact with.

Everything here is a function of y and the other features alone. That, and no property of the model, makes the test
exact: given them, X_j and its draws are exchangeable under the null hypothesis, and the statistic treats them alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.response.clone import Classifier, Estimator, fitted_copy
from knockoffs.response.linear import PenaltyPath, make_lasso, with_penalties
from knockoffs.response.trees import make_boosting

KINDS = ("number", "count", "binary", "classes", "ordinal")
MODELS = ("best", "lasso", "boosting")
FEW_ROWS = 100  # below it a boosted tree is not tried
N_FOLDS = 3
N_TREES = 60  # of the boosted model; residuals ask for less than predictions do
N_PARTNERS = 6
SURE = 2.5  # standard errors by which a candidate, after a fold, is behind the one before it and out of it


@dataclass(frozen=True)
class Distilled:
    """y as seen from the other features.

    Attributes
    ----------
    weights : array, shape (n, m)
        Residuals of y, one column for a number or two classes, one a class for more; then their products with the
        features that X_j may interact with. Every column is centred.
    n_residuals : int
        How many of the columns are residuals themselves.
    model : str
        Which model was used.
    """

    weights: NDArray
    n_residuals: int
    model: str


def distil(rest: NDArray, y: NDArray, *, kind: str, model: object = "best", rng: Generator) -> Distilled:
    """Residuals of y, cross-fitted on the other features, and their products with the most promising of those.

    Parameters
    ----------
    rest : array, shape (n, d - 1)
        The features without X_j.
    y : array, shape (n,)
        Numbers, or codes 0 .. K - 1 of classes.
    kind : {"number", "count", "binary", "classes", "ordinal"}
    model : {"best", "lasso", "boosting"} or estimator
        "best" is the one with the smaller squared residuals, which are those of held-out rows. Boosting, whose fits
        cost the most, is left out after the first fold that leaves it ``SURE`` standard errors behind the lasso.
    rng : numpy.random.Generator
    """
    Y = responses(y, kind)
    fold_of = rng.permutation(np.arange(len(y)) % N_FOLDS)
    best, r = "", np.empty(0)
    for name, estimator in _candidates(model, kind, len(y), rng):
        found = _residuals(_cross_fit(estimator, rest, y, Y, fold_of, rng), Y, r if best else None)
        if found is not None and (not best or (found**2).sum() < (r**2).sum()):
            best, r = name, found
    r = r - r.mean(axis=0)
    partners = standardised(rest)[:, _partners(standardised(rest), Y)]
    products = (r[:, :, None] * partners[:, None, :]).reshape(len(y), -1)
    return Distilled(np.hstack([r, products]), r.shape[1], best)


def responses(y: NDArray, kind: str) -> NDArray:
    """Y as numbers, shape (n, m): itself, the second of two classes, or an indicator for each of more."""
    if kind not in KINDS:
        raise unknown_option("kind", kind, KINDS)
    if kind == "classes":
        Y = (y[:, None] == np.unique(y)).astype(float)
        return Y[:, 1:] if Y.shape[1] == 2 else Y
    return np.asarray(y, dtype=float)[:, None]


def _candidates(model: object, kind: str, n: int, rng: Generator) -> list[tuple[str, Estimator]]:
    task = "classification" if kind in ("binary", "classes") else "regression"
    seed = int(rng.integers(2**31))
    if not isinstance(model, str):
        return [(type(model).__name__, cast(Estimator, model))]
    if model not in MODELS:
        raise unknown_option("model", model, MODELS)
    makers = {
        "lasso": lambda: make_lasso(task, random_state=seed),
        "boosting": lambda: make_boosting(task, random_state=seed, max_iter=N_TREES),
    }
    names = ("lasso",) if n < FEW_ROWS else ("lasso", "boosting")
    return [(name, makers[name]()) for name in (names if model == "best" else (model,))]


def _residuals(predictions: Iterator[tuple[NDArray, NDArray]], Y: NDArray, others: NDArray | None) -> NDArray | None:
    """Residuals of all folds; None, without the folds after it, from one on that leaves no hope against others."""
    residuals, seen = np.empty(Y.shape), np.zeros(len(Y), dtype=bool)
    for held, predicted in predictions:
        residuals[held] = Y[held] - predicted
        seen |= held
        if others is not None and not seen.all():
            behind = (residuals[seen] ** 2).sum(axis=1) - (others[seen] ** 2).sum(axis=1)
            if behind.mean() > SURE * behind.std() / np.sqrt(len(behind)):
                return None
    return residuals


def _cross_fit(
    estimator: Estimator, rest: NDArray, y: NDArray, Y: NDArray, fold_of: NDArray[np.intp], rng: Generator
) -> Iterator[tuple[NDArray, NDArray]]:
    """Rows of each fold, and the prediction of their Y by a model that was fitted to the other folds."""
    classes = np.unique(y)
    probable = hasattr(estimator, "predict_proba")
    # without a class of so few rows, or without features, the shares of the classes and the mean stand for a model
    fitted = [
        rest.shape[1] > 0 and (not probable or len(np.unique(y[fold_of != f])) == len(classes)) for f in range(N_FOLDS)
    ]
    models = [estimator] * N_FOLDS
    if all(fitted) and isinstance(estimator, PenaltyPath) and estimator.alpha is None:
        models = cast(list[Estimator], with_penalties(estimator, rest, y, fold_of))
    for fold in range(N_FOLDS):
        held = fold_of == fold
        if not fitted[fold]:
            yield held, np.tile(Y.mean(axis=0), (int(held.sum()), 1))
            continue
        model = fitted_copy(models[fold], rest[~held], y[~held], rng)
        if probable:
            p = cast(Classifier, model).predict_proba(rest[held])
            yield held, p[:, 1:] if p.shape[1] == 2 else p
        else:
            found = np.ravel(model.predict(rest[held]))[:, None]
            yield held, found == classes if Y.shape[1] > 1 else found


def standardised(X: NDArray) -> NDArray:
    """Columns in standard deviations from their mean; constant ones are 0."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def _partners(Z: NDArray, Y: NDArray) -> NDArray[np.intp]:
    """Features most associated with Y: in mean, in size, or size with size, which interactions alone leave behind."""
    size, response = standardised(np.abs(Z)), standardised(Y)
    spread = standardised(response**2)
    seen = [np.abs(A.T @ B).max(axis=1) for A, B in ((Z, response), (size, response), (size, spread))]
    return np.argsort(-np.max(seen, axis=0), kind="stable")[:N_PARTNERS]
