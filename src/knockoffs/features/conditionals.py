"""Columns given the others, exactly, under a Gaussian or a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit
from knockoffs.sampling.categorical import normalise_log_weights
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.conjugates.low_rank import LowRankLaw


@dataclass(frozen=True)
class Conditionals:
    """Laws of columns X_G given the others, for the rows of one table; X_G itself is not looked at, to the last bit."""

    laws: Sequence[GaussianLaw | LowRankLaw]  # the l components
    X: NDArray  # shape (n, d): columns that vary freely
    weights: NDArray  # shape (l,): of the components

    def law(self, columns: NDArray[np.intp]) -> tuple[NDArray, NDArray, NDArray]:
        """Mixture of X_G given the other columns, G = ``columns``, c of them, by Schur complements.

        With P the precision matrix of component k, X_G given the others and k is Gaussian with covariance P_GG^-1 and
        mean m_G = mean_G - P_GG^-1 P_GR (x_R - mean_R), R the others; and P(k, x_R) = P(k, m_G, x_R) / P(m_G | x_R, k).
        Returned are the weights, shape (n, l), the means, shape (n, l, c), and factors F_k of the covariances, shape
        (l, c, c).
        """
        c, n = len(columns), len(self.X)
        means, log_rest = np.empty((n, len(self.laws), c)), np.zeros((n, len(self.laws)))
        factors = np.empty((len(self.laws), c, c))
        for k, law in enumerate(self.laws):
            root = np.linalg.cholesky(law.precision[np.ix_(columns, columns)])
            inverse = np.linalg.inv(root)
            factors[k] = inverse.T
            rows = self.X - law.mean
            rows[:, columns] = 0.0
            rows[:, columns] = -(rows @ law.precision[:, columns]) @ inverse.T @ inverse
            rows += law.mean
            means[:, k] = rows[:, columns]
            if len(self.laws) > 1:
                log_own = np.log(np.diagonal(root)).sum() - c * np.log(2 * np.pi) / 2
                log_rest[:, k] = np.log(self.weights[k]) + law.log_density(rows) - log_own
        return np.exp(normalise_log_weights(log_rest)[0]), means, factors

    def given_others(self, columns: NDArray[np.intp]) -> Callable[[Generator, int], NDArray]:
        """Sampler of X_G given the other columns, ``(rng, n_draws) -> array``, shape (n_draws, n, c)."""
        return sampler_of([self.law(columns)])


def sampler_of(laws: Sequence[tuple[NDArray, NDArray, NDArray]]) -> Callable[[Generator, int], NDArray]:
    """Sampler ``(rng, n_draws) -> array`` of rows from one of several mixtures, equally probable.

    The mixtures (weights, means, factors) are as ``Conditionals.law`` gives them; the factors are those of the first.
    """
    means, factors = np.stack([law[1] for law in laws]), laws[0][2]
    below = np.stack([np.cumsum(law[0], axis=1)[:, :-1] for law in laws])  # (s, n, l - 1)

    def sample(rng: Generator, n_draws: int) -> NDArray:
        draws = rng.standard_normal((n_draws, means.shape[1], means.shape[3]))
        if len(laws) == len(factors) == 1:
            return draws @ factors[0].T + means[0, :, 0]  # rows are draws, so the factor multiplies from the right
        place_draws(draws, rng.random(draws.shape[:2]), below, means, factors)
        return draws

    return sample


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def place_draws(draws: NDArray, level: NDArray, below: NDArray, means: NDArray, factors: NDArray) -> None:
    """Turn standard normals, shape (m, n, c), into draws of one of s mixtures in each row, in place.

    ``level``, shape (m, n), are uniform numbers that decide the mixture and its component, ``below``, shape (s, n, l -
    1), cumulated weights of the components but the last; ``means`` and ``factors`` have shape (s, n, l, c) and (l, c,
    c).
    """
    m, n, c = draws.shape
    drawn, n_mixtures = np.empty(c), len(means)
    for draw in range(m):
        for i in range(n):
            scaled = level[draw, i] * n_mixtures
            s = min(int(scaled), n_mixtures - 1)
            k = 0
            while k < below.shape[2] and scaled - s > below[s, i, k]:
                k += 1
            for a in range(c):
                value = means[s, i, k, a]
                for b in range(c):
                    value += factors[k, a, b] * draws[draw, i, b]
                drawn[a] = value
            for a in range(c):
                draws[draw, i, a] = drawn[a]
