"""Knockoffs of hidden chains in groups of sites: the law of (X, X_tilde) enumerated under every swap of groups."""

from itertools import product

import numpy as np
import pytest

from knockoffs.features.hmm import HiddenMarkov
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic
from knockoffs.sampling.definition import enumerate_knockoffs, worst_swap
from knockoffs.sampling.sampler import sample_knockoffs

GROUPS = np.array([0, 0, 1])
MOSAIC = Mosaic(
    np.array([0.0, 0.4, 0.3]),
    np.random.default_rng(0).dirichlet(np.ones(2), size=3),
    np.random.default_rng(1).random((3, 2)),
)


def every(size):
    return np.array(list(product(range(size), repeat=3)))


def law(model, size, groups, hidden_knockoff):
    network = model.as_network(feature_of=groups, hidden_knockoff=hidden_knockoff)
    hidden = [node.name for node in network.hidden]
    emit = network.observed[0].conjugate
    chain = model.as_network().nodes[0].conjugate  # its log_conditional is the law of one chain

    def log_joint(values):
        blanket = {name: values[name] for name in hidden}
        return sum(chain.log_conditional(values[name], {}) for name in hidden) + emit.log_conditional(
            values["X"], blanket
        )

    return enumerate_knockoffs(network, {name: every(2) for name in hidden} | {"X": every(size)}, log_joint)


def chain():
    rng = np.random.default_rng(2)
    return HiddenMarkov(
        rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(2), size=(2, 2)), rng.dirichlet(np.ones(2), size=(3, 2))
    )


@pytest.mark.parametrize("hidden_knockoff", ["copy", "posterior"])
@pytest.mark.parametrize(("model", "size"), [(chain(), 2), (HaplotypeModel(MOSAIC), 2)], ids=["HMM", "haplotypes"])
def test_whole_groups_are_exchangeable(model, size, hidden_knockoff):
    X, joint = law(model, size, GROUPS, hidden_knockoff)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    assert worst_swap(X, joint, GROUPS) < 1e-12
    if hidden_knockoff == "copy":  # and single sites are not: groups were made use of
        assert worst_swap(X, joint, np.arange(3)) > 1e-4


def test_genotypes_in_groups_are_exchangeable():
    """Two hidden chains, all 64 of their states: the exact law, under every swap of groups."""
    X, joint = law(GenotypeModel(MOSAIC), 3, GROUPS, "copy")
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    assert worst_swap(X, joint, GROUPS) < 1e-12
    assert worst_swap(X, joint, np.arange(3)) > 1e-4


def test_genotypes_in_groups():
    """(A, B) move apart from each other, each as above; here draws keep the law of X (5 standard errors)."""
    rng, n = np.random.default_rng(3), 60_000
    model = GenotypeModel(MOSAIC)
    network = model.as_network(feature_of=GROUPS)
    assert network.feature_of.tolist() == [0, 0, 1]
    X = model.sample(n, rng)
    X_tilde = sample_knockoffs(network, X, rng)
    P, place = np.exp(model.log_density(every(3))), [9, 3, 1]
    for mixed in (X_tilde, np.where(GROUPS == 0, X, X_tilde), np.where(GROUPS == 0, X_tilde, X)):
        share = np.bincount(mixed @ place, minlength=27) / n
        assert (np.abs(share - P) < 5 * np.sqrt(P * (1 - P) / n)).all()


def test_groups_are_a_part_of_how():
    model = chain()
    assert model.as_network(feature_of=GROUPS) is model.as_network(feature_of=[0, 0, 1])
    assert model.as_network(feature_of=GROUPS) is not model.as_network()
