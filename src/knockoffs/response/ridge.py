"""Ridge regression: for columns that say nearly the same, among which a lasso picks one at random."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import RidgeCV
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.l1_path import make_design
from knockoffs.response.linear_parts import drop_weightless, standardise
from knockoffs.response.task import kind_of

PENALTIES = np.geomspace(1e-4, 1e2, 25)  # a row, for columns and y of variance 1


class RidgePathCV(RegressorMixin, BaseEstimator):
    """Ridge regression with the penalty of the smallest leave-one-out squared error, which has a closed form.

    Columns and y are standardised inside, so the answer does not depend on their units; ``coef_`` and ``intercept_``
    are in the original ones. Equal columns share their coefficient. Nothing is drawn.

    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> RidgePathCV().fit(X, 2 * X[:, 0] + 3 * X[:, 1]).coef_.round(2)
    array([2., 3.])
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, _ = drop_weightless(XX, np.asarray(yy, dtype=float), sample_weight, 0)
        design = make_design(XX, weights, np.zeros(len(yy), dtype=np.intp))
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        # with an intercept, although columns are centred: a row that is left out is not known by the mean of the others
        model = RidgeCV(PENALTIES * len(ys)).fit(design.X, ys, sample_weight=design.weights)
        self.alpha_ = float(model.alpha_) / len(ys)
        self.coef_ = design.spread(model.coef_) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


def make_ridge(task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None) -> RidgePathCV:
    """Ridge regression; nothing in it is drawn."""
    if kind_of(task) != "regression":
        raise InputError("estimator='ridge' predicts a number, and y has classes. Use 'lasso' or 'logistic'.")
    return RidgePathCV()
