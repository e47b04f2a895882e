"""Linear models of y with a path of L1 penalties, as scikit-learn estimators: lasso, L1-logistic, L1-Poisson."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response import kind_of
from knockoffs.response.gram import FoldGrams, Gram
from knockoffs.response.gram_lasso import aic_penalty, fit_lasso
from knockoffs.response.l1_path import (
    CrossValidation,
    PathDesign,
    TrainingSet,
    assign_folds,
    check_path,
    cross_validate,
    make_design,
    penalties,
    polish,
    solve_at,
    train_weights,
)
from knockoffs.response.likelihood import Likelihood, LikelihoodSet, LogLoss, PoissonLoss, indicator, polish_likelihood
from knockoffs.response.squared_error import ErrorsOfRows, SquaredErrorSet

MANY_CELLS, ROWS_FOR_GRAMS = 1_000_000, 10  # from which on sums of products cost less than a walk over the rows
EXACT_SIZES = (1e-60, 1e60)  # sizes of numbers whose products are exact


class PenaltyPath(BaseEstimator):
    """What all models with a path of L1 penalties share: see ``LassoPathCV`` for their parameters."""

    alpha_: float
    cross_validation_: CrossValidation | None

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

    def _folds(self, folds: ArrayLike, n: int, classes: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Fold of each row; one fold where no penalty is chosen by them."""
        fold_of = assign_folds(folds, n, np.random.default_rng(self.random_state), classes)
        return fold_of if self.alpha is None else np.zeros(n, dtype=np.intp)

    def _follow(
        self, design: PathDesign, whole: TrainingSet, fold: Callable[[NDArray, slice, NDArray], TrainingSet]
    ) -> None:
        """Set ``alpha_``, by cross-validation if none was asked for, and solve ``whole``, the problem of all rows.

        ``fold`` makes the problem of a fold of the weights of its training rows, its held-out rows and their weights.
        """
        largest = float(np.abs(whole.null_residual() @ design.X).max(initial=0.0))  # leaves nothing in the model
        self.alpha_ = largest if self.alpha is None else float(self.alpha)
        self.cross_validation_, columns = None, np.zeros(0, dtype=np.intp)
        if self.alpha is None and largest > 0 and len(design.folds) > 1:
            sets = []
            for weights, rows in zip(train_weights(design), design.folds, strict=True):
                sets.append(fold(weights, rows, design.weights))
            alphas = penalties(largest, self.n_alphas, self.alpha_ratio)
            self.cross_validation_, columns = cross_validate(sets, alphas, design.fold_weights, design.gradients)
            self.alpha_ = self.cross_validation_.alpha
        if design.X.shape[1]:  # else every column is constant
            solve_at(design, whole, self.alpha_, columns)

    def _maximise(
        self,
        likelihood: Likelihood,
        design: PathDesign,
        Y: NDArray,
        fold: Callable[[NDArray, slice, NDArray], LikelihoodSet] | None = None,
    ) -> tuple[NDArray, NDArray]:
        """Coefficients of the standardised columns, (n_outputs, d), and intercepts, (n_outputs,)."""
        whole = LikelihoodSet(likelihood, design.X, Y, design.weights / design.weights.sum(), tol=1e-6)
        self._follow(design, whole, fold or partial(LikelihoodSet, likelihood, design.X, Y))
        return polish_likelihood(design, whole, self.alpha_)


class LinearRegressor(RegressorMixin, BaseEstimator):
    """What linear models of a number share: predictions from coefficients."""

    coef_: NDArray
    intercept_: float

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


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


def standardise(y: NDArray, weights: NDArray) -> tuple[float, float, NDArray]:
    """Weighted mean and standard deviation of y (0 if it is constant), and y with mean 0 and variance 1."""
    unit = float(np.abs(y).max()) or 1.0
    mean = float(weights @ (y / unit)) / weights.sum()
    centred = y / unit - mean
    sd = float(np.sqrt(weights @ centred**2 / weights.sum()))
    if sd <= 1e-13 * np.sqrt(len(y)):
        return mean * unit, 0.0, np.zeros_like(y)
    return mean * unit, sd * unit, centred / sd


