"""Logistic and Poisson regression by one Gram: the quadratic approximation of the loss at a fit to some of the rows.

At a pilot fit, -log-likelihood is to second order a weighted least-squares loss, of the working response
eta + (y - mu) / v with the weights v (the variance of y under the pilot): one step of iteratively reweighted least
squares. Its Gram adds up over batches, so one pass over a table gives the whole path. With more than two classes every
class has a Gram of its own, and what couples them is left out, as in a step of glmnet's partial Newton method.

The pilot treats features and knockoffs alike, and so does the step: swapping columns for both swaps the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.response.gram import FoldGrams, Gram
from knockoffs.response.linear import LassoPathCV, LogisticPathCV, PoissonPathCV
from knockoffs.response.log_loss import indicator, probabilities

SMALLEST_CURVATURE = (
    1e-5  # of a variance: a row that the pilot is certain of would have a working response without bounds
)


@dataclass(frozen=True)
class Pilot:
    """A fit to some of the rows, at which the loss of all rows is approximated.

    Attributes
    ----------
    coef : array, shape (n_outputs, p)
    intercept : array, shape (n_outputs,)
    classes : array, optional
        Sorted labels, of a classification.
    counts : bool
        Poisson regression; a number, for which the squared error is exact, where there are no classes either.
    """

    coef: NDArray
    intercept: NDArray
    classes: NDArray | None = None
    counts: bool = False

    @classmethod
    def of(cls, model: LassoPathCV | LogisticPathCV | PoissonPathCV) -> Pilot:
        """Pilot of a fitted model."""
        coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        return cls(coef, intercept, getattr(model, "classes_", None), isinstance(model, PoissonPathCV))

    @property
    def squared_error(self) -> bool:
        """Whether nothing is approximated."""
        return self.classes is None and not self.counts

    def numbers(self, y: NDArray) -> NDArray:
        """Responses, shape (n_outputs, n): y itself, or indicators of classes."""
        if self.classes is None:
            return np.asarray(y, dtype=float)[None]
        return indicator(np.searchsorted(self.classes, y), len(self.classes))

    def working(self, X: NDArray, Y: NDArray) -> tuple[NDArray, NDArray]:
        """Working responses and their weights at the pilot, shape (n_outputs, n) each."""
        eta = self.coef @ X.T + self.intercept[:, None]
        if self.counts:
            mean = np.exp(np.clip(eta, -30.0, 30.0))
            variance = mean
        else:
            mean = probabilities(eta)
            variance = mean * (1 - mean)
        variance = np.maximum(variance, SMALLEST_CURVATURE)
        return eta + (Y - mean) / variance, variance


def fold_grams(
    pilot: Pilot, X: NDArray, y: NDArray, fold_of: NDArray, n_folds: int, weights: NDArray | None = None
) -> FoldGrams:
    """Grams of the folds of some rows: exact for squared error, else the approximation at the pilot.

    Parameters
    ----------
    pilot : Pilot
    X : array, shape (n, p)
    y : array, shape (n,)
    fold_of : array of int, shape (n,)
    n_folds : int
    weights : array, shape (n,), optional
    """
    Y = pilot.numbers(y)
    if pilot.squared_error:
        return FoldGrams.of_numbers(X, Y[0], fold_of, n_folds, weights)
    response, curvature = pilot.working(X, Y)
    plain, outputs = [], []
    for fold in range(n_folds):
        rows = np.flatnonzero(fold_of == fold)
        part, w = X[rows], None if weights is None else weights[rows]
        plain.append(Gram.of(part, Y[0, rows], w))
        outputs.append([Gram.of(part, z[rows], w, v[rows]) for z, v in zip(response, curvature, strict=True)])
    return FoldGrams(tuple(plain), tuple(zip(*outputs, strict=True)))
