from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from scipy.special import gammaln
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.features.lda.fit import fit_latent_dirichlet, fit_length
from knockoffs.features.lda.model import LatentDirichlet, draw_counts
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.sampler import sample_knockoffs

ALPHA = np.array([0.7, 0.4])
BETA = np.array([[0.6, 0.3, 0.1], [0.0, 0.3, 0.7]])
GRID = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [1.0, 0.0]])  # theta takes these values, to enumerate it
GRID_LAW = np.array([0.2, 0.3, 0.4, 0.1])


def in_grid(values):
    return np.array([np.flatnonzero((theta == GRID).all(axis=1))[0] for theta in values])


@pytest.mark.parametrize("hidden_knockoff", ["copy", "posterior"])
def test_token_view_is_exchangeable_exactly(hidden_knockoff):
    model = LatentDirichlet(ALPHA, BETA, view="tokens", n_positions=2)
    network = model.as_network(hidden_knockoff=hidden_knockoff)

    def log_joint(values):
        theta, z, words = (values[name] for name in ("theta", "z", "X"))
        with np.errstate(divide="ignore"):
            terms = np.log(np.take_along_axis(theta, z, axis=1)) + np.log(BETA[z, words])
        return np.log(GRID_LAW[in_grid(theta)]) + terms.sum(axis=1)

    states = {
        "theta": GRID,
        "z": np.array(list(product(range(2), repeat=2))),
        "X": np.array(list(product(range(3), repeat=2))),
    }
    X, law = enumerate_knockoffs(network, states, log_joint)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    assert worst_swap(X, law, network.feature_of) < 1e-12


RATES, RATE_LAW = np.array([0.5, 2.0]), np.array([0.4, 0.6])


def counts_law(conjugate, log_likelihood, top=2):
    nodes = (Node("theta", (), Identity()), Node("rate", (), Identity()))
    network = BayesianNetwork(
        (*nodes, Node("X", ("theta", "rate"), conjugate, columns=range(3))), sample_hidden=lambda X, rng: {}
    )

    def log_joint(values):
        prior = np.log(GRID_LAW[in_grid(values["theta"])]) + np.log(RATE_LAW[(values["rate"] == 2.0).astype(int)])
        return prior + log_likelihood(values)

    states = {"theta": GRID, "rate": RATES, "X": np.array(list(product(range(top + 1), repeat=3)))}
    return (*enumerate_knockoffs(network, states, log_joint), network)


def test_count_view_is_exchangeable_exactly():
    # Counts are cut at 2 for the enumeration: the law of the cells below is untouched by that
    model = LatentDirichlet(ALPHA, BETA)
    conjugate = model.as_network().observed[0].conjugate

    def log_likelihood(values):
        mean = values["rate"][:, None] * (values["theta"] @ BETA)
        return stats.poisson.logpmf(values["X"], mean).sum(axis=1)

    X, law, network = counts_law(conjugate, log_likelihood)
    assert 0.5 < law.sum() < 1
    assert worst_swap(X, law, network.feature_of) < 1e-12


def test_counts_of_fixed_length_are_not_exchangeable():
    # The multinomial given the length, drawn again: a swap of one column changes the length
    def log_prob(u, blanket):
        p = blanket["theta"] @ BETA
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = gammaln(3) + np.where(u > 0, u * np.log(p) - gammaln(u + 1), 0.0).sum(axis=1)
        return np.where(u.sum(axis=1) == 2, terms, -np.inf)

    conjugate = Independent(lambda blanket, n, rng: 1 / 0, log_prob)
    X, law, network = counts_law(conjugate, lambda values: log_prob(values["X"], values))
    assert law.sum() == pytest.approx(1)
    assert worst_swap(X, law, network.feature_of) > 1e-3


def test_the_copy_of_z_depends_less_on_the_words():
    rng = np.random.default_rng(6)
    beta = np.kron(np.eye(3), np.full((1, 4), 0.25))  # a word tells its topic
    agree = []
    for hidden_knockoff in ("copy", "posterior"):
        model = LatentDirichlet(np.ones(3), beta, view="tokens", n_positions=8)
        X = model.sample(5000, rng)
        agree.append((sample_knockoffs(model.as_network(hidden_knockoff=hidden_knockoff), X, rng) == X).mean())
    assert agree[1] == pytest.approx(0.25, abs=0.01)  # the topic stays, the word is one of four
    assert agree[0] < 0.19


def test_the_rate_and_the_topics_are_calibrated():
    # Simulation-based calibration of the whole of P(theta, rate | X): ranks of the values that made X among 9 draws.
    # Chi-squared with 9 degrees of freedom, refused beyond its 1 - 1e-6 quantile, 45.1.
    rng = np.random.default_rng(7)
    beta = rng.dirichlet(np.full(6, 0.5), size=3)
    model = LatentDirichlet(np.array([0.5, 1.0, 2.0]), beta, 8.0, 2.0)
    n = 3000
    theta, rate = rng.dirichlet(model.alpha, size=n), rng.gamma(8.0, 2.0, size=n)
    X = draw_counts(beta, {"theta": theta, "rate": rate}, n, rng)
    draws = [model.sample_hidden_of_counts(X, rng, n_sweeps=20) for _ in range(9)]
    ranks = [sum(draw["rate"] < rate for draw in draws)]
    ranks += [sum(draw["theta"][:, t] < theta[:, t] for draw in draws) for t in range(3)]
    for rank in ranks:
        expected = n / 10
        assert ((np.bincount(rank, minlength=10) - expected) ** 2 / expected).sum() < 45.1


