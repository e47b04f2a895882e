"""FDR and power of LDA knockoffs: documents from a known model, and R8 newswire with synthetic labels."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.data import load_newswire
from sklearn.linear_model import lasso_path

from knockoffs.features.lda import LatentDirichlet, fit_latent_dirichlet
from knockoffs.filter import difference, false_discovery_proportion, knockoff_filter, power
from knockoffs.sampling.sampler import sample_knockoffs

DATA = Path(os.environ.get("KNOCKOFFS_DATA", Path(__file__).parents[3] / "shared" / "data"))
FDR = 0.2


def lasso_scores(X, X_tilde, y, share=0.1):
    """|coefficients| at a share of the smallest penalty with no coefficient at all."""
    XX = np.hstack([X, X_tilde]).astype(float)
    XX = (XX - XX.mean(axis=0)) / np.where(XX.std(axis=0) > 0, XX.std(axis=0), 1.0)
    y = y - y.mean()
    alpha = share * np.abs(XX.T @ y).max() / len(y)
    Z = np.abs(lasso_path(XX, y, alphas=[alpha])[1][:, 0])
    return Z[: X.shape[1]], Z[X.shape[1] :]


def correlation_scores(X, X_tilde, y):
    """|correlation with y|: null words of the same topic score high, and their knockoffs must as well."""
    y = (y - y.mean()) / y.std()
    return tuple(
        np.abs((Y - Y.mean(axis=0)).T @ y) / np.where(Y.std(axis=0) > 0, Y.std(axis=0), 1) for Y in (X, X_tilde)
    )


def run(draw_X, knockoffs_of, n_runs, n_non_nulls, amplitude, seed, scores=lasso_scores):
    out = []
    for rng in np.random.default_rng(seed).spawn(n_runs):
        X = draw_X(rng)
        non_nulls = np.zeros(X.shape[1], dtype=bool)
        non_nulls[rng.choice(X.shape[1], size=n_non_nulls, replace=False)] = True
        Z = (X[:, non_nulls] - X[:, non_nulls].mean(axis=0)) / X[:, non_nulls].std(axis=0)
        signs = rng.choice([-1, 1], size=n_non_nulls)  # else y would mostly be the length of the document
        y = amplitude * (Z @ signs) / np.sqrt(len(X)) + rng.standard_normal(len(X))
        selected = knockoff_filter(difference(*scores(X, knockoffs_of(X, rng), y)), FDR)
        out.append((false_discovery_proportion(selected, non_nulls), power(selected, non_nulls)))
    fdp, found = np.array(out).T
    print(f"FDR {fdp.mean():.3f} +- {fdp.std() / np.sqrt(n_runs):.3f}, power {found.mean():.3f}")
    return fdp, found


def holds(fdp):
    return fdp.mean() <= FDR + 4 * fdp.std() / np.sqrt(len(fdp))


def topics(rng, n_topics=5, n_words=100):
    beta = rng.dirichlet(np.full(n_words, 0.2), size=n_topics) * 0.9 + 0.1 / n_words
    return LatentDirichlet(np.full(n_topics, 0.1), beta / beta.sum(axis=1, keepdims=True), 4.0, 40.0)


def documents(model, n, rng):
    return model.sample(n, rng)  # a document may be empty


@pytest.mark.parametrize("posterior", ["gibbs", "variational"])
def test_known_topics(posterior):
    truth = topics(np.random.default_rng(0))
    model = LatentDirichlet(truth.alpha, truth.beta, truth.length_shape, truth.length_scale)

    def knockoffs_of(X, rng):
        return sample_knockoffs(model.as_network(posterior=posterior), X, rng)

    fdp, found = run(lambda rng: documents(truth, 800, rng), knockoffs_of, 60, 25, 6.0, seed=1)
    assert holds(fdp)
    assert found.mean() > 0.5


def test_fitted_topics():
    truth = topics(np.random.default_rng(0))

    def knockoffs_of(X, rng):
        return sample_knockoffs(fit_latent_dirichlet(X, rng=rng, n_topics=5, max_iter=5).as_network(), X, rng)

    fdp, found = run(lambda rng: documents(truth, 800, rng), knockoffs_of, 15, 25, 6.0, seed=2)
    assert holds(fdp)
    assert found.mean() > 0.5


@pytest.mark.parametrize("n_topics", [5, 1])
def test_one_topic_for_five_fails(n_topics):
    truth = topics(np.random.default_rng(0))
    beta = truth.beta if n_topics == 5 else truth.beta.mean(axis=0, keepdims=True)
    model = LatentDirichlet(np.full(n_topics, 0.1), beta, truth.length_shape, truth.length_scale)

    def knockoffs_of(X, rng):
        return sample_knockoffs(model.as_network(), X, rng)

    draw_X = lambda rng: documents(truth, 800, rng)  # noqa: E731
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


def test_words_of_a_class():
    X, words, label = newswire()
    X_tilde = sample_knockoffs(newswire_model().as_network(), X, np.random.default_rng(5))
    for name in np.unique(label):
        y = (label == name).astype(float)
        W = difference(*lasso_scores(X, X_tilde, y, share=0.05))
        selected = knockoff_filter(W, FDR)
        best = words[np.argsort(-W)][: min(selected.sum(), 15)]
        print(f"{name}: {selected.sum()} words, {' '.join(best)}")
        assert name not in ("earn", "acq") or selected.sum() >= 5  # the two classes with thousands of documents
