"""Several knockoffs: their joint covariance by algebra, one of them as before, their law by hand, draws of families."""

from functools import partial, reduce
from itertools import product

import numpy as np
import pytest
from scipy.linalg import toeplitz

from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.features.given import FixedKnockoffs
from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.latent.margins import Affine, Steps
from knockoffs.features.latent.model import latent_features
from knockoffs.features.source import settled
from knockoffs.sampling.conjugates.gaussian import GaussianLaw, several_of
from knockoffs.sampling.conjugates.independent import Independent
from knockoffs.sampling.conjugates.markov_chain import MarkovChain
from knockoffs.sampling.diagonal import DIAGONALS, solve_diagonal
from knockoffs.sampling.network import BayesianNetwork, Identity, Node
from knockoffs.sampling.sampler import draw_pair, sample_knockoffs, sample_several

GROUPS = np.array([0, 0, 1, 2, 2, 2])
S = toeplitz(0.8 ** np.arange(6)) * np.outer(np.arange(1, 7), np.arange(1, 7))


def law_of_several(mean, m, feature_of=None):
    return several_of(GaussianLaw(mean, S, solve_diagonal(S, feature_of=feature_of)), m)


@pytest.mark.parametrize("feature_of", [None, GROUPS])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_any_two_of_them_have_covariance_s_minus_d(m, feature_of):
    law = law_of_several(np.zeros(6), m, feature_of)
    A = np.eye(6) - law.slope  # rows are draws: X A
    shared, own = law.shared_factor @ law.shared_factor.T, law.own_factor @ law.own_factor.T
    each, two = shared + (1 - 1 / m) * own, shared - own / m
    np.testing.assert_allclose(S @ A, S - law.D, atol=1e-9)  # X and a copy
    np.testing.assert_allclose(A.T @ S @ A + each, S, atol=1e-9)  # a copy
    np.testing.assert_allclose(A.T @ S @ A + two, S - law.D, atol=1e-9)  # two copies
    owners = np.arange(6) if feature_of is None else feature_of
    assert np.abs(law.D[owners[:, None] != owners]).max() == 0
    assert np.linalg.eigvalsh((m + 1) / m * S - law.D)[0] > 0


def test_draws_have_these_moments():
    """5 standard errors: false alarm about 1e-6 for each of 324 entries."""
    rng, n, m = np.random.default_rng(0), 100_000, 2
    law = law_of_several(np.arange(6.0), m, GROUPS)
    X = rng.multivariate_normal(np.arange(6.0), S, size=n)
    both = np.hstack([X, *law.sample(X, rng)])
    expected = np.kron(np.ones((3, 3)), S - law.D) + np.kron(np.eye(3), law.D)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n)
    assert (np.abs(np.cov(both, rowvar=False) - expected) < 5 * error).all()
    assert (np.abs(both.mean(axis=0) - np.tile(np.arange(6.0), 3)) < 5 * np.sqrt(np.diag(expected) / n)).all()


@pytest.mark.parametrize("diagonal", list(DIAGONALS))
@pytest.mark.parametrize("feature_of", [None, GROUPS])
def test_d_for_several_is_in_proportion_to_d_for_one(diagonal, feature_of):
    """What ``several_of`` rests on: D solved for (m + 1) / (2 m) S is that multiple of D solved for S."""
    one = gaussian_features(np.zeros(6), S, diagonal=diagonal, feature_of=feature_of).laws[0]
    for m in (2, 5):
        solved = solve_diagonal((m + 1) / (2 * m) * S, diagonal, feature_of)
        scale = np.sqrt(np.outer(np.diag(S), np.diag(S)))
        np.testing.assert_allclose(several_of(one, m).D / scale, solved / scale, atol=2e-6)


COINS = np.array([[0.2, 0.7], [0.9, 0.4]])  # P(X_j = 1 | K)


def coins():
    """K -> X_1, X_2, two coins of a class each."""

    def draw(j, blanket, n, rng):
        return (rng.random(n) < COINS[blanket["K"], j]).astype(float)[:, None]

    def log_prob(j, u, blanket):
        one = COINS[blanket["K"], j]
        return np.log(np.where(u[:, 0] == 1, one, 1 - one))

    def posterior(X, rng):
        weight = np.prod(np.where(X[:, None] == 1, COINS, 1 - COINS), axis=2)
        return {"K": (rng.random(len(X)) < weight[:, 1] / weight.sum(axis=1)).astype(int)}

    leaves = [Node(f"X{j}", ("K",), Independent(partial(draw, j), partial(log_prob, j)), columns=[j]) for j in (0, 1)]
    return BayesianNetwork((Node("K", (), Identity()), *leaves), sample_hidden=posterior)


