"""The lasso for a numeric y: squared error on Gram matrices of the few columns in play."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.response.l1_path import NO_ROWS, PathDesign, SquaredErrors

GAP_TOL = 1e-7  # duality gap relative to |y|^2 on the cross-validated path; the final fit is exact
MAX_SWEEPS = 10_000
COLUMNS_AT_ONCE = 32  # gathered for a block of the Gram matrix: half of a table of 60 columns


class SquaredErrorSet:
    """The lasso on the rows with positive weight, on a growing set of working columns (a ``TrainingSet``).

    The weights add up to one and are zero on held-out rows, whose own are ``row_weights``. ``tol`` is the duality gap
    to reach, relative to the variance of y.
    """

    def __init__(
        self,
        X: NDArray,
        y: NDArray,
        weights: NDArray,
        held: slice = NO_ROWS,
        row_weights: NDArray | None = None,
        tol: float = GAP_TOL,
    ) -> None:
        self.all_columns, self.weights, self.rows, self.tol = X, weights, held, tol
        self.row_weights = (weights if row_weights is None else row_weights)[held]
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


class ErrorsOfRows(SquaredErrors):
    """Squared error of the full data; columns and y are centred, so there is no intercept."""

    def __init__(self, design: PathDesign, y: NDArray) -> None:
        super().__init__()
        self.X, self.y, self.weights = design.X, y, design.weights

    def gradient(self, beta: NDArray) -> NDArray:
        """X' W (y - X beta) / n, shape (1, d)."""
        used = np.flatnonzero(beta[0])
        error = self.y - self.X[:, used] @ beta[0, used]
        return ((self.weights * error) @ self.X / self.y.size)[None]

    def gram(self, k: int, columns: NDArray[np.intp]) -> NDArray:
        """X' W X / n of some columns."""
        X = self.X[:, columns]
        return X.T @ (X * self.weights[:, None]) / self.y.size
