"""Few rows tell the links of a chain or a tree, and all correlations with them, where there are such links."""

import numpy as np
import pytest

from knockoffs.errors import KnockoffWarning
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.neighbour_precision import choose_links, linked_correlations, linked_precision


def chain(d, rho=0.7):
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def tree(d, rho=0.8):
    """Column j hangs on column (j - 1) // 2; correlations are products along the way."""
    S = np.eye(d)
    for j in range(1, d):
        S[j, :j] = S[:j, j] = rho * S[(j - 1) // 2, :j]
    return S


def rows_of(S, n, seed):
    X = np.random.default_rng(seed).standard_normal((n, len(S))) @ np.linalg.cholesky(S).T
    X -= X.mean(axis=0)
    return X / X.std(axis=0)


@pytest.mark.parametrize(
    "S", [chain(40), chain(12, -0.5), tree(15, 0.7), np.eye(6)], ids=["chain", "signs", "tree", "none"]
)
def test_links_give_the_correlations_back(S):
    """Exactly, but for the ridge: a column given its neighbours has nothing to do with the others."""
    np.testing.assert_allclose(linked_correlations(S, 10**7), S, atol=1e-3)


@pytest.mark.parametrize(("n", "d"), [(40, 100), (12, 60), (200, 30)])
def test_any_rows_give_a_positive_definite_matrix(n, d):
    for seed in range(3):
        Z = rows_of(chain(d, 0.95), n, seed)
        C = linked_correlations(Z.T @ Z / n, n)
        assert np.linalg.eigvalsh(C)[0] > 0
        np.testing.assert_allclose(np.diagonal(C), 1)
        P = linked_precision(Z.T @ Z / n, n)
        assert (np.count_nonzero(P, axis=1) - 1).max() <= 8 and np.array_equal(P, P.T)


def alike(d, a):
    return np.where(np.eye(d, dtype=bool), 1.0, 1 - a)


@pytest.mark.parametrize("seed", range(3))
def test_a_chain_has_links_and_a_common_part_has_none(seed):
    S = chain(150)
    Z = rows_of(S, 120, seed)
    links, factors = choose_links(Z, [alike(150, 0.5), alike(150, 0.3)], rng=np.random.default_rng(seed))
    assert 149 <= links.n_links < 400  # the chain has 149
    R = Z.T @ Z / 120
    error = np.abs(R * factors - S)
    assert error[S == 0.7].mean() < 0.1 and error.mean() < 0.02 < np.abs(R * alike(150, 0.5) - S).mean()
    common = np.random.default_rng(seed).standard_normal((120, 150)) + np.random.default_rng(9).standard_normal(
        (120, 1)
    )
    common = (common - common.mean(axis=0)) / common.std(axis=0)
    assert choose_links(common, [alike(150, 0.2)], rng=np.random.default_rng(seed)) is None


def test_the_default_takes_them_where_rows_are_few():
    with pytest.warns(KnockoffWarning, match="rests on 100 rows for 120 coordinates: .* go through few links"):
        law = fit_latent(rows_of(chain(120), 100, 0), rng=np.random.default_rng(0))
    assert any("links between 120 columns" in note for note in law.notes)
    S = law.mixture.laws[0].covariance
    sd = np.sqrt(np.diagonal(S))
    assert np.abs(np.diagonal(S / np.outer(sd, sd), 1) - 0.7).mean() < 0.12
