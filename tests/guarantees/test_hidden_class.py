"""Tests under a hidden class: null p-values are uniform, and a class that a group reveals is drawn with it.

P^X is exactly known: two classes far apart in the first three columns, none of it seen in the others. The class is
integrated out in closed form. The planted fault "hidden class kept" draws K given X once and keeps it. Its p-values
are valid, but y, which depends on the class alone, is then independent of the group given what is kept: no power.
"""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from knockoffs.conditional_tests.sequential import fixed_looks
from knockoffs.conditional_tests.tests import group_tests
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from knockoffs.features.latent.margins import Affine
from knockoffs.features.latent.model import latent_features

D, WEIGHTS = 6, [0.5, 0.5]
SHIFT = np.array([2.5, 2.5, 2.5, 0, 0, 0])
R = 0.4 * np.ones((D, D)) + 0.6 * np.eye(D)
LATENT = latent_features([Affine()] * D, WEIGHTS, [SHIFT, -SHIFT], [R, R])
MIXTURE = gaussian_mixture_features(WEIGHTS, [SHIFT, -SHIFT], [R, R])


def make_tests(X, y, kind, rng, model=LATENT):
    return group_tests(model, X, y, kind=kind, rng=rng, nominal=(), response_model="lasso", encode=None)


def sample(n, rng):
    """Rows and their classes."""
    K = rng.integers(2, size=n)
    return np.where(K[:, None] == 0, SHIFT, -SHIFT) + rng.standard_normal((n, D)) @ np.linalg.cholesky(R).T, K


@pytest.mark.parametrize("group", [[1], [4], [1, 2], [1, 4, 5]])
def test_p_values_of_nulls_are_uniform(group):
    """The target depends on columns 0 and 3, each of which hangs together with the group.

    150 tables; a Kolmogorov-Smirnov test at 1e-5 is the false failure rate, and sees a distance of 0.2.
    """
    found = []
    for rng in np.random.default_rng([1, *group]).spawn(150):
        X, _ = sample(60, rng)
        y = X[:, 0] + X[:, 3] + rng.standard_normal(60)
        found.append(make_tests(X, y, "number", rng).test(np.array(group), fixed_looks(99)).p_value)
    smooth = np.array(found) - np.random.default_rng(2).random(150) / 100  # multiples of a hundredth
    assert kstest(smooth, "uniform").pvalue > 1e-5


def test_draws_without_the_class_are_seen():
    """Planted: one Gaussian in place of the two classes. Small p-values of the null group become rare or frequent."""
    pooled = gaussian_mixture_features([1.0], [np.zeros(D)], [R + np.outer(SHIFT, SHIFT)])
    found = []
    for rng in np.random.default_rng(1).spawn(150):
        X, K = sample(60, rng)
        y = K + 0.3 * rng.standard_normal(60)  # given columns 0 and 2 the class is known, and column 1 is null
        found.append(make_tests(X, y, "number", rng, pooled).test(np.array([1]), fixed_looks(99)).p_value)
    assert kstest(found, "uniform").pvalue < 1e-5


def p_with_class_kept(X, y, group, rng):
    K = np.array([rng.choice(2, p=row) for row in MIXTURE.posterior(X)])
    laws = [
        gaussian_mixture_features([1.0], [mean], [R]).resampler(X, np.random.default_rng(0)) for mean in (SHIFT, -SHIFT)
    ]

    def given_others(columns):
        samplers = [law.given_others(columns) for law in laws]
        return lambda rng, m: np.where(K[:, None] == 0, *(sample(rng, m) for sample in samplers))

    tests = make_tests(X, y, "binary", rng)
    object.__setattr__(tests, "given_others", given_others)
    return tests.test(group, fixed_looks(99)).p_value


def test_a_class_that_only_the_group_reveals_is_drawn_with_it_and_power_is_that_of_the_closed_form():
    """The target is the class, three of eight times the other one; the group is all that reveals the class.

    Tests under the latent model have the p-values of those under the mixture in closed form, to the last digit, so
    their power is the same. 60 tables: with the class kept the rejections at 0.05 are a binomial number of mean 3 or
    less, above 12 with probability 2e-5; with it drawn 40 or more are seen.
    """
    group, latent, closed, kept = np.array([0, 1, 2]), [], [], []
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        X, K = sample(100, rng)
        y = np.where(rng.random(100) < 0.35, 1 - K, K)
        latent.append(make_tests(X, y, "binary", np.random.default_rng(seed)).test(group, fixed_looks(99)).p_value)
        closed.append(
            make_tests(X, y, "binary", np.random.default_rng(seed), MIXTURE).test(group, fixed_looks(99)).p_value
        )
        kept.append(p_with_class_kept(X, y, group, np.random.default_rng(seed)))
    np.testing.assert_allclose(latent, closed, atol=1e-12)
    assert binom.sf(12, 60, 0.05) < 1e-4
    assert np.sum(np.array(kept) <= 0.05) <= 12
    assert np.sum(np.array(latent) <= 0.05) >= 40
