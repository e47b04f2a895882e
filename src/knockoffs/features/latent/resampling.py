"""X_j drawn anew given everything else that is hidden or seen: one draw of (K, L), and then as many X_j as are wanted.

(K, L) is drawn once from its law given X. Given K and the coordinates L_-j of the other columns, X_j has the law of
g_j(L_j), L_j Gaussian, and its own value is one draw of it. If y does not depend on X_j given the other columns, it
does not depend on it given (K, L_-j) too, which is made of X and of random numbers alone. So draws from this law are
those of a conditional randomization test, exactly, and they cost no chain each. The same holds for several columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

if TYPE_CHECKING:
    from knockoffs.features.latent.model import LatentFeatures


@dataclass(frozen=True)
class LatentResampler:
    """Draws of columns given the class and the coordinates of all others.

    Parameters
    ----------
    model : LatentFeatures
    K : array of int, shape (n,)
    L : array, shape (n, n_coordinates)
        Drawn given X.
    """

    model: LatentFeatures
    K: NDArray[np.intp]
    L: NDArray

    def draw(self, j: int, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given K and L_-j, shape (n_draws, n)."""
        return self.draw_together(np.array([j]), rng, n_draws)[..., 0]

    def draw_together(self, columns: NDArray[np.intp], rng: Generator, n_draws: int) -> NDArray:
        """Draws of several columns given K and the coordinates of all others, shape (n_draws, n, n_columns)."""
        column_of, n = self.model.layout.column_of, len(self.L)
        own = np.flatnonzero(np.isin(column_of, columns))
        drawn = rng.standard_normal((n_draws, n, own.size))
        if own.size:
            mean, factors = self._law(own)
            for k, factor in enumerate(factors):
                rows = self.K == k
                drawn[:, rows] = drawn[:, rows] @ factor.T  # rows are draws, so the factor multiplies from the right
            drawn = mean + drawn
        values = np.empty((n_draws, n, len(columns)))
        for place, j in enumerate(columns):
            of_column = drawn[..., column_of[own] == j]
            values[..., place] = self.model.margins[j].write(of_column.reshape(n_draws * n, -1)).reshape(n_draws, n)
        return values

    def _law(self, own: NDArray[np.intp]) -> tuple[NDArray, list[NDArray]]:
        """Mean of the coordinates in each row, shape (n, c), and the root of their covariance in each class."""
        rest = np.setdiff1d(np.arange(self.L.shape[1]), own)
        mean, factors = np.empty((len(self.L), own.size)), []
        for k, law in enumerate(self.model.mixture.laws):
            rows = self.K == k
            precision = np.linalg.inv(law.covariance)
            covariance = np.linalg.inv(precision[np.ix_(own, own)])
            slope = -covariance @ precision[np.ix_(own, rest)]
            mean[rows] = law.mean[own] + (self.L[np.ix_(rows, rest)] - law.mean[rest]) @ slope.T
            factors.append(np.linalg.cholesky((covariance + covariance.T) / 2))
        return mean, factors
