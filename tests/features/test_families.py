"""What every law of features must do, run over small examples of each: density, draws, knockoffs and conditionals."""

import pickle
from functools import partial
from itertools import product

import numpy as np
import pytest
from tests.binary import binary
from tests.fastphase import write_fastphase

from knockoffs.features import FAMILIES
from knockoffs.features.class_conditional import (
    CategoricalColumn,
    GaussianColumn,
    PoissonColumn,
)
from knockoffs.features.fastphase import fastphase_features
from knockoffs.features.hmm import DiscreteEmissions, GaussianEmissions, HiddenMarkov, fit_hidden_markov
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
from knockoffs.features.hmm.mosaic_fit import fit_genotypes
from knockoffs.features.lda import LatentDirichlet, fit_latent_dirichlet
from knockoffs.features.naive_bayes import NaiveBayes, fit_naive_bayes
from knockoffs.features.network import DiscreteNetwork, fit_discrete_network
from knockoffs.registry import imported
from knockoffs.sampling.sampler import sample_knockoffs

R = np.random.default_rng(123)
MOSAIC = Mosaic(np.array([0.0, 0.5, 0.2]), R.dirichlet(np.ones(2), size=3), R.random((3, 2)))
STEPS = R.dirichlet(np.ones(2)), R.dirichlet(np.ones(2), size=(2, 2))


def naive_bayes():
    labels = CategoricalColumn(
        (0, 2),
        (R.dirichlet(np.ones(3), size=2), R.dirichlet(np.ones(2), size=2)),
        (np.array([-1.0, 0.5, 7.0]), np.array([1.0, 2.0])),
    )
    return NaiveBayes(np.array([0.3, 0.7]), (labels, binary((1,), np.array([[0.2], [0.8]]))))


def network():
    """A hidden cause of two nodes, one of which has a child, seen in another order."""
    tables = {
        "h": [0.6, 0.4],
        "a": [[0.7, 0.3], [0.2, 0.8]],
        "b": [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]],
        "c": [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]],
    }
    return DiscreteNetwork({"h": (), "a": ("h",), "b": ("h",), "c": ("b",)}, tables, ("c", "a", "b"))


BETA = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
# a law of finitely many rows, and the values of its columns
DISCRETE = {
    "naive Bayes": (naive_bayes(), ([-1.0, 0.5, 7.0], [0, 1], [1, 2])),
    "HMM, symbols": (
        HiddenMarkov(*STEPS, DiscreteEmissions(R.dirichlet(np.ones(3), size=(3, 2)), np.array([-1.0, 2.0, 2.5]))),
        ([-1, 2, 2.5],) * 3,
    ),
    "haplotypes": (HaplotypeModel(MOSAIC), ([0, 1],) * 3),
    "genotypes": (GenotypeModel(MOSAIC), ([0, 1, 2],) * 3),
    "network": (network(), ([0, 1], [0, 1], [0, 1, 2])),
    "LDA, tokens": (LatentDirichlet([0.7, 0.4], BETA, view="tokens", n_positions=3), ([0, 1, 2],) * 3),
}
WITH_CONDITIONAL = [name for name in DISCRETE if name != "LDA, tokens"]


def support(columns):
    return np.array(list(product(*columns)), dtype=float)


@pytest.mark.parametrize("name", DISCRETE)
def test_the_density_sums_to_one(name):
    law, columns = DISCRETE[name]
    assert np.exp(law.log_density(support(columns))).sum() == pytest.approx(1.0, abs=1e-12)


def check_shares(rows, X, P, n):
    """Shares of the rows of X against P: 5 standard errors, false alarm below 5e-5 a family; shows 0.01 of a cell."""
    place = {tuple(x): i for i, x in enumerate(X)}
    seen = np.bincount([place[tuple(row)] for row in rows.astype(float)], minlength=len(X)) / n
    assert (np.abs(seen - P) <= 5 * np.sqrt(P * (1 - P) / n) + 1e-12).all()


@pytest.mark.parametrize("name", DISCRETE)
def test_draws_follow_the_density(name):
    law, columns = DISCRETE[name]
    X, n = support(columns), 60_000
    check_shares(law.sample(n, np.random.default_rng(1)), X, np.exp(law.log_density(X)), n)


