"""Several Gaussian knockoffs: their joint covariance by algebra, one of them as before, draws, and their scores."""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from knockoffs.errors import InputError
from knockoffs.importance.several import score_several
from knockoffs.response.linear import LassoPathCV
from knockoffs.response.plain import PlainLinear
from knockoffs.sampling.conjugates.gaussian import GaussianLaw
from knockoffs.sampling.several import several_gaussian

GROUPS = np.array([0, 0, 1, 2, 2, 2])
S = toeplitz(0.8 ** np.arange(6)) * np.outer(np.arange(1, 7), np.arange(1, 7))


@pytest.mark.parametrize("feature_of", [None, GROUPS])
@pytest.mark.parametrize("m", [1, 2, 5])
def test_any_two_of_them_have_covariance_s_minus_d(m, feature_of):
    law = several_gaussian(np.zeros(6), S, m, feature_of=feature_of)
    A = np.eye(6) - law.slope  # rows are draws: X A
    shared, own = law.shared_factor @ law.shared_factor.T, law.own_factor @ law.own_factor.T
    each, two = shared + (1 - 1 / m) * own, shared - own / m
    np.testing.assert_allclose(S @ A, S - law.D, atol=1e-9)  # X and a copy
    np.testing.assert_allclose(A.T @ S @ A + each, S, atol=1e-9)  # a copy
    np.testing.assert_allclose(A.T @ S @ A + two, S - law.D, atol=1e-9)  # two copies
    owners = np.arange(6) if feature_of is None else feature_of
    assert np.abs(law.D[owners[:, None] != owners]).max() == 0
    assert np.linalg.eigvalsh((m + 1) / m * S - law.D)[0] > 0


def test_one_copy_has_the_law_of_the_usual_knockoff():
    law = several_gaussian(np.ones(6), S, 1)
    usual = GaussianLaw(np.ones(6), S, law.D)
    np.testing.assert_allclose(law.slope, usual.slope, atol=1e-9)
    np.testing.assert_allclose(
        law.shared_factor @ law.shared_factor.T, usual.noise_factor @ usual.noise_factor.T, atol=1e-9
    )


def test_draws_have_these_moments():
    """5 standard errors: false alarm about 1e-6 for each of 324 entries."""
    rng, n, m = np.random.default_rng(0), 100_000, 2
    law = several_gaussian(np.arange(6.0), S, m, feature_of=GROUPS)
    X = rng.multivariate_normal(np.arange(6.0), S, size=n)
    both = np.hstack([X, *law.sample(X, rng)])
    expected = np.kron(np.ones((3, 3)), S - law.D) + np.kron(np.eye(3), law.D)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / n)
    assert (np.abs(np.cov(both, rowvar=False) - expected) < 5 * error).all()
    assert (np.abs(both.mean(axis=0) - np.tile(np.arange(6.0), 3)) < 5 * np.sqrt(np.diag(expected) / n)).all()


def test_scores_follow_the_copies():
    """Least squares does not mind the order of its columns: whatever was drawn, copies keep their scores."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 6))
    copies = [rng.standard_normal((200, 6)) for _ in range(2)]
    y = X[:, 0] + copies[1][:, 3] + 0.1 * rng.standard_normal(200)
    Z = score_several(PlainLinear(), X, copies, y, feature_of=GROUPS, rng=np.random.default_rng(2))
    again = score_several(PlainLinear(), X, copies, y, feature_of=GROUPS, rng=np.random.default_rng(3))
    np.testing.assert_allclose(Z, again, atol=1e-9)
    assert Z[0, 0] == Z.max() or Z[2, 2] == Z.max()
    assert Z[0, 0] > 10 * Z[1:, 0].max() and Z[2, 2] > 10 * Z[:2, 2].max()
    swapped = score_several(PlainLinear(), copies[1], [copies[0], X], y, feature_of=GROUPS, rng=rng)
    np.testing.assert_allclose(swapped, Z[[2, 1, 0]], atol=1e-9)


def test_null_features_are_first_once_in_m_plus_one():
    """Y knows nothing of X: 4 features of 150 tables, each first of five with probability 1 / 5 (4 errors: 6e-5)."""
    rng, law = np.random.default_rng(4), several_gaussian(np.zeros(4), toeplitz(0.5 ** np.arange(4)), 4)
    first = []
    for _ in range(150):
        X = rng.multivariate_normal(np.zeros(4), law.covariance, size=60)
        model = LassoPathCV(alpha=0.01)
        Z = score_several(model, X, law.sample(X, rng), rng.standard_normal(60), feature_of=np.arange(4), rng=rng)
        first += (Z[0] > Z[1:].max(axis=0)).tolist()
    assert abs(np.mean(first) - 0.2) < 4 * np.sqrt(0.16 / len(first))


def test_refusals():
    with pytest.raises(InputError, match="m=0"):
        several_gaussian(np.zeros(6), S, 0)
    with pytest.raises(InputError, match="copies is empty"):
        score_several(PlainLinear(), np.ones((3, 1)), [], np.ones(3), feature_of=np.array([0]), rng=None)
