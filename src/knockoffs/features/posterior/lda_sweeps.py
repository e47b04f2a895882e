"""How many sweeps of Gibbs sampling the topics of a document need, from two chains.

Two chains of a document start with all words in two different topics, and run side by side. With D_s the difference
of their topic counts after s sweeps, memory(s) = sum <D_s, D_0> / sum <D_0, D_0> over a sample of documents is 1 at the
start and 0 in expectation once the chains have forgotten it. s is doubled until memory(s) < 0.1, and the sweeps are
2 s: what is left after s sweeps shrinks by the same factor in the next s, to about 0.01. Long documents with topics
that are alike need many sweeps, short ones few, so documents are taken by length, a factor of two together.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from knockoffs.errors import KnockoffWarning
from knockoffs.features.posterior.gibbs_lda import run_sweeps, sample_topics_gibbs, start_topics, tokens_of
from knockoffs.features.posterior.variational import sample_dirichlet

FORGOTTEN = 0.1  # of the start, when s sweeps are enough for the sweeps to be 2 s
FEWEST_SWEEPS, MOST_SWEEPS = 10, 6400  # s
PAIRS_OF_CHAINS = 128  # of chains: the standard error of memory is some 0.03


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
