"""Residuals of y given the other columns, and the columns that X_G may interact with.

Everything here is a function of y and the columns outside G. That, and no property of the model, makes the test exact:
given them, X_G and its draws are exchangeable under the null hypothesis, and the statistic treats them alike. Nothing
here is random: folds are fixed, so a residual is a function of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from knockoffs.conditional_tests import TEST_MODELS
from knockoffs.errors import unknown_option
from knockoffs.response import Classifier, Estimator, FittedModel, fitted_copy, make_boosting, task_of
from knockoffs.response.cox import martingale_residuals, partial_likelihood_loss
from knockoffs.response.linear import PenaltyPath, make_lasso

TARGET_KINDS = ("number", "count", "binary", "classes", "ordinal", "survival")


@dataclass(frozen=True)
class Distilled:
    """y as seen from the columns outside the group.

    Attributes
    ----------
    weights : array, shape (n, m)
        Residuals of y, one column for a number or two classes, one a class for more; then their products with the
        columns that X_G may interact with. Every residual is centred.
    n_residuals : int
        How many of the columns are residuals themselves.
    """

    weights: NDArray
    n_residuals: int


@dataclass(frozen=True)
class Response:
    """How y is predicted from other columns, chosen once for many groups.

    Residuals of the lasso are those of one fit to all rows, as in the distilled test of Liu et al. (2022): no division
    of the rows decides them. Other models may fit their rows too well, so theirs are cross-fitted.

    Parameters
    ----------
    y : array, shape (n,)
        Numbers, or codes 0 .. K - 1 of classes.
    kind : {"number", "count", "binary", "classes", "ordinal", "survival"}
    name : str
        Of the model.
    estimator : Estimator
        Unfitted; a lasso has its penalty.
    n_partners : int
        Columns whose products with the residuals are looked at.
    n_folds : int
        Of cross-fitting.
    """

    y: NDArray
    kind: str
    name: str
    estimator: Estimator
    n_partners: int = 6
    n_folds: int = 3

    def distil(self, rest: NDArray) -> Distilled:
        """Residuals of y given ``rest``, shape (n, c), and their products with its most promising columns."""
        Y = responses(self.y, self.kind)
        predicted = self.fitted_values(rest) if isinstance(self.estimator, PenaltyPath) else self.held_out(rest)
        survival = self.kind == "survival"
        r = martingale_residuals(self.y, predicted[:, 0])[:, None] if survival else Y - predicted
        r = r - r.mean(axis=0)
        Z = standardised(rest)
        partners = Z[:, _partners(Z, Y, self.n_partners)]
        return Distilled(np.hstack([r, (r[:, :, None] * partners[:, None, :]).reshape(len(r), -1)]), r.shape[1])

    def fitted_values(self, rest: NDArray) -> NDArray:
        """Predictions of Y, shape (n, m), by the model fitted to all rows."""
        Y = responses(self.y, self.kind)
        if rest.shape[1] == 0:
            return np.tile(Y.mean(axis=0), (len(Y), 1))
        model = fitted_copy(self.estimator, rest, self.y, np.random.default_rng(0))
        return _predictions(model, rest, Y.shape[1], np.unique(self.y))

    def held_out(self, rest: NDArray) -> NDArray:
        """Predictions of Y, shape (n, m), of each fold by the model fitted to the others."""
        predicted = np.empty(responses(self.y, self.kind).shape)
        folds = fixed_folds(len(self.y), self.n_folds)
        for held, found in cross_fit(self.estimator, rest, self.y, self.kind, folds):
            predicted[held] = found
        return predicted


def choose_response(
    rest: NDArray, y: NDArray, kind: str, model: object = "best", *, few_rows: int = 100, sure: float = 2.5
) -> Response:
    """Model of y that predicts held-out rows best from the columns ``rest``, shape (n, c), and its penalty.

    Parameters
    ----------
    rest : array, shape (n, c)
        Columns that hold none of the group that will be tested.
    y, kind
        As ``Response`` has them.
    model : {"best", "lasso", "boosting"} or estimator
        "best" compares the lasso with boosting by their held-out losses.
    few_rows : int
        With fewer rows boosted trees are not tried.
    sure : float
        Standard errors by which boosting is behind after a fold when the other folds are not fitted any more.
    """
    first, *others = (
        Response(y, kind, name, _with_penalty(estimator, rest, y))
        for name, estimator in _candidates(model, kind, len(y) < few_rows)
    )
    if not others or rest.shape[1] == 0:
        return first
    Y = responses(y, kind)
    predicted, excess = first.held_out(rest), np.empty(0)
    for held, found in cross_fit(others[0].estimator, rest, y, kind, fixed_folds(len(y))):
        mine, theirs = (_losses(y[held], Y[held], part, kind) for part in (found, predicted[held]))
        excess = np.append(excess, mine - theirs)
        if excess.mean() > sure * excess.std() / np.sqrt(len(excess)):
            break
    return first if excess.mean() > 0 else others[0]


def _losses(y: NDArray, Y: NDArray, predicted: NDArray, kind: str) -> NDArray:
    """Loss of each held-out row: the squared error, or its share in the partial likelihood of these rows."""
    if kind == "survival":
        return partial_likelihood_loss(y, predicted[:, 0])
    return np.sum((Y - predicted) ** 2, axis=1)


def _with_penalty(estimator: Estimator, rest: NDArray, y: NDArray) -> Estimator:
    """Model with the penalty that cross-validation finds, where it has a path of them; without columns as it is."""
    if not isinstance(estimator, PenaltyPath) or estimator.alpha is not None or rest.shape[1] == 0:
        return estimator
    fitted = clone(estimator).set_params(folds=fixed_folds(len(y))).fit(rest, y)
    return clone(estimator).set_params(alpha=float(fitted.alpha_))


def fixed_folds(n: int, n_folds: int = Response.n_folds) -> NDArray[np.intp]:
    """Fold of each of n rows, always the same."""
    return np.random.default_rng(0).permutation(np.arange(n) % n_folds)


def responses(y: NDArray, kind: str) -> NDArray:
    """Y as numbers, shape (n, m): itself, the second of two classes, an indicator for each of more, or residuals.

    Of survival times they are the martingale residuals without columns.
    """
    if kind not in TARGET_KINDS:
        raise unknown_option("kind", kind, TARGET_KINDS)
    if kind == "classes":
        Y = (y[:, None] == np.unique(y)).astype(float)
        return Y[:, 1:] if Y.shape[1] == 2 else Y
    return (martingale_residuals(y) if kind == "survival" else np.asarray(y, dtype=float))[:, None]


def _candidates(model: object, kind: str, few_rows: bool, n_trees: int = 60) -> list[tuple[str, Estimator]]:
    """Names and unfitted models; residuals ask for fewer trees than predictions do."""
    task = task_of(kind)
    if not isinstance(model, str):
        return [(type(model).__name__, cast(Estimator, model))]
    if model not in TEST_MODELS:
        raise unknown_option("model", model, TEST_MODELS)
    makers = {
        "lasso": lambda: make_lasso(task, random_state=0),
        "boosting": lambda: make_boosting(task, random_state=0, max_iter=n_trees),
    }
    names = (model,) if model != "best" else ("lasso",) if few_rows else ("lasso", "boosting")
    return [(name, makers[name]()) for name in names]


def cross_fit(
    estimator: Estimator, rest: NDArray, y: NDArray, kind: str, fold_of: NDArray[np.intp]
) -> Iterator[tuple[NDArray, NDArray]]:
    """Rows of each fold, and the prediction of their Y by a model that was fitted to the other folds."""
    Y, classes, n_folds = responses(y, kind), np.unique(y), int(fold_of.max()) + 1
    probable = hasattr(estimator, "predict_proba")
    # where a class has too few rows, or there are no columns, the mean stands for a model
    fitted = [
        rest.shape[1] > 0 and (not probable or len(np.unique(y[fold_of != f])) == len(classes)) for f in range(n_folds)
    ]
    rng = np.random.default_rng(0)
    for fold in range(n_folds):
        held = fold_of == fold
        if not fitted[fold]:
            yield held, np.tile(Y[~held].mean(axis=0), (int(held.sum()), 1))
            continue
        model = fitted_copy(estimator, rest[~held], y[~held], rng)
        yield held, _predictions(model, rest[held], Y.shape[1], classes)


def _predictions(model: FittedModel, rest: NDArray, m: int, classes: NDArray) -> NDArray:
    """Predictions of Y, shape (n, m): probabilities of classes where the model has them."""
    if hasattr(model, "predict_proba"):
        p = cast(Classifier, model).predict_proba(rest)
        return p[:, 1:] if p.shape[1] == 2 else p
    found = np.ravel(model.predict(rest))[:, None]
    return (found == classes).astype(float) if m > 1 else found


def standardised(X: NDArray) -> NDArray:
    """Columns in standard deviations from their mean; constant ones are 0."""
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)


def _partners(Z: NDArray, Y: NDArray, most: int) -> NDArray[np.intp]:
    """Columns most associated with Y: in mean, in size, or size with size, which interactions alone leave behind."""
    size, response = standardised(np.abs(Z)), standardised(Y)
    spread = standardised(response**2)
    seen = [np.abs(A.T @ B).max(axis=1) for A, B in ((Z, response), (size, response), (size, spread))]
    return np.argsort(-np.max(seen, axis=0), kind="stable")[:most]
