"""L1-penalised logistic regression, binary and multinomial: Newton's method around coordinate descent.

The multinomial penalty is on each coefficient, not on a column's group of them: that is the model scikit-learn's
saga fits, it needs no second kernel, and summed over classes the penalty of a column is a norm all the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from knockoffs.response.coordinate_descent import minimise_quadratic
from knockoffs.response.l1_path import Design, polish, solve_at

CV_TOL = 1e-4  # largest violation of an optimality condition, relative to the penalty, on the cross-validated path
MAX_NEWTON = 100


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


def row_loss(Y: NDArray, eta: NDArray) -> NDArray:
    """Log-loss of every row, shape (n,)."""
    if len(eta) == 1:
        return np.logaddexp(0.0, eta[0]) - Y[0] * eta[0]
    return -(Y * log_softmax(eta)).sum(axis=0)


def null_probabilities(Y: NDArray, weights: NDArray) -> NDArray:
    """Weighted shares of the outputs, shape (n_outputs, 1)."""
    return (Y @ weights / weights.sum())[:, None]


def hessian(X: list[NDArray], P: NDArray, weights: NDArray) -> NDArray:
    """Hessian of the weighted log-loss, for output k with the columns X[k]; outputs one after another.

    With p the softmax it is diag(p) - pp' between outputs: a block for each output less one product for all.
    """
    if len(X) == 1:
        V = X[0] * np.sqrt(weights * P[0] * (1 - P[0]))[:, None]
        return V.T @ V
    V = np.hstack([x * (np.sqrt(weights) * p)[:, None] for x, p in zip(X, P, strict=True)])
    H = -(V.T @ V)
    start = 0
    for x, p in zip(X, P, strict=True):
        stop = start + x.shape[1]
        v = x * np.sqrt(weights * p)[:, None]
        H[start:stop, start:stop] += v.T @ v
        start = stop
    return H


class LogLossSet:
    """L1-logistic regression on the rows with positive weight, on a growing set of columns (a ``TrainingSet``).

    Parameters
    ----------
    X : array, shape (n, d)
    Y : array, shape (n_outputs, n)
        As ``indicator`` makes it.
    weights : array, shape (n,)
        Add up to one; zero on held-out rows.
    rows, row_weights
        The held-out rows and the weights of all.
    tol : float
        Largest violation of an optimality condition, relative to the penalty.
    """

    def __init__(
        self, X: NDArray, Y: NDArray, weights: NDArray, rows: slice, row_weights: NDArray, tol: float = CV_TOL
    ) -> None:
        self.all_columns, self.Y, self.weights, self.rows, self.tol = X, Y, weights, rows, tol
        self.row_weights = row_weights[rows]
        self.columns = np.zeros(0, dtype=np.intp)
        self.X = np.empty((Y.shape[1], 0), order="F")
        share = null_probabilities(Y, weights)
        share = np.clip(share, 1e-12, 1 - 1e-12)  # a class can be missing only where the user's own folds lose it
        self.intercept = np.log(share[:, 0])
        if len(Y) == 1:
            self.intercept = self.intercept - np.log1p(-share[:, 0])
        self.null_loss = float(weights @ row_loss(Y, np.broadcast_to(self.intercept[:, None], Y.shape)))
        self.beta = np.zeros((len(Y), 0))
        self._chosen: NDArray[np.bool_] | None = None  # the coefficients of the Hessian in store, and it
        self._H = np.empty((0, 0))

    def null_residual(self) -> NDArray:
        """Y less its shares, weighted, shape (n_outputs, n)."""
        return self.weights * (self.Y - null_probabilities(self.Y, self.weights))

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

    def restore(self, state: Any) -> None:
        """Set coefficients and intercepts back; columns added since start from zero."""
        held, intercept = state
        self.beta[:] = 0.0
        self.beta[:, : held.shape[1]] = held
        self.intercept = intercept.copy()

    def support(self) -> NDArray[np.intp]:
        """Columns with a nonzero coefficient for some output."""
        return self.columns[self.beta.any(axis=0)]

    def solve(self, lams: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """L1-logistic regression at several penalties: residuals, held-out loss, deviance explained."""
        residuals, held_out, explained = [], [], []
        held = self.row_weights.sum()
        for lam in lams:
            eta, residual = self._solve_one(float(lam))
            losses = row_loss(self.Y, eta)
            residuals.append(residual)
            held_out.append(self.row_weights @ losses[self.rows] / held if held else np.nan)
            explained.append(1 - self.weights @ losses / self.null_loss if self.null_loss > 0 else 0.0)
        return np.stack(residuals), np.array(held_out), np.array(explained)

    def _solve_one(self, lam: float) -> tuple[NDArray, NDArray]:
        """Proximal Newton: minimise the quadratic model plus penalty, step back until the objective falls.

        A Hessian is kept as long as steps with it shrink the violations: the gradient is always fresh, so the
        limit is the same.
        """
        used = np.flatnonzero(self.beta.any(axis=0))
        eta = self.intercept[:, None] + self.beta[:, used] @ self.X[:, used].T
        objective = self.weights @ row_loss(self.Y, eta) + lam * np.abs(self.beta).sum()
        last = np.inf
        for _ in range(MAX_NEWTON):
            P = probabilities(eta)
            residual = self.weights * (self.Y - P)
            g, g0 = residual @ self.X, residual.sum(axis=1)
            nonzero = self.beta != 0
            violation = np.where(nonzero, np.abs(g - lam * np.sign(self.beta)), np.maximum(np.abs(g) - lam, 0.0))
            error = max(float(violation.max(initial=0.0)), float(np.abs(g0).max()))
            if error <= self.tol * lam:
                break
            wanted = nonzero | (np.abs(g) > lam)
            fresh = self._chosen is None or bool((wanted & ~self._chosen).any()) or error > 0.3 * last
            if fresh:
                self._chosen = wanted
                self._H = self._hessian(P)
            last = error
            objective_new, eta_new, beta, intercept = self._step(lam, g, g0, eta, objective, error)
            if not objective_new < objective:
                if fresh:
                    break
                self._chosen = None  # the kept Hessian is too far off
                continue
            objective, eta, self.beta, self.intercept = objective_new, eta_new, beta, intercept
        return eta, self.weights * (self.Y - probabilities(eta))

    def _hessian(self, P: NDArray) -> NDArray:
        """Hessian of the chosen coefficients of each output, its intercept in front."""
        one = np.ones((self.X.shape[0], 1))
        assert self._chosen is not None
        return hessian([np.hstack([one, self.X[:, chosen]]) for chosen in self._chosen], P, self.weights)

    def _step(
        self, lam: float, g: NDArray, g0: NDArray, eta: NDArray, objective: float, error: float
    ) -> tuple[float, NDArray, NDArray, NDArray]:
        """One step of proximal Newton with a line search: objective, predictors, coefficients, intercepts."""
        chosen = self._chosen
        assert chosen is not None
        free = np.hstack([np.ones((len(g), 1), dtype=bool), chosen])
        start = np.hstack([self.intercept[:, None], self.beta])[free]
        down = np.hstack([g0[:, None], g])[free]
        penalty = np.where(np.hstack([np.ones((len(g), 1), dtype=bool), np.zeros_like(chosen)])[free], 0.0, lam)
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
                beta[chosen] = target[penalty > 0]
            value = self.weights @ row_loss(self.Y, eta + length * d_eta) + lam * np.abs(beta).sum()
            if value < objective:
                break
            length /= 2
        return float(value), eta + length * d_eta, beta, self.intercept + length * d0


class LogLoss:
    """Log-loss of the full data for ``polish``, minimised over the intercepts."""

    def __init__(self, design: Design, Y: NDArray, intercept: NDArray) -> None:
        self.X, self.Y = design.X, Y
        self.weights = design.weights / design.weights.sum()
        self.intercept = intercept.copy()
        self.P = np.empty_like(Y)

    def gradient(self, beta: NDArray) -> NDArray:
        """X' W (Y - P), shape (n_outputs, d), at the best intercepts."""
        used = np.flatnonzero(beta.any(axis=0))
        eta = beta[:, used] @ self.X[:, used].T
        for _ in range(50):
            self.P = probabilities(eta + self.intercept[:, None])
            residual = self.weights * (self.Y - self.P)
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
        return hessian([one] * len(self.Y), self.P, self.weights)

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve with the Hessian of the active coefficients after the intercepts have taken their part."""
        one = np.ones((self.Y.shape[1], 1))
        H = hessian([np.hstack([one, self.X[:, a]]) for a in active], self.P, self.weights)
        is_intercept = np.concatenate([np.arange(1 + a.sum()) == 0 for a in active])
        border = H[np.ix_(~is_intercept, is_intercept)]
        schur = H[np.ix_(~is_intercept, ~is_intercept)]
        schur = schur - border @ np.linalg.pinv(H[np.ix_(is_intercept, is_intercept)]) @ border.T
        scale = np.sqrt(np.diag(schur))
        if not (scale > 0).all():
            return None
        try:
            factor = cho_factor(schur / np.outer(scale, scale), check_finite=False)
        except LinAlgError:
            return None
        if np.diag(factor[0]).min() < 1e-6:
            return None
        return cho_solve(factor, right / scale, check_finite=False) / scale


def l1_logistic_at(design: Design, Y: NDArray, lam: float, columns: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """Exact L1-logistic coefficients of the standardised columns, (n_outputs, d), and intercepts, (n_outputs,).

    ``columns`` is a first guess of the working set; more join until the optimality conditions hold.
    """
    weights = design.weights / design.weights.sum()
    problem = LogLossSet(design.X, Y, weights, slice(0, 0), weights, tol=1e-6)
    solve_at(design, problem, lam, columns)
    beta = np.zeros((len(Y), design.X.shape[1]))
    beta[:, problem.columns] = problem.beta
    smooth = LogLoss(design, Y, problem.intercept)
    beta = polish(smooth, beta, lam)
    smooth.gradient(beta)  # brings the intercepts along
    intercept = smooth.intercept
    if len(Y) > 1:
        # Softmax does not change if all classes of a column move together. With an even number of classes the
        # penalty need not fix that move either: the median at zero is a choice that treats all classes alike.
        beta, intercept = beta - np.median(beta, axis=0), intercept - intercept.mean()
    return beta, intercept
