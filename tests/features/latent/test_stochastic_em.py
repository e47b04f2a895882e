"""Correlations that were shrunk keep a variance in every direction, whatever the columns are made of."""

import numpy as np
import pytest

from knockoffs.features.latent import fit as fitting
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.kinds import fit_margins
from knockoffs.features.latent.stochastic_em import frame_of, lift


def _frame(kinds, n=200):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, n).astype(float) if kind == "nominal" else rng.normal(size=n) for kind in kinds]
    return frame_of(fit_margins(np.column_stack(columns), kinds))


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


def test_what_a_nominal_column_fixes_is_kept():
    frame = _frame(["continuous", "nominal", "continuous"])
    D = len(frame.unit)
    block = slice(1, D - 1)
    S = frame.target.copy()
    S[0, -1] = S[-1, 0] = 0.95
    lifted = lift(S, 0.3, frame)
    assert np.allclose(lifted[block, block], frame.target[block, block])
    assert np.linalg.eigvalsh(lifted)[0] > np.linalg.eigvalsh(S)[0]


@pytest.mark.parametrize("seed", [0, 1, 2])
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
