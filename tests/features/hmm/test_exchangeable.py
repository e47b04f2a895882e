"""Knockoffs of hidden chains: the law of (X, X_tilde) enumerated under every swap of sites, and of groups of sites."""

import numpy as np
import pytest
from tests.features.hmm.chains import joint_law, random_model, random_mosaic

from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
from knockoffs.sampling.definition import worst_swap

SITES, GROUPS = np.arange(3), np.array([0, 0, 1])
MOSAIC = Mosaic(
    np.array([0.0, 0.4, 0.3]),
    np.random.default_rng(0).dirichlet(np.ones(2), size=3),
    np.random.default_rng(1).random((3, 2)),
)
HIDDEN_MARKOV = random_model(np.random.default_rng(2), 3, 2, 2)

either_knockoff = pytest.mark.parametrize("hidden_knockoff", ["copy", "posterior"])


@either_knockoff
@pytest.mark.parametrize(("p", "K", "M"), [(2, 2, 3), (3, 2, 2), (3, 3, 2), (4, 2, 2)])
@pytest.mark.parametrize("zeros", [False, True])
def test_hidden_markov_models_are_exchangeable_in_every_site(p, K, M, zeros, hidden_knockoff):
    """320 random models in all."""
    rng = np.random.default_rng([p, K, M, zeros])
    for _ in range(20):
        x, joint = joint_law(random_model(rng, p, K, M, zeros), M, hidden_knockoff=hidden_knockoff)
        assert joint.sum() == pytest.approx(1.0, abs=1e-12)
        assert worst_swap(x, joint, np.arange(p)) < 1e-12


@either_knockoff
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(("family", "base"), [(HaplotypeModel, 2), (GenotypeModel, 3)])
def test_mosaics_are_exchangeable_in_every_site(family, base, hidden_knockoff, zeros):
    rng = np.random.default_rng([base, zeros])
    for _ in range(10):
        x, joint = joint_law(family(random_mosaic(rng, 3, 2, zeros)), base, hidden_knockoff=hidden_knockoff)
        assert joint.sum() == pytest.approx(1.0, abs=1e-12)
        assert worst_swap(x, joint, SITES) < 1e-12


@either_knockoff
@pytest.mark.parametrize(
    ("model", "base"), [(HIDDEN_MARKOV, 2), (HaplotypeModel(MOSAIC), 2), (GenotypeModel(MOSAIC), 3)]
)
def test_whole_groups_are_exchangeable(model, base, hidden_knockoff):
    x, joint = joint_law(model, base, feature_of=GROUPS, hidden_knockoff=hidden_knockoff)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    assert worst_swap(x, joint, GROUPS) < 1e-12
    if hidden_knockoff == "copy":  # and single sites are not: groups were made use of
        assert worst_swap(x, joint, SITES) > 1e-4


def test_groups_are_a_part_of_how():
    network = HIDDEN_MARKOV.as_network(feature_of=GROUPS)
    assert network is HIDDEN_MARKOV.as_network(feature_of=[0, 0, 1]) is not HIDDEN_MARKOV.as_network()
    assert network.feature_of.tolist() == [0, 0, 1]
