"""The lasso on summary statistics is the lasso on rows that have them, and its scores flip with their columns."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from sklearn.linear_model import Lasso

from knockoffs.errors import InputError
from knockoffs.importance.ghost import ghost_scores, noise_penalty
from knockoffs.sampling.diagonal import solve_diagonal

d, n = 8, 400
S = toeplitz(0.6 ** np.arange(d))
D = solve_diagonal(S)
G = np.block([[S, S - D], [S - D, S]])
z, z_tilde = np.random.default_rng(0).standard_normal((2, d)) * 4


def test_the_same_as_the_lasso_on_rows():
    """2d rows whose Gram matrix is G and whose correlations with y are [z, z_tilde] / sqrt(n)."""
    L = np.linalg.cholesky(G)
    X = np.sqrt(2 * d) * L.T
    y = np.sqrt(2 * d) * np.linalg.solve(L, np.concatenate([z, z_tilde]) / np.sqrt(n))
    for penalty in (0.01, 0.05, noise_penalty(d, n)):
        coef = Lasso(alpha=penalty, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(X, y).coef_
        scores = ghost_scores(z, z_tilde, S, D, n, penalty=penalty)
        np.testing.assert_allclose(np.concatenate([scores.Z, scores.Z_tilde]), np.abs(coef), atol=1e-7)
    assert 0 < (coef != 0).sum() < 2 * d


def test_flip_sign():
    swapped = np.array([True, False, True, True, False, False, True, False])
    before = ghost_scores(z, z_tilde, S, D, n).swap(swapped)
    after = ghost_scores(np.where(swapped, z_tilde, z), np.where(swapped, z, z_tilde), S, D, n)
    np.testing.assert_allclose(after.Z, before.Z, atol=1e-9)
    np.testing.assert_allclose(after.Z_tilde, before.Z_tilde, atol=1e-9)


def test_groups_are_sums_and_flip_together():
    feature_of = np.arange(d) // 2
    blocks = solve_diagonal(S, feature_of=feature_of)
    alone = ghost_scores(z, z_tilde, S, blocks, n)
    grouped = ghost_scores(z, z_tilde, S, blocks, n, feature_of=feature_of)
    np.testing.assert_allclose(grouped.Z, alone.Z.reshape(-1, 2).sum(axis=1))
    swapped = np.array([True, False, False, True])
    columns = swapped[feature_of]
    after = ghost_scores(
        np.where(columns, z_tilde, z), np.where(columns, z, z_tilde), S, blocks, n, feature_of=feature_of
    )
    np.testing.assert_allclose(after.Z, grouped.swap(swapped).Z, atol=1e-9)


def test_nothing_is_left_at_a_large_penalty():
    scores = ghost_scores(z, z_tilde, S, D, n, penalty=10.0)
    assert not scores.Z.any() and not scores.Z_tilde.any()


def test_errors():
    with pytest.raises(InputError, match="n=0"):
        ghost_scores(z, z_tilde, S, D, 0)
    with pytest.raises(InputError, match=r"z_tilde \(7,\)"):
        ghost_scores(z, z_tilde[:7], S, D, n)
