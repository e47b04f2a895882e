"""Linear models of y as scikit-learn estimators: lasso, L1-logistic, L1-Poisson, and plain versions."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from knockoffs.errors import InputError
from knockoffs.response.cox import CoxPathCV, concordance
from knockoffs.response.gram import FoldGrams, Gram
from knockoffs.response.gram_lasso import aic_penalty, fit_lasso
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
from knockoffs.response.linear_parts import LinearClassifier, PenaltyPath, drop_weightless, standardise
from knockoffs.response.log_loss import LogLoss, indicator, l1_logistic_at, null_probabilities
from knockoffs.response.plain import PlainLinear, PlainLogistic
from knockoffs.response.poisson_loss import PoissonLoss
from knockoffs.response.squared_error import SquaredErrorSet, lasso_at
from knockoffs.response.task import kind_of
from knockoffs.table.target_kind import split_times

MANY_CELLS, ROWS_FOR_GRAMS = 1_000_000, 10  # from which on sums of products cost less than a walk over the rows
EXACT_SIZES = (1e-60, 1e60)  # sizes of numbers whose products are exact


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


def held_out_concordance(X: NDArray, y: NDArray, n_folds: int = 5) -> float:
    """Concordance of an L1-penalised Cox model on rows it was not fitted on, averaged over folds by their events."""
    event = split_times(y)[1]
    fold_of = assign_folds(n_folds, len(y), np.random.default_rng(0), event.astype(np.intp))
    found = []
    for fold, model in enumerate(with_penalties(CoxPathCV(), X, y, fold_of)):
        held = fold_of == fold
        found.append(concordance(y[held], clone(model).fit(X[~held], y[~held]).predict(X[held])))
    weights = np.bincount(fold_of, event, len(found))
    known = ~np.isnan(found) & (weights > 0)
    return float(np.average(np.array(found)[known], weights=weights[known])) if known.any() else np.nan


class LassoPathCV(PenaltyPath, RegressorMixin, BaseEstimator):
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
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, folds = drop_weightless(XX, np.asarray(yy, dtype=float), sample_weight, self.folds)
        fold_of = assign_folds(folds, len(yy), np.random.default_rng(self.random_state))
        self.cross_validation_: CrossValidation | None = None
        if sums_are_cheaper(XX, yy):
            grams = FoldGrams.of_numbers(XX, yy, fold_of, int(fold_of.max()) + 1, weights)
            found = fit_lasso(grams, alpha=self.alpha, n_alphas=self.n_alphas, alpha_ratio=self.alpha_ratio)
            self.coef_, self.intercept_ = found.coef[0], float(found.intercept[0])
            self.alpha_, self.cross_validation_ = found.alpha, found.cross_validation
            return self
        design = make_design(XX, weights, fold_of)
        y_mean, y_scale, ys = standardise(yy[design.order], design.weights)
        beta = np.zeros(design.X.shape[1])
        self.alpha_ = 0.0 if self.alpha is None else float(self.alpha)
        if y_scale > 0 and beta.size:
            guess = np.zeros(0, dtype=np.intp)
            if self.alpha is None:
                largest = float(np.abs((design.weights * ys) @ design.X).max()) / len(yy)
                sets = [
                    SquaredErrorSet(design.X, ys, weights, rows, design.weights)
                    for weights, rows in zip(train_weights(design), design.folds, strict=True)
                ]
                alphas = penalties(largest, self.n_alphas, self.alpha_ratio)
                self.cross_validation_, guess = cross_validate(design, sets, alphas)
                self.alpha_ = self.cross_validation_.alpha
            beta = lasso_at(design, ys, self.alpha_, guess)
        self.coef_ = design.spread(beta) * y_scale
        self.intercept_ = float(y_mean - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


class LassoPathAIC(RegressorMixin, BaseEstimator):
    """Lasso with the penalty of the smallest corrected AIC, from the products of columns and y alone.

    For fixed designs, whose statistic may depend on the rows in no other way: there are no folds, and nothing is drawn.

    Attributes
    ----------
    coef_ : array, shape (n_columns,)
    intercept_ : float
    alpha_ : float
        Penalty used, for columns and y of variance 1.
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to X, shape (n, n_columns), and numeric y."""
        XX, yy = validate_data(self, X, y, y_numeric=True, ensure_min_samples=2, dtype=np.float64)
        gram = Gram.of(XX, np.asarray(yy, dtype=float))
        found = fit_lasso(FoldGrams((gram,)), alpha=aic_penalty(gram))
        self.coef_, self.intercept_, self.alpha_ = found.coef[0], float(found.intercept[0]), found.alpha
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


class LogisticPathCV(PenaltyPath, LinearClassifier):
    """L1-logistic regression, binary or multinomial, with the penalty of the smallest cross-validated log-loss.

    Columns are standardised inside; ``coef_`` and ``intercept_`` are in the original units. Equal columns share
    their coefficients. Folds are stratified by class. Labels may be of any kind that can be sorted.

    Parameters
    ----------
    alpha : float or None
        Penalty for columns of variance 1: minimise mean log-loss + alpha |b|_1. None: cross-validated.
    n_alphas, alpha_ratio, folds, random_state
        As for ``LassoPathCV``.

    Attributes
    ----------
    coef_ : array, shape (1, n_columns) for two classes, (n_classes, n_columns) for more
    intercept_ : array, shape (1,) or (n_classes,)
    classes_ : array
    alpha_ : float
    cross_validation_ : CrossValidation or None
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to X, shape (n, n_columns), and labels y."""
        check_path(self.alpha, self.n_alphas, self.alpha_ratio, positive=True)
        XX, yy = validate_data(self, X, y, ensure_min_samples=2, dtype=np.float64)
        XX, yy, weights, folds = drop_weightless(XX, np.asarray(yy), sample_weight, self.folds)
        codes = self._labels(yy)
        rng = np.random.default_rng(self.random_state)
        fold_of = assign_folds(folds, len(yy), rng, codes)
        cross_validated = self.alpha is None and fold_of.max() > 0
        design = make_design(XX, weights, fold_of if cross_validated else np.zeros(len(yy), dtype=np.intp))
        Y = indicator(codes[design.order], len(self.classes_))
        self.cross_validation_: CrossValidation | None = None
        guess = np.zeros(0, dtype=np.intp)
        w = design.weights / design.weights.sum()
        largest = float(np.abs((w * (Y - null_probabilities(Y, w))) @ design.X).max(initial=0.0))
        self.alpha_ = largest if self.alpha is None else float(self.alpha)
        if cross_validated and largest > 0:
            sets = [
                LikelihoodSet(LogLoss(), design.X, Y, weights, rows, design.weights)
                for weights, rows in zip(train_weights(design), design.folds, strict=True)
            ]
            alphas = penalties(largest, self.n_alphas, self.alpha_ratio)
            self.cross_validation_, guess = cross_validate(design, sets, alphas)
            self.alpha_ = self.cross_validation_.alpha
        beta, intercept = l1_logistic_at(design, Y, self.alpha_, guess)
        self.coef_ = design.spread(beta)
        self.intercept_ = intercept - self.coef_ @ design.mean
        return self


class PoissonPathCV(PenaltyPath, RegressorMixin, BaseEstimator):
    """L1-penalised Poisson regression with a log link, with the penalty of the smallest cross-validated deviance.

    Columns are standardised and y is divided by its mean inside; ``coef_`` and ``intercept_`` are in the original
    units: the mean of y is exp(X coef + intercept). Equal columns share their coefficient.

    Parameters
    ----------
    alpha : float or None
        Penalty for columns of variance 1 and y of mean 1: minimise mean(exp(eta) - y eta) + alpha |b|_1. None:
        cross-validated.
    n_alphas, alpha_ratio, folds, random_state
        As for ``LassoPathCV``.

    Attributes
    ----------
    coef_ : array, shape (n_columns,)
    intercept_ : float
    alpha_ : float
    cross_validation_ : CrossValidation or None

    Examples
    --------
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
        self.alpha_ = largest if self.alpha is None else float(self.alpha)
        if self.alpha is None and largest > 0:
            sets = [
                LikelihoodSet(PoissonLoss(), design.X, Y, weights, rows, design.weights)
                for weights, rows in zip(train_weights(design), design.folds, strict=True)
            ]
            self.cross_validation_, guess = cross_validate(
                design, sets, penalties(largest, self.n_alphas, self.alpha_ratio)
            )
            self.alpha_ = self.cross_validation_.alpha
        beta, intercept = solve_exactly(PoissonLoss(), design, Y, self.alpha_, guess)
        self.coef_ = design.spread(beta)[0]
        self.intercept_ = float(intercept[0] + np.log(y_mean) - self.coef_ @ design.mean)
        return self

    def predict(self, X: ArrayLike) -> NDArray:
        """Fitted mean of y for the rows of X."""
        check_is_fitted(self)
        return np.exp(validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_)


LINEAR_MODELS = (LassoPathCV, LassoPathAIC, PoissonPathCV, CoxPathCV, PlainLinear, LinearClassifier)


def make_lasso(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> LassoPathCV | LogisticPathCV | PoissonPathCV | CoxPathCV:
    """Lasso for a number, L1-Poisson for a count, L1-logistic for classes, L1-Cox for survival; all use one thread."""
    if task == "count":
        return PoissonPathCV(random_state=random_state)
    if task == "survival":
        return CoxPathCV(random_state=random_state)
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
