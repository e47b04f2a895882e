"""The lasso for a numeric y: squared error on Gram matrices, those of the folds by downdating the full one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from knockoffs.response.coordinate_descent import lasso_path, minimise_quadratic
from knockoffs.response.l1_path import Design, polish

CV_TOL = 1e-7  # duality gap relative to |y|^2 on the cross-validated path; the final fit is exact
MAX_SWEEPS = 10_000


class SquaredErrorPath:
    """A lasso for every fold without its rows, on shared working columns (a ``PathProblem``).

    Each pair of working columns is multiplied once: the Gram matrix of a training set is the full one less the one
    of its fold, less the outer product of the training means, which the intercept takes up.

    Parameters
    ----------
    design : Design
    y : array, shape (n,)
        In the design's order, weighted mean 0 and variance 1.
    """

    def __init__(self, design: Design, y: NDArray) -> None:
        self.design, self.y = design, y
        w, folds = design.weights, design.folds
        n = y.size
        self.train_weight = np.array([w.sum() - w[rows].sum() for rows in folds])
        self.y_mean = np.array([-(w[rows] @ y[rows]) for rows in folds]) / self.train_weight
        self.masks = np.ones((len(folds), n))
        for mask, rows in zip(self.masks, folds, strict=True):
            mask[rows] = 0.0
        self.columns = np.zeros(0, dtype=np.intp)
        self.supports: dict[float, list[NDArray[np.intp]]] = {}  # by penalty: the columns some fold has used
        self.X = np.empty((n, 0), order="F")
        self.root_weights = None if np.all(w == w[0]) else np.sqrt(w)
        self.sums = np.empty((len(folds), 0))  # weighted column sums over each training set
        self.G = np.empty((len(folds), 0, 0))
        self.c = np.empty((len(folds), 0))
        self.beta = np.empty((len(folds), 0))
        self.y2 = np.array(
            [
                (w * mask) @ (y - mean) ** 2 / total
                for mask, mean, total in zip(self.masks, self.y_mean, self.train_weight, strict=True)
            ]
        )

    def null_gradient(self) -> NDArray:
        """Correlation of every column with y in every training set, shape (n_folds, 1, d)."""
        w, y = self.design.weights, self.y
        R = self.masks * w * (y - self.y_mean[:, None]) / self.train_weight[:, None]
        return (R @ self.design.X)[:, None, :]

    def add(self, columns: NDArray[np.intp]) -> None:
        """Append columns to the working set and extend the folds' Gram matrices by them."""
        if not columns.size:
            return
        w, y, folds = self.design.weights, self.y, self.design.folds
        old, m = self.columns.size, self.columns.size + columns.size
        new = self.design.X[:, columns]
        self.columns = np.concatenate([self.columns, columns])
        self._reserve(m)
        self.X[:, old:m] = new
        working = self.X[:, :m]
        weighted = new if self.root_weights is None else new * w[:, None]
        n_folds = len(folds)
        fold_blocks = [working[rows].T @ weighted[rows] for rows in folds]
        rest = slice(folds[-1].stop, None)
        full = sum(fold_blocks) + working[rest].T @ weighted[rest]
        fold_xy = np.array([weighted[rows].T @ y[rows] for rows in folds])
        fold_sums = np.array([weighted[rows].sum(axis=0) for rows in folds])
        xy = fold_xy.sum(axis=0) + weighted[rest].T @ y[rest]
        sums = fold_sums.sum(axis=0) + weighted[rest].sum(axis=0)
        self.sums[:, old:m] = sums - fold_sums
        for f in range(n_folds):
            total = self.train_weight[f]
            block = full - fold_blocks[f]
            block -= np.outer(self.sums[f, :m], self.sums[f, old:m] / total)
            block /= total
            self.G[f, :m, old:m] = block
            self.G[f, old:m, :m] = block.T
            self.c[f, old:m] = (xy - fold_xy[f]) / total - self.sums[f, old:m] / total * self.y_mean[f]

    def _reserve(self, m: int) -> None:
        """Room for m working columns; doubled when exceeded, so that copying stays cheap."""
        if m <= self.X.shape[1]:
            return
        room = min(max(2 * self.X.shape[1], m + m // 2, 64), self.design.X.shape[1])
        n_folds, held = len(self.design.folds), self.X.shape[1]

        def grown(a: NDArray, shape: tuple[int, ...]) -> NDArray:
            out = np.zeros(shape)  # pages that are never touched cost nothing
            out[tuple(slice(0, k) for k in a.shape)] = a
            return out

        X = np.zeros((self.X.shape[0], room), order="F")
        X[:, :held] = self.X
        self.X = X
        self.sums, self.c, self.beta = (grown(a, (n_folds, room)) for a in (self.sums, self.c, self.beta))
        self.G = grown(self.G, (n_folds, room, room))

    def save(self) -> NDArray:
        """Copy the folds' coefficients."""
        return self.beta.copy()

    def restore(self, state: object) -> None:
        """Set the folds' coefficients back; columns added since start from zero."""
        held = np.asarray(state)
        self.beta[:] = 0.0
        self.beta[:, : held.shape[1]] = held

    def solve(self, fold: int, lams: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Lasso of one training set at several penalties: residuals, held-out loss, R squared."""
        m = self.columns.size
        w, y, rows = self.design.weights, self.y, self.design.folds[fold]
        path = np.zeros((lams.size, m))
        y2 = float(self.y2[fold])
        if m and y2 > 0:
            lasso_path(self.G[fold], self.c[fold], lams, self.beta[fold], path, m, y2, CV_TOL, MAX_SWEEPS)
        for lam, beta in zip(lams, path, strict=True):
            self.supports.setdefault(float(lam), []).append(self.columns[beta != 0])
        used = np.flatnonzero(path.any(axis=0))
        fitted = path[:, used] @ self.X[:, used].T
        intercept = self.y_mean[fold] - path @ self.sums[fold, :m] / self.train_weight[fold]
        error = y - fitted - intercept[:, None]
        held_out = error[:, rows] ** 2 @ w[rows] / w[rows].sum()
        residual = error * (w * self.masks[fold] / self.train_weight[fold])
        explained = 1 - np.einsum("ij,ij->i", residual, error) / (y2 if y2 > 0 else 1.0)
        return residual[:, None, :], held_out, explained


class SquaredError:
    """Squared error of the full data for ``polish``; columns and y are centred, so there is no intercept."""

    def __init__(self, design: Design, y: NDArray) -> None:
        self.X, self.y, self.weights = design.X, y, design.weights
        self._factor: tuple[NDArray, object] | None = None

    def gradient(self, beta: NDArray) -> NDArray:
        """X' W (y - X beta) / n, shape (1, d)."""
        used = np.flatnonzero(beta[0])
        error = self.y - self.X[:, used] @ beta[0, used]
        return ((self.weights * error) @ self.X / self.y.size)[None]

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve with the Gram matrix of the active columns; its factor is kept while they stay the same."""
        columns = np.flatnonzero(active[0])
        if columns.size > self.y.size:
            return None
        if self._factor is None or not np.array_equal(self._factor[0], columns):
            X = self.X[:, columns]
            try:
                factor = cho_factor(X.T @ (X * self.weights[:, None]) / self.y.size, check_finite=False)
            except LinAlgError:
                return None
            if np.diag(factor[0]).min() < 1e-6:  # columns have variance 1: what the others leave of one is below 1e-12
                return None
            self._factor = (columns, factor)
        return cho_solve(self._factor[1], right, check_finite=False)

    def move(self, step: float) -> None:
        """Nothing to carry."""


def lasso_at(design: Design, y: NDArray, lam: float, columns: NDArray[np.intp]) -> NDArray:
    """Exact lasso coefficients of the standardised columns at penalty ``lam``, shape (d,).

    ``columns`` is a first guess of the working set; more join until the optimality conditions hold.
    """
    d, n = design.X.shape[1], y.size
    beta = np.zeros((1, d))
    smooth = SquaredError(design, y)
    y2 = float(design.weights @ y**2) / n
    gradient = smooth.gradient(beta)[0]
    columns = np.union1d(columns, np.flatnonzero(np.abs(gradient) > lam))
    while True:
        X = design.X[:, columns]
        WX = X * design.weights[:, None]
        G, c, m = X.T @ WX / n, WX.T @ y / n, columns.size
        b, q = beta[0, columns], np.empty(m)
        if m:
            minimise_quadratic(G, c, np.full(m, lam), b, q, m, y2, 1e-10, 10 * MAX_SWEEPS)
        beta[0, columns] = b
        excess = np.abs(smooth.gradient(beta)[0]) > lam * (1 + 1e-4)
        joining = np.setdiff1d(np.flatnonzero(excess), columns)
        if not joining.size:
            return polish(smooth, beta, lam)[0]
        columns = np.concatenate([columns, joining])
