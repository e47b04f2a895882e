"""FDR and power of naive Bayes and discrete networks on data from a known model, and what must fail."""

import numpy as np
import pytest
from tests.binary import binary
from tests.guarantees.runs import DATA, correlation_scores, holds, run

from knockoffs.features.class_conditional import CategoricalColumn, GaussianColumn, PoissonColumn
from knockoffs.features.naive_bayes import NaiveBayes, fit_naive_bayes
from knockoffs.features.network import fit_discrete_network, read_network
from knockoffs.sampling.sampler import sample_knockoffs


def mixed_model(rng, n_classes=3, each=20):
    def columns(i):
        return tuple(range(i * each, (i + 1) * each))

    return NaiveBayes(
        np.full(n_classes, 1 / n_classes),
        (
            CategoricalColumn(columns(0), tuple(rng.dirichlet(np.full(3, 0.5), size=n_classes) for _ in range(each))),
            binary(columns(1), rng.beta(0.5, 0.5, size=(n_classes, each))),
            GaussianColumn(columns(2), 2 * rng.standard_normal((n_classes, each)), np.ones((n_classes, each))),
            PoissonColumn(columns(3), rng.gamma(1.0, 4.0, size=(n_classes, each))),
        ),
    )


KINDS = [kind for kind in ("nominal", "binary", "continuous", "count") for _ in range(20)]


@pytest.mark.parametrize("fitted", [False, True])
def test_naive_bayes(fitted):
    truth = mixed_model(np.random.default_rng(0))

    def knockoffs_of(X, rng):
        model = fit_naive_bayes(X, rng=rng, kinds=KINDS, n_classes=range(1, 6), n_starts=3) if fitted else truth
        return sample_knockoffs(model.as_network(), X, rng)

    fdp, found = run(lambda rng: truth.sample(600, rng), knockoffs_of, 30 if fitted else 100, 20, 5.0, seed=1)
    assert holds(fdp)
    assert found.mean() > 0.5


@pytest.mark.parametrize("n_classes", [3, 1])
def test_one_class_for_three_fails(n_classes):
    truth = mixed_model(np.random.default_rng(0))

    def knockoffs_of(X, rng):
        model = fit_naive_bayes(X, rng=rng, kinds=KINDS, n_classes=n_classes, n_starts=3)
        return sample_knockoffs(model.as_network(), X, rng)

    fdp, _ = run(lambda rng: truth.sample(600, rng), knockoffs_of, 50, 20, 5.0, seed=2, scores=correlation_scores)
    assert holds(fdp) == (n_classes == 3)


def observed_part(model, rng, share):
    names = [name for name in model.order if rng.random() < share]
    return model.observing(names)


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("name", ["hailfinder", "andes"])
def test_discrete_networks(name, share):
    path = DATA / "bif" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    whole = read_network(path)
    if name == "andes":  # every node observed takes 10 s a draw; a third of the nodes is quick
        share /= 3
    model = observed_part(whole, np.random.default_rng(3), share)

    def knockoffs_of(X, rng):
        return sample_knockoffs(model.as_network(), X, rng)

    fdp, found = run(lambda rng: model.sample(1500, rng), knockoffs_of, 60, len(model.observed) // 4, 6.0, seed=4)
    assert holds(fdp)
    assert found.mean() > 0.2


def tree_sample(rng, n=1000, d=100):
    """A binary tree in which neighbours agree in four rows of five."""
    X = np.empty((n, d), dtype=int)
    X[:, 0] = rng.integers(0, 2, size=n)
    for j in range(1, d):
        X[:, j] = X[:, (j - 1) // 2] ^ (rng.random(n) < 0.2)
    return X


def test_fitted_tree():
    def knockoffs_of(X, rng):
        return sample_knockoffs(fit_discrete_network(X, rng=rng).as_network(), X, rng)

    fdp, found = run(tree_sample, knockoffs_of, 60, 25, 6.0, seed=5)
    assert holds(fdp)
    assert found.mean() > 0.5


def test_independent_columns_for_a_tree_fail():
    def knockoffs_of(X, rng):
        return rng.permuted(X, axis=0)

    fdp, _ = run(tree_sample, knockoffs_of, 60, 25, 8.0, seed=6)
    assert not holds(fdp)
