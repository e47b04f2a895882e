"""Chains joined to one: their densities multiply, whatever the numbers of states and symbols."""

import numpy as np

from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.hmm.emissions import DiscreteEmissions
from knockoffs.features.hmm.model import join_chains
from knockoffs.features.hmm.mosaic import GenotypeModel, Mosaic, join_mosaics
from knockoffs.sampling.sampler import sample_knockoffs


def mosaic(p, K, rng):
    return Mosaic(rng.exponential(size=p), rng.dirichlet(np.ones(K), size=p), rng.random((p, K)))


def test_the_density_of_joined_mosaics_is_a_product():
    rng = np.random.default_rng(0)
    parts = [mosaic(4, 3, rng), mosaic(1, 2, rng), mosaic(3, 2, rng)]
    whole = GenotypeModel(join_mosaics(parts))
    X = rng.integers(0, 3, size=(50, 8))
    pieces = np.split(X, [4, 5], axis=1)
    apart = sum(GenotypeModel(part).log_density(piece) for part, piece in zip(parts, pieces, strict=True))
    np.testing.assert_allclose(whole.log_density(X), apart, rtol=1e-12)
    assert set(np.unique(sample_knockoffs(whole.as_network(), X, rng))) <= {0, 1, 2}


def chain(p, K, symbols, rng):
    table = rng.dirichlet(np.ones(len(symbols)), size=(p, K))
    rows = rng.dirichlet(np.ones(K), size=(p - 1, K))
    return HiddenMarkov(rng.dirichlet(np.ones(K)), rows, DiscreteEmissions(table, np.array(symbols, dtype=float)))


def test_the_density_of_joined_chains_is_a_product():
    rng = np.random.default_rng(1)
    parts = [chain(4, 2, [0, 1, 2], rng), chain(3, 4, [0, 2], rng), chain(2, 3, [1, 2], rng)]
    whole = join_chains(parts)
    X = np.hstack([part.sample(60, rng) for part in parts])
    pieces = np.split(X, [4, 7], axis=1)
    apart = sum(part.log_density(piece) for part, piece in zip(parts, pieces, strict=True))
    np.testing.assert_allclose(whole.log_density(X), apart, rtol=1e-12)
    assert np.isfinite(apart).all()
    impossible = X.copy()
    impossible[0, 4] = 1.0  # no symbol of the second chain
    with np.errstate(divide="ignore"):
        assert whole.log_density(impossible)[0] == -np.inf
    moved = sample_knockoffs(whole.as_network(), X, rng)
    assert set(np.unique(moved[:, 4:7])) <= {0, 2} and set(np.unique(moved[:, 7:])) <= {1, 2}
