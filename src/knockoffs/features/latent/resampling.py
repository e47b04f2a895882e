"""X_j drawn anew given everything else that is hidden or seen: one draw of (K, L), and then as many X_j as are wanted.

(K, L) is drawn once from its law given X. Given K and the coordinates L_-j of the other columns, X_j has the law of
g_j(L_j), L_j Gaussian, and its own value is one draw of it. If y does not depend on X_j given the other columns, it
does not depend on it given (K, L_-j) too, which is made of X and of random numbers alone. So draws from this law are
those of a conditional randomization test, exactly, and they cost no chain each.
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
    """Draws of single columns given the class and the coordinates of all others.

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
        margin = self.model.margins[j]
        own = np.flatnonzero(self.model.layout.column_of == j)
        if not own.size:
            return np.tile(margin.write(np.empty((len(self.L), 0))), (n_draws, 1))
        mean, factors = self._law(own)
        noise = rng.standard_normal((n_draws, len(self.L), own.size))
        for k, factor in enumerate(factors):
            rows = self.K == k
            noise[:, rows] = noise[:, rows] @ factor.T  # rows are draws, so the factor multiplies from the right
        values = margin.write((mean + noise).reshape(-1, own.size))
        return values.reshape(n_draws, len(self.L))

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
