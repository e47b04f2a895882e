"""Linear models of y as scikit-learn estimators: lasso, L1-logistic, and their plain versions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.l1_path import CrossValidation, assign_folds, cross_validate, make_design, penalties
from knockoffs.response.squared_error import SquaredErrorPath, lasso_at


class LassoPathCV(RegressorMixin, BaseEstimator):
    """Lasso with the penalty of the smallest cross-validated squared error, solved exactly.

    Columns and y are standardised inside, so the answer does not depend on their units; ``coef_`` and
    ``intercept_`` are in the original ones. Equal columns share their coefficient.

    Parameters
    ----------
    lam : float or None
        Penalty for columns and y of variance 1: minimise |y - X b|^2 / (2n) + lam |b|_1. None: cross-validated.
    n_lams : int
        Penalties on the path.
    lam_ratio : float
        The last penalty of the path as a share of the first, the smallest that leaves nothing in the model.
    folds : int or array-like, shape (n,)
        Number of folds, assigned at random, or a fold label for each row.
    random_state : None, int or Generator
        Assigns the folds.

    Attributes
    ----------
    coef_ : array, shape (n_columns,)
    intercept_ : float
    lam_ : float
        Penalty used, in the units of ``lam``.
    cross_validation_ : CrossValidation or None
        Penalties walked and the held-out loss of every fold.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 3))
    >>> model = LassoPathCV(random_state=0).fit(X, 1e-9 * X[:, 0])
    >>> (model.coef_ != 0).tolist()
    [True, False, False]
    """

    def __init__(
        self,
        *,
        lam: float | None = None,
        n_lams: int = 100,
        lam_ratio: float = 1e-3,
        folds: int | ArrayLike = 5,
        random_state: int | Generator | None = None,
    ) -> None:
        self.lam = lam
        self.n_lams = n_lams
        self.lam_ratio = lam_ratio
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        X, y = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        X, y, weights, folds = drop_weightless(X, np.asarray(y, dtype=float), sample_weight, self.folds)
        fold_of = assign_folds(folds, len(y), np.random.default_rng(self.random_state))
        design = make_design(X, weights, fold_of)
        y_mean, y_scale, ys = standardise(y[design.order], design.weights)
        self.cross_validation_: CrossValidation | None = None
        beta = np.zeros(design.X.shape[1])
        self.lam_ = 0.0 if self.lam is None else float(self.lam)
        if y_scale > 0 and beta.size:
            guess = np.zeros(0, dtype=np.intp)
            if self.lam is None:
                problem = SquaredErrorPath(design, ys)
                largest = float(np.abs((design.weights * ys) @ design.X).max()) / len(y)
                fold_weights = np.array([design.weights[rows].sum() for rows in design.folds])
                lams = penalties(largest, self.n_lams, self.lam_ratio)
                self.cross_validation_ = cross_validate(design, problem, lams, fold_weights)
                self.lam_ = self.cross_validation_.lam
                guess = np.unique(np.concatenate(problem.supports[self.lam_]))
            beta = lasso_at(design, ys, self.lam_, guess)
        self.coef_ = design.spread(beta) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


def standardise(y: NDArray, weights: NDArray) -> tuple[float, float, NDArray]:
    """Weighted mean and standard deviation of y (0 if it is constant), and y with mean 0 and variance 1."""
    unit = float(np.abs(y).max()) or 1.0
    mean = float(weights @ (y / unit)) / weights.sum()
    centred = y / unit - mean
    sd = float(np.sqrt(weights @ centred**2 / weights.sum()))
    if sd <= 1e-13 * np.sqrt(len(y)):
        return mean * unit, 0.0, np.zeros_like(y)
    return mean * unit, sd * unit, centred / sd


def drop_weightless(
    X: NDArray, y: NDArray, sample_weight: ArrayLike | None, folds: Any
) -> tuple[NDArray, NDArray, NDArray | None, Any]:
    """Leave out the rows of weight 0: they are not there."""
    if sample_weight is None:
        return X, y, None, folds
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(len(y), float(weights))
    if weights.shape != (len(y),):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one for each of {len(y)} rows.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError("sample_weight must be finite and not negative, and not all zero.")
    kept = weights > 0
    if not isinstance(folds, int | np.integer):
        folds = np.asarray(folds)[kept]
    return X[kept], y[kept], weights[kept], folds
