"""Linear models of y as scikit-learn estimators: lasso, L1-logistic, L1-Poisson, and plain versions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.l1_path import (
    CrossValidation,
    assign_folds,
    check_path,
    cross_validate,
    make_design,
    penalties,
    train_weights,
)
from knockoffs.response.likelihood import LikelihoodSet, solve_exactly
from knockoffs.response.log_loss import LogLoss, indicator, l1_logistic_at, null_probabilities
from knockoffs.response.poisson_loss import PoissonLoss
from knockoffs.response.squared_error import SquaredErrorSet, lasso_at
from knockoffs.response.task import kind_of


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
        check_path(self.lam, self.n_lams, self.lam_ratio)
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, folds = drop_weightless(XX, np.asarray(yy, dtype=float), sample_weight, self.folds)
        fold_of = assign_folds(folds, len(yy), np.random.default_rng(self.random_state))
        design = make_design(XX, weights, fold_of)
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        self.cross_validation_: CrossValidation | None = None
        beta = np.zeros(design.X.shape[1])
        self.lam_ = 0.0 if self.lam is None else float(self.lam)
        if y_scale > 0 and beta.size:
            guess = np.zeros(0, dtype=np.intp)
            if self.lam is None:
                largest = float(np.abs((design.weights * ys) @ design.X).max()) / len(yy)
                sets = [
                    SquaredErrorSet(design.X, ys, weights, rows, design.weights)
                    for weights, rows in zip(train_weights(design), design.folds, strict=True)
                ]
                lams = penalties(largest, self.n_lams, self.lam_ratio)
                self.cross_validation_, guess = cross_validate(design, sets, lams)
                self.lam_ = self.cross_validation_.lam
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


class _LinearClassifier(ClassifierMixin, BaseEstimator):
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


class LogisticPathCV(_LinearClassifier):
    """L1-logistic regression, binary or multinomial, with the penalty of the smallest cross-validated log-loss.

    Columns are standardised inside; ``coef_`` and ``intercept_`` are in the original units. Equal columns share
    their coefficients. Folds are stratified by class. Labels may be of any kind that can be sorted.

    Parameters
    ----------
    lam : float or None
        Penalty for columns of variance 1: minimise mean log-loss + lam |b|_1. None: cross-validated.
    n_lams, lam_ratio, folds, random_state
        As for ``LassoPathCV``.

    Attributes
    ----------
    coef_ : array, shape (1, n_columns) for two classes, (n_classes, n_columns) for more
    intercept_ : array, shape (1,) or (n_classes,)
    classes_ : array
    lam_ : float
    cross_validation_ : CrossValidation or None
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
        """Fit to X, shape (n, n_columns), and labels y."""
        check_path(self.lam, self.n_lams, self.lam_ratio, positive=True)
        XX, yy = validate_data(self, X, y, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, folds = drop_weightless(XX, np.asarray(yy), sample_weight, self.folds)
        codes = self._labels(yy)
        rng = np.random.default_rng(self.random_state)
        fold_of = assign_folds(folds, len(yy), rng, codes)
        cross_validated = self.lam is None and fold_of.max() > 0
        design = make_design(XX, weights, fold_of if cross_validated else np.zeros(len(yy), dtype=np.intp))
        Y = indicator(codes[design.order], len(self.classes_))
        self.cross_validation_: CrossValidation | None = None
        guess = np.zeros(0, dtype=np.intp)
        w = design.weights / design.weights.sum()
        largest = float(np.abs((w * (Y - null_probabilities(Y, w))) @ design.X).max(initial=0.0))
        self.lam_ = largest if self.lam is None else float(self.lam)
        if cross_validated and largest > 0:
            sets = [
                LikelihoodSet(LogLoss(), design.X, Y, weights, rows, design.weights)
                for weights, rows in zip(train_weights(design), design.folds, strict=True)
            ]
            lams = penalties(largest, self.n_lams, self.lam_ratio)
            self.cross_validation_, guess = cross_validate(design, sets, lams)
            self.lam_ = self.cross_validation_.lam
        beta, intercept = l1_logistic_at(design, Y, self.lam_, guess)
        self.coef_ = design.spread(beta)
        self.intercept_ = intercept - self.coef_ @ design.mean
        return self


class PoissonPathCV(RegressorMixin, BaseEstimator):
    """L1-penalised Poisson regression with a log link, with the penalty of the smallest cross-validated deviance.

    Columns are standardised and y is divided by its mean inside; ``coef_`` and ``intercept_`` are in the original
    units: the mean of y is exp(X coef + intercept). Equal columns share their coefficient.

    Parameters
    ----------
    lam : float or None
        Penalty for columns of variance 1 and y of mean 1: minimise mean(exp(eta) - y eta) + lam |b|_1. None:
        cross-validated.
    n_lams, lam_ratio, folds, random_state
        As for ``LassoPathCV``.

    Attributes
    ----------
    coef_ : array, shape (n_columns,)
    intercept_ : float
    lam_ : float
    cross_validation_ : CrossValidation or None

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> model = PoissonPathCV(lam=0.1).fit(X, rng.poisson(np.exp(X[:, 0])))
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
        """Fit to X, shape (n, n_columns), and counts y: numbers that are not negative."""
        check_path(self.lam, self.n_lams, self.lam_ratio, positive=True)
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, folds = drop_weightless(XX, np.asarray(yy, dtype=float), sample_weight, self.folds)
        if (yy < 0).any():
            raise InputError(f"y holds {yy[yy < 0][0]:g}: counts are not negative. Use LassoPathCV.")
        fold_of = assign_folds(folds, len(yy), np.random.default_rng(self.random_state))
        design = make_design(XX, weights, fold_of)
        w = design.weights / design.weights.sum()
        y_mean = float(w @ yy[design.order])
        if y_mean == 0:
            raise InputError("y is zero in every row: there is nothing to predict.")
        Y = yy[design.order][None] / y_mean
        self.cross_validation_: CrossValidation | None = None
        guess = np.zeros(0, dtype=np.intp)
        largest = float(np.abs((w * (Y[0] - 1)) @ design.X).max(initial=0.0))
        self.lam_ = largest if self.lam is None else float(self.lam)
        if self.lam is None and largest > 0:
            sets = [
                LikelihoodSet(PoissonLoss(), design.X, Y, weights, rows, design.weights)
                for weights, rows in zip(train_weights(design), design.folds, strict=True)
            ]
            self.cross_validation_, guess = cross_validate(
                design, sets, penalties(largest, self.n_lams, self.lam_ratio)
            )
            self.lam_ = self.cross_validation_.lam
        beta, intercept = solve_exactly(PoissonLoss(), design, Y, self.lam_, guess)
        self.coef_ = design.spread(beta)[0]
        self.intercept_ = float(intercept[0] + np.log(y_mean) - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return np.exp(validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_)


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


class PlainLogistic(_LinearClassifier):
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


LINEAR_MODELS = (LassoPathCV, PoissonPathCV, PlainLinear, _LinearClassifier)  # their coefficients speak for them


def make_lasso(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> LassoPathCV | LogisticPathCV | PoissonPathCV:
    """Lasso for a number, L1-Poisson regression for a count, L1-logistic for classes; one thread is all they use."""
    if task == "count":
        return PoissonPathCV(random_state=random_state)
    model = LassoPathCV if kind_of(task) == "regression" else LogisticPathCV
    return model(random_state=random_state)


def make_logistic(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> PlainLogistic:
    """Plain logistic regression; nothing in it is drawn."""
    if kind_of(task) == "regression":
        raise InputError(
            "estimator='logistic' predicts classes, and y is a number. Use 'lasso' or 'linear', or say "
            "task='classification'."
        )
    return PlainLogistic()


def make_linear(task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None) -> PlainLinear:
    """Plain least squares; nothing in it is drawn."""
    if kind_of(task) != "regression":
        raise InputError("estimator='linear' predicts a number, and y has classes. Use 'lasso' or 'logistic'.")
    return PlainLinear()
