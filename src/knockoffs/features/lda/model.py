"""Latent Dirichlet allocation: theta -> z -> w, for word counts and for token positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features import kept_per_how
from knockoffs.sampling.categorical import check_probabilities
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Blanket, Identity, Node

VIEWS = ("counts", "tokens")
HIDDEN_KNOCKOFFS = ("copy", "posterior")


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


@dataclass(frozen=True)
class LatentDirichlet:
    """Documents mix topics: theta ~ Dirichlet(alpha), and each token has a topic z ~ theta and a word w ~ beta[z].

    Two views of a document give two tables X.

    ``view="counts"``: X[i, v] is how often word v occurs. The counts of a document of fixed length add up to it, so no
    column could change alone and the only knockoff is X itself. The length is therefore a variable as well:
    rate ~ Gamma, length ~ Poisson(rate). Given theta and the rate the counts are then independent, Poisson(rate *
    theta @ beta), and are drawn again; theta and the rate are hidden and keep the values drawn from P(theta, rate | X).

    ``view="tokens"``: X[i, p] is the word at position p (the paper's example), -1 behind the end of a shorter document.
    theta keeps its value, z is drawn again, then w given z. z is drawn from P(z | theta), as if its word were not known
    (``hidden_knockoff="copy"``: (z, w) and (z_tilde, w_tilde) have one law given theta and can be exchanged), or from
    P(z | theta, w) as in the paper (``"posterior"``: the new word is then nearer to the old one).

    An empty document is one like the others: of counts, its knockoff is a draw given that nothing was written (it need
    not be empty, because the knockoff of another document may be); of tokens it has no position to fill and is its own.

    Real texts repeat a word more often than topics alone explain, so their counts vary more than the model says;
    more topics help.
    """

    alpha: NDArray  # shape (n_topics,)
    beta: NDArray  # shape (n_topics, n_words): rows sum to one
    # gamma law of the rate of a document, for ``view="counts"``; its mean is shape * scale
    length_shape: float = 1.0
    length_scale: float = 100.0
    view: str = "counts"  # "counts" or "tokens"
    n_positions: int = 0  # columns of X, for ``view="tokens"``

    def __post_init__(self) -> None:
        alpha, beta = np.asarray(self.alpha, dtype=float), np.asarray(self.beta, dtype=float)
        if beta.ndim != 2 or alpha.shape != (len(beta),):
            raise InputError(f"alpha has shape {alpha.shape}, beta {beta.shape}: expected (T,) and (T, n_words).")
        if not ((alpha > 0) & np.isfinite(alpha)).all():
            raise InputError(f"alpha must be positive; topic {np.flatnonzero(~(alpha > 0))[0]} is not.")
        check_probabilities("beta", beta)
        if not (self.length_shape > 0 and self.length_scale > 0):
            raise InputError("length_shape and length_scale must be positive.")
        if self.view not in VIEWS:
            raise unknown_option("view", self.view, VIEWS)
        if self.view == "tokens" and self.n_positions < 1:
            raise InputError("view='tokens' needs n_positions, the number of columns of X.")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentence that says what P^X is."""
        T, n_words = self.beta.shape
        topics = "one topic" if T == 1 else f"{T} topics"
        of = f"{n_words} words" if self.view == "counts" else f"{n_words} words at {self.n_positions} positions"
        return f"P^X is latent Dirichlet allocation of {of} ({self.view}) with {topics}."

    @kept_per_how
    def as_network(
        self,
        *,
        n_sweeps: int | None = None,
        hidden_knockoff: str = "copy",
        n_jobs: int | None = None,
    ) -> BayesianNetwork:
        """(theta, rate) -> X for counts; theta -> z -> X for token positions.

        Parameters
        ----------
        n_sweeps : int, optional
            Sweeps of Gibbs sampling; left out, as many as convergence asks for (see posterior/lda.py).
        hidden_knockoff : {"copy", "posterior"}
            How z moves, for ``view="tokens"``.
        n_jobs : int, optional
            Not needed here.
        """
        if n_sweeps is not None and n_sweeps < 1:
            raise InputError(f"n_sweeps={n_sweeps}: without a sweep the draw does not look at X. Use 1 or more.")
        if hidden_knockoff not in HIDDEN_KNOCKOFFS:
            raise unknown_option("hidden_knockoff", hidden_knockoff, HIDDEN_KNOCKOFFS)
        theta = Node("theta", parents=(), conjugate=Identity())
        if self.view == "counts":
            rate = Node("rate", parents=(), conjugate=Identity())
            counts = Independent(partial(draw_counts, self.beta), partial(log_prob_counts, self.beta))
            X = Node("X", parents=("theta", "rate"), conjugate=counts, columns=range(self.beta.shape[1]))
            return BayesianNetwork(
                (theta, rate, X), sample_hidden=partial(self.sample_hidden_of_counts, n_sweeps=n_sweeps)
            )
        likelihood = self.beta if hidden_knockoff == "posterior" else np.ones_like(self.beta)
        topics = Independent(partial(draw_topics, likelihood), partial(log_prob_topics, likelihood))
        z = Node("z", parents=("theta",), conjugate=topics)
        words = Independent(partial(draw_words, self.beta), partial(log_prob_words, self.beta))
        X = Node("X", parents=("z",), conjugate=words, columns=range(self.n_positions))
        return BayesianNetwork((theta, z, X), sample_hidden=partial(self.sample_hidden_of_tokens, n_sweeps=n_sweeps))

    def log_density(self, X: Any) -> NDArray:
        """Log P(x) of every document, shape (n,).

        Of tokens given the number of them. Topics are summed out exactly; documents that are too long for their number
        are refused.
        """
        from knockoffs.features.posterior.lda import log_words

        if self.view == "tokens":
            words = check_tokens(X, self.beta.shape[1])
            return log_words(count_tokens(words, self.beta.shape[1]), self.alpha, self.beta)
        counts = check_counts(X, self.beta.shape[1])
        length = np.asarray(counts.sum(axis=1)).ravel()
        factorials = np.zeros(counts.shape[0])
        np.add.at(factorials, np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), gammaln(counts.data + 1.0))
        orders = gammaln(length + 1.0) - factorials
        p = self.length_scale / (1.0 + self.length_scale)  # a Poisson number with a Gamma rate is negative binomial
        lengths = (
            gammaln(self.length_shape + length)
            - gammaln(self.length_shape)
            - gammaln(length + 1.0)
            + length * np.log(p)
            - self.length_shape * np.log1p(self.length_scale)
        )
        return lengths + orders + log_words(counts, self.alpha, self.beta)

    def sample_topics(self, counts: csr_array, rng: Generator, n_sweeps: int | None) -> NDArray:
        """Theta ~ P(theta | words), shape (n, n_topics)."""
        from knockoffs.features.posterior.lda import sample_topics_converged, sample_topics_gibbs

        unknown = np.intersect1d(counts.indices, np.flatnonzero(self.beta.max(axis=0) == 0))
        if unknown.size:
            raise InputError(f"X has the words {name_some(unknown)}, which no topic produces (beta is zero there).")
        if n_sweeps is None:
            return sample_topics_converged(counts, self.alpha, self.beta, rng)
        return sample_topics_gibbs(counts, self.alpha, self.beta, rng, n_sweeps=n_sweeps)[0]

    def sample_hidden_of_counts(self, X: object, rng: Generator, n_sweeps: int | None) -> dict[str, NDArray]:
        """Theta and the rate given the counts. Given the length of a document, the two are independent."""
        counts = check_counts(X, self.beta.shape[1])
        length = np.asarray(counts.sum(axis=1)).ravel()
        # Gamma(shape, scale) is the conjugate prior of a Poisson rate
        rate = rng.gamma(self.length_shape + length) / (1.0 / self.length_scale + 1.0)
        return {"theta": self.sample_topics(counts, rng, n_sweeps), "rate": rate}

    def sample_hidden_of_tokens(self, X: NDArray, rng: Generator, n_sweeps: int | None) -> dict[str, NDArray]:
        """Theta given the words, and z given both: (theta, z) ~ P(theta, z | X)."""
        words = check_tokens(X, self.beta.shape[1])
        theta = self.sample_topics(count_tokens(words, self.beta.shape[1]), rng, n_sweeps)
        blanket = {"theta": theta, "X": words}
        return {"theta": theta, "z": draw_topics(self.beta, blanket, len(words), rng)}

    def sample(self, n: int, rng: Generator) -> NDArray[np.int32]:
        """Draw n documents: counts, or words at all the positions."""
        from knockoffs.features.posterior.lda import sample_dirichlet

        theta = sample_dirichlet(np.tile(self.alpha, (n, 1)), rng)
        if self.view == "counts":
            rate = rng.gamma(self.length_shape, self.length_scale, size=n)
            return draw_counts(self.beta, {"theta": theta, "rate": rate}, n, rng)
        topics = choose(np.broadcast_to(theta[:, None], (n, self.n_positions, len(self.alpha))), rng)
        return draw_words(self.beta, {"z": topics}, n, rng)
