"""Linear models of y without a penalty worth the name: least squares and logistic regression."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.l1_path import (
    make_design,
)
from knockoffs.response.linear_parts import LinearClassifier, drop_weightless, standardise


class PlainLinear(RegressorMixin, BaseEstimator):
    """Least squares: of all minimisers the one with the smallest coefficients of the standardised columns.

    With more columns than rows, or columns that depend on each other, least squares leaves coefficients open;
    the smallest ones are the choice that no order or unit of the columns can change.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, _ = drop_weightless(XX, np.asarray(yy, dtype=float), sample_weight, 0)
        design = make_design(XX, weights, np.zeros(len(yy), dtype=np.intp))
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        root = np.sqrt(design.weights)
        beta = np.linalg.lstsq(design.X * root[:, None], ys * root, rcond=1e-10)[0]
        self.coef_ = design.spread(beta) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


class PlainLogistic(LinearClassifier):
    """Logistic regression, binary or multinomial, with a ridge so small that only separated classes feel it.

    Minimises mean log-loss + ridge |b|^2 / 2 over the coefficients of standardised columns. Without the ridge the
    coefficients of classes that a plane separates would be infinite; with it they stay of the order
    log(1 / ridge), and all others move by about ridge relative.

    Parameters
    ----------
    ridge : float
    """

    def __init__(self, *, ridge: float = 1e-4) -> None:
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and labels y."""
        XX, yy = validate_data(self, X, y, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, _ = drop_weightless(XX, np.asarray(yy), sample_weight, 0)
        codes = self._labels(yy)
        if not self.ridge > 0:
            raise InputError(f"ridge={self.ridge!r}: use a positive number, for instance 1e-4.")
        design = make_design(XX, weights, np.zeros(len(yy), dtype=np.intp))
        n, d = design.X.shape
        basis, Z = np.eye(d), design.X
        if d > n:  # the solution is a combination of the rows: n coordinates are enough
            U, s, basis = np.linalg.svd(design.X, full_matrices=False)
            Z = U * s
        n_outputs = 1 if len(self.classes_) == 2 else len(self.classes_)
        # Newton's method is exact to rounding; its Hessian is the limit
        solver = "newton-cholesky" if n_outputs * Z.shape[1] <= 3000 else "lbfgs"
        model = LogisticRegression(C=1 / (n * self.ridge), solver=solver, tol=1e-10, max_iter=1000)
        if d:
            model.fit(Z, codes[design.order], sample_weight=design.weights)
            beta, intercept = model.coef_ @ basis, model.intercept_
        else:
            share = np.bincount(codes[design.order], weights=design.weights) / n
            beta = np.zeros((n_outputs, 0))
            intercept = np.log(share) if n_outputs > 1 else np.log(share[1:] / share[:1])
        self.coef_ = design.spread(beta)
        self.intercept_ = intercept - self.coef_ @ design.mean
        return self
