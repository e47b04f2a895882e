"""Linear models of y in which every column stays: least squares, logistic regression, ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression, RidgeCV

from knockoffs.errors import InputError
from knockoffs.response import kind_of
from knockoffs.response.l1_path import make_design
from knockoffs.response.linear import LinearClassifier, LinearRegressor, read_rows, standardise

PENALTIES = np.geomspace(1e-4, 1e2, 25)  # of a ridge, a row, for columns and y of variance 1


class Standardising(LinearRegressor):
    """Linear regression of a standardised y on standardised columns: the answer does not depend on their units."""

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        solve: Callable[[NDArray, NDArray, NDArray], NDArray],
    ) -> Self:
        """Set the coefficients to those that ``solve`` finds for standardised columns, y and weights."""
        XX, yy, weights, _ = read_rows(self, X, y, sample_weight, y_numeric=True)
        design = make_design(XX, weights, np.zeros(len(yy), dtype=np.intp))
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        self.coef_ = design.spread(solve(design.X, ys, design.weights)) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self


class PlainLinear(Standardising):
    """Least squares: of all minimisers the one with the smallest coefficients of the standardised columns.

    With more columns than rows, or columns that depend on each other, least squares leaves coefficients open;
    the smallest ones are the choice that no order or unit of the columns can change.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""

        def solve(Xs: NDArray, ys: NDArray, weights: NDArray) -> NDArray:
            root = np.sqrt(weights)
            return np.linalg.lstsq(Xs * root[:, None], ys * root, rcond=1e-10)[0]

        return self._fit(X, y, sample_weight, solve)


class RidgePathCV(Standardising):
    """Ridge regression with the penalty of the smallest leave-one-out squared error, which has a closed form.

    For columns that say nearly the same, among which a lasso picks one at random. Equal columns share their
    coefficient. Nothing is drawn.

    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> RidgePathCV().fit(X, 2 * X[:, 0] + 3 * X[:, 1]).coef_.round(2)
    array([2., 3.])
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""

        def solve(Xs: NDArray, ys: NDArray, weights: NDArray) -> NDArray:
            # with an intercept, although columns are centred: a row left out is not known by the mean of the others
            model = RidgeCV(PENALTIES * len(ys)).fit(Xs, ys, sample_weight=weights)
            self.alpha_ = float(model.alpha_) / len(ys)
            return model.coef_

        return self._fit(X, y, sample_weight, solve)


class PlainLogistic(LinearClassifier):
    """Logistic regression, binary or multinomial, with a ridge so small that only separated classes feel it.

    Minimises mean log-loss + ridge |b|^2 / 2 over the coefficients of standardised columns. Without the ridge the
    coefficients of classes that a plane separates would be infinite; with it they stay of the order
    log(1 / ridge), and all others move by about ridge relative.
    """

    def __init__(self, *, ridge: float = 1e-4) -> None:
        self.ridge = ridge

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and labels y."""
        XX, yy, weights, _ = read_rows(self, X, y, sample_weight)
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


Seed = int | Generator | None


def make_linear(task: str, *, random_state: Seed = None, n_jobs: int | None = None) -> PlainLinear:
    """Plain least squares; nothing in it is drawn."""
    _refuse_classes(task, "linear")
    return PlainLinear()


def make_ridge(task: str, *, random_state: Seed = None, n_jobs: int | None = None) -> RidgePathCV:
    """Ridge regression; nothing in it is drawn."""
    _refuse_classes(task, "ridge")
    return RidgePathCV()


def _refuse_classes(task: str, name: str) -> None:
    if kind_of(task) != "regression":
        raise InputError(f"estimator={name!r} predicts a number, and y has classes. Use 'lasso' or 'logistic'.")


def make_logistic(task: str, *, random_state: Seed = None, n_jobs: int | None = None) -> PlainLogistic:
    """Plain logistic regression; nothing in it is drawn."""
    if kind_of(task) == "regression":
        raise InputError(
            "estimator='logistic' predicts classes, and y is a number. Use 'lasso' or 'linear', or say "
            "task='classification'."
        )
    return PlainLogistic()
