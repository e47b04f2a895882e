"""Documents as tables, checked; and the laws of counts, topics and words, given what is above them."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from knockoffs.errors import InputError
from knockoffs.sampling.network import Blanket


def draw_counts(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    """Independent Poisson(rate theta @ beta), through the tokens of each topic: few documents use many words."""
    tokens = rng.poisson(blanket["rate"][:, None] * blanket["theta"])
    X = np.zeros((n, beta.shape[1]), dtype=np.int32)
    for topic, cdf in enumerate(np.cumsum(beta, axis=1)):
        rows = np.repeat(np.arange(n), tokens[:, topic])
        u = np.minimum(rng.random(len(rows)) * cdf[-1], np.nextafter(cdf[-1], 0.0))
        np.add.at(X, (rows, np.searchsorted(cdf, u, side="right")), 1)
    return X


def log_prob_counts(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    """Log probability of the counts given theta and the rate, shape (n,)."""
    mean = blanket["rate"][:, None] * (blanket["theta"] @ beta)
    u = np.asarray(u, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(u > 0, u * np.log(mean), 0.0) - mean - gammaln(u + 1.0)
    return terms.sum(axis=1)


def draw_topics(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    """Topics of all positions given theta and the likelihood of the words; -1 behind the end."""
    return np.where(blanket["X"] >= 0, choose(topic_weights(beta, blanket), rng), -1)


def topic_weights(beta: NDArray, blanket: Blanket) -> NDArray:
    """P(z | theta, w) up to a constant, shape (n, n_positions, n_topics)."""
    words = blanket["X"].astype(np.intp)
    return blanket["theta"][:, None, :] * beta.T[words]  # what stands behind the end of a document is not used


def log_prob_topics(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    """Log probability of the topics given theta and the words, shape (n,)."""
    weights = topic_weights(beta, blanket)
    chosen = np.take_along_axis(weights, u[..., None], axis=2)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.log(chosen / weights.sum(axis=2))
    inside = blanket["X"] >= 0
    return np.where(inside, np.where(u >= 0, terms, -np.inf), np.where(u >= 0, -np.inf, 0.0)).sum(axis=1)


def draw_words(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    """Words given the topics; -1 behind the end."""
    z = blanket["z"]
    words = np.full(z.shape, -1, dtype=np.int32)
    for topic, cdf in enumerate(np.cumsum(beta, axis=1)):
        here = z == topic
        u = np.minimum(rng.random(int(here.sum())) * cdf[-1], np.nextafter(cdf[-1], 0.0))
        words[here] = np.searchsorted(cdf, u, side="right")
    return words


def log_prob_words(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    """Log probability of the words given the topics, shape (n,)."""
    words, z = u.astype(np.intp), blanket["z"]
    with np.errstate(divide="ignore"):
        terms = np.where(words >= 0, np.log(beta[z, words]), -np.inf)
    return np.where(z >= 0, terms, np.where(words >= 0, -np.inf, 0.0)).sum(axis=1)


def choose(weights: NDArray, rng: Generator) -> NDArray[np.int32]:
    """One index on the last axis for each cell, with probability proportional to its weight."""
    cdf = np.cumsum(weights, axis=-1)
    total = cdf[..., -1]
    u = np.minimum(rng.random(total.shape) * total, np.nextafter(total, 0.0))
    return (cdf <= u[..., None]).sum(axis=-1).astype(np.int32)


def check_counts(X: object, n_words: int | None) -> csr_array:
    """Word counts as a sparse array, checked. A document may be empty."""
    counts = csr_array(X) if issparse(X) else None
    values = counts.data if counts is not None else np.asarray(X)
    shape = counts.shape if counts is not None else values.shape
    if len(shape) != 2 or 0 in shape or (n_words is not None and shape[1] != n_words):
        raise InputError(f"X has shape {shape}: expected (n, {n_words or 'n_words'}).")
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == bool):
        raise InputError(f"X has dtype {values.dtype}: expected word counts.")
    if (values < 0).any():
        raise InputError(f"X has negative counts (the smallest is {values.min()}): expected how often a word occurs.")
    if (values != np.floor(values)).any():
        raise InputError("X has counts that are not integers (or NaN): pass raw counts, not tf-idf or shares.")
    counts = csr_array(values) if counts is None else counts
    counts = counts.astype(np.int64)
    counts.eliminate_zeros()
    counts.sort_indices()
    return counts


def check_tokens(X: ArrayLike, n_words: int | None) -> NDArray[np.int64]:
    """Words as integers, checked; -1 behind the end of a document, which may be empty."""
    words = np.asarray(X)
    if words.ndim != 2 or 0 in words.shape:
        raise InputError(f"X has shape {words.shape}: expected (n, n_positions).")
    if not np.issubdtype(words.dtype, np.number) or (words != np.floor(words)).any() or (words < -1).any():
        raise InputError("X must hold the numbers of words, and -1 behind the end of a document.")
    if n_words is not None and words.max() >= n_words:
        row = int(np.argmax(words.max(axis=1) >= n_words))
        raise InputError(f"row {row} has the word {words.max():g}: words are numbered 0, ..., {n_words - 1}.")
    return words.astype(np.int64)


def count_tokens(words: NDArray[np.int64], n_words: int) -> csr_array:
    """Count the words of every document."""
    rows, places = np.nonzero(words >= 0)
    ones = np.ones(len(rows), dtype=np.int64)
    counts = csr_array((ones, (rows, words[rows, places])), shape=(len(words), n_words))
    counts.sum_duplicates()
    return counts
