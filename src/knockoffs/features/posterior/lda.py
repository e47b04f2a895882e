"""Topics of a document given its words, by Gibbs sampling, and the probability of the words.

P(w) = E[prod_v (theta @ beta[:, v])^x_v] for theta ~ Dirichlet(alpha). The product is a polynomial in theta, whose
terms have known expectations: with N words and T topics it has binom(N + T - 1, T - 1) of them, held here as an array
of (N + 1)^(T - 1). Documents for which that is too large are refused.

How many sweeps a document needs is learned from two chains that start with all words in two different topics, and run
side by side. With D_s the difference of their topic counts after s sweeps, memory(s) = sum <D_s, D_0> / sum <D_0, D_0>
over a sample of documents is 1 at the start and 0 in expectation once the chains have forgotten it. s is doubled until
memory(s) < 0.1, and the sweeps are 2 s: what is left after s sweeps shrinks by the same factor in the next s, to about
0.01. Long documents with topics that are alike need many sweeps, short ones few, so documents are taken by length, a
factor of two together.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import gammaln, logsumexp

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.machine.compiled import njit

MOST_TERMS = 2**16  # of the polynomial of one document
FORGOTTEN = 0.1  # of the start, when s sweeps are enough for the sweeps to be 2 s
FEWEST_SWEEPS, MOST_SWEEPS = 10, 6400  # s
PAIRS_OF_CHAINS = 128  # of chains: the standard error of memory is some 0.03


def sample_dirichlet(concentration: NDArray, rng: Generator) -> NDArray:
    """Draw one Dirichlet vector for each row of concentrations, shape (n, n_topics).

    Small concentrations are drawn in log space, where a gamma variable would be 0: Gamma(a) is Gamma(a + 1) U^(1/a).
    """
    log_g = np.log(rng.standard_gamma(concentration + 1.0)) - rng.standard_exponential(concentration.shape) / (
        concentration
    )
    g = np.exp(log_g - log_g.max(axis=1, keepdims=True))
    return g / g.sum(axis=1, keepdims=True)


def sample_topics_gibbs(
    counts: csr_array,
    alpha: NDArray,
    beta: NDArray,
    rng: Generator,
    *,
    n_sweeps: int,
    start: NDArray | None = None,
) -> tuple[NDArray, NDArray]:
    """Draw theta, shape (n, n_topics), and the topics z of the tokens, shape (n_tokens,), given the words.

    z is swept ``n_sweeps`` times with theta integrated out, P(z_i = t | rest) proportional to (alpha_t + tokens of
    topic t elsewhere) beta[t, w_i]; then theta ~ Dirichlet(alpha + tokens of each topic). The chain starts from z
    drawn at ``start`` or, if left out, at the mean of theta. Tokens come document by document, their words in the order
    of ``counts.indices``.
    """
    start = np.tile(alpha / alpha.sum(), (counts.shape[0], 1)) if start is None else start
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
    if not exact.all():
        long = np.flatnonzero(~exact)
        raise InputError(
            f"rows {name_some(long)} are too long for an exact density with {len(alpha)} topics: row {long[0]} has "
            f"{length[long[0]]:,} words."
        )
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


def sample_topics_converged(counts: csr_array, alpha: NDArray, beta: NDArray, rng: Generator) -> NDArray:
    """Theta ~ P(theta | words), shape (n, n_topics), by as many sweeps as the documents need.

    Warns
    -----
    KnockoffWarning
        If chains still remember their start after ``MOST_SWEEPS`` sweeps.
    """
    theta = np.empty((counts.shape[0], len(alpha)))
    length = np.asarray(counts.sum(axis=1)).ravel()
    empty = length == 0
    theta[empty] = sample_dirichlet(np.tile(alpha, (int(empty.sum()), 1)), rng)
    octave = np.floor(np.log2(np.maximum(length, 1))).astype(int)
    for size in np.unique(octave[~empty]):
        rows = np.flatnonzero((octave == size) & ~empty)
        longest = rows[np.argsort(-length[rows], kind="stable")[:PAIRS_OF_CHAINS]]
        n_sweeps, memory = sweeps_needed(counts[longest], alpha, beta, rng)
        if memory >= FORGOTTEN:
            warnings.warn(
                f"the topics of documents with {length[longest].min():,} words and more are so alike that Gibbs "
                f"sampling remembers {memory:.0%} of its start after {n_sweeps // 2:,} sweeps: the knockoffs are only "
                "roughly valid. Fit fewer topics.",
                KnockoffWarning,
                stacklevel=2,
            )
        theta[rows] = sample_topics_gibbs(counts[rows], alpha, beta, rng, n_sweeps=n_sweeps)[0]
    return theta


def sweeps_needed(counts: csr_array, alpha: NDArray, beta: NDArray, rng: Generator) -> tuple[int, float]:
    """Return the sweeps that documents need, and the memory that was left after half of them."""
    n, T = counts.shape[0], len(alpha)
    if T == 1:
        return 1, 0.0
    counts = vstack([counts] * -(-PAIRS_OF_CHAINS // n), format="csr")[:PAIRS_OF_CHAINS]
    first = rng.integers(0, T, size=PAIRS_OF_CHAINS)
    second = (first + rng.integers(1, T, size=PAIRS_OF_CHAINS)) % T
    words, starts = tokens_of(counts)
    beta_of_word = np.ascontiguousarray(beta.T)
    corner = np.full((T, T), 1e-6) + np.eye(T)  # a word that a topic never produces goes elsewhere
    chains = [start_topics(words, starts, beta_of_word, corner[topic], rng) for topic in (first, second)]
    D_0 = _topic_counts(chains[0], starts, T) - _topic_counts(chains[1], starts, T)
    scale = float((D_0**2).sum())
    if scale == 0:  # every word determines its topic
        return 2 * FEWEST_SWEEPS, 0.0
    s, done, memory = FEWEST_SWEEPS, 0, 1.0
    while True:
        for z in chains:
            run_sweeps(words, starts, alpha, beta_of_word, z, s - done, rng)
        done = s
        D_s = _topic_counts(chains[0], starts, T) - _topic_counts(chains[1], starts, T)
        memory = float((D_s * D_0).sum()) / scale
        if memory < FORGOTTEN or s >= MOST_SWEEPS:
            return 2 * s, memory
        s *= 2


def _topic_counts(z: NDArray, starts: NDArray, T: int) -> NDArray:
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(rows * T + z, minlength=(len(starts) - 1) * T).reshape(-1, T).astype(float)