@pytest.mark.parametrize("name", DISCRETE)
def test_knockoffs_of_draws_keep_the_law_and_are_exchangeable_in_each_column(name):
    """X_tilde has the law of X, and so has X with one column from X_tilde. Bounds as above, four times."""
    law, columns = DISCRETE[name]
    X, n, rng = support(columns), 60_000, np.random.default_rng(2)
    rows = law.sample(n, rng).astype(float)
    X_tilde = sample_knockoffs(law.as_network(), rows, rng)
    assert (X_tilde != rows).any(axis=0).all()
    P = np.exp(law.log_density(X))
    check_shares(X_tilde, X, P, n)
    for j in range(rows.shape[1]):
        mixed = rows.copy()
        mixed[:, j] = X_tilde[:, j]
        check_shares(mixed, X, P, n)


@pytest.mark.parametrize("name", WITH_CONDITIONAL)
def test_conditional_draws_against_enumeration(name):
    """Shares of X_j given each value of the others; 5 standard errors, false alarm below 1e-4; column j is not read."""
    law, columns = DISCRETE[name]
    X, rng, n_draws = support(columns), np.random.default_rng(3), 6000
    P = np.exp(law.log_density(X))
    for j, values in enumerate(columns):
        others = np.unique(np.delete(X, j, axis=1), axis=0)
        rows = np.insert(others, j, values[0], axis=1)
        drawn = law.conditional(j, rows, rng, n_draws)
        assert drawn.shape == (n_draws, len(rows))
        total = np.array([P[(np.delete(X, j, axis=1) == other).all(axis=1)].sum() for other in others])
        for value in values:
            here = np.insert(others, j, value, axis=1)
            p = np.exp(law.log_density(here)) / total
            share = (drawn == value).mean(axis=0)
            assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n_draws) + 1e-12).all()


def normal(x, mean, sd):
    return np.exp(-0.5 * ((x - mean) / sd) ** 2) / sd / np.sqrt(2 * np.pi)


def test_conditional_of_numbers_given_the_others():
    """Mean and variance of a Gaussian column given the others, of naive Bayes and of a chain, written out: 5 errors."""
    rng, n_draws = np.random.default_rng(4), 40_000
    mean, sd = np.array([[0.0, 1.0], [3.0, -1.0]]), np.array([[1.0, 0.5], [2.0, 1.0]])
    mixed = NaiveBayes(
        np.array([0.3, 0.7]),
        (GaussianColumn((0, 2), mean, sd**2), PoissonColumn((1,), np.array([[1.0], [4.0]]))),
    )
    row = np.array([[99.0, 3.0, 0.3]])
    weight = mixed.weights * np.array([np.exp(-1.0), 4.0**3 * np.exp(-4.0)]) * normal(0.3, mean[:, 1], sd[:, 1])
    check_mixture(mixed.conditional(0, row, rng, n_draws)[:, 0], weight / weight.sum(), mean[:, 0], sd[:, 0])
    chain = HiddenMarkov(*STEPS, GaussianEmissions(R.normal(size=(3, 2)), R.uniform(0.5, 2, size=(3, 2))))
    row = np.array([[0.4, 99.0, -1.0]])
    E = [normal(row[0, j], chain.emissions.means[j], chain.emissions.sds[j]) for j in range(3)]
    before = (chain.initial * E[0]) @ chain.transitions[0]
    weight = before * (chain.transitions[1] @ E[2])
    drawn = chain.conditional(1, row, rng, n_draws)[:, 0]
    check_mixture(drawn, weight / weight.sum(), chain.emissions.means[1], chain.emissions.sds[1])


def check_mixture(drawn, weight, mean, sd):
    centre = weight @ mean
    variance = weight @ (sd**2 + mean**2) - centre**2
    n = len(drawn)
    assert abs(drawn.mean() - centre) < 5 * np.sqrt(variance / n)
    square = (drawn - centre) ** 2
    assert abs(square.mean() - variance) < 5 * square.std() / np.sqrt(n)


