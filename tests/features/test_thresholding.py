"""Small correlations of few rows are taken for none where held-out rows say so, and only there."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import KnockoffWarning
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.shrinkage import Estimate
from knockoffs.features.thresholding import (
    LEAST,
    LEFT,
    N_FOLDS,
    THRESHOLDS,
    Sparse,
    choose_sparse,
    feasible,
    log_likelihoods,
)


def chain(n, d, seed=0, rho=0.7):
    rng = np.random.default_rng(seed)
    S = rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return in_units(rng.standard_normal((n, d)) @ np.linalg.cholesky(S).T), S


def common(n, d, seed=0):
    """Every column with every other one: a common part, and one of its own."""
    rng = np.random.default_rng(seed)
    return in_units(rng.standard_normal((n, d)) + rng.standard_normal((n, 1)))


def in_units(X):
    X = X - X.mean(axis=0)
    return X / X.std(axis=0)


def test_log_likelihoods_are_those_of_scipy():
    Z, S = chain(20, 5)
    constant = 5 / 2 * np.log(2 * np.pi)
    np.testing.assert_allclose(log_likelihoods(S, Z) - constant, multivariate_normal(np.zeros(5), S).logpdf(Z))
    assert log_likelihoods(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((1, 2))) is None


def test_factors_leave_variances_and_large_correlations():
    R = np.array([[1.0, 0.5, -0.1], [0.5, 1.0, -0.3], [-0.1, -0.3, 1.0]])
    expected = [[1, 0.9, 0], [0.9, 1, 0.9], [0, 0.9, 1]]
    np.testing.assert_allclose(Sparse(0.2, 0.9).factors(R), expected)


def test_shares_are_feasible_as_eigenvalues_say():
    Z, _ = chain(60, 40)
    R = Z.T @ Z / 60
    for threshold in (0.1, 0.2, 0.4):
        least = [np.linalg.eigvalsh(R * Sparse(threshold, left).factors(R))[0] for left in LEFT]
        expected = [left for left, smallest in zip(LEFT, least, strict=True) if smallest > LEAST][:3]
        assert feasible(R, threshold) == expected


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_kept_and_a_common_part_is_not_cut(seed):
    Z, S = chain(100, 150, seed)
    found = choose_sparse(Z, 0.5, rng=np.random.default_rng(seed))
    assert found.threshold >= min(THRESHOLDS) / 10
    R = Z.T @ Z / 100
    kept = found.factors(R) > 0
    assert kept[S == 0.7].all()
    assert kept[S < 0.01].mean() < 0.1
    assert np.linalg.eigvalsh(R * found.factors(R))[0] > LEAST / 2
    assert choose_sparse(common(100, 150, seed), 0.5, rng=np.random.default_rng(seed)) is None


def test_the_choice_is_that_of_brute_force():
    Z, _ = chain(80, 30)
    fold_of = np.random.default_rng(1).permutation(80) % N_FOLDS
    means = {}
    for c in THRESHOLDS:
        for left in LEFT:
            values = []
            for fold in range(N_FOLDS):
                R = np.corrcoef(Z[fold_of != fold].T)
                S = np.where(np.eye(30, dtype=bool), 1, left * R * (np.abs(R) > c / np.sqrt((fold_of != fold).sum())))
                if np.linalg.eigvalsh(S)[0] > LEAST:
                    values += multivariate_normal(np.zeros(30), S).logpdf(Z[fold_of == fold]).tolist()
            if len(values) == 80:
                means[c, left] = np.mean(values)
    c, left = max(means, key=means.__getitem__)
    found = choose_sparse(Z, 0.5, rng=np.random.default_rng(1))
    assert found == pytest.approx((c / np.sqrt(80), left))


def test_many_columns_and_few_rows_are_left_as_they_are():
    rng = np.random.default_rng(0)
    assert choose_sparse(rng.standard_normal((7, 5)), 0.5, rng=rng) is None
    assert choose_sparse(rng.standard_normal((9, 1001)), 0.5, rng=rng) is None


def blocks(n, d, size=15, rho=0.6):
    """Columns that hang together in blocks: more of them than a column is linked to."""
    rng = np.random.default_rng(0)
    shared = np.repeat(rng.standard_normal((n, d // size)), size, axis=1)
    return in_units(np.sqrt(rho) * shared + np.sqrt(1 - rho) * rng.standard_normal((n, d)))


def test_the_default_says_what_was_done():
    Z = blocks(100, 150)
    with pytest.warns(KnockoffWarning, match="taken for none up to 0"):
        model = fit_latent(Z, rng=np.random.default_rng(0))
    assert any("taken for none, by which held-out rows are likelier" in note for note in model.notes)
    law = model.mixture.laws[0]
    assert (law.covariance == 0).mean() > 0.5
    with pytest.warns(KnockoffWarning, match="were shrunk by 0"):
        fit_latent(common(100, 150), rng=np.random.default_rng(0))


def test_moments_of_more_rows_leave_no_note_of_what_few_rows_asked_for():
    rng = np.random.default_rng(0)
    Z = in_units(np.repeat(rng.standard_normal((100, 30)), 5, axis=1) + 0.5 * rng.standard_normal((100, 150)))
    with pytest.warns(KnockoffWarning, match="rests on 100 rows"):
        model = fit_latent(Z, rng=np.random.default_rng(0))
    assert sum(note.startswith("correlations") for note in model.notes) == 1
    again = model.with_moments(Estimate(np.zeros(150), np.eye(150), 0.0), 1e6, "maximum_entropy")
    told = [note for note in again.notes if note.startswith("correlations")]
    assert told == ["correlations from 1,000,000 rows"]
