"""Probability of the words of a document under latent Dirichlet allocation, theta integrated out.

P(w) = E[prod_v (theta @ beta[:, v])^x_v] for theta ~ Dirichlet(alpha). The product is a polynomial in theta, whose
terms have known expectations: with N words and T topics it has binom(N + T - 1, T - 1) of them, held here as an array
of (N + 1)^(T - 1). Where that is too large, the expectation is estimated by importance sampling from a mixture of the
variational posterior and the prior, with random numbers that are the same for every call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from knockoffs.features.posterior.variational import sample_dirichlet, variational_topics

MOST_TERMS = 2**16  # of the polynomial of one document
DENSITY_DRAWS = 2000  # of theta, for one document
WIDENED = 0.5  # of the variational concentrations: their law is too narrow, and a proposal must not be


def log_words(counts: csr_array, alpha: NDArray, beta: NDArray) -> NDArray:
    """Log probability of the words of each document in one given order, shape (n,)."""
    if len(alpha) == 1:
        with np.errstate(divide="ignore"):
            return np.asarray(
                counts @ np.where(beta[0] > 0, np.log(beta[0]), -1e300)
            )  # a word that the topic never produces
    out = np.zeros(counts.shape[0])
    length = np.asarray(counts.sum(axis=1)).ravel()
    exact = (length + 1.0) ** (len(alpha) - 1) <= MOST_TERMS
    for d in np.flatnonzero(exact & (length > 0)):
        row = slice(counts.indptr[d], counts.indptr[d + 1])
        out[d] = _polynomial(counts.indices[row], counts.data[row], alpha, beta)
    rest = np.flatnonzero(~exact)
    if rest.size:
        gamma = variational_topics(counts[rest], alpha, beta)
        for d, concentration in zip(rest, alpha + WIDENED * (gamma - alpha), strict=True):
            row = slice(counts.indptr[d], counts.indptr[d + 1])
            out[d] = _importance(counts.indices[row], counts.data[row], alpha, beta, concentration)
    return out


def _polynomial(words: NDArray, x: NDArray, alpha: NDArray, beta: NDArray) -> float:
    """Multiply out the product of (theta @ beta[:, w]); the last topic has the exponent that is left."""
    N, T = int(x.sum()), len(alpha)
    terms, log_scale = np.zeros((N + 1,) * (T - 1)), 0.0
    terms[(0,) * (T - 1)] = 1.0
    for word, times in zip(words, x, strict=True):
        for _ in range(int(times)):
            new = terms * beta[-1, word]
            for t in range(T - 1):
                ahead = np.moveaxis(new, t, 0)
                ahead[1:] += beta[t, word] * np.moveaxis(terms, t, 0)[:-1]
            top = new.max()
            if not top > 0:
                return -np.inf
            terms, log_scale = new / top, log_scale + float(np.log(top))
    exponents = np.stack(np.meshgrid(*[np.arange(N + 1)] * (T - 1), indexing="ij"), axis=-1).reshape(-1, T - 1)
    flat = terms.ravel()
    used = flat > 0
    powers = np.column_stack([exponents[used], N - exponents[used].sum(axis=1)])
    log_moments = (gammaln(alpha + powers) - gammaln(alpha)).sum(axis=1)
    total = gammaln(alpha.sum()) - gammaln(alpha.sum() + N)
    return float(logsumexp(np.log(flat[used]) + log_moments) + total + log_scale)


def _importance(words: NDArray, x: NDArray, alpha: NDArray, beta: NDArray, concentration: NDArray) -> float:
    """Estimate log E[...] with half of the draws from each part of the proposal."""
    rng = np.random.default_rng(0)  # a density is a function: the same document has the same value
    half = DENSITY_DRAWS // 2
    theta = np.vstack([sample_dirichlet(np.tile(a, (half, 1)), rng) for a in (alpha, concentration)])
    theta = np.maximum(theta, 1e-300)
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(theta @ beta[:, words]) @ x
    proposal = np.logaddexp(_log_dirichlet(theta, alpha), _log_dirichlet(theta, concentration)) - np.log(2)
    log_weights = log_likelihood + _log_dirichlet(theta, alpha) - proposal
    return float(logsumexp(log_weights) - np.log(len(theta)))


def _log_dirichlet(theta: NDArray, a: NDArray) -> NDArray:
    return np.log(theta) @ (a - 1) + gammaln(a.sum()) - gammaln(a).sum()
