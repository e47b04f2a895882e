"""X_j, or several columns, given the others, exactly, under a Gaussian or a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.posterior.categorical import normalise_log_weights
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.inverse_cdf import sample_weights


@dataclass(frozen=True)
class Conditionals:
    """Laws of X_j given X_-j for the rows of one table, every j of which is cheap.

    With P_k the precision matrix of component k and e_k = (x - mean_k) P_k, X_j given X_-j and k is Gaussian with
    mean x_j - e_kj / P_kjj and variance 1 / P_kjj; and log P(k, x_-j) = log P(k, x) - log P(x_j | x_-j, k). All of them
    together cost O(l d^3 + l n d^2): the precisions and log P(k, x) once, then O(l n d) for each j.

    Parameters
    ----------
    laws : sequence of GaussianLaw
        The l components.
    X : array, shape (n, d)
        Columns that vary freely.
    log_joint : array, shape (n, l)
        Log weights_k N(x; mean_k, S_k).
    """

    laws: Sequence[GaussianLaw]
    X: NDArray
    log_joint: NDArray

    def law(self, j: int) -> tuple[NDArray, NDArray, NDArray]:
        """Mixture of X_j given X_-j in each row: weights (n, l), means (n, l) and standard deviations (l,)."""
        own = self.X[:, j, None]
        slope = np.column_stack([law.precision[:, j] for law in self.laws])  # (d, l)
        offset = np.array([law.mean @ slope[:, k] for k, law in enumerate(self.laws)])
        diagonal = slope[j]
        error = (self.X @ slope - offset) / diagonal
        log_own = 0.5 * (np.log(diagonal / (2 * np.pi)) - diagonal * error**2)
        return np.exp(normalise_log_weights(self.log_joint - log_own)[0]), own - error, 1 / np.sqrt(diagonal)

    def sample(self, j: int, rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_j given X_-j, shape (n_draws, n): the component first, then the Gaussian."""
        weights, means, spread = self.law(j)
        n, rows = len(self.X), np.arange(len(self.X))
        draws = rng.standard_normal((n_draws, n))
        for draw in draws:
            K = sample_weights(weights, rng) if len(self.laws) > 1 else np.zeros(n, dtype=np.intp)
            draw *= spread[K]
            draw += means[rows, K]
        return draws

    def law_together(self, columns: NDArray[np.intp]) -> tuple[NDArray, NDArray, list[NDArray]]:
        """Mixture of X_G given the other columns, G = ``columns``, c of them, by Schur complements.

        Returns
        -------
        weights : array, shape (n, l)
        means : array, shape (n, l, c)
        factors : list of arrays, shape (c, c)
            F_k F_k^T is the covariance in component k.
        """
        c, n = len(columns), len(self.X)
        means, log_own = np.empty((n, len(self.laws), c)), np.empty((n, len(self.laws)))
        factors = []
        for k, law in enumerate(self.laws):
            root = np.linalg.cholesky(law.precision[np.ix_(columns, columns)])
            e = (self.X - law.mean) @ law.precision[:, columns]
            inverse = np.linalg.inv(root)
            white = e @ inverse.T
            means[:, k] = self.X[:, columns] - white @ inverse
            log_own[:, k] = np.log(np.diagonal(root)).sum() - (c * np.log(2 * np.pi) + (white**2).sum(axis=1)) / 2
            factors.append(inverse.T)
        return np.exp(normalise_log_weights(self.log_joint - log_own)[0]), means, factors

    def given_others(self, columns: NDArray[np.intp]) -> Callable[[Generator, int], NDArray]:
        """Sampler of X_G given the other columns, ``(rng, n_draws) -> array``, shape (n_draws, n, c)."""
        weights, means, factors = self.law_together(columns)
        below = np.cumsum(weights, axis=1)[:, :-1].T  # (l - 1, n)

        def sample(rng: Generator, n_draws: int) -> NDArray:
            draws = rng.standard_normal((n_draws, len(self.X), len(columns)))
            if len(factors) == 1:
                return draws @ factors[0].T + means[:, 0]  # rows are draws, so the factor multiplies from the right
            level = rng.random((n_draws, len(self.X)))
            K = sum((level > share for share in below), np.zeros(level.shape, dtype=np.intp))
            for k, factor in enumerate(factors):
                chosen = K == k
                draws[chosen] = draws[chosen] @ factor.T + means[np.nonzero(chosen)[1], k]
            return draws

        return sample

    def sample_together(self, columns: NDArray[np.intp], rng: Generator, n_draws: int) -> NDArray:
        """Draws of X_G given the other columns, shape (n_draws, n, c)."""
        return self.given_others(columns)(rng, n_draws)
