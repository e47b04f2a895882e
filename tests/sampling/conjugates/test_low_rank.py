"""A Gaussian whose correlations are a I + U^T U is the one with these matrices: its D, its draws and its densities."""

import numpy as np
import pytest

from knockoffs.features.latent.fit import fit_latent
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.conjugates.low_rank import LowRankFactor, LowRankLaw, low_rank_entropy
from knockoffs.sampling.diagonal import solve_diagonal

D, R = 300, 40  # more than one block of columns


def correlations(design: str) -> tuple[float, np.ndarray]:
    """A number a and U, so that a I + U^T U are correlations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((R, D))
    if design == "factors":
        X += 3 * rng.standard_normal((R, 2)) @ rng.standard_normal((2, D))
    if design == "few apart":  # columns that the others leave more room than 2 a
        X = 0.1 * X + rng.standard_normal((R, 2)) @ rng.standard_normal((2, D))
        X[:, :5] = rng.standard_normal((R, 5))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    a = 0.02 if design == "few apart" else 0.4
    return a, np.sqrt((1 - a) / R) * Z


def pair_of_laws(design: str) -> tuple[LowRankLaw, GaussianLaw]:
    a, U = correlations(design)
    mean, scale = np.linspace(-3, 3, D), np.linspace(0.5, 2, D)
    S = (a * np.eye(D) + U.T @ U) * np.outer(scale, scale)
    law = LowRankLaw(mean, scale, a, U, low_rank_entropy(a, U))
    return law, GaussianLaw(mean, S, np.diag(law.s * scale**2))


designs = pytest.mark.parametrize("design", ["noise", "factors", "few apart"])


@designs
def test_d_is_that_of_maximum_entropy(design):
    a, U = correlations(design)
    s = low_rank_entropy(a, U)
    np.testing.assert_allclose(s, np.diagonal(solve_diagonal(a * np.eye(D) + U.T @ U)), rtol=1e-8)
    assert (s.max() > 2 * a) == (design == "few apart")


@designs
def test_draws_and_densities_are_those_of_the_matrices(design):
    law, dense = pair_of_laws(design)
    np.testing.assert_allclose(law.covariance, dense.covariance, atol=1e-12)
    X, Y = (one.sample_rows(20, np.random.default_rng(1)) for one in (law, dense))
    np.testing.assert_allclose(X, Y, atol=1e-9)
    X, Y = (one.sample(Y, np.random.default_rng(2)) for one in (law, dense))
    np.testing.assert_allclose(X, Y, atol=1e-9)
    np.testing.assert_allclose(law.log_density(X), dense.log_density(X), rtol=1e-9)


def test_a_factor_has_negative_entries_of_its_own():
    law, dense = pair_of_laws("few apart")
    factor = law.noise_factor
    assert isinstance(factor, LowRankFactor) and factor.own.min() < 0
    np.testing.assert_allclose(factor.times(np.eye(D)).T * law.scale[:, None], dense.noise_factor, atol=1e-9)


def test_a_wide_table_is_fitted_without_a_matrix():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 1100)) + rng.standard_normal((30, 1))
    with pytest.warns(UserWarning, match="rests on 30 rows for 1100 coordinates: correlations shrunk by"):
        wide = fit_latent(X)
        narrow = fit_latent(X, diagonal="mvr")
    law, dense = wide.mixture.laws[0], narrow.mixture.laws[0]
    assert isinstance(law, LowRankLaw) and isinstance(dense, GaussianLaw)
    wide.as_sampler().sample(X, np.random.default_rng(4))
    wide.log_density(X)
    assert "dense" not in vars(law)
    np.testing.assert_allclose(law.covariance, dense.covariance, atol=1e-10)
    assert wide.notes == narrow.notes
