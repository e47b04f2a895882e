"""The obvious NumPy and scikit-learn code, and the least that a draw of Gaussian knockoffs must do."""

import numpy as np
from task import answer, importing, load


def conditional(Sigma, D):
    """Slope and noise factor of X_tilde given X."""
    slope = np.linalg.solve(Sigma, D)
    V = 2 * D - D @ slope
    return slope, np.linalg.cholesky((V + V.T) / 2)


def draw_gaussian(options):
    X, Sigma, D = load(options, "draw_X"), load(options, "draw_Sigma"), load(options, "draw_D")

    def draw():
        rng = np.random.default_rng(0)
        slope, factor = conditional(Sigma, D)
        return (X - X @ slope + rng.standard_normal(X.shape) @ factor.T)[:1000]

    return draw


def draw_mixture(options):
    X, weights, means = (load(options, f"mixture_{name}") for name in ("X", "weights", "means"))
    Sigmas, Ds = load(options, "mixture_Sigmas"), load(options, "mixture_Ds")

    def draw():
        rng = np.random.default_rng(0)
        log_joint = np.empty((len(X), len(weights)))
        for k, weight in enumerate(weights):
            L = np.linalg.cholesky(Sigmas[k])
            z = np.linalg.solve(L, (X - means[k]).T)
            log_joint[:, k] = np.log(weight) - np.log(np.diagonal(L)).sum() - 0.5 * (z**2).sum(axis=0)
        posterior = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        K = (rng.random((len(X), 1)) > np.cumsum(posterior, axis=1)).sum(axis=1)
        X_tilde = np.empty_like(X)
        for k in range(len(weights)):
            slope, factor = conditional(Sigmas[k], Ds[k])
            rows = X[K == k]
            X_tilde[K == k] = rows - (rows - means[k]) @ slope + rng.standard_normal(rows.shape) @ factor.T
        return X_tilde[:1000]

    return draw


def draw_bound(options):
    """Do the least: normal numbers and two matrix products, one of them triangular, nothing else."""
    from scipy.linalg import blas

    X, Sigma, D = load(options, "draw_X"), load(options, "draw_Sigma"), load(options, "draw_D")
    slope, factor = conditional(Sigma, D)
    factor = np.asfortranarray(factor)

    def draw():
        noise = np.random.default_rng(0).standard_normal(X.shape)
        noise = blas.dtrmm(1.0, factor, noise.T, lower=True, overwrite_b=True)
        return (X @ slope)[:1000] + noise.T[:1000]

    return draw


def lasso_statistic(options):
    from sklearn.linear_model import LassoCV

    X, X_tilde, y = (load(options, f"lasso_{name}") for name in ("X", "X_tilde", "y"))

    def statistic():
        coefficients = np.abs(LassoCV(cv=5, eps=0.01, tol=1e-3, max_iter=10_000).fit(np.hstack([X, X_tilde]), y).coef_)
        return coefficients[: X.shape[1]] - coefficients[X.shape[1] :]

    return statistic


def fit_gaussian(options):
    X = load(options, "fit_X")
    return lambda: np.linalg.cholesky(np.cov(X.T))


def fit_mixture(options):
    from sklearn.mixture import GaussianMixture

    from knockoffs.features.gaussian_mixture import N_STARTS

    X = load(options, "fit_mixture_X")
    return lambda: GaussianMixture(3, n_init=N_STARTS, random_state=0).fit(X).score(X)


TASKS = {
    task.__name__: task
    for task in (draw_gaussian, draw_mixture, draw_bound, fit_gaussian, fit_mixture, lasso_statistic)
}
answer(TASKS | {"imports": importing("from sklearn.feature_selection import SelectorMixin")})
