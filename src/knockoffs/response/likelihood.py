"""L1-penalised likelihoods with a canonical link, of classes and of counts: Newton's method around coordinate descent.

The loss of a row is convex in its linear predictors, and minus its gradient by them is y less its mean: that is all
the method needs to know, so logistic and Poisson regression are the same code with another `Likelihood`.

The multinomial penalty is on each coefficient, not on a column's group of them: that is the model scikit-learn's
saga fits, it needs no second kernel, and summed over classes the penalty of a column is a norm all the same.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from knockoffs.response.l1_path import NO_ROWS, PathDesign, factorise, polish

NEWTON_TOL = 1e-4  # largest violation of an optimality condition, relative to the penalty, on the cross-validated path
MAX_NEWTON = 100


class Likelihood(Protocol):
    """Minus a log-likelihood with a canonical link: its loss, its mean, its Hessian."""

    def row_loss(self, Y: NDArray, eta: NDArray) -> NDArray:
        """Loss of every row, shape (n,), from targets and linear predictors of shape (n_outputs, n)."""

    def floor(self, Y: NDArray) -> NDArray:
        """Smallest loss a row can have, shape (n,)."""

    def mean(self, eta: NDArray) -> NDArray:
        """Mean of the targets, shape (n_outputs, n)."""

    def null_intercept(self, Y: NDArray, weights: NDArray) -> NDArray:
        """Return the intercepts of the fit without columns, shape (n_outputs,)."""

    def hessian(self, X: list[NDArray], M: NDArray, weights: NDArray, eta: NDArray) -> NDArray:
        """Hessian of the weighted loss at eta, whose means are M: for output k by columns X[k], one after another."""


class LikelihoodSet:
    """An L1-penalised likelihood on the rows with positive weight, on a growing set of columns (a ``TrainingSet``).

    The weights add up to one and are zero on held-out rows, whose own are ``row_weights``. ``tol`` is the largest
    violation of an optimality condition, relative to the penalty.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        X: NDArray,
        Y: NDArray,
        weights: NDArray,
        held: slice = NO_ROWS,
        row_weights: NDArray | None = None,
        tol: float = NEWTON_TOL,
    ) -> None:
        self.likelihood = likelihood
        self.all_columns, self.Y, self.weights, self.rows, self.tol = X, Y, weights, held, tol
        self.row_weights = (weights if row_weights is None else row_weights)[held]
        self.columns = np.zeros(0, dtype=np.intp)
        self.X = np.empty((Y.shape[1], 0), order="F")
        self.intercept = likelihood.null_intercept(Y, weights)
        self.null_loss = float(weights @ likelihood.row_loss(Y, np.broadcast_to(self.intercept[:, None], Y.shape)))
        self.floor = float(weights @ likelihood.floor(Y))
        self.beta = np.zeros((len(Y), 0))
        self._chosen: NDArray[np.bool_] | None = None  # the coefficients of the Hessian in store, and it
        self._H = np.empty((0, 0))

    def null_residual(self) -> NDArray:
        """Y less its mean without columns, weighted, shape (n_outputs, n)."""
        eta = np.broadcast_to(self.likelihood.null_intercept(self.Y, self.weights)[:, None], self.Y.shape)
        return self.weights * (self.Y - self.likelihood.mean(eta))

    def add(self, columns: NDArray[np.intp]) -> None:
        """Append columns to the working set."""
        if not columns.size:
            return
        self.columns = np.concatenate([self.columns, columns])
        self.X = np.asfortranarray(np.hstack([self.X, self.all_columns[:, columns]]))
        self.beta = np.pad(self.beta, ((0, 0), (0, columns.size)))
        self._chosen = None

    def save(self) -> tuple[NDArray, NDArray]:
        """Copy coefficients and intercepts."""
        return self.beta.copy(), self.intercept.copy()

    def restore(self, state: tuple[NDArray, NDArray]) -> None:
        """Set coefficients and intercepts back; columns added since start from zero."""
        held, intercept = state
        self.beta[:] = 0.0
        self.beta[:, : held.shape[1]] = held
        self.intercept = intercept.copy()

    def support(self) -> NDArray[np.intp]:
        """Columns with a nonzero coefficient for some output."""
        return self.columns[self.beta.any(axis=0)]

    def solve(self, alphas: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Solve at several penalties: residuals, held-out loss, deviance explained."""
        residuals, held_out, explained = [], [], []
        held = self.row_weights.sum()
        for alpha in alphas:
            eta, residual = self._solve_one(float(alpha))
            losses = self.likelihood.row_loss(self.Y, eta)
            residuals.append(residual)
            held_out.append(self.held_out_loss(eta, losses) / held if held else np.nan)
            span = self.null_loss - self.floor
            explained.append((self.null_loss - self.weights @ losses) / span if span > 0 else 0.0)
        return np.stack(residuals), np.array(held_out), np.array(explained)

    def held_out_loss(self, eta: NDArray, losses: NDArray) -> float:
        """Weighted sum of the loss of the held-out rows, from predictors and losses of all rows."""
        return float(self.row_weights @ losses[self.rows])

    def _solve_one(self, alpha: float) -> tuple[NDArray, NDArray]:
        """Proximal Newton: minimise the quadratic model plus penalty, step back until the objective falls.

        A Hessian is kept as long as steps with it shrink the violations: the gradient is always fresh, so the
        limit is the same.
        """
        used = np.flatnonzero(self.beta.any(axis=0))
        eta = self.intercept[:, None] + self.beta[:, used] @ self.X[:, used].T
        objective = self.weights @ self.likelihood.row_loss(self.Y, eta) + alpha * np.abs(self.beta).sum()
        last = np.inf
        for _ in range(MAX_NEWTON):
            M = self.likelihood.mean(eta)
            residual = self.weights * (self.Y - M)
            g, g0 = residual @ self.X, residual.sum(axis=1)
            nonzero = self.beta != 0
            violation = np.where(nonzero, np.abs(g - alpha * np.sign(self.beta)), np.maximum(np.abs(g) - alpha, 0.0))
            error = max(float(violation.max(initial=0.0)), float(np.abs(g0).max()))
            if error <= self.tol * alpha:
                break
            wanted = nonzero | (np.abs(g) > alpha)
            fresh = self._chosen is None or bool((wanted & ~self._chosen).any()) or error > 0.3 * last
            if fresh:
                self._chosen = wanted
                self._H = self._hessian(M, eta)
            last = error
            objective_new, eta_new, beta, intercept = self._step(alpha, g, g0, eta, objective, error)
            if not objective_new < objective:
                if fresh:
                    break
                self._chosen = None  # the kept Hessian is too far off
                continue
            objective, eta, self.beta, self.intercept = objective_new, eta_new, beta, intercept
        return eta, self.weights * (self.Y - self.likelihood.mean(eta))

    def _hessian(self, M: NDArray, eta: NDArray) -> NDArray:
        """Hessian of the chosen coefficients of each output, its intercept in front."""
        one = np.ones((self.X.shape[0], 1))
        assert self._chosen is not None
        return self.likelihood.hessian(
            [np.hstack([one, self.X[:, chosen]]) for chosen in self._chosen], M, self.weights, eta
        )

    def _step(
        self, alpha: float, g: NDArray, g0: NDArray, eta: NDArray, objective: float, error: float
    ) -> tuple[float, NDArray, NDArray, NDArray]:
        """One step of proximal Newton with a line search: objective, predictors, coefficients, intercepts."""
        from knockoffs.response.coordinate_descent import minimise_quadratic  # numba takes a while to import

        chosen = self._chosen
        assert chosen is not None
        free = np.hstack([np.ones((len(g), 1), dtype=bool), chosen])
        start = np.hstack([self.intercept[:, None], self.beta])[free]
        down = np.hstack([g0[:, None], g])[free]
        intercepts = np.hstack([np.ones((len(g), 1), dtype=bool), np.zeros_like(chosen)])[free]
        penalty = np.where(intercepts, 0.0, alpha)
        target, q = start.copy(), np.empty_like(start)
        m = start.size
        minimise_quadratic(self._H, down + self._H @ start, penalty, target, q, m, 0.0, (0.03 * error) ** 2, 10_000)
        full = np.zeros(free.shape)
        full[free] = target - start
        d0, d = full[:, 0], full[:, 1:]
        used = np.flatnonzero(d.any(axis=0))
        d_eta = d0[:, None] + d[:, used] @ self.X[:, used].T
        length = 1.0
        for _ in range(30):
            beta = self.beta + length * d
            if length == 1.0:  # exact zeros
                beta[chosen] = target[~intercepts]
            value = self.weights @ self.likelihood.row_loss(self.Y, eta + length * d_eta) + alpha * np.abs(beta).sum()
            if value < objective:
                break
            length /= 2
        return float(value), eta + length * d_eta, beta, self.intercept + length * d0


class FullData:
    """Loss of the full data for ``polish``, minimised over the intercepts."""

    def __init__(self, likelihood: Likelihood, design: PathDesign, Y: NDArray, intercept: NDArray) -> None:
        self.likelihood, self.X, self.Y = likelihood, design.X, Y
        self.weights = design.weights / design.weights.sum()
        self.intercept = intercept.copy()
        self.M = self.eta = np.empty_like(Y)

    def gradient(self, beta: NDArray) -> NDArray:
        """X' W (Y - M), shape (n_outputs, d), at the best intercepts."""
        used = np.flatnonzero(beta.any(axis=0))
        eta = beta[:, used] @ self.X[:, used].T
        for _ in range(50):
            self.eta = eta + self.intercept[:, None]
            self.M = self.likelihood.mean(self.eta)
            residual = self.weights * (self.Y - self.M)
            g0 = residual.sum(axis=1)
            if np.abs(g0).max() <= 1e-16:
                break
            step = np.linalg.lstsq(self._intercept_hessian(), g0, rcond=None)[0]
            self.intercept = self.intercept + step
            if np.abs(step).max() <= 1e-15 * (1 + np.abs(self.intercept).max()):
                break
        return residual @ self.X

    def _intercept_hessian(self) -> NDArray:
        one = np.ones((self.Y.shape[1], 1))
        return self.likelihood.hessian([one] * len(self.Y), self.M, self.weights, self.eta)

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve with the Hessian of the active coefficients after the intercepts have taken their part."""
        one = np.ones((self.Y.shape[1], 1))
        columns = [np.hstack([one, self.X[:, a]]) for a in active]
        H = self.likelihood.hessian(columns, self.M, self.weights, self.eta)
        is_intercept = np.concatenate([np.arange(1 + a.sum()) == 0 for a in active])
        border = H[np.ix_(~is_intercept, is_intercept)]
        schur = H[np.ix_(~is_intercept, ~is_intercept)]
        schur = schur - border @ np.linalg.pinv(H[np.ix_(is_intercept, is_intercept)]) @ border.T
        solve = factorise(schur)
        return None if solve is None else solve(right)


def polish_likelihood(design: PathDesign, problem: LikelihoodSet, alpha: float) -> tuple[NDArray, NDArray]:
    """Exact coefficients of the standardised columns, (n_outputs, d), and intercepts, (n_outputs,), at a penalty.

    ``problem`` has been solved for it, on all rows.
    """
    beta = np.zeros((len(problem.Y), design.X.shape[1]))
    if not beta.size:  # every column is constant
        return beta, problem.intercept
    beta[:, problem.columns] = problem.beta
    smooth = FullData(problem.likelihood, design, problem.Y, problem.intercept)
    beta = polish(smooth, beta, alpha)
    smooth.gradient(beta)  # brings the intercepts along
    return beta, smooth.intercept


def indicator(codes: NDArray[np.intp], n_classes: int) -> NDArray:
    """Classes as targets, shape (n_outputs, n): one row for two classes, one row for each of more.

    >>> indicator(np.array([0, 1, 1]), 2)
    array([[0., 1., 1.]])
    """
    if n_classes == 2:
        return (codes == 1).astype(float)[None]
    return (codes == np.arange(n_classes)[:, None]).astype(float)


def log_softmax(eta: NDArray) -> NDArray:
    """Log-probabilities of the classes along the first axis (scipy's is slow on small arrays)."""
    eta = eta - eta.max(axis=0)
    return eta - np.log(np.exp(eta).sum(axis=0))


def probabilities(eta: NDArray) -> NDArray:
    """Probabilities of the outputs from their linear predictors, shape (n_outputs, n)."""
    return expit(eta) if len(eta) == 1 else np.exp(log_softmax(eta))


class LogLoss:
    """Log-loss of classes coded by ``indicator`` (a ``Likelihood``)."""

    mean = staticmethod(probabilities)

    def row_loss(self, Y: NDArray, eta: NDArray) -> NDArray:
        """Log-loss of every row, shape (n,)."""
        if len(eta) == 1:
            return np.logaddexp(0.0, eta[0]) - Y[0] * eta[0]
        return -(Y * log_softmax(eta)).sum(axis=0)

    def floor(self, Y: NDArray) -> NDArray:
        """Return zeros: a class can be certain."""
        return np.zeros(Y.shape[1])

    def null_intercept(self, Y: NDArray, weights: NDArray) -> NDArray:
        """Log-odds of two classes, logarithms of the shares of more."""
        share = np.clip(Y @ weights / weights.sum(), 1e-12, 1 - 1e-12)  # the user's own folds can lose a class
        return np.log(share) - np.log1p(-share) if len(Y) == 1 else np.log(share)

    def hessian(self, X: list[NDArray], M: NDArray, weights: NDArray, eta: NDArray) -> NDArray:
        """Diag(p) - pp' between outputs, p their means: a block for each output less one product for all."""
        if len(X) == 1:
            V = X[0] * np.sqrt(weights * M[0] * (1 - M[0]))[:, None]
            return V.T @ V
        V = np.hstack([x * (np.sqrt(weights) * p)[:, None] for x, p in zip(X, M, strict=True)])
        H = -(V.T @ V)
        start = 0
        for x, p in zip(X, M, strict=True):
            stop = start + x.shape[1]
            v = x * np.sqrt(weights * p)[:, None]
            H[start:stop, start:stop] += v.T @ v
            start = stop
        return H


class PoissonLoss:
    """Half the Poisson deviance but for a constant: exp(eta) - y eta (a ``Likelihood`` of one output).

    Counts are divided by their mean before the fit. The loss is then the same function up to a factor and a shift of
    the intercept, so a penalty means the same for counts of any size.
    """

    def row_loss(self, Y: NDArray, eta: NDArray) -> NDArray:
        """Loss of every row, shape (n,); infinite where a step went too far."""
        with np.errstate(over="ignore"):
            return np.exp(eta[0]) - Y[0] * eta[0]

    def floor(self, Y: NDArray) -> NDArray:
        """Loss of a mean that equals y."""
        return Y[0] - xlogy(Y[0], Y[0])

    def mean(self, eta: NDArray) -> NDArray:
        """Exponential of the linear predictor."""
        return np.exp(eta)

    def null_intercept(self, Y: NDArray, weights: NDArray) -> NDArray:
        """Logarithm of the mean count."""
        return np.log(np.maximum(Y @ weights / weights.sum(), 1e-12))  # the user's own folds can hold zeros alone

    def hessian(self, X: list[NDArray], M: NDArray, weights: NDArray, eta: NDArray) -> NDArray:
        """X' diag(weights * mean) X."""
        V = X[0] * np.sqrt(weights * M[0])[:, None]
        return V.T @ V
