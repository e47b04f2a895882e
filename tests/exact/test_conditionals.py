"""X_j given the others, as its conditional draws it, against ratios of the density: exactly, without a draw."""

from itertools import product

import numpy as np
import pytest

from knockoffs.features.hmm import DiscreteEmissions, HiddenMarkov
from knockoffs.features.hmm.model import state_given_others as chain_given_others
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic, genotype_law, state_given_others


def law_of_site(model, j, X):
    """P(X_j = value | the others) that ``conditional`` draws from, shape (n, n_values)."""
    if isinstance(model, HiddenMarkov):
        return chain_given_others(model, j, X) @ model.emissions.table[j]
    chain, theta = model.mosaic.chain, model.mosaic.theta[j]
    if isinstance(model, HaplotypeModel):
        law = state_given_others(chain, model._likelihood(X), j)
        return np.column_stack([law @ (1 - theta), law @ theta])
    law = state_given_others(chain, model._likelihood(X), j, n_chains=2)
    return np.einsum("nab,gab->ng", law, genotype_law(theta))


def models(seed):
    rng = np.random.default_rng(seed)
    mosaic = Mosaic(rng.exponential(size=4), rng.dirichlet(np.ones(3), size=4), rng.random((4, 3)))
    table = rng.dirichlet(np.ones(2), size=(4, 3))
    chain = HiddenMarkov(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), size=(3, 3)), DiscreteEmissions(table))
    return {"haplotypes": (HaplotypeModel(mosaic), 2), "genotypes": (GenotypeModel(mosaic), 3), "HMM": (chain, 2)}


@pytest.mark.parametrize("name", ["haplotypes", "genotypes", "HMM"])
def test_the_law_of_a_site_given_the_others(name):
    for seed in range(3):
        model, m = models(seed)[name]
        X = np.array(list(product(range(m), repeat=4)))
        P = np.exp(model.log_density(X)).reshape((m,) * 4)
        assert P.sum() == pytest.approx(1.0, abs=1e-12)
        for j in range(4):
            given = np.moveaxis(P / P.sum(axis=j, keepdims=True), j, -1).reshape(-1, m)
            rows = np.insert(np.array(list(product(range(m), repeat=3))), j, 0, axis=1)
            np.testing.assert_allclose(law_of_site(model, j, rows), given, rtol=1e-10)
