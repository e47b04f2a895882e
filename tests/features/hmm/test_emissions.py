"""Emissions, site by site and state by state: what is drawn, and every density that speaks of it, is one law."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.features.hmm.emissions import DiscreteEmissions, EmissionConjugate, GaussianEmissions
from knockoffs.features.hmm.model import log_likelihoods
from knockoffs.sampling.definition import check_definition

P, K = 4, 2  # sites and states: every site and every state has a law of its own
TABLE = np.random.default_rng(0).dirichlet(np.ones(3), size=(P, K))
SYMBOLS = np.array([-1.0, 0.5, 4.0])
MEANS, SDS = np.random.default_rng(1).normal(0, 2, (P, K)), np.random.default_rng(2).uniform(0.5, 2, (P, K))
N = 40_000


def check_symbols(emissions):
    """Shares of the symbols at every site given every state: 5 standard errors, false alarm 2e-5; shows 0.013."""
    for k in range(K):
        X = emissions.draw(np.full((N, P), k, np.uint8), np.random.default_rng(3))
        for m, symbol in enumerate(SYMBOLS):
            p = TABLE[:, k, m]
            assert (np.abs((X == symbol).mean(axis=0) - p) < 5 * np.sqrt(p * (1 - p) / N)).all()


def check_numbers(emissions):
    """Means and variances at every site given every state: 5 standard errors, false alarm 1e-5; shows 3 % of an sd."""
    for k in range(K):
        X = emissions.draw(np.full((N, P), k, np.uint8), np.random.default_rng(4))
        assert (np.abs(X.mean(axis=0) - MEANS[:, k]) < 5 * SDS[:, k] / np.sqrt(N)).all()
        variance = SDS[:, k] ** 2
        assert (np.abs(X.var(axis=0) - variance) < 5 * variance * np.sqrt(2 / N)).all()


def test_draws_follow_the_law_of_their_own_site_and_state():
    check_symbols(DiscreteEmissions(TABLE, SYMBOLS))
    check_numbers(GaussianEmissions(MEANS, SDS))


def cells(kind):
    """Emissions, 30 rows of X, and the density of every cell given every state, written out: (n, P, K)."""
    rng = np.random.default_rng(6)
    if kind == "symbols":
        codes = rng.integers(3, size=(30, P))
        density = np.array([[[TABLE[j, k, codes[i, j]] for k in range(K)] for j in range(P)] for i in range(30)])
        return DiscreteEmissions(TABLE, SYMBOLS), SYMBOLS[codes], density
    X = rng.normal(0, 3, (30, P))
    z = (X[:, :, None] - MEANS) / SDS
    return GaussianEmissions(MEANS, SDS), X, np.exp(-0.5 * z**2) / SDS / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("kind", ["symbols", "numbers"])
def test_every_density_is_that_of_the_cell_exactly(kind):
    """log_likelihood, log_prob, the codes that filtering reads and the conjugate: one table, site by site."""
    emissions, X, density = cells(kind)
    X[2, 1] = X[7, 3] = np.nan
    density[2, 1] = density[7, 3] = 1.0
    np.testing.assert_allclose(emissions.log_likelihood(X).transpose(1, 0, 2), np.log(density), rtol=1e-10, atol=1e-12)
    for rows, E in log_likelihoods(emissions, X):
        np.testing.assert_allclose(E.transpose(1, 0, 2), np.log(density[rows]), rtol=1e-10, atol=1e-12)
    H = np.random.default_rng(7).integers(K, size=X.shape)
    chosen = np.log(np.take_along_axis(density, H[..., None], axis=2))[..., 0]
    np.testing.assert_allclose(emissions.log_prob(X, H), chosen, rtol=1e-10, atol=1e-12)
    conjugate = EmissionConjugate(emissions)
    np.testing.assert_allclose(conjugate.log_conditional(X, {"H": H}), chosen.sum(axis=1), rtol=1e-10)
    for start, codes, likelihood in emissions.blocks(X):
        read = likelihood[np.arange(P), codes]  # up to a factor for each cell
        block = density[start : start + len(codes)]
        ratio = read / block
        np.testing.assert_allclose(ratio, np.broadcast_to(ratio[..., :1], ratio.shape), rtol=1e-9)


@pytest.mark.parametrize("kind", ["symbols", "numbers"])
def test_definition(kind):
    emissions, X, _ = cells(kind)
    H = np.random.default_rng(8).integers(K, size=(15, P))
    assert check_definition(EmissionConjugate(emissions), X[:15], X[15:], {"H": H}) < 1e-9


def test_symbols_are_named():
    with pytest.raises(InputError, match="row 0, site 2: 1 is not a known symbol; known are -1, 0.5, 4"):
        DiscreteEmissions(TABLE, SYMBOLS).encode(np.array([[-1.0, 4.0, 1.0, 4.0]]))
    with pytest.raises(InputError, match="symbols must be 3 different numbers in rising order"):
        DiscreteEmissions(TABLE, SYMBOLS[::-1])
