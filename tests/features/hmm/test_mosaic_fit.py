"""Fits of the model of genotypes: expected counts against enumeration, and what the fit recovers."""

from itertools import product

import numpy as np
import pytest
from tests.features.hmm.chains import random_mosaic
from tests.refusals import refuses

from knockoffs.features.hmm.mosaic import GenotypeModel, Mosaic
from knockoffs.features.hmm.mosaic_fit import _expect, fit_genotypes


def enumerated(row, mosaic):
    """Jumps, known alleles and alleles 1 of the first chain, expected given the genotypes; their probability."""
    p, K = mosaic.theta.shape
    jump = np.concatenate([[1.0], -np.expm1(-mosaic.r[1:])])
    counts, total = np.zeros((3, p, K)), 0.0

    def paths():
        """Ancestors of one chain, where it jumps, its alleles, and the probability."""
        for states, jumps, alleles in product(
            product(range(K), repeat=p), product((0, 1), repeat=p), product((0, 1), repeat=p)
        ):
            P = 1.0
            for j in range(p):
                stays = j > 0 and states[j] == states[j - 1]
                P *= jump[j] * mosaic.alpha[j, states[j]] if jumps[j] else (1 - jump[j]) * stays
                one = mosaic.theta[j, states[j]]
                P *= one if alleles[j] else 1 - one
            if P > 0:
                yield states, jumps, np.array(alleles), P

    every = list(paths())
    second = {}
    for _, _, alleles, P in every:
        second[tuple(alleles)] = second.get(tuple(alleles), 0.0) + P
    for states, jumps, alleles, P in every:
        for others, weight in second.items():
            if any(g < 3 and a + b != g for g, a, b in zip(row, alleles, others, strict=True)):
                continue
            total += P * weight
            for j in range(p):
                counts[0, j, states[j]] += P * weight * jumps[j]
                counts[1, j, states[j]] += P * weight * (row[j] < 3)
                counts[2, j, states[j]] += P * weight * (row[j] < 3) * alleles[j]
    return counts / total, total


@pytest.mark.parametrize("row", [[0, 1, 2], [1, 1, 1], [1, 3, 0]])
def test_expected_counts_against_enumeration(row):
    mosaic = random_mosaic(np.random.default_rng(sum(row)), 3, 2)
    *found, value = _expect(np.array([row], np.uint8), mosaic, None)
    expected, total = enumerated(row, mosaic)
    assert np.allclose(found, expected, atol=1e-12)
    assert value == pytest.approx(np.log(total), abs=1e-12)


def genotypes(rng, n=300, p=60, K=3):
    mosaic = Mosaic(np.full(p, 0.1), np.full((p, K), 1 / K), rng.choice([0.02, 0.98], size=(p, K)))
    return GenotypeModel(mosaic), GenotypeModel(mosaic).sample(n, rng).astype(float)


def test_the_fit_predicts_new_people_as_the_truth_does(seed):
    """Mean log likelihood a cell of 300 new people: independent SNPs lose .23 to .28 here, the fit a fifth of it."""
    rng = np.random.default_rng(seed)
    law, X = genotypes(rng)
    new = law.sample(300, rng).astype(float)
    fitted = fit_genotypes(X, rng=rng, n_ancestors=4)
    alone = Mosaic(np.full(60, 50.0), np.ones((60, 1)), X.mean(axis=0)[:, None] / 2)
    best = law.log_density(new).mean() / 60
    independent = GenotypeModel(alone).log_density(new).mean() / 60
    assert best - independent > 0.2
    assert best - fitted.log_density(new).mean() / 60 < 0.2 * (best - independent)


def test_more_rounds_fit_better_and_threads_change_nothing():
    _, X = genotypes(np.random.default_rng(1), n=150, p=30)
    X[::7, ::5] = np.nan
    fits = [
        fit_genotypes(X, rng=np.random.default_rng(0), n_ancestors=3, max_iter=m).log_density(X).sum()
        for m in (1, 3, 9)
    ]
    assert fits[0] < fits[1] < fits[2]
    one, two = (fit_genotypes(X, rng=np.random.default_rng(0), n_ancestors=3, n_jobs=k).mosaic for k in (1, 2))
    assert np.array_equal(one.theta, two.theta) and np.array_equal(one.r, two.r)


def test_what_is_no_genotype_is_refused():
    rng = np.random.default_rng(0)
    refuses("row 0, site 1: 3.0 is not a known genotype", fit_genotypes, np.array([[0.0, 3.0]]), rng=rng)
    refuses("n_ancestors=0: expected a whole number", fit_genotypes, np.ones((3, 2)), rng=rng, n_ancestors=0)
    refuses("pseudocount=0: expected a number above 0", fit_genotypes, np.ones((3, 2)), rng=rng, pseudocount=0)
