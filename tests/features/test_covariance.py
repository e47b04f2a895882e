"""Correlations of few rows: each estimator by itself, and the one chooser among them."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.errors import KnockoffWarning
from knockoffs.features import covariance
from knockoffs.features.covariance import (
    INTENSITIES,
    Estimate,
    bounded,
    choose_correlations,
    correlations_of,
    estimate_covariance,
    held_out_intensity,
    intensity_of_moments,
    is_behind,
    linked_correlations,
    linked_precision,
    log_densities,
    simplest,
    thresholded,
    weighted_moments,
)
from knockoffs.features.gaussian import fit_gaussian
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


@pytest.mark.parametrize("n", [30, 120, 500])
def test_shrinkage_does_not_hide_collinear_columns(n, rng):
    """Ledoit and Wolf's intensity (0.015 for 500 rows) would turn a correlation of 0.9999995 into 0.985."""
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 0] + 1e-3 * X[:, 2]
    S = fit_gaussian(X).laws[0].covariance
    assert S[0, 2] / np.sqrt(S[0, 0] * S[2, 2]) > 1 - 1e-4


def test_shrinkage_is_near_the_best_there_is(rng):
    """300 rows of 100 columns: the divergence from the true law is within 15 % of the best intensity's, and less
    than two thirds of the plain covariance's. One draw; over 20 seeds the first ratio was at most 1.04."""
    d, n = 100, 300
    truth = 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    X = rng.multivariate_normal(np.zeros(d), truth, size=n)

    def divergence(S):  # Kullback-Leibler, of N(0, truth) from N(0, S)
        ratio = np.linalg.solve(S, truth)
        return 0.5 * (np.trace(ratio) - d - np.linalg.slogdet(ratio)[1])

    _, plain = weighted_moments(X, np.ones(n))
    diagonal = np.diag(np.diag(plain))
    best = min(divergence((1 - a) * plain + a * diagonal) for a in INTENSITIES)
    chosen = estimate_covariance(X, what="the test").covariance
    assert divergence(chosen) < 1.15 * best
    assert divergence(chosen) < divergence(plain) / 1.5


def test_covariance_with_weights_is_that_of_the_rows_they_leave(rng):
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 4))
    mean, covariance, intensity = estimate_covariance(X, np.r_[np.zeros(500), np.ones(500)], what="the test")
    expected = estimate_covariance(X[500:], what="the test")
    np.testing.assert_allclose(mean, expected[0])
    np.testing.assert_allclose(covariance, expected[1])
    assert intensity == expected.intensity


def test_moments_are_weighted_moments_over_blocks(rng):
    X, w = rng.normal(size=(5000, 3)), rng.random(5000)
    mean, covariance = weighted_moments(X, w)
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=w))
    np.testing.assert_allclose(covariance, np.cov(X.T, aweights=w, bias=True))


def test_a_correlation_that_loses_much_is_worth_a_warning(rng):
    """100 rows of 40 columns with correlations of 0.5: more than two rows a column, and yet shrunk by a third or so."""
    X = rng.multivariate_normal(np.zeros(40), np.full((40, 40), 0.5) + 0.5 * np.eye(40), size=100)
    X[:, 20:] = rng.normal(size=(100, 20))
    with pytest.warns(KnockoffWarning, match="rests on 100 rows for 40 columns") as caught:
        model = fit_gaussian(X)
    off = ~np.eye(40, dtype=bool)
    lost = np.abs(np.corrcoef(X.T)[off]).max() * model.intensities[0]
    assert lost > 0.25
    assert f"by {model.intensities[0]:.2g}, which reduces correlations by up to {lost:.2g}" in str(caught[0].message)
    assert f"shrunk towards the diagonal by {model.intensities[0]:.2g}" in model.say()


def test_a_correlation_that_loses_little_is_said_without_a_warning(rng):
    X = rng.normal(size=(600, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit_gaussian(X)
    assert 0 < model.intensities[0] * np.abs(np.corrcoef(X.T) - np.eye(20)).max() <= 0.25
    assert f"; its covariance was shrunk towards the diagonal by {model.intensities[0]:.2g}." in model.say()
    assert fit_gaussian(rng.normal(size=(1000, 20))).say() == "P^X is a Gaussian of 20 columns, fitted to 1,000 rows."


def test_few_rows_by_their_singular_values_are_as_many_by_their_eigenvalues(rng, monkeypatch):
    """Fewer rows than columns: the axes that are not zero say all that the d x d covariance says."""
    Z = rng.standard_normal((60, 90)) @ np.linalg.cholesky(0.5 * np.eye(90) + 0.5).T
    for weights in (np.ones(60), rng.uniform(0.1, 1, 60)):
        found = covariance.held_out_intensity(Z, weights)
        with monkeypatch.context() as patch:

            def by_covariance(Z, weights):
                mean, C = covariance.weighted_moments(Z, weights)
                return mean, *np.linalg.eigh(C)

            patch.setattr(covariance, "_axes", by_covariance)
            assert covariance.held_out_intensity(Z, weights) == found
        assert 0 < found < 1


@pytest.mark.parametrize("n, d", [(60, 12), (40, 30), (400, 12)])
def test_folds_known_by_their_moments_ask_for_the_same(n, d, rng):
    """Rows dealt in turn, or the moments of the four folds alone: the same intensity."""
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.1) * rng.uniform(0.1, 10, d) + rng.normal(size=d)
    folds = [X[k::4] for k in range(4)]
    rows, means = np.array([len(fold) for fold in folds]), np.array([fold.mean(axis=0) for fold in folds])
    scatters = np.array([(fold - fold.mean(axis=0)).T @ (fold - fold.mean(axis=0)) for fold in folds])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        expected = estimate_covariance(X, what="the test").intensity
    assert intensity_of_moments(rows, means, scatters) == expected > 0


# The one criterion


@pytest.mark.parametrize(("spread", "chosen"), [(0.0, 2), (1.9, 2), (2.1, 1)], ids=["sure", "just", "just not"])
def test_the_simplest_within_one_standard_error_is_chosen(spread, chosen):
    """100 rows prefer the third to the second by 0.2 on average: the standard error is 0.1 times the spread."""
    signs = np.tile([-1.0, 1.0], 50)
    densities = [np.full(100, -1.0), np.zeros(100), 0.2 + spread * signs, np.full(100, 0.1)]
    assert simplest(densities) == chosen


def test_differences_count_and_not_levels():
    """Rows that differ by hundreds among themselves, and by 0.1 between candidates."""
    rows = 100 * np.random.default_rng(0).standard_normal(50)
    assert is_behind(rows, rows + 0.1)
    assert not is_behind(rows + 0.1, rows)


def test_a_bounded_density_is_one_up_to_its_share_and_has_a_floor():
    grid = np.linspace(-2000, 2000, 4_000_001)
    density = np.exp(bounded(-0.5 * (grid**2 + np.log(2 * np.pi)), grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-4)
    assert bounded(np.array([-1e6]), np.zeros((1, 3)))[0] == pytest.approx(np.log(0.01) - 3 * np.log(np.pi))
