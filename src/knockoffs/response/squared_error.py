"""The lasso for a numeric y: squared error on Gram matrices of the few columns in play."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from knockoffs.response.l1_path import PathDesign

GAP_TOL = 1e-7  # duality gap relative to |y|^2 on the cross-validated path; the final fit is exact
MAX_SWEEPS = 10_000
COLUMNS_AT_ONCE = 32  # gathered for a block of the Gram matrix: half of a table of 60 columns


class SquaredErrorSet:
    """The lasso on the rows with positive weight, on a growing set of working columns (a ``TrainingSet``).

    Parameters
    ----------
    X : array, shape (n, d)
    y : array, shape (n,)
    weights : array, shape (n,)
        Add up to one; zero on held-out rows.
    rows, row_weights
        The held-out rows and the weights of all.
    tol : float
        Duality gap to reach, relative to the variance of y.
    """

    def __init__(
        self, X: NDArray, y: NDArray, weights: NDArray, rows: slice, row_weights: NDArray, tol: float = GAP_TOL
    ) -> None:
        self.all_columns, self.weights, self.rows, self.tol = X, weights, rows, tol
        self.row_weights = row_weights[rows]
        self.y = y - weights @ y  # the intercept takes up the training means of y and of the columns
        self.y2 = float(weights @ self.y**2)
        self.columns = np.zeros(0, dtype=np.intp)
        self.G = np.empty((0, 0))
        self.means, self.c, self.beta = np.empty(0), np.empty(0), np.empty(0)

    def null_residual(self) -> NDArray:
        """Weighted y, shape (1, n)."""
        return (self.weights * self.y)[None]

    def add(self, columns: NDArray[np.intp]) -> None:
        """Append columns to the working set and extend the Gram matrix by them."""
        if not columns.size:
            return
        old, m = self.columns.size, self.columns.size + columns.size
        self.columns = np.concatenate([self.columns, columns])
        held = len(self.G)
        if m > held:  # room for some to spare, so that copying stays cheap
            spare = (0, min(max(m + m // 2, 64), self.all_columns.shape[1]) - held)
            self.G = np.pad(self.G, spare)
            self.means, self.c, self.beta = np.pad(self.means, spare), np.pad(self.c, spare), np.pad(self.beta, spare)
        # gathered again, a few at a time: copies of the working columns in every fold would be most of a fit's memory
        rows = self.all_columns.T
        for start in range(old, m, COLUMNS_AT_ONCE):
            new = slice(start, min(start + COLUMNS_AT_ONCE, m))
            weighted = (rows[self.columns[new]] * self.weights).T
            self.means[new] = weighted.sum(axis=0)
            self.c[new] = self.y @ weighted
            for first in range(0, new.stop, COLUMNS_AT_ONCE):
                others = slice(first, min(first + COLUMNS_AT_ONCE, new.stop))
                block = weighted.T @ rows[self.columns[others]].T
                block -= np.outer(self.means[new], self.means[others])
                self.G[new, others] = block
                self.G[others, new] = block.T

    def save(self) -> NDArray:
        """Copy the coefficients."""
        return self.beta.copy()

    def restore(self, state: NDArray) -> None:
        """Set the coefficients back; columns added since start from zero."""
        self.beta[: state.size] = state
        self.beta[state.size :] = 0.0

    def support(self) -> NDArray[np.intp]:
        """Columns with a nonzero coefficient."""
        return self.columns[self.beta[: self.columns.size] != 0]

    def solve(self, alphas: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Lasso at several penalties: residuals, held-out loss, R squared."""
        from knockoffs.response.coordinate_descent import lasso_path  # numba takes a while to import

        m = self.columns.size
        path = np.zeros((alphas.size, m))
        if m and self.y2 > 0:
            lasso_path(self.G, self.c, alphas, self.beta, path, m, self.y2, self.tol, MAX_SWEEPS)
        used = np.flatnonzero(path.any(axis=0))
        error = self.y - path[:, used] @ self.all_columns[:, self.columns[used]].T
        error += (path @ self.means[:m])[:, None]
        held = self.row_weights.sum()
        held_out = error[:, self.rows] ** 2 @ self.row_weights / held if held else np.full(alphas.size, np.nan)
        residual = error * self.weights
        explained = 1 - np.einsum("ij,ij->i", residual, error) / (self.y2 if self.y2 > 0 else 1.0)
        return residual[:, None, :], held_out, explained


class SquaredError:
    """Squared error of the full data for ``polish``; columns and y are centred, so there is no intercept."""

    def __init__(self, design: PathDesign, y: NDArray) -> None:
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
