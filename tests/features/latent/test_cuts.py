"""Cuts under several classes: knockoffs have the shares of their columns' values."""

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.features.latent.chain import lay_out
from knockoffs.features.latent.cuts import cuts_of, mixture_quantiles
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.margins import Affine, Steps, fit_steps, read_cells


def test_quantiles_of_a_mixture_are_where_it_has_the_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, weights = np.sort(rng.random(7)), rng.dirichlet(np.ones(4))
        means, deviations = 3 * rng.standard_normal(4), np.exp(rng.standard_normal(4))
        at = mixture_quantiles(p, weights, means, deviations)
        reached = weights @ ndtr((at - means[:, None]) / deviations[:, None])
        assert np.abs(reached - p).max() < 1e-12


def test_cells_move_with_the_cuts_and_points_and_missing_cells_stay():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal(50), rng.integers(4, size=50), rng.integers(2, size=50)]).astype(float)
    X[:5, 1] = np.nan
    margins = [Affine(), fit_steps(X[5:, 1]), fit_steps(X[:, 2])]
    column_of = lay_out(margins).column_of
    cuts = cuts_of(margins, column_of)
    weights, means = np.array([0.4, 0.6]), rng.standard_normal((2, 3))
    covariances = np.stack([np.eye(3), 2 * np.eye(3)])
    moved = cuts.under(weights, means, covariances)
    found = cuts.move(read_cells(margins, X), moved)
    expected = read_cells(moved.in_margins(margins, column_of), X)
    for part in ("status", "low", "high"):
        assert (getattr(found, part) == getattr(expected, part)).all()
    assert ((found.start >= found.low) & (found.start <= found.high)).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fit_with_classes_has_the_shares_of_every_column(seed):
    rng = np.random.default_rng(seed)
    centre = 2.5 * rng.standard_normal((3, 6))
    X = np.round(rng.standard_normal((1200, 6)) + centre[rng.integers(3, size=1200)])
    model = fit_latent(X, rng=rng, n_classes=3, kinds=["ordinal"] * 6)
    assert model.n_classes == 3
    for j, margin in enumerate(model.margins):
        assert isinstance(margin, Steps)
        means = np.array([law.mean[j] for law in model.mixture.laws])
        deviations = np.sqrt([law.covariance[j, j] for law in model.mixture.laws])
        below = model.mixture.weights @ ndtr((margin.cuts[1:-1] - means[:, None]) / deviations[:, None])
        shares = np.array([(X[:, j] <= value).mean() for value in margin.values[:-1]])
        assert np.abs(below - shares).max() < 1e-9
