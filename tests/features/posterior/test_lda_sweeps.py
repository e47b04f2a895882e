"""As many sweeps as convergence asks for: the rule, and the ranks of theta with it and without."""

import numpy as np
import pytest
from scipy import special
from scipy.sparse import csr_array

from knockoffs.errors import KnockoffWarning
from knockoffs.features.posterior import lda
from knockoffs.features.posterior.lda import (
    sample_dirichlet,
    sample_topics_converged,
    sample_topics_gibbs,
    sweeps_needed,
)

ALPHA = np.array([0.5, 0.5])


def topics(alike):
    """Two topics over 12 words that share this much of their words."""
    rng = np.random.default_rng(0)
    return alike * rng.dirichlet(np.ones(12)) + (1 - alike) * rng.dirichlet(np.ones(12), size=2)


def documents(beta, n, length, rng):
    theta = sample_dirichlet(np.tile(ALPHA, (n, 1)), rng)
    p = theta @ beta
    return theta, csr_array(np.stack([rng.multinomial(length, row) for row in p / p.sum(axis=1, keepdims=True)]))


def chi_squared(theta, draws):
    """Of the ranks of theta among its draws: n_draws degrees of freedom."""
    ranks = (np.stack(draws)[:, :, 0] < theta[:, 0]).sum(axis=0)
    expected = len(theta) / (len(draws) + 1)
    return ((np.bincount(ranks, minlength=len(draws) + 1) - expected) ** 2 / expected).sum()


def test_long_documents_with_topics_alike_get_the_sweeps_they_need():
    """Ranks of theta among 4 draws: uniform with the rule (false alarm 1e-6), far from it with 5 sweeps."""
    rng = np.random.default_rng(1)
    beta = topics(0.85)
    theta, X = documents(beta, 250, 200, rng)
    bound = special.chdtri(4, 1e-6)
    assert chi_squared(theta, [sample_topics_gibbs(X, ALPHA, beta, rng, n_sweeps=5)[0] for _ in range(4)]) > bound
    assert chi_squared(theta, [sample_topics_converged(X, ALPHA, beta, rng) for _ in range(4)]) < bound


def test_sweeps_grow_with_the_length_and_the_likeness_of_topics():
    """Memory has a standard error of some 0.03, and the sweeps come in powers of two: the order is safe."""
    rng = np.random.default_rng(2)
    needed = {
        (alike, length): sweeps_needed(documents(topics(alike), 50, length, rng)[1], ALPHA, topics(alike), rng)[0]
        for alike, length in ((0.0, 30), (0.9, 30), (0.9, 300))
    }
    assert needed[0.0, 30] <= 4 * lda.FEWEST_SWEEPS
    assert needed[0.0, 30] <= needed[0.9, 30] < needed[0.9, 300]
    told_apart = np.kron(np.eye(2), np.full((1, 6), 1 / 6))
    assert sweeps_needed(csr_array(np.eye(12, dtype=int)), ALPHA, told_apart, rng) == (
        2 * lda.FEWEST_SWEEPS,
        0.0,
    )
    assert sweeps_needed(csr_array(np.eye(12, dtype=int)), ALPHA[:1], np.full((1, 12), 1 / 12), rng) == (1, 0.0)


def test_chains_that_do_not_forget_are_said(monkeypatch):
    monkeypatch.setattr(lda, "MOST_SWEEPS", 10)
    rng = np.random.default_rng(3)
    _, X = documents(topics(0.95), 20, 300, rng)
    with pytest.warns(KnockoffWarning, match=r"documents with 300 words and more .* of its start after 10 sweeps"):
        sample_topics_converged(X, ALPHA, topics(0.95), rng)


def test_empty_documents_have_the_prior():
    """The mean of theta, 5 standard errors."""
    theta = sample_topics_converged(csr_array((4000, 12), dtype=int), ALPHA, topics(0.0), np.random.default_rng(4))
    assert np.abs(theta.mean(axis=0) - 0.5).max() < 5 * np.sqrt(0.125 / 4000)
