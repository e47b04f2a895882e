"""FDR and power of LDA knockoffs: documents from a known model, and R8 newswire with synthetic labels."""

from functools import cache, partial

import numpy as np
import pytest
from benchmarks.data import load_newswire
from tests.guarantees import runs
from tests.guarantees.runs import DATA, correlation_scores, holds

from knockoffs.features.lda import LatentDirichlet, fit_latent_dirichlet
from knockoffs.sampling.sampler import sample_knockoffs

run = partial(runs.run, signed=True)  # else y would mostly be the length of the document


def topics(rng, n_topics=5, n_words=100):
    beta = rng.dirichlet(np.full(n_words, 0.2), size=n_topics) * 0.9 + 0.1 / n_words
    return LatentDirichlet(np.full(n_topics, 0.1), beta / beta.sum(axis=1, keepdims=True), 4.0, 40.0)


def test_known_topics():
    truth = topics(np.random.default_rng(0))
    model = LatentDirichlet(truth.alpha, truth.beta, truth.length_shape, truth.length_scale)

    def knockoffs_of(X, rng):
        return sample_knockoffs(model.as_network(), X, rng)

    fdp, found = run(lambda rng: truth.sample(800, rng), knockoffs_of, 60, 25, 6.0, seed=1)
    assert holds(fdp)
    assert found.mean() > 0.5


def test_fitted_topics():
    truth = topics(np.random.default_rng(0))

    def knockoffs_of(X, rng):
        return sample_knockoffs(fit_latent_dirichlet(X, rng=rng, n_topics=5, max_iter=5).as_network(), X, rng)

    fdp, found = run(lambda rng: truth.sample(800, rng), knockoffs_of, 15, 25, 6.0, seed=2)
    assert holds(fdp)
    assert found.mean() > 0.5


@pytest.mark.parametrize("n_topics", [5, 1])
def test_one_topic_for_five_fails(n_topics):
    truth = topics(np.random.default_rng(0))
    beta = truth.beta if n_topics == 5 else truth.beta.mean(axis=0, keepdims=True)
    model = LatentDirichlet(np.full(n_topics, 0.1), beta, truth.length_shape, truth.length_scale)

    def knockoffs_of(X, rng):
        return sample_knockoffs(model.as_network(), X, rng)

    draw_X = lambda rng: truth.sample(800, rng)  # noqa: E731
    fdp, _ = run(draw_X, knockoffs_of, 40, 25, 6.0, seed=3, scores=correlation_scores)
    assert holds(fdp) == (n_topics == 5)


@cache
def newswire():
    """R8: counts of the 500 words found in most documents, the words, and the classes."""
    if not (DATA / "text" / "r8_counts.npz").is_file():
        pytest.skip(f"{DATA}/text is not here")
    X, label = load_newswire(500, DATA)
    return X.to_numpy(), np.array(X.columns), label


@cache
def newswire_model():
    return fit_latent_dirichlet(newswire()[0], rng=np.random.default_rng(0), n_topics=40)


def test_newswire_with_synthetic_labels():
    # The words are real, so LDA is an approximation here; the labels are made from 50 of the 500 words.
    X, _, _ = newswire()

    def knockoffs_of(X, rng):
        return sample_knockoffs(newswire_model().as_network(), X, rng)

    fdp, found = run(lambda rng: X, knockoffs_of, 8, 50, 6.0, seed=4)
    assert holds(fdp)
    assert found.mean() > 0.5
