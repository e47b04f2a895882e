"""Topics of a document by variational Bayes: the fast, approximate posterior of LDA."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array

from knockoffs.machine.compiled import njit


def variational_topics(
    counts: csr_array, alpha: NDArray, beta: NDArray, *, max_iter: int = 200, tol: float = 1e-4
) -> NDArray:
    """Dirichlet parameters gamma of q(theta) for each document (Blei et al., figure 6).

    Parameters
    ----------
    counts : sparse array, shape (n, n_words)
    alpha : array, shape (n_topics,)
    beta : array, shape (n_topics, n_words)
    max_iter, tol : int, float
        A document is done when gamma moves by less than ``tol`` on average.

    Returns
    -------
    array, shape (n, n_topics)
    """
    indptr, words, weights = counts.indptr, counts.indices, counts.data.astype(float)
    return _gamma(indptr, words, weights, alpha, np.ascontiguousarray(beta.T), max_iter, tol)


def sample_topics_variational(
    counts: csr_array, alpha: NDArray, beta: NDArray, rng: Generator, *, max_iter: int = 200
) -> NDArray:
    """Draw theta from its variational posterior, shape (n, n_topics)."""
    return sample_dirichlet(variational_topics(counts, alpha, beta, max_iter=max_iter), rng)


def sample_dirichlet(concentration: NDArray, rng: Generator) -> NDArray:
    """Draw one Dirichlet vector for each row of concentrations, shape (n, n_topics).

    Small concentrations are drawn in log space, where a gamma variable would be 0: Gamma(a) is Gamma(a + 1) U^(1/a).
    """
    log_g = np.log(rng.standard_gamma(concentration + 1.0)) - rng.standard_exponential(concentration.shape) / (
        concentration
    )
    g = np.exp(log_g - log_g.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


@njit(cache=True, nogil=True)
def _digamma(x: float) -> float:  # recurrence to x >= 6, then the asymptotic series: error below 1e-9
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    return shift + np.log(x) - 0.5 / x - f * (1.0 / 12 - f * (1.0 / 120 - f * (1.0 / 252 - f / 240)))


@njit(cache=True, nogil=True)
def _gamma(indptr, words, weights, alpha, beta_of_word, max_iter, tol):  # type: ignore[no-untyped-def]
    n, n_topics = len(indptr) - 1, len(alpha)
    out = np.empty((n, n_topics))
    expected = np.empty(n_topics)
    phi = np.empty(n_topics)
    new = np.empty(n_topics)
    for d in range(n):
        start, stop = indptr[d], indptr[d + 1]
        total = 0.0
        for i in range(start, stop):
            total += weights[i]
        gamma = out[d]
        for t in range(n_topics):
            gamma[t] = alpha[t] + total / n_topics
        for _ in range(max_iter):
            for t in range(n_topics):
                expected[t] = np.exp(_digamma(gamma[t]))
                new[t] = alpha[t]
            for i in range(start, stop):
                norm = 0.0
                for t in range(n_topics):
                    phi[t] = expected[t] * beta_of_word[words[i], t]
                    norm += phi[t]
                if norm > 0.0:
                    for t in range(n_topics):
                        new[t] += weights[i] * phi[t] / norm
            move = 0.0
            for t in range(n_topics):
                move += abs(new[t] - gamma[t])
                gamma[t] = new[t]
            if move < tol * n_topics:
                break
    return out
