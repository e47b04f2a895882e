"""Correlations that were shrunk keep a variance in every direction, whatever the columns are made of."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import multivariate_normal

from knockoffs.features.latent import fit as fitting
from knockoffs.features.latent import stochastic_em
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.kinds import fit_both
from knockoffs.features.latent.margins import Affine, read_cells
from knockoffs.features.latent.nominal import fit_nominal
from knockoffs.features.latent.stochastic_em import (
    FLOOR,
    decouple,
    first_covariance,
    fit_one_class,
    frame_of,
    lift,
    separate,
    tetrachoric,
)


def _frame(kinds):
    """Numbers, and labels whose boxes cut two coordinates."""
    label = fit_nominal(np.repeat([0.0, 1.0, 2.0], [5, 3, 2]), np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
    return frame_of([label if kind == "nominal" else Affine() for kind in kinds])


def test_lifted_correlations_have_no_smaller_eigenvalue_than_shrinking_leaves():
    frame = _frame(["continuous"] * 6)
    factor = np.linspace(0.3, 0.99, 6)
    R = np.outer(factor, factor)
    np.fill_diagonal(R, 1.0)
    assert np.linalg.eigvalsh(R)[0] < 0.2
    sd = np.arange(1.0, 7.0)
    lifted = lift(R * np.outer(sd, sd), 0.4, frame)
    assert np.allclose(np.sqrt(np.diagonal(lifted)), sd)
    assert np.linalg.eigvalsh(lifted / np.outer(sd, sd))[0] > 0.3  # variances are put back after the lift


def test_a_matrix_that_was_shrunk_whole_stays_as_it_is():
    frame = _frame(["continuous"] * 4)
    C = np.corrcoef(np.random.default_rng(1).normal(size=(4, 5)))
    S = 0.8 * C + 0.2 * np.eye(4)
    assert lift(S, 0.2, frame) is S
    assert lift(C, 0.0, frame) is C


def test_what_is_hardly_shrunk_keeps_the_directions_without_variance_that_the_cells_have():
    frame = _frame(["continuous"] * 2)
    S = np.array([[1.0, 0.999], [0.999, 1.0]])
    assert lift(S, 0.01, frame) is S
    assert lift(S, 0.2, frame) is not S


def test_em_starts_from_correlations_that_are_shrunk_in_full(monkeypatch):
    """From a singular start a chain of coarse columns would never leave: knockoffs were twins of their columns."""
    x = np.random.default_rng(3).integers(0, 2, 300).astype(float)
    X = np.column_stack([x, x, 1 - x])
    margins = fit_both(X, ["binary"] * 3)[0]
    cells, frame = read_cells(margins, X), frame_of(margins)
    begun = []

    def classes(weights, means, covariances):
        begun.append(covariances[0])
        raise StopIteration

    monkeypatch.setattr(stochastic_em, "classes", classes)
    with pytest.raises(StopIteration):
        fit_one_class(cells, frame, a=0.05, rng=np.random.default_rng(0))
    whole = first_covariance(cells, frame)
    assert np.allclose(begun[0] - np.diag(np.diagonal(whole)), 0.95 * (whole - np.diag(np.diagonal(whole))))
    assert np.linalg.eigvalsh(begun[0])[0] > 0.05


def test_the_coordinates_of_a_label_stay_independent():
    frame = _frame(["continuous", "nominal", "continuous"])
    S = np.eye(4)
    S[0, -1] = S[-1, 0] = 0.95
    lifted = lift(S, 0.3, frame)
    assert np.allclose(lifted[1:3, 1:3], np.eye(2))
    assert np.linalg.eigvalsh(lifted)[0] > np.linalg.eigvalsh(S)[0]


def test_coordinates_that_are_mixed_until_they_are_independent_leave_the_other_columns_as_they_are():
    root = np.random.default_rng(0).standard_normal((4, 6))
    S = root @ root.T
    layout = _frame(["continuous", "nominal", "continuous"]).layout
    found = decouple(S, layout)
    assert found[1, 2] == 0
    np.testing.assert_allclose(np.diagonal(found), np.diagonal(S))
    np.testing.assert_allclose(found[np.ix_([0, 3], [0, 3])], S[np.ix_([0, 3], [0, 3])])
    # what the label says of the other columns is the same: only its coordinates have other names
    np.testing.assert_allclose(
        found[[0, 3], 1:3] @ np.linalg.inv(found[1:3, 1:3]) @ found[1:3, [0, 3]],
        S[[0, 3], 1:3] @ np.linalg.inv(S[1:3, 1:3]) @ S[1:3, [0, 3]],
        rtol=1e-6,
    )


@pytest.mark.parametrize("seed", range(3))
def test_any_covariance_is_separated_into_a_positive_definite_one(seed):
    """Pairs that are shrunk by different factors may leave eigenvalues far below zero."""
    rng = np.random.default_rng(seed)
    S = rng.uniform(-1, 1, (12, 12))
    S = (S + S.T) / 2
    np.fill_diagonal(S, rng.uniform(0.1, 4, 12))
    found = separate(S, np.eye(12, dtype=bool))
    sd = np.sqrt(np.diagonal(found))
    np.testing.assert_allclose(sd, np.sqrt(np.diagonal(S)))
    assert np.linalg.eigvalsh(found / np.outer(sd, sd))[0] > FLOOR


@pytest.mark.parametrize("seed", [0, 1])
def test_rare_and_common_labels_with_one_factor_keep_distance_from_their_knockoffs(seed, monkeypatch):
    """Without the lift one eigenvalue is left at the floor, and knockoffs are their columns' twins (D a tenth)."""
    monkeypatch.setattr(fitting, "_shrinkage", lambda cells, shares: fitting.Shrinkage(0.5, (0.0,) * shares.shape[1]))
    rng = np.random.default_rng(10)
    factor = rng.normal(size=(300, 1))
    L = 0.9 * factor * np.sign(rng.normal(size=30)) + np.sqrt(1 - 0.81) * rng.normal(size=(300, 30))
    X = (L > np.tile([0.0, 1.6, -1.5], 10)).astype(float)
    model = fit_latent(X, rng=np.random.default_rng(seed), kinds=["binary"] * 30, n_classes=1)
    law = model.mixture.laws[0]
    assert np.linalg.eigvalsh(law.covariance)[0] > 0.4


@pytest.mark.parametrize("r", [-0.95, -0.4, 0.0, 0.3, 0.8, 0.97])
@pytest.mark.parametrize("h, k", [(0.0, 0.0), (0.5, -1.0), (1.3, 1.3)])
def test_the_correlation_comes_back(r, h, k):
    both = multivariate_normal([0, 0], [[1, r], [r, 1]]).cdf([-h, -k])  # P(A > h, B > k), by symmetry
    first, second = ndtr(-h), ndtr(-k)
    if both < 1e-9:
        pytest.skip("the event is as good as impossible: nothing can be learned from it")
    found = tetrachoric(np.array([both]), np.array([first]), np.array([second]), most=0.999)
    assert found[0] == pytest.approx(r, abs=2e-3)


def test_copies_reach_the_largest_correlation():
    found = tetrachoric(np.array([0.5, 1e-9]), np.array([0.5, 0.5]), np.array([0.5, 0.5]), most=0.99)
    np.testing.assert_allclose(found, [0.99, -0.99], atol=1e-6)