def test_fit_recovers_topics_alpha_and_lengths():
    rng = np.random.default_rng(3)
    beta = np.kron(np.eye(3), np.full((1, 5), 0.2)) * 0.94 + 0.06 / 15
    beta /= beta.sum(axis=1, keepdims=True)
    truth = LatentDirichlet(np.array([0.2, 0.4, 0.6]), beta, 6.0, 10.0)
    X = truth.sample(1000, rng)
    fitted = fit_latent_dirichlet(X, rng=rng, n_topics=3, max_iter=8)
    order = [int(np.argmax(fitted.beta[:, 5 * t])) for t in range(3)]
    assert fitted.beta[order] == pytest.approx(beta, abs=0.02)
    assert fitted.alpha[order] == pytest.approx(truth.alpha, rel=0.25)
    assert fitted.length_shape == pytest.approx(6.0, rel=0.2)
    assert fitted.length_shape * fitted.length_scale == pytest.approx(60, rel=0.05)
    sparse = fit_latent_dirichlet(csr_array(X), rng=np.random.default_rng(0), n_topics=2, max_iter=2)
    dense = fit_latent_dirichlet(X, rng=np.random.default_rng(0), n_topics=2, max_iter=2)
    assert np.array_equal(sparse.beta, dense.beta)


def test_token_view_can_be_fitted():
    rng = np.random.default_rng(4)
    model = LatentDirichlet(ALPHA, BETA, view="tokens", n_positions=8)
    X = model.sample(300, rng)
    fitted = fit_latent_dirichlet(X, rng=rng, n_topics=2, view="tokens", max_iter=5)
    assert (fitted.n_positions, fitted.beta.shape) == (8, (2, 3))
    assert sample_knockoffs(fitted.as_network(n_sweeps=5), X, rng).shape == X.shape


def test_lengths_without_more_spread_than_poisson():
    shape, scale = fit_length(np.random.default_rng(5).poisson(50, size=2000))
    assert shape > 500 and shape * scale == pytest.approx(50, rel=0.02)


def test_bad_input():
    rng = np.random.default_rng(0)
    model = LatentDirichlet(ALPHA, BETA)
    good = np.array([[1, 2, 0], [0, 1, 1]])

    def draw(X):
        return sample_knockoffs(model.as_network(), np.asarray(X), rng)

    assert draw(good).shape == (2, 3)
    refuses("all documents of X are empty", fit_latent_dirichlet, np.zeros((4, 3)), rng=rng, n_topics=2)
    refuses("negative counts .the smallest is -1", draw, [[1, -1, 0]])
    refuses("not integers", draw, [[1.5, 1, 0]])
    refuses("not integers", fit_latent_dirichlet, np.array([[np.nan, 1.0]]), rng=rng)
    with pytest.raises(InputError, match="has the words '1', which no topic produces"):
        sample_knockoffs(LatentDirichlet(ALPHA, np.array([[0.5, 0, 0.5]] * 2)).as_network(), good, rng)
    refuses(r"beta\[1\] adds up to 0.9", LatentDirichlet, ALPHA, np.array([[0.5, 0.5], [0.4, 0.5]]))
    refuses(r"alpha has shape \(2,\), beta \(3, 2\)", LatentDirichlet, ALPHA, np.full((3, 2), 0.5))
    refuses("alpha must be positive; topic 1 is not", LatentDirichlet, np.array([1.0, 0.0]), BETA)
    refuses("Did you mean 'counts'", LatentDirichlet, ALPHA, BETA, view="count")
    refuses("needs n_positions", LatentDirichlet, ALPHA, BETA, view="tokens")
    refuses("from 1 to the number of documents, 2", fit_latent_dirichlet, good, rng=rng, n_topics=3)
    tokens = LatentDirichlet(ALPHA, BETA, view="tokens", n_positions=2).as_network()
    with pytest.raises(InputError, match="row 1 has the word 3: words are numbered 0, ..., 2"):
        sample_knockoffs(tokens, np.array([[0, 1], [3, 0]]), rng)
    refuses("-1 behind the end", sample_knockoffs, tokens, np.array([[0, -2]]), rng)


@pytest.mark.parametrize("n_sweeps", [0, -1])
def test_a_posterior_without_a_sweep_is_refused(n_sweeps):
    refuses(f"n_sweeps={n_sweeps}", LatentDirichlet(np.ones(2), np.full((2, 3), 1 / 3)).as_network, n_sweeps=n_sweeps)
