"""L1-Poisson regression: optimality conditions first, then scikit-learn as the oracle, then invariances."""

import numpy as np
import pytest
from sklearn.base import clone

from knockoffs.errors import InputError
from knockoffs.response import make_estimator
from knockoffs.response.l1_path import assign_folds
from knockoffs.response.likelihood import LikelihoodSet, LogLoss, PoissonLoss, indicator
from knockoffs.response.linear import LassoPathCV, LogisticPathCV, PoissonPathCV


def counts(n=200, d=30, seed=0, size=1.0, signal=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    y = rng.poisson(size * np.exp(signal * X[:, : min(4, d)] @ np.array([1, -1, 1, 0.5])[: min(4, d)]))
    return X * rng.uniform(0.1, 10, d) + rng.normal(0, 5, d), y


def violation(model, X, y, alpha):
    """Largest violation of the optimality conditions, with y of mean 1 and columns of variance 1."""
    Z, coef = (X - X.mean(axis=0)) / X.std(axis=0), model.coef_ * X.std(axis=0)
    residual = (y - model.predict(X)) / y.sum()
    g = residual @ Z
    return max(
        abs(residual.sum()),
        np.maximum(np.abs(g) - alpha, 0).max(),
        np.abs(g - alpha * np.sign(coef))[coef != 0].max(initial=0),
    )


@pytest.mark.parametrize(("n", "d"), [(200, 30), (60, 200), (40, 400)])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.03])
def test_it_is_optimal_to_rounding(n, d, alpha):
    X, y = counts(n, d)
    model = PoissonPathCV(alpha=alpha).fit(X, y)
    assert violation(model, X, y, alpha) < 1e-11
    model.coef_ = model.coef_ * (1 + 1e-6)  # the check can fail
    assert (model.coef_ == 0).all() or violation(model, X, y, alpha) > 1e-9


@pytest.mark.parametrize("size", [0.05, 1.0, 1e3, 1e6])
def test_counts_of_any_size_are_solved(size):
    X, y = counts(size=size)
    for alpha in (0.2, 0.02, 1e-4):
        assert violation(PoissonPathCV(alpha=alpha).fit(X, y), X, y, alpha) < 1e-10


def test_heavy_tails_are_solved():
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((200, 20))
    y = np.round(np.exp(3 * rng.standard_normal(200)))
    for alpha in (0.5, 0.1, 0.01):
        assert violation(PoissonPathCV(alpha=alpha).fit(X, y), X, y, alpha) < 1e-8


def test_the_deviance_of_the_folds_is_that_of_separate_fits():
    X, y = counts(150, 12)
    fold_of = assign_folds(5, 150, np.random.default_rng(3))
    walked = PoissonPathCV(folds=fold_of).fit(X, y).cross_validation_
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ys = y / y.mean()
    for fold in (0, 3):
        train, held = fold_of != fold, fold_of == fold
        for step in (5, 20):
            # a fold's columns keep the units of all rows, and its y the mean of all rows
            alpha = walked.alphas[step]
            eta = reference(Z[train], ys[train], alpha, Z[held])
            loss = np.mean(np.exp(eta) - ys[held] * eta)
            assert walked.losses[fold, step] == pytest.approx(
                loss, abs=5e-5
            )  # the path is solved to 1e-4 of the penalty


def reference(Z, y, alpha, held):
    """L1-Poisson by proximal gradient steps, slow and plain: linear predictors of the held-out rows."""
    b, b0 = np.zeros(Z.shape[1]), np.log(y.mean())
    step = 0.05
    for _ in range(20_000):
        residual = y - np.exp(Z @ b + b0)
        b0 += step * residual.mean()
        moved = b + step * residual @ Z / len(y)
        b = np.sign(moved) * np.maximum(np.abs(moved) - step * alpha, 0)
    return held @ b + b0


def test_the_unit_of_counts_does_not_matter():
    X, y = counts()
    one = PoissonPathCV(random_state=0).fit(X, y)
    twice = PoissonPathCV(random_state=0).fit(X, 3 * y)  # exp(eta + log 3)
    np.testing.assert_allclose(twice.coef_, one.coef_, rtol=1e-7, atol=1e-12)
    assert twice.intercept_ == pytest.approx(one.intercept_ + np.log(3))


def test_columns_that_are_all_constant():
    nothing = PoissonPathCV().fit(np.ones((20, 3)), np.arange(20))
    assert not nothing.coef_.any() and nothing.predict(np.ones((1, 3)))[0] == pytest.approx(9.5)


