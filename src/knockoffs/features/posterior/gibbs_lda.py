"""Topics of a document by collapsed Gibbs sampling, started from the variational solution."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array

from knockoffs.errors import InputError, name_some
from knockoffs.features.posterior.variational import sample_dirichlet, variational_topics
from knockoffs.machine.compiled import njit


def sample_topics_gibbs(
    counts: csr_array,
    alpha: NDArray,
    beta: NDArray,
    rng: Generator,
    *,
    n_sweeps: int,
    start: NDArray | None = None,
) -> tuple[NDArray, NDArray]:
    """Draw theta and the topics of the tokens given the words.

    The topics z are swept ``n_sweeps`` times with theta integrated out, P(z_i = t | rest) proportional to
    (alpha_t + tokens of topic t elsewhere) beta[t, w_i]; then theta ~ Dirichlet(alpha + tokens of each topic). The
    chain starts from z drawn at the mean of the variational theta, so short documents need few sweeps.

    Parameters
    ----------
    counts : sparse array of int, shape (n, n_words)
    alpha : array, shape (n_topics,)
    beta : array, shape (n_topics, n_words)
    rng : numpy.random.Generator
    n_sweeps : int
    start : array, shape (n, n_topics), optional
        Theta at which the first z are drawn, in place of the variational mean.

    Returns
    -------
    theta : array, shape (n, n_topics)
    z : array of int, shape (n_tokens,)
        Topic of each token, documents one after the other and their words in the order of ``counts.indices``.
    """
    if start is None:
        gamma = variational_topics(counts, alpha, beta)
        start = gamma / gamma.sum(axis=1, keepdims=True)
    words, starts = tokens_of(counts)
    beta_of_word = np.ascontiguousarray(beta.T)
    z = start_topics(words, starts, beta_of_word, start, rng)
    impossible = np.flatnonzero(z < 0)
    if impossible.size:
        rows = np.unique(np.searchsorted(starts, impossible, side="right") - 1)
        raise InputError(f"rows {name_some(rows)} have words that no topic produces.")
    topics = run_sweeps(words, starts, alpha, beta_of_word, z, n_sweeps, rng)
    return sample_dirichlet(alpha + topics, rng), z


def tokens_of(counts: csr_array) -> tuple[NDArray, NDArray]:
    """Words of all tokens, documents one after the other, and where each document begins (and the last ends)."""
    words = np.repeat(counts.indices, counts.data.astype(np.int64))
    return words, np.concatenate([[0], np.cumsum(counts.data, dtype=np.int64)])[counts.indptr]


@njit(cache=True, nogil=True)
def start_topics(words, starts, beta_of_word, mean, rng):  # type: ignore[no-untyped-def]
    """Topics of all tokens drawn at given theta, shape (n, n_topics); -1 where no topic produces the word."""
    n_topics = mean.shape[1]
    z = np.empty(len(words), dtype=np.int64)
    cdf = np.empty(n_topics)
    for d in range(len(starts) - 1):
        for i in range(starts[d], starts[d + 1]):
            total = 0.0
            for t in range(n_topics):
                total += mean[d, t] * beta_of_word[words[i], t]
                cdf[t] = total
            u = rng.random() * total
            chosen = 0
            while chosen < n_topics - 1 and cdf[chosen] <= u:
                chosen += 1
            z[i] = chosen if total > 0.0 else -1
    return z


@njit(cache=True, nogil=True)
def run_sweeps(words, starts, alpha, beta_of_word, z, n_sweeps, rng):  # type: ignore[no-untyped-def]
    """Sweep the topics z, in place, and return how many tokens each has in each document, shape (n, n_topics)."""
    n, n_topics = len(starts) - 1, len(alpha)
    topics = np.zeros((n, n_topics))
    cdf = np.empty(n_topics)
    for d in range(n):
        tokens = topics[d]
        for i in range(starts[d], starts[d + 1]):
            tokens[z[i]] += 1.0
        for _ in range(n_sweeps):
            for i in range(starts[d], starts[d + 1]):
                tokens[z[i]] -= 1.0
                total = 0.0
                for t in range(n_topics):
                    total += (alpha[t] + tokens[t]) * beta_of_word[words[i], t]
                    cdf[t] = total
                u = rng.random() * total
                chosen = 0
                while chosen < n_topics - 1 and cdf[chosen] <= u:
                    chosen += 1
                z[i] = chosen
                tokens[chosen] += 1.0
    return topics
