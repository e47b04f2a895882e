"""Fit topics to documents, and the law of their lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import gammaln, psi

from knockoffs.errors import InputError, unknown_option
from knockoffs.features.lda.model import VIEWS, LatentDirichlet, check_counts, check_tokens, count_tokens
from knockoffs.progress import track


def fit_latent_dirichlet(
    X: Any,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    n_topics: int = 10,
    max_iter: int = 10,
    view: str = "counts",
) -> LatentDirichlet:
    """Fit topics to documents (scikit-learn's, then refined by stochastic EM) and the distribution of their lengths.

    Parameters
    ----------
    X : array or sparse array, shape (n, n_columns)
        Word counts, or the words at each position with -1 behind the end (``view="tokens"``). Documents may be empty:
        how many are is a part of the law of lengths.
    rng : numpy.random.Generator
    n_jobs : int, optional
    n_topics : int
    max_iter : int
        Passes over the documents.
    view : {"counts", "tokens"}
        See ``LatentDirichlet``.

    Returns
    -------
    LatentDirichlet
    """
    if view not in VIEWS:
        raise unknown_option("view", view, VIEWS)
    if view == "tokens":
        words = check_tokens(X, None)
        counts = count_tokens(words, int(words.max()) + 1)
    else:
        counts = check_counts(X, None)
    if not 1 <= n_topics <= counts.shape[0]:
        raise InputError(
            f"n_topics={n_topics}: expected a number from 1 to the number of documents, {counts.shape[0]}."
        )
    if counts.sum() == 0:
        raise InputError("all documents of X are empty: there are no words to fit topics to.")
    from sklearn.decomposition import LatentDirichletAllocation

    seed = int(rng.integers(2**31))
    lda = LatentDirichletAllocation(n_topics, max_iter=max_iter, random_state=seed, n_jobs=n_jobs).fit(counts)
    start = lda.components_ / lda.components_.sum(axis=1, keepdims=True)  # scikit-learn keeps alpha fixed
    alpha, beta = refine_topics(counts, np.full(n_topics, 1.0 / n_topics), start, rng)
    shape, scale = fit_length(np.asarray(counts.sum(axis=1)).ravel())
    n_positions = counts.shape[1] if view == "counts" else np.shape(X)[1]
    return LatentDirichlet(alpha, beta, shape, scale, view, n_positions)


def refine_topics(
    counts: csr_array, alpha: NDArray, beta: NDArray, rng: Generator, *, n_rounds: int = 30
) -> tuple[NDArray, NDArray]:
    """Topics nearer to the maximum of the likelihood, by stochastic EM with Gibbs sampling.

    Variational topics are too alike and their alpha too large. In each round the topics of all tokens are drawn (three
    sweeps), then alpha and beta are refitted to them; the second half of the rounds is averaged. Every topic borrows
    one token with the law of all the words, so that no word that was seen gets probability zero.
    """
    from knockoffs.features.posterior.lda import sample_topics_gibbs

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