def joint_law(n, m=2, forget=False):
    """Counts of the 4^(m + 1) values of (X, X_1, ..., X_m), and the law by hand."""
    rng = np.random.default_rng(0)
    K = rng.integers(2, size=n)
    X = (rng.random((n, 2)) < COINS[K]).astype(float)
    copies = [X, *sample_several(coins(), X, m, rng)]
    if forget:  # a copy of a copy, which looks right beside X and not beside its fellow
        copies[2] = sample_knockoffs(coins(), copies[1], rng)
    codes = sum((2 * c[:, 0] + c[:, 1]) * 4**k for k, c in enumerate(copies)).astype(int)
    law = np.zeros(4 ** (m + 1))
    for k in (0, 1):
        each = np.array([np.prod(np.where([a, b], COINS[k], 1 - COINS[k])) for a, b in product((0, 1), repeat=2)])
        law += reduce(np.kron, [each] * (m + 1)) / 2
    return np.bincount(codes, minlength=len(law)), law


def test_copies_of_a_network_are_independent_and_alike_given_what_is_hidden():
    """64 values, each within 5 standard errors: false alarm 4e-5. The law is unchanged by any change of places."""
    n = 200_000
    counts, law = joint_law(n)
    assert (np.abs(counts / n - law) < 5 * np.sqrt(law / n)).all()
    wrong, _ = joint_law(n, forget=True)
    assert (np.abs(wrong / n - law) > 5 * np.sqrt(law / n)).any()


def test_what_moves_a_hidden_node_or_has_no_several_is_refused_by_name():
    chain = MarkovChain(np.array([0.5, 0.5]), np.full((2, 2, 2), 0.5))
    emissions = np.tile([[0.8, 0.2], [0.3, 0.7]], (3, 1, 1))
    model = HiddenMarkov(chain.initial, chain.transitions, emissions)
    X = np.zeros((4, 3))
    with pytest.raises(InputError, match="n_knockoffs=2: .* node 'H' moves by MarkovChain"):
        sample_several(model.as_network(), X, 2, np.random.default_rng(0))
    kept = sample_several(model.as_network(hidden_knockoff="posterior"), X, 2, np.random.default_rng(0))
    assert kept.shape == (2, 4, 3)
    with pytest.raises(InputError, match="come one for each feature"):
        draw_pair(FixedKnockoffs(X, np.arange(3)), X, np.random.default_rng(0), 2)


def latent():
    steps = Steps(np.array([0.0, 1.0, 2.0]), np.array([-np.inf, -0.3, 0.8, np.inf]))
    means, covariances = [[-0.6, 0.2], [0.8, -0.4]], [[[1, 0.5], [0.5, 1]], [[0.7, -0.2], [-0.2, 0.6]]]
    return latent_features([Affine(), steps], [0.4, 0.6], means, covariances)


@pytest.mark.parametrize(
    "model",
    [
        gaussian_mixture_features([0.3, 0.7], [[-1, 0], [1, 2]], [np.eye(2), [[1, 0.6], [0.6, 2]]]),
        latent(),
    ],
    ids=["mixture", "latent"],
)
def test_copies_of_a_family_can_change_places(model):
    """Moments of (X, X_1, X_2) to the fourth order against those with places changed, within 5 standard errors."""
    rng, n = np.random.default_rng(2), 60_000
    X = model.sample(n, rng)
    copies = draw_pair(settled(model).sampler, X, rng, 2)
    place = np.array([[2, 0], [0, 2], [1, 1]])  # the first feature in a ring, the second swaps

    def moments(some):
        Z = some.stacked
        second = Z[:, :, None] * Z[:, None, :]
        return np.hstack([Z, second.reshape(n, -1), (second**2).reshape(n, -1), Z**3])

    gap = moments(copies) - moments(copies.permute(place))
    error = gap.std(axis=0) / np.sqrt(n)
    assert (np.abs(gap.mean(axis=0)) <= 5 * error + 1e-12).all()
