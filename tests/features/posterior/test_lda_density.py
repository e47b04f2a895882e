"""The probability of words, theta integrated out: against all topics of all words, and estimated against exact."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

from knockoffs.features.posterior import lda
from knockoffs.features.posterior.lda import log_words

ALPHA = np.array([0.5, 0.3, 0.8])
BETA = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.2, 0.5], [0.25, 0.25, 0.25, 0.25]])


def by_enumeration(words):
    z = np.array(list(product(range(3), repeat=len(words))))
    tokens = np.stack([(z == t).sum(axis=1) for t in range(3)], axis=1)
    prior = gammaln(ALPHA.sum()) - gammaln(ALPHA.sum() + len(words)) + (gammaln(ALPHA + tokens) - gammaln(ALPHA)).sum(1)
    return np.log((np.exp(prior) * BETA[z, words].prod(axis=1)).sum())


def test_polynomials_against_enumeration():
    documents = [[0], [0, 0, 1, 2, 3], [3, 3, 3], [1, 2, 0, 0, 3, 1]]
    counts = csr_array(np.stack([np.bincount(words, minlength=4) for words in documents]))
    assert log_words(counts, ALPHA, BETA) == pytest.approx([by_enumeration(words) for words in documents], rel=1e-12)
    assert log_words(csr_array((2, 4), dtype=int), ALPHA, BETA).tolist() == [0.0, 0.0]  # nothing was written
    one = np.array([[0.5, 0.2, 0.2, 0.1]])
    assert log_words(counts, np.array([0.7]), one) == pytest.approx(counts @ np.log(one[0]))


def test_a_word_that_no_topic_produces_is_impossible():
    assert log_words(csr_array(np.array([[1, 0, 1]])), np.ones(2), np.array([[0.5, 0.5, 0], [1.0, 0, 0]]))[0] == -np.inf


def test_the_estimate_is_near_the_exact_value(monkeypatch):
    """2000 draws of theta: within 0.1 of the log of documents of 5 to 60 words, at the seed that is always the same."""
    rng = np.random.default_rng(0)
    counts = csr_array(np.stack([rng.multinomial(n, rng.dirichlet(ALPHA) @ BETA) for n in (5, 15, 30, 60)]))
    exact = log_words(counts, ALPHA, BETA)
    monkeypatch.setattr(lda, "MOST_TERMS", 0)
    assert log_words(counts, ALPHA, BETA) == pytest.approx(exact, abs=0.1)
    assert (log_words(counts, ALPHA, BETA) == log_words(counts, ALPHA, BETA)).all()