def test_folds_of_zeros_alone_are_survived():
    X, _ = counts(60, 5)
    y = np.zeros(60)
    y[:3] = [1, 2, 1]
    model = PoissonPathCV(folds=np.arange(60) % 3).fit(X, y)
    assert np.isfinite(model.coef_).all()
    lone = PoissonPathCV(folds=(np.arange(60) < 3).astype(int)).fit(X, y)  # one training set holds zeros alone
    assert np.isfinite(lone.coef_).all() and np.isfinite(lone.predict(X)).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [(np.array([1.0, -2.0, 3.0]), "y holds -2: counts are not negative"), (np.zeros(3), "y is zero in every row")],
)
def test_bad_counts(y, message):
    with pytest.raises(InputError, match=message):
        PoissonPathCV().fit(np.eye(3), y)


def test_the_lasso_of_a_count_is_poisson():
    assert isinstance(make_estimator("lasso", "count"), PoissonPathCV)
    assert isinstance(make_estimator("lasso", "regression"), LassoPathCV)
    assert isinstance(make_estimator("lasso", "ordinal"), LassoPathCV)
    assert isinstance(make_estimator("lasso", "binary"), LogisticPathCV)
    assert clone(PoissonPathCV(alpha=0.1)).alpha == 0.1


@pytest.mark.parametrize(
    ("likelihood", "Y"),
    [
        (PoissonLoss(), np.random.default_rng(0).poisson(2.0, (1, 9)).astype(float)),
        (LogLoss(), indicator(np.arange(9) % 2, 2)),
        (LogLoss(), indicator(np.arange(9) % 3, 3)),
    ],
)
def test_derivatives_of_a_likelihood(likelihood, Y):
    """Mean and Hessian against differences of the loss; the null intercept and the floor against their definitions."""
    rng = np.random.default_rng(1)
    K, n = Y.shape
    X, w = rng.standard_normal((n, 2)), rng.uniform(0.5, 1.5, n)
    beta = 0.3 * rng.standard_normal((K, 2))

    def loss(b):
        return w @ likelihood.row_loss(Y, b.reshape(K, 2) @ X.T)

    def gradient(b):
        return -((w * (Y - likelihood.mean(b.reshape(K, 2) @ X.T))) @ X).ravel()

    h, eye = 1e-5, np.eye(2 * K)
    slopes = [(loss(beta.ravel() + h * e) - loss(beta.ravel() - h * e)) / (2 * h) for e in eye]
    np.testing.assert_allclose(gradient(beta.ravel()), slopes, atol=1e-8)
    curves = [(gradient(beta.ravel() + h * e) - gradient(beta.ravel() - h * e)) / (2 * h) for e in eye]
    H = likelihood.hessian([X] * K, likelihood.mean(beta @ X.T), w, beta @ X.T)
    np.testing.assert_allclose(H, curves, atol=1e-8)
    null = likelihood.null_intercept(Y, w)
    np.testing.assert_allclose(w @ (Y - likelihood.mean(np.repeat(null[:, None], n, axis=1))).T, 0, atol=1e-12)
    assert (likelihood.floor(Y) <= likelihood.row_loss(Y, beta @ X.T)).all()
    certain = np.log(np.maximum(Y, 1e-14)) if isinstance(likelihood, PoissonLoss) else 50 * (2 * Y - 1)
    np.testing.assert_allclose(likelihood.floor(Y), likelihood.row_loss(Y, certain), atol=1e-12)
    t = LikelihoodSet(likelihood, X, Y, w / w.sum(), slice(0, 0), w)
    np.testing.assert_allclose(t.null_residual().sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize("likelihood", [LogLoss(), PoissonLoss()])
def test_a_penalty_of_zero_is_the_plain_fit(likelihood):
    """The gradient of all columns vanishes: fitted means have the moments of the response."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3))
    codes = (X[:, 0] + rng.logistic(size=200) > 0).astype(np.intp)
    Y = indicator(codes, 2) if isinstance(likelihood, LogLoss) else 1.0 + codes[None]
    weights = np.full(200, 1 / 200)
    problem = LikelihoodSet(likelihood, X, Y, weights, slice(0, 0), weights)
    problem.add(np.arange(3))
    residuals, _, explained = problem.solve(np.array([0.1, 0.0]))
    assert np.abs(residuals[0] @ X).max() > 0.01
    assert np.abs(residuals[1] @ X).max() < 1e-8
    assert np.abs(residuals[1].sum(axis=1)).max() < 1e-8
    assert explained[1] > explained[0] > 0