def test_the_density_of_counts_sums_to_one():
    """Documents of at most 14 words of a mean of 2: what is left out has probability 1e-5; exact for two topics."""
    law = LatentDirichlet([0.7, 0.4], BETA, 4.0, 0.5)
    X = np.array([x for x in product(range(15), repeat=3) if sum(x) < 15])
    assert np.exp(law.log_density(X)).sum() == pytest.approx(1.0, abs=1e-4)
    n, rng = 60_000, np.random.default_rng(5)
    rows = law.sample(n, rng)
    for few in ([0, 0, 0], [1, 0, 0], [0, 1, 1]):
        p = float(np.exp(law.log_density(np.array([few])))[0])
        for table in (rows, sample_knockoffs(law.as_network(), rows, rng)):
            assert abs((table == few).all(axis=1).mean() - p) < 5 * np.sqrt(p / n)


@pytest.mark.parametrize("name", DISCRETE)
def test_a_network_is_built_once_for_every_how(name):
    law, _ = DISCRETE[name]
    assert law.as_network() is law.as_network()
    assert law.as_network(n_jobs=2) is law.as_network(n_jobs=2)
    with pytest.raises(TypeError, match="nonsense"):
        law.as_network(nonsense=3)


@pytest.mark.parametrize("name", DISCRETE)
def test_a_law_can_be_stored_with_its_network(name):
    law, _ = DISCRETE[name]
    X = law.sample(20, np.random.default_rng(0)).astype(float)
    draws = [
        sample_knockoffs(one.as_network(), X, np.random.default_rng(1))
        for one in (law, pickle.loads(pickle.dumps(law)))
    ]
    assert (draws[0] == draws[1]).all()


def rows_of(name):
    law, _ = DISCRETE[name]
    return law.sample(60, np.random.default_rng(6))


# name in FAMILIES -> fit and a table; a family without a line here or elsewhere fails
FITS = {
    "naive_bayes": (partial(fit_naive_bayes, n_classes=2), rows_of("naive Bayes")),
    "hmm": (partial(fit_hidden_markov, n_states=2), rows_of("HMM, symbols")),
    "lda": (partial(fit_latent_dirichlet, n_topics=2, max_iter=2), LatentDirichlet([0.7, 0.4], BETA).sample(40, R)),
    "network": (fit_discrete_network, rows_of("network")),
    "fastphase": (fastphase_features, rows_of("genotypes")),
    "genotypes": (partial(fit_genotypes, n_ancestors=2, max_iter=3), rows_of("genotypes")),
}
SAID = {
    "naive_bayes": "P^X is naive Bayes of 3 categorical columns, which are independent "
    "given the class, with 2 classes.",
    "hmm": "P^X is a hidden Markov model of symbols along 3 columns, in their order, with 2 states.",
    "lda": "P^X is latent Dirichlet allocation of 3 words (counts) with 2 topics.",
    "network": "P^X is a Bayesian network of 3 discrete nodes, 0 of them hidden, and 2 arrows.",
    "fastphase": "P^X is fastPHASE's hidden Markov model of genotypes at 3 sites, in their order, with 2 ancestors.",
    "genotypes": "P^X is fastPHASE's hidden Markov model of genotypes at 3 sites, in their order, with 2 ancestors.",
}
OF_COUNTS = {"lda"}  # which have no largest value
ELSEWHERE = {"gaussian", "mixture", "latent", "auto", "fixed"}  # tests of their own


def test_every_family_is_tested():
    assert set(FITS) - ELSEWHERE == set(FAMILIES) - ELSEWHERE


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_family_is_a_law(name, tmp_path):
    fit, X = FITS[name]
    assert getattr(fit, "func", fit) is imported(FAMILIES[name].fit)
    if name == "fastphase":
        write_fastphase(tmp_path / "x", MOSAIC)
        fit = partial(fit, prefix=tmp_path / "x")
    law = fit(X, rng=np.random.default_rng(0), n_jobs=None)
    assert law.say() == SAID[name]
    assert law.log_density(X).shape == (len(X),) and np.isfinite(law.log_density(X)).all()
    drawn = law.sample(7, np.random.default_rng(1))
    assert drawn.shape == (7, X.shape[1])
    assert sample_knockoffs(law.as_network(), X, np.random.default_rng(2)).shape == X.shape
    assert set(np.unique(drawn)) <= set(np.unique(X)) or name in OF_COUNTS
