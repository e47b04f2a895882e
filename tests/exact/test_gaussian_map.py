"""The Gaussian conjugate, tested through the affine map that its own sampler applies."""

import numpy as np
import pytest
from scipy.linalg import blas
from scipy.stats import ortho_group

from knockoffs.errors import InputError
from knockoffs.features.gaussian import gaussian_features
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.diagonal import DIAGONALS, solve_diagonal
from knockoffs.sampling.sampler import sample_knockoffs


class GivenNoise:
    """Stands in for a Generator: its standard normal numbers are the ones it was given."""

    def __init__(self, noise):
        self.noise = noise

    def standard_normal(self, out):
        out[...] = self.noise


def affine_map(law):
    """M, N with X_tilde = mean + (X - mean) M + z N, read off the sampler at unit vectors."""
    d, mean = len(law.mean), law.mean
    M = law.sample(mean + np.eye(d), GivenNoise(np.zeros((d, d)))) - mean
    N = law.sample(np.tile(mean, (d, 1)), GivenNoise(np.eye(d))) - mean
    return M, N


def implied_covariance(law):
    """Covariance of (X, X_tilde) that the sampler's map implies when X ~ N(mean, S)."""
    M, N = affine_map(law)
    S = law.covariance
    cross = S @ M
    return np.block([[S, cross], [cross.T, M.T @ S @ M + N.T @ N]])


def wanted_covariance(law):
    S, D = law.covariance, law.D
    return np.block([[S, S - D], [S - D, S]])


def relative_error(law):
    scale = np.sqrt(np.diag(law.covariance))
    both = np.concatenate([scale, scale])
    gap = (implied_covariance(law) - wanted_covariance(law)) / np.outer(both, both)
    return np.abs(gap).max()


def random_covariance(rng, d, condition):
    Q = ortho_group.rvs(d, random_state=int(rng.integers(2**31))) if d > 1 else np.eye(1)
    eigenvalues = np.exp(rng.uniform(0, np.log(condition), size=d))
    eigenvalues[:1], eigenvalues[-1:] = 1.0, condition
    return (Q * eigenvalues) @ Q.T


def covariances(rng):
    """50 covariances, condition numbers up to 1e8."""
    for i in range(50):
        d = int(rng.integers(2, 30))
        yield random_covariance(rng, d, 10.0 ** (8 * i / 49))


@pytest.mark.parametrize("method", DIAGONALS)
def test_joint_covariance_of_the_affine_map(method, rng):
    for Sigma in covariances(rng):
        law = GaussianLaw(np.zeros(len(Sigma)), Sigma, solve_diagonal(Sigma, method))
        assert relative_error(law) < 1e-10


@pytest.mark.parametrize("method", DIAGONALS)
def test_joint_covariance_when_features_own_several_columns(method, rng):
    for _ in range(5):
        Sigma = random_covariance(rng, 7, 1e4)
        feature_of = np.array([0, 0, 1, 2, 2, 2, 3])
        D = solve_diagonal(Sigma, method, feature_of=feature_of)
        assert (D[feature_of[:, None] != feature_of] == 0).all()
        assert relative_error(GaussianLaw(rng.normal(size=7), Sigma, D)) < 1e-10


def test_transposed_factor_is_seen(rng, monkeypatch):
    """hidimstat's fault: noise drawn as z @ C with the lower factor. The covariance test must see it."""
    Sigma = random_covariance(rng, 6, 50.0)
    law = GaussianLaw(np.zeros(6), Sigma, solve_diagonal(Sigma, "mvr"))
    assert relative_error(law) < 1e-10
    real = blas.dtrmm
    monkeypatch.setattr(blas, "dtrmm", lambda *args, **kwargs: real(*args, trans_a=True, **kwargs))
    assert relative_error(law) > 1e-3


def test_kernel_density_is_the_law_of_the_sampler(rng):
    """log_kernel is the Gaussian density with the mean and covariance of the affine map."""
    Sigma = random_covariance(rng, 3, 10.0)
    law = GaussianLaw(rng.normal(size=3), Sigma, solve_diagonal(Sigma, "mvr"))
    M, N = affine_map(law)
    x, x_tilde = rng.normal(size=(2, 1, 3))
    gap = (x_tilde - law.mean - (x - law.mean) @ M)[0]
    V = N.T @ N
    expected = -0.5 * gap @ np.linalg.solve(V, gap) - 0.5 * np.linalg.slogdet(2 * np.pi * V)[1]
    np.testing.assert_allclose(law.log_knockoff_density(x_tilde, x)[0], expected, rtol=1e-10)


def test_blocks_of_rows_are_seamless(rng):
    """More rows than fit one block give the same map in every block."""
    law = GaussianLaw(np.zeros(2), np.eye(2), np.eye(2) * 0.5)
    X = rng.normal(size=(5000, 2))
    X_tilde = law.sample(X, GivenNoise(0.0))
    np.testing.assert_allclose(X_tilde, 0.5 * X, rtol=1e-14)


def test_missing_values_are_refused_and_not_passed_on(rng):
    model = gaussian_features([0, 0], [[1, 0.5], [0.5, 1]])
    with pytest.raises(InputError, match="row 1, column 0 of a Gaussian node is nan"):
        sample_knockoffs(model.as_network(), np.array([[0.0, 1.0], [np.nan, 0.0]]), rng)
