"""Columns given the others, as they are drawn for tests, against ratios of densities: exactly, without a draw.

Groups of columns of a mixture of two Gaussians, in the coordinates L of the latent model: given L of the other columns,
L of the group is a mixture with weights w_k N(l_R; mean_R, S_RR), means mean_G + S_GR S_RR^-1 (l_R - mean_R) and
covariances S_GG - S_GR S_RR^-1 S_RG. The hidden class is integrated out: one that is drawn given X and kept would have
weights of 0 and 1. Sites of chains: the density of all tables, normalised over the site.
"""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.conditional_tests.sequential import fixed_looks
from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.conditionals import sampler_of
from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.features.hmm import DiscreteEmissions, HiddenMarkov
from knockoffs.features.hmm.model import state_given_others as chain_given_others
from knockoffs.features.hmm.mosaic import GenotypeModel, HaplotypeModel, Mosaic, genotype_law, state_given_others
from knockoffs.features.latent.margins import Affine, Steps
from knockoffs.features.latent.model import latent_features

WEIGHTS, D = np.array([0.4, 0.6]), 5
RNG = np.random.default_rng(0)
ROOTS = RNG.normal(size=(2, D, D))
MEANS, COVARIANCES = RNG.normal(size=(2, D)), ROOTS @ ROOTS.transpose(0, 2, 1) + 0.3 * np.eye(D)
HALVES = Steps(np.array([0.0, 1.0]), np.array([-np.inf, 0.0, np.inf]))


def by_algebra(L, group):
    rest = np.setdiff1d(np.arange(D), group)
    weights, means, covariances = np.empty((len(L), 2)), np.empty((len(L), 2, len(group))), []
    for k, (mean, S) in enumerate(zip(MEANS, COVARIANCES, strict=True)):
        slope = np.linalg.solve(S[np.ix_(rest, rest)], S[np.ix_(rest, group)])
        means[:, k] = mean[group] + (L[:, rest] - mean[rest]) @ slope
        covariances.append(S[np.ix_(group, group)] - S[np.ix_(group, rest)] @ slope)
        weights[:, k] = WEIGHTS[k]
        if rest.size:
            weights[:, k] *= multivariate_normal(mean[rest], S[np.ix_(rest, rest)]).pdf(L[:, rest])
    return weights / weights.sum(axis=1, keepdims=True), means, covariances


@pytest.mark.parametrize("group", [[0], [4], [1, 3], [2, 0, 4], [0, 1, 2, 3, 4]])
def test_latent_and_mixture_laws_are_schur_complements(group):
    margins = [Affine(), HALVES, Affine(1.0, 2.0), Affine(), HALVES]
    law = latent_features(margins, WEIGHTS, MEANS, COVARIANCES)
    latent = law.resampler(law.sample(40, np.random.default_rng(1)), np.random.default_rng(2))
    mixture = gaussian_mixture_features(WEIGHTS, MEANS, COVARIANCES)
    X = mixture.sample(40, np.random.default_rng(3))
    for conditionals in (latent.conditionals(latent.L), mixture.resampler(X, np.random.default_rng(3))):
        weights, means, factors = conditionals.law(np.array(group))
        expected = by_algebra(conditionals.X, np.array(group))
        np.testing.assert_allclose(weights, expected[0], atol=1e-10)
        np.testing.assert_allclose(means, expected[1], atol=1e-10)
        np.testing.assert_allclose([F @ F.T for F in factors], expected[2], atol=1e-10)


def test_tests_under_the_latent_model_are_those_under_the_mixture():
    """Where L is X, p-values are the same to the last digit: the class is integrated out in both."""
    latent = latent_features([Affine()] * D, WEIGHTS, MEANS, COVARIANCES)
    mixture = gaussian_mixture_features(WEIGHTS, MEANS, COVARIANCES)
    X = mixture.sample(60, np.random.default_rng(4))
    y = X[:, 0] + X[:, 2] ** 2 + np.random.default_rng(5).standard_normal(60)
    how = {"kind": "number", "nominal": (), "response_model": "lasso", "encode": None}
    tests = [group_tests(model, X, y, rng=np.random.default_rng(6), **how) for model in (latent, mixture)]
    for group in ([1], [1, 3], [1, 3, 4]):
        first, second = (one.test(np.array(group), fixed_looks(99)).p_value for one in tests)
        assert first == pytest.approx(second, abs=1e-12) and 0.01 < first < 1


@pytest.mark.parametrize("n_classes", [1, 2])
def test_draws_are_the_law_applied_to_standard_normals(n_classes):
    """Each draw is mean_K + F_K z with the z and the K of the same stream, to rounding."""
    if n_classes == 2:
        model = gaussian_mixture_features(WEIGHTS, MEANS, COVARIANCES)
    else:
        model = gaussian_features(MEANS[0], COVARIANCES[0])
    X, group = model.sample(30, np.random.default_rng(0)), np.array([3, 1])
    drawn = model.resampler(X, np.random.default_rng(9)).given_others(group)(np.random.default_rng(5), 7)
    weights, means, factors = model.resampler(X, np.random.default_rng(9)).law(group)
    rng = np.random.default_rng(5)
    z = rng.standard_normal((7, 30, 2))
    K = np.zeros((7, 30), int) if n_classes == 1 else (rng.random((7, 30)) > weights[:, 0]).astype(int)
    assert n_classes == 1 or 0 < K.mean() < 1
    expected = means[np.arange(30), K] + np.einsum("mnab,mnb->mna", factors[K], z)
    np.testing.assert_allclose(drawn, expected, atol=1e-12)


def test_a_row_is_drawn_from_one_of_several_laws_with_equal_probability():
    """Two laws, each nearly a point: a draw is mean_k of the s-th law, s and k by the same uniform number."""
    means = np.array([[[[0.0], [1.0]]], [[[2.0], [3.0]]]])  # (s, n, l, c)
    weights = [np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]])]
    factors = np.full((2, 1, 1), 1e-9)
    draws = sampler_of([(w, m, factors) for w, m in zip(weights, means, strict=True)])(np.random.default_rng(0), 4000)
    shares = np.bincount(draws.round().astype(int).ravel(), minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.125, 0.375, 0.25, 0.25], atol=0.04)  # 5 standard errors, 1e-6


# ---- sites of chains -----------------------------------------------------------------------------------------------


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