def read_rows(
    model: BaseEstimator, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, **how: Any
) -> tuple[NDArray, NDArray, NDArray | None, ArrayLike]:
    """X, y, weights and folds of a fit, checked, without the rows of weight 0: they are not there."""
    XX, yy = validate_data(model, X, y, ensure_min_samples=2, dtype=np.float64, **how)
    yy = np.asarray(yy, dtype=float if how.get("y_numeric") else None)
    folds = getattr(model, "folds", 0)
    if sample_weight is None:
        return XX, yy, None, folds
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(len(yy), float(weights))
    if weights.shape != (len(yy),):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one for each of {len(yy)} rows.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise InputError("sample_weight must be finite and not negative, and not all zero.")
    kept = weights > 0
    if not isinstance(folds, int | np.integer):
        folds = np.asarray(folds)[kept]
    return XX[kept], yy[kept], weights[kept], folds


def sums_are_cheaper(X: NDArray, y: NDArray) -> bool:
    """Whether the lasso is found on sums of products over the rows: many rows a column, and no extreme numbers.

    The answer is the same to 1e-9; the cost is one product of the table with itself, in place of one a few penalties.
    """
    if X.size < MANY_CELLS or len(X) < ROWS_FOR_GRAMS * X.shape[1]:
        return False
    sizes = np.append(np.maximum(X.max(axis=0), -X.min(axis=0)), np.abs(y).max())
    return bool(((sizes == 0) | (sizes > EXACT_SIZES[0]) & (sizes < EXACT_SIZES[1])).all())


def with_penalties(
    estimator: PenaltyPath, X: NDArray, y: NDArray, fold_of: NDArray[np.intp], weights: NDArray | None = None
) -> list[PenaltyPath]:
    """Unfitted copies of a model, one for each fold, with the penalty that is best for the other folds.

    One walk down the path gives it for every fold, where a fold by itself would take a walk on folds of its own.
    """
    n_folds = int(fold_of.max()) + 1
    weighed = {} if weights is None else {"sample_weight": weights}
    path = clone(estimator).set_params(folds=fold_of).fit(X, y, **weighed).cross_validation_
    if path is None:  # y does not vary, or no column does
        return [estimator] * n_folds
    shares = np.bincount(fold_of, weights)
    others = shares @ path.losses - shares[:, None] * path.losses  # sums over other folds, shape (n_folds, n_penalties)
    return [clone(estimator).set_params(alpha=float(path.alphas[at])) for at in np.argmin(others, axis=1)]


class LassoPathCV(PenaltyPath, LinearRegressor):
    """Lasso with the penalty of the smallest cross-validated squared error, solved exactly.

    Columns and y are standardised inside, so the answer does not depend on their units; ``coef_`` and
    ``intercept_`` are in the original ones. Equal columns share their coefficient.

    Parameters
    ----------
    alpha : float or None
        Penalty for columns and y of variance 1: minimise |y - X b|^2 / (2n) + alpha |b|_1. None: cross-validated.
    n_alphas : int
        Penalties on the path.
    alpha_ratio : float
        The last penalty of the path as a share of the first, the smallest that leaves nothing in the model.
    folds : int or array-like, shape (n,)
        Number of folds, assigned at random, or a fold label for each row.
    random_state : None, int or Generator
        Assigns the folds.

    Attributes
    ----------
    coef_ : array, shape (n_columns,)
    intercept_ : float
    alpha_ : float
        Penalty used, in the units of ``alpha``.
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

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        check_path(self.alpha, self.n_alphas, self.alpha_ratio)
        XX, yy, weights, folds = read_rows(self, X, y, sample_weight, y_numeric=True)
        fold_of = assign_folds(folds, len(yy), np.random.default_rng(self.random_state))
        if sums_are_cheaper(XX, yy):
            grams = FoldGrams.of_numbers(XX, yy, fold_of, int(fold_of.max()) + 1, weights)
            found = fit_lasso(grams, alpha=self.alpha, n_alphas=self.n_alphas, alpha_ratio=self.alpha_ratio)
            self.coef_, self.intercept_ = found.coef[0], float(found.intercept[0])
            self.alpha_, self.cross_validation_ = found.alpha, found.cross_validation
            return self
        design = make_design(XX, weights, fold_of)
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        whole = SquaredErrorSet(design.X, ys, design.weights / design.weights.sum(), tol=1e-10)
        self._follow(design, whole, partial(SquaredErrorSet, design.X, ys))
        beta = np.zeros((1, design.X.shape[1]))
        if y_scale > 0 and beta.size:
            beta[0, whole.columns] = whole.beta[: whole.columns.size]
            beta = polish(ErrorsOfRows(design, ys), beta, self.alpha_)
        self.coef_ = design.spread(beta[0]) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self


class LassoPathAIC(LinearRegressor):
    """Lasso with the penalty of the smallest corrected AIC, from the products of columns and y alone.

    For fixed designs, whose statistic may depend on the rows in no other way: there are no folds, and nothing is drawn.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        gram = Gram.of(XX, np.asarray(yy, dtype=float))
        found = fit_lasso(FoldGrams((gram,)), alpha=aic_penalty(gram))
        self.coef_, self.intercept_, self.alpha_ = found.coef[0], float(found.intercept[0]), found.alpha
        return self


