"""What the linear models of y share: the response on one scale, rows that count, classes from linear predictors."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError


class PenaltyPath:
    """What all models with a path of L1 penalties take: see ``LassoPathCV``."""

    def __init__(
        self,
        *,
        alpha: float | None = None,
        n_alphas: int = 100,
        alpha_ratio: float = 1e-3,
        folds: int | ArrayLike = 5,
        random_state: int | Generator | None = None,
    ) -> None:
        self.alpha = alpha
        self.n_alphas = n_alphas
        self.alpha_ratio = alpha_ratio
        self.folds = folds
        self.random_state = random_state


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
    X: NDArray, y: NDArray, sample_weight: ArrayLike | None, folds: ArrayLike
) -> tuple[NDArray, NDArray, NDArray | None, ArrayLike]:
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


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """What linear classifiers share: classes from linear predictors."""

    coef_: NDArray
    intercept_: NDArray
    classes_: NDArray

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Linear predictor: (n,) for two classes, (n, n_classes) for more."""
        check_is_fitted(self)
        eta = validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_.T + self.intercept_
        return eta[:, 0] if len(self.coef_) == 1 else eta

    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Probability of each class, shape (n, n_classes)."""
        eta = self.decision_function(X)
        if eta.ndim == 1:
            eta = np.column_stack([np.zeros_like(eta), eta])
        return softmax(eta, axis=1)

    def predict(self, X: ArrayLike) -> NDArray:
        """Most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _labels(self, y: NDArray) -> NDArray[np.intp]:
        """Set ``classes_`` and return each row's class as its place among them."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has one class only, {self.classes_[0]!r}: a classifier needs at least two.")
        return codes
