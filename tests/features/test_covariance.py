"""Correlations of few rows: each estimator by itself, and the one chooser among them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import KnockoffWarning
from knockoffs.features.covariance import (
    Estimate,
    choose_correlations,
    correlations_of,
    definite,
    held_out_intensity,
    linked_correlations,
    linked_precision,
    log_densities,
    thresholded,
)
from knockoffs.features.latent.fit import fit_latent


def chain(d, rho=0.7):
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def tree(d, rho=0.8):
    """Column j hangs on column (j - 1) // 2; correlations are products along the way."""
    S = np.eye(d)
    for j in range(1, d):
        S[j, :j] = S[:j, j] = rho * S[(j - 1) // 2, :j]
    return S


def blocks(d, size=15, rho=0.6):
    """Columns that hang together in blocks: more of them than a column is linked to."""
    return np.kron(np.eye(d // size), np.full((size, size), rho)) + (1 - rho) * np.eye(d)


def common(d, rho=0.5):
    return np.full((d, d), rho) + (1 - rho) * np.eye(d)


def rows_of(S, n, seed):
    X = np.random.default_rng(seed).standard_normal((n, len(S))) @ np.linalg.cholesky(S).T
    X -= X.mean(axis=0)
    return X / X.std(axis=0)


def test_log_densities_are_those_of_scipy():
    Z = rows_of(chain(5), 20, 0)
    np.testing.assert_allclose(log_densities(chain(5), Z), multivariate_normal(np.zeros(5), chain(5)).logpdf(Z))
    assert np.isneginf(log_densities(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((1, 2)))).all()


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.4])
def test_small_correlations_are_none_and_the_others_give_way_no_further_than_needed(threshold):
    R = correlations_of(rows_of(chain(40), 60, 0))
    found = thresholded(R, threshold)
    off = ~np.eye(40, dtype=bool)
    assert (found[off & (np.abs(R) <= threshold)] == 0).all()
    kept = off & (np.abs(R) > threshold)
    left = found[kept] / R[kept]
    assert np.ptp(left) < 1e-12 and left[0] <= 1
    smallest = np.linalg.eigvalsh(found)[0]
    assert smallest >= 0.1 - 1e-12
    assert left[0] == 1 or smallest == pytest.approx(0.1)


def test_a_definite_matrix_stays_as_it_is():
    assert definite(chain(4)) is not None and (definite(chain(4)) == chain(4)).all()


@pytest.mark.parametrize(
    "S", [chain(40), chain(12, -0.5), tree(15, 0.7), np.eye(6)], ids=["chain", "signs", "tree", "none"]
)
def test_links_give_the_correlations_back(S):
    """Exactly, but for the ridge: a column given its neighbours has nothing to do with the others."""
    np.testing.assert_allclose(linked_correlations(S, 10**7), S, atol=1e-3)


@pytest.mark.parametrize(("n", "d"), [(40, 100), (12, 60), (200, 30)])
def test_any_rows_give_links_with_a_positive_definite_matrix(n, d):
    for seed in range(3):
        Z = rows_of(chain(d, 0.95), n, seed)
        C = linked_correlations(Z.T @ Z / n, n)
        assert np.linalg.eigvalsh(C)[0] > 0
        np.testing.assert_allclose(np.diagonal(C), 1)
        P = linked_precision(Z.T @ Z / n, n)
        assert (np.count_nonzero(P, axis=1) - 1).max() <= 8 and np.array_equal(P, P.T)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("S", "how"),
    [(common(150), "shrunk by"), (blocks(150), "taken for none"), (chain(150), "links between 150 columns")],
    ids=["common part", "blocks", "chain"],
)
def test_held_out_rows_choose_the_estimator(S, how, seed):
    Z = rows_of(S, 120, seed)
    found = choose_correlations(Z)
    assert how in found.how
    new, a = rows_of(S, 2000, seed + 100), held_out_intensity(Z, np.ones(120))
    alike = (1 - a) * correlations_of(Z) + a * np.eye(150)
    gain = (log_densities(found.R, new) - log_densities(alike, new)).mean()
    assert gain == 0 if "shrunk" in how else gain > 1


def test_many_columns_and_few_rows_are_shrunk():
    rng = np.random.default_rng(0)
    assert choose_correlations(rng.standard_normal((7, 5))).how.startswith("correlations shrunk")
    assert choose_correlations(rows_of(chain(60), 40, 0), most_columns=50).how.startswith("correlations shrunk")


@pytest.mark.parametrize(
    ("S", "how"), [(chain(120), "through"), (blocks(120), "taken for none"), (common(120), "shrunk by 0")]
)
def test_the_default_takes_what_was_chosen_and_says_so(S, how):
    with pytest.warns(KnockoffWarning, match=f"rests on 100 rows for 120 coordinates: correlations .*{how}"):
        law = fit_latent(rows_of(S, 100, 0))
    assert sum(note.startswith("correlations") and how in note for note in law.notes) == 1


def test_moments_of_more_rows_leave_no_note_of_what_few_rows_asked_for():
    with pytest.warns(KnockoffWarning, match="rests on 100 rows"):
        model = fit_latent(rows_of(blocks(150), 100, 0))
    again = model.with_moments(Estimate(np.zeros(150), np.eye(150), 0.0), 1e6, "maximum_entropy")
    told = [note for note in again.notes if note.startswith("correlations")]
    assert told == ["correlations from 1,000,000 rows"]
