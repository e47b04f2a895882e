"""Latent Dirichlet allocation: theta -> z -> w, for word counts and for token positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, issparse
from scipy.special import gammaln, psi

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.progress import track
from knockoffs.sampling.conjugates.identity import Identity
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.network import BayesianNetwork, Blanket, Node

SUM_TOLERANCE = 1e-8  # rows of beta may miss one by rounding, and no more
N_SWEEPS = 50  # documents of some 60 tokens are at their stationary law well before


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

    Real texts repeat a word more often than topics alone explain, so their counts vary more than the model says;
    more topics help.

    Parameters
    ----------
    alpha : array, shape (n_topics,)
    beta : array, shape (n_topics, n_words)
        Rows sum to one.
    length_shape, length_scale : float
        Gamma law of the rate of a document, for ``view="counts"``; its mean is shape * scale.
    view : {"counts", "tokens"}
    n_positions : int
        Columns of X, for ``view="tokens"``.
    posterior : {"gibbs", "variational"}
        How (theta, z) is drawn given the words: ``n_sweeps`` sweeps of collapsed Gibbs sampling from the variational
        solution, or the variational solution itself (fast, as in the paper, and further from exact).
    n_sweeps : int
    hidden_knockoff : {"copy", "posterior"}
        How z moves, for ``view="tokens"``.
    """

    alpha: NDArray
    beta: NDArray
    length_shape: float = 1.0
    length_scale: float = 100.0
    view: str = "counts"
    n_positions: int = 0
    posterior: str = "gibbs"
    n_sweeps: int = N_SWEEPS
    hidden_knockoff: str = "copy"

    def __post_init__(self) -> None:
        alpha, beta = np.asarray(self.alpha, dtype=float), np.asarray(self.beta, dtype=float)
        if beta.ndim != 2 or alpha.shape != (len(beta),):
            raise InputError(f"alpha has shape {alpha.shape}, beta {beta.shape}: expected (T,) and (T, n_words).")
        if not ((alpha > 0) & np.isfinite(alpha)).all():
            raise InputError(f"alpha must be positive; topic {np.flatnonzero(~(alpha > 0))[0]} is not.")
        bad = np.flatnonzero(~(np.abs(beta.sum(axis=1) - 1) <= SUM_TOLERANCE) | (beta < 0).any(axis=1))
        if bad.size:
            raise InputError(f"row {bad[0]} of beta sums to {beta[bad[0]].sum():.6g}: rows must be probabilities.")
        if not (self.length_shape > 0 and self.length_scale > 0):
            raise InputError("length_shape and length_scale must be positive.")
        if self.view not in ("counts", "tokens"):
            raise unknown_option("view", self.view, ("counts", "tokens"))
        if self.view == "tokens" and self.n_positions < 1:
            raise InputError("view='tokens' needs n_positions, the number of columns of X.")
        if self.posterior not in ("gibbs", "variational"):
            raise unknown_option("posterior", self.posterior, ("gibbs", "variational"))
        if self.n_sweeps < 1:
            raise InputError(f"n_sweeps={self.n_sweeps}: without a sweep the draw does not look at X. Use 1 or more.")
        if self.hidden_knockoff not in ("copy", "posterior"):
            raise unknown_option("hidden_knockoff", self.hidden_knockoff, ("copy", "posterior"))
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "beta", beta)

    def as_network(self) -> BayesianNetwork:
        """(theta, rate) -> X for counts; theta -> z -> X for token positions."""
        return self._counts_network if self.view == "counts" else self._tokens_network

    @cached_property
    def _counts_network(self) -> BayesianNetwork:
        theta = Node("theta", parents=(), conjugate=Identity())
        rate = Node("rate", parents=(), conjugate=Identity())
        conjugate = Independent(partial(_draw_counts, self.beta), partial(_log_prob_counts, self.beta))
        X = Node("X", parents=("theta", "rate"), conjugate=conjugate, columns=range(self.beta.shape[1]))
        return BayesianNetwork((theta, rate, X), sample_hidden=self.sample_hidden_of_counts)

    @cached_property
    def _tokens_network(self) -> BayesianNetwork:
        theta = Node("theta", parents=(), conjugate=Identity())
        likelihood = self.beta if self.hidden_knockoff == "posterior" else np.ones_like(self.beta)
        topics = Independent(partial(_draw_topics, likelihood), partial(_log_prob_topics, likelihood))
        z = Node("z", parents=("theta",), conjugate=topics)
        words = Independent(partial(_draw_words, self.beta), partial(_log_prob_words, self.beta))
        X = Node("X", parents=("z",), conjugate=words, columns=range(self.n_positions))
        return BayesianNetwork((theta, z, X), sample_hidden=self.sample_hidden_of_tokens)

    def sample_topics(self, counts: csr_array, rng: Generator) -> NDArray:
        """Theta ~ P(theta | words), shape (n, n_topics)."""
        unknown = np.intersect1d(counts.indices, np.flatnonzero(self.beta.max(axis=0) == 0))
        if unknown.size:
            raise InputError(f"X has the words {name_some(unknown)}, which no topic produces (beta is zero there).")
        if self.posterior == "variational":
            from knockoffs.features.posterior.variational import sample_topics_variational

            return sample_topics_variational(counts, self.alpha, self.beta, rng)
        from knockoffs.features.posterior.gibbs_lda import sample_topics_gibbs

        return sample_topics_gibbs(counts, self.alpha, self.beta, rng, n_sweeps=self.n_sweeps)[0]

    def sample_hidden_of_counts(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """Theta and the rate given the counts. Given the length of a document, the two are independent."""
        counts = _check_counts(X, self.beta.shape[1])
        length = np.asarray(counts.sum(axis=1)).ravel()
        # Gamma(shape, scale) is the conjugate prior of a Poisson rate
        rate = rng.gamma(self.length_shape + length) / (1.0 / self.length_scale + 1.0)
        return {"theta": self.sample_topics(counts, rng), "rate": rate}

    def sample_hidden_of_tokens(self, X: NDArray, rng: Generator) -> dict[str, NDArray]:
        """Theta given the words, and z given both: (theta, z) ~ P(theta, z | X)."""
        words = _check_tokens(X, self.beta.shape[1])
        theta = self.sample_topics(_count_tokens(words, self.beta.shape[1]), rng)
        blanket = {"theta": theta, "X": words}
        return {"theta": theta, "z": _draw_topics(self.beta, blanket, len(words), rng)}

    def sample(self, n: int, rng: Generator) -> NDArray[np.int32]:
        """Draw n documents: counts, or words at all the positions."""
        from knockoffs.features.posterior.variational import sample_dirichlet

        theta = sample_dirichlet(np.tile(self.alpha, (n, 1)), rng)
        if self.view == "counts":
            rate = rng.gamma(self.length_shape, self.length_scale, size=n)
            return _draw_counts(self.beta, {"theta": theta, "rate": rate}, n, rng)
        topics = _choose(np.broadcast_to(theta[:, None], (n, self.n_positions, len(self.alpha))), rng)
        return _draw_words(self.beta, {"z": topics}, n, rng)


def _draw_counts(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    """Independent Poisson(rate theta @ beta), through the tokens of each topic: few documents use many words."""
    tokens = rng.poisson(blanket["rate"][:, None] * blanket["theta"])
    X = np.zeros((n, beta.shape[1]), dtype=np.int32)
    for topic, cdf in enumerate(np.cumsum(beta, axis=1)):
        rows = np.repeat(np.arange(n), tokens[:, topic])
        u = np.minimum(rng.random(len(rows)) * cdf[-1], np.nextafter(cdf[-1], 0.0))
        np.add.at(X, (rows, np.searchsorted(cdf, u, side="right")), 1)
    return X


def _log_prob_counts(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    mean = blanket["rate"][:, None] * (blanket["theta"] @ beta)
    u = np.asarray(u, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(u > 0, u * np.log(mean), 0.0) - mean - gammaln(u + 1.0)
    return terms.sum(axis=1)


def _draw_topics(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    return np.where(blanket["X"] >= 0, _choose(_topic_weights(beta, blanket), rng), -1)


def _topic_weights(beta: NDArray, blanket: Blanket) -> NDArray:
    """P(z | theta, w) up to a constant, shape (n, n_positions, n_topics)."""
    words = blanket["X"].astype(np.intp)
    return blanket["theta"][:, None, :] * beta.T[words]  # what stands behind the end of a document is not used


def _log_prob_topics(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    weights = _topic_weights(beta, blanket)
    chosen = np.take_along_axis(weights, u[..., None], axis=2)[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.log(chosen / weights.sum(axis=2))
    inside = blanket["X"] >= 0
    return np.where(inside, np.where(u >= 0, terms, -np.inf), np.where(u >= 0, -np.inf, 0.0)).sum(axis=1)


def _draw_words(beta: NDArray, blanket: Blanket, n: int, rng: Generator) -> NDArray[np.int32]:
    z = blanket["z"]
    words = np.full(z.shape, -1, dtype=np.int32)
    for topic, cdf in enumerate(np.cumsum(beta, axis=1)):
        here = z == topic
        u = np.minimum(rng.random(int(here.sum())) * cdf[-1], np.nextafter(cdf[-1], 0.0))
        words[here] = np.searchsorted(cdf, u, side="right")
    return words


def _log_prob_words(beta: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
    words, z = u.astype(np.intp), blanket["z"]
    with np.errstate(divide="ignore"):
        terms = np.where(words >= 0, np.log(beta[z, words]), -np.inf)
    return np.where(z >= 0, terms, np.where(words >= 0, -np.inf, 0.0)).sum(axis=1)


def _choose(weights: NDArray, rng: Generator) -> NDArray[np.int32]:
    """One index on the last axis for each cell, with probability proportional to its weight."""
    cdf = np.cumsum(weights, axis=-1)
    total = cdf[..., -1]
    u = np.minimum(rng.random(total.shape) * total, np.nextafter(total, 0.0))
    return (cdf <= u[..., None]).sum(axis=-1).astype(np.int32)


def fit_latent_dirichlet(
    X: Any,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    n_topics: int = 10,
    max_iter: int = 10,
    view: str = "counts",
    posterior: str = "gibbs",
    n_sweeps: int = N_SWEEPS,
    fit: Callable[..., tuple[NDArray, NDArray]] | None = None,
) -> LatentDirichlet:
    """Fit topics to documents (scikit-learn's, then refined by stochastic EM) and the law of their lengths.

    Parameters
    ----------
    X : array or sparse array, shape (n, n_columns)
        Word counts, or the words at each position with -1 behind the end (``view="tokens"``).
    rng : numpy.random.Generator
    n_jobs : int, optional
    n_topics : int
    max_iter : int
        Passes over the documents.
    view, posterior, n_sweeps
        See ``LatentDirichlet``.
    fit : callable, optional
        ``(counts, n_topics, max_iter, rng, n_jobs) -> (alpha, beta)`` in place of scikit-learn's, such as
        ``fit_topics_tomotopy``.

    Returns
    -------
    LatentDirichlet
    """
    if view not in ("counts", "tokens"):
        raise unknown_option("view", view, ("counts", "tokens"))
    if view == "tokens":
        words = _check_tokens(X, None)
        counts = _count_tokens(words, int(words.max()) + 1)
    else:
        counts = _check_counts(X, None)
    if not 1 <= n_topics <= counts.shape[0]:
        raise InputError(
            f"n_topics={n_topics}: expected a number from 1 to the number of documents, {counts.shape[0]}."
        )
    alpha, beta = (fit or fit_topics_sklearn)(counts, n_topics, max_iter, rng, n_jobs)
    shape, scale = fit_length(np.asarray(counts.sum(axis=1)).ravel())
    n_positions = counts.shape[1] if view == "counts" else np.shape(X)[1]
    return LatentDirichlet(alpha, beta, shape, scale, view, n_positions, posterior, n_sweeps)


def fit_topics_sklearn(
    counts: csr_array, n_topics: int, max_iter: int, rng: Generator, n_jobs: int | None = None
) -> tuple[NDArray, NDArray]:
    """Topics alpha, shape (n_topics,), and beta, shape (n_topics, n_words), by scikit-learn's batch variational Bayes.

    scikit-learn keeps alpha fixed, and its topics are a start here: see ``refine_topics``.
    """
    from sklearn.decomposition import LatentDirichletAllocation

    seed = int(rng.integers(2**31))
    lda = LatentDirichletAllocation(n_topics, max_iter=max_iter, random_state=seed, n_jobs=n_jobs).fit(counts)
    beta = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    return refine_topics(counts, np.full(n_topics, 1.0 / n_topics), beta, rng)


def fit_topics_tomotopy(
    counts: csr_array, n_topics: int, max_iter: int, rng: Generator, n_jobs: int | None = None
) -> tuple[NDArray, NDArray]:
    """Topics alpha and beta by tomotopy's Gibbs sampling (the extra ``topics``): ten sweeps for each pass."""
    import tomotopy

    lda = tomotopy.LDAModel(k=n_topics, seed=int(rng.integers(2**31)), rm_top=0, min_cf=0)
    for start, stop in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        words = np.repeat(counts.indices[start:stop], counts.data[start:stop].astype(np.int64))
        lda.add_doc([str(word) for word in words])
    lda.train(10 * max_iter, workers=n_jobs or 1)
    beta = np.zeros((n_topics, counts.shape[1]))
    columns = [int(word) for word in lda.used_vocabs]
    for topic in range(n_topics):
        beta[topic, columns] = lda.get_topic_word_dist(topic)
    return np.asarray(lda.alpha, dtype=float), beta / beta.sum(axis=1, keepdims=True)


def refine_topics(
    counts: csr_array, alpha: NDArray, beta: NDArray, rng: Generator, *, n_rounds: int = 30
) -> tuple[NDArray, NDArray]:
    """Topics nearer to the maximum of the likelihood, by stochastic EM with Gibbs sampling.

    Variational topics are too alike and their alpha too large. In each round the topics of all tokens are drawn (three
    sweeps), then alpha and beta are refitted to them; the second half of the rounds is averaged. Every topic borrows
    one token with the law of all the words, so that no word that was seen gets probability zero.
    """
    from knockoffs.features.posterior.gibbs_lda import sample_topics_gibbs

    n_topics, n_words = beta.shape
    rows = np.repeat(np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr)), counts.data)
    words = np.repeat(counts.indices, counts.data).astype(np.int64)
    borrowed = np.bincount(words, minlength=n_words) / len(words)
    theta, kept = None, []
    for _ in track(range(n_rounds), "topics"):
        theta, z = sample_topics_gibbs(counts, alpha, beta, rng, n_sweeps=3, start=theta)
        in_document = np.bincount(rows * n_topics + z, minlength=counts.shape[0] * n_topics).reshape(-1, n_topics)
        in_topic = np.bincount(z * n_words + words, minlength=beta.size).reshape(beta.shape)
        alpha = _fit_dirichlet_multinomial(in_document, alpha)
        beta = (in_topic + borrowed) / (in_topic + borrowed).sum(axis=1, keepdims=True)
        kept.append((alpha, beta))
    half = kept[n_rounds // 2 :]
    return np.mean([a for a, _ in half], axis=0), np.mean([b for _, b in half], axis=0)


def _fit_dirichlet_multinomial(tokens: NDArray, alpha: NDArray, n_steps: int = 20) -> NDArray:
    """Alpha by Minka's fixed point on the topic counts of the documents, shape (n, n_topics)."""
    length = tokens.sum(axis=1)
    for _ in range(n_steps):
        up = (psi(tokens + alpha) - psi(alpha)).sum(axis=0)
        alpha = np.maximum(alpha * up / (psi(length + alpha.sum()) - psi(alpha.sum())).sum(), 1e-6)
    return alpha


def fit_length(length: NDArray) -> tuple[float, float]:
    """Shape and scale of the Gamma law of document rates, by the likelihood of the lengths (negative binomial).

    Lengths that vary no more than Poisson numbers get a rate that hardly varies.
    """
    mean = float(np.mean(length))

    def loss(log_shape: float) -> float:
        shape = np.exp(log_shape)
        terms = gammaln(length + shape) - gammaln(shape) + shape * np.log(shape / (shape + mean))
        return -float(np.sum(terms + length * np.log(mean / (shape + mean))))

    shape = float(np.exp(minimize_scalar(loss, bounds=(-7.0, 14.0), method="bounded").x))
    return shape, mean / shape


def _check_counts(X: Any, n_words: int | None) -> csr_array:
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
    empty = np.flatnonzero(np.diff(counts.indptr) == 0)
    if empty.size:
        raise InputError(f"documents {name_some(empty)} (rows of X) are empty: drop them.")
    return counts


def _check_tokens(X: ArrayLike, n_words: int | None) -> NDArray[np.int64]:
    words = np.asarray(X)
    if words.ndim != 2 or 0 in words.shape:
        raise InputError(f"X has shape {words.shape}: expected (n, n_positions).")
    if not np.issubdtype(words.dtype, np.number) or (words != np.floor(words)).any() or (words < -1).any():
        raise InputError("X must hold the numbers of words, and -1 behind the end of a document.")
    if n_words is not None and words.max() >= n_words:
        row = int(np.argmax(words.max(axis=1) >= n_words))
        raise InputError(f"row {row} has the word {words.max():g}: words are numbered 0, ..., {n_words - 1}.")
    empty = np.flatnonzero((words < 0).all(axis=1))
    if empty.size:
        raise InputError(f"documents {name_some(empty)} (rows of X) are empty: drop them.")
    return words.astype(np.int64)


def _count_tokens(words: NDArray[np.int64], n_words: int) -> csr_array:
    rows, places = np.nonzero(words >= 0)
    ones = np.ones(len(rows), dtype=np.int64)
    counts = csr_array((ones, (rows, words[rows, places])), shape=(len(words), n_words))
    counts.sum_duplicates()
    return counts