class LogisticPathCV(PenaltyPath, LinearClassifier):
    """L1-logistic regression, binary or multinomial, with the penalty of the smallest cross-validated log-loss.

    It minimises mean log-loss + alpha |b|_1 for columns of variance 1; ``coef_``, shape (1, n_columns) for two classes
    and (n_classes, n_columns) for more, and ``intercept_`` are in the original units. Equal columns share their
    coefficients. Folds are stratified by class. Labels may be of any kind that can be sorted. Parameters are those of
    ``LassoPathCV``.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and labels y."""
        check_path(self.alpha, self.n_alphas, self.alpha_ratio, positive=True)
        XX, yy, weights, folds = read_rows(self, X, y, sample_weight)
        codes = self._labels(yy)
        design = make_design(XX, weights, self._folds(folds, len(yy), codes))
        beta, intercept = self._maximise(LogLoss(), design, indicator(codes[design.order], len(self.classes_)))
        if len(beta) > 1:
            # Softmax does not change if all classes of a column move together. With an even number of classes the
            # penalty need not fix that move either: the median at zero is a choice that treats all classes alike.
            beta, intercept = beta - np.median(beta, axis=0), intercept - intercept.mean()
        self.coef_ = design.spread(beta)
        self.intercept_ = intercept - self.coef_ @ design.mean
        return self


class PoissonPathCV(PenaltyPath, LinearRegressor):
    """L1-penalised Poisson regression with a log link, with the penalty of the smallest cross-validated deviance.

    It minimises mean(exp(eta) - y eta) + alpha |b|_1 for columns of variance 1 and y of mean 1; ``coef_`` and
    ``intercept_`` are in the original units: the mean of y is exp(X coef + intercept). Equal columns share their
    coefficient. Parameters are those of ``LassoPathCV``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> model = PoissonPathCV(alpha=0.1).fit(X, rng.poisson(np.exp(X[:, 0])))
    >>> (model.coef_ != 0).tolist()
    [True, False, False]
    """

    def __sklearn_tags__(self) -> Tags:
        """Say that y is not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and counts y: numbers that are not negative."""
        check_path(self.alpha, self.n_alphas, self.alpha_ratio, positive=True)
        XX, yy, weights, folds = read_rows(self, X, y, sample_weight, y_numeric=True)
        if (yy < 0).any():
            raise InputError(f"y holds {yy[yy < 0][0]:g}: counts are not negative. Use LassoPathCV.")
        design = make_design(XX, weights, self._folds(folds, len(yy)))
        y_mean = float(np.average(yy[design.order], weights=design.weights))
        if y_mean == 0:
            raise InputError("y is zero in every row: there is nothing to predict.")
        beta, intercept = self._maximise(PoissonLoss(), design, yy[design.order][None] / y_mean)
        self.coef_ = design.spread(beta)[0]
        self.intercept_ = float(intercept[0] + np.log(y_mean) - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        return np.exp(super().predict(X))


def make_lasso(task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None) -> PenaltyPath:
    """Lasso for a number, L1-Poisson for a count, L1-logistic for classes, L1-Cox for survival; all use one thread."""
    if task == "survival":
        from knockoffs.response.cox import CoxPathCV

        return CoxPathCV(random_state=random_state)
    if task == "count":
        return PoissonPathCV(random_state=random_state)
    model = LassoPathCV if kind_of(task) == "regression" else LogisticPathCV
    return model(random_state=random_state)
