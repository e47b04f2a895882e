"""Gibbs and variational posteriors of LDA against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy import special
from scipy.sparse import csr_array
from scipy.special import gammaln

from knockoffs.errors import InputError
from knockoffs.features.posterior import lda
from knockoffs.features.posterior.lda import log_words, sample_dirichlet, sample_topics_gibbs, variational_topics

ALPHA = np.array([0.5, 0.3, 0.8])
BETA = np.array([[0.6, 0.3, 0.1, 0.0], [0.1, 0.2, 0.2, 0.5], [0.25, 0.25, 0.25, 0.25]])


def exact_topics(words):
    """P(z | w) for all z: Dirichlet-multinomial of the topic counts times the words' probabilities."""
    z = np.array(list(product(range(3), repeat=len(words))))
    tokens = np.stack([(z == t).sum(axis=1) for t in range(3)], axis=1)
    with np.errstate(divide="ignore"):
        log_p = gammaln(ALPHA + tokens).sum(axis=1) + np.log(BETA[z, words]).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    return tokens, p / p.sum()


def test_gibbs_against_enumeration():
    # One document in 40,000 rows, each its own chain. 5 standard errors on some 30 cells and 6 moments: false alarm
    # about 2e-5; a shift of 3 % of a common cell shows.
    rng = np.random.default_rng(0)
    words, n = np.array([0, 0, 1, 2, 3, 3]), 40_000
    counts = csr_array(np.tile(np.bincount(words, minlength=4), (n, 1)))
    theta, z = sample_topics_gibbs(counts, ALPHA, BETA, rng, n_sweeps=25)
    drawn = np.stack([(z.reshape(n, 6) == t).sum(axis=1) for t in range(3)], axis=1)
    tokens, p = exact_topics(words)
    for state in np.unique(tokens, axis=0):
        exact = p[(tokens == state).all(axis=1)].sum()
        share = (drawn == state).all(axis=1).mean()
        assert abs(share - exact) < 5 * np.sqrt(exact * (1 - exact) / n) + 1e-12
    a = ALPHA + tokens
    first = a / a.sum(axis=1, keepdims=True)
    second = first * (a + 1) / (a.sum(axis=1, keepdims=True) + 1)
    for power, moment in ((1, p @ first), (2, p @ second)):
        error = (theta**power).std(axis=0) / np.sqrt(n)
        assert (np.abs((theta**power).mean(axis=0) - moment) < 5 * error).all()


def test_variational_fixed_point():
    counts = csr_array(np.array([[5, 0, 2, 1], [0, 0, 0, 30]]))
    gamma = variational_topics(counts, ALPHA, BETA, max_iter=5000, tol=1e-12)
    for d, row in enumerate(counts.toarray()):
        phi = np.exp(special.psi(gamma[d]))[:, None] * BETA
        phi /= phi.sum(axis=0)
        assert gamma[d] == pytest.approx(ALPHA + phi @ row, rel=1e-8)
        assert gamma[d].sum() == pytest.approx(ALPHA.sum() + row.sum())


def test_digamma_against_scipy():
    x = np.geomspace(1e-4, 1e6, 300)
    assert np.array([lda._digamma(value) for value in x]) == pytest.approx(special.psi(x), rel=1e-8, abs=1e-8)


def test_dirichlet_with_tiny_concentrations():
    # 5 standard errors; with 1e-4 most gamma variables would underflow to zero together
    rng = np.random.default_rng(2)
    a = np.array([1e-4, 3e-4, 6e-4])
    theta = sample_dirichlet(np.tile(a, (50_000, 1)), rng)
    assert np.isfinite(theta).all() and theta.sum(axis=1) == pytest.approx(1)
    p = a / a.sum()
    assert (np.abs(theta.mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / len(theta))).all()


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


def test_documents_too_long_for_an_exact_density_are_refused(monkeypatch):
    monkeypatch.setattr(lda, "MOST_TERMS", 30)
    with pytest.raises(InputError, match="rows '1' are too long for an exact density with 3 topics: row 1 has 6 words"):
        log_words(csr_array(np.array([[1, 1, 0, 0], [2, 2, 1, 1]])), ALPHA, BETA)
