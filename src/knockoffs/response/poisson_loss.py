"""The likelihood of counts: Poisson regression with a log link.

Counts are divided by their mean before the fit. The loss exp(eta) - y eta is then the same function up to a factor and
a shift of the intercept, so a penalty means the same for counts of any size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy


class PoissonLoss:
    """Half the Poisson deviance but for a constant: exp(eta) - y eta (a ``Likelihood`` of one output)."""

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
