"""Shares of the levels of nominal columns under several classes, against integrals of normal densities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from knockoffs.features.latent import fit as fit_module
from knockoffs.features.latent.cells import FREE, WINNER
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.nominal import Nominal, fit_nominal
from knockoffs.features.latent.offsets import Offsets, mixture_offsets, offsets_of

WEIGHTS = np.array([0.6, 0.4])
MEANS = np.array([[0.5, -1.0], [-0.75, 1.5]])
COVARIANCES = np.array([[[1.0, 0.5], [0.5, 1.0]], [[0.6, -0.2], [-0.2, 1.4]]])


def exact_shares(offset, weights, means, covariances):
    """P(argmax(0, L + offset) = a) of three levels: each is an orthant of two differences of utilities."""
    wins = [np.array([[-1, 0], [0, -1]]), np.array([[1, 0], [1, -1]]), np.array([[0, 1], [-1, 1]])]
    shares = []
    for A in wins:  # level a wins where A (L + offset) > 0
        parts = [
            multivariate_normal(np.zeros(2), A @ S @ A.T).cdf(A @ (mean + offset))
            for mean, S in zip(means, covariances, strict=True)
        ]
        shares.append(weights @ np.array(parts))
    return np.array(shares)


@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [0.9, 0.09, 0.01], [0.34, 0.33, 0.33]])
def test_the_mixture_has_the_shares(shares):
    offset = mixture_offsets(np.array(shares), np.zeros(2), WEIGHTS, MEANS, COVARIANCES)
    np.testing.assert_allclose(exact_shares(offset, WEIGHTS, MEANS, COVARIANCES), shares, atol=1e-3)


def test_one_class_keeps_the_offsets_of_the_margin():
    margin = fit_nominal(np.repeat([0.0, 1.0, 2.0, 3.0], [50, 20, 20, 10]))
    start = Offsets([slice(0, 3)], [np.array([0.5, 0.2, 0.2, 0.1])], [np.zeros(3)])
    moved = start.under(np.ones(1), np.zeros((1, 3)), margin.block[None])
    np.testing.assert_allclose(moved.at[0], margin.offset, atol=5e-3)


def test_cells_move_with_the_offsets():
    """A start that is inside the constraints of its cell, as one that is read anew has."""
    x = np.array([0.0, 1.0, 2.0, np.nan, 0.0])
    old, new = (Nominal(np.arange(3.0), np.array(offset)) for offset in ([-0.5, -1.0], [0.7, -2.0]))
    cells = Offsets([slice(0, 2)], [np.ones(3) / 3], [new.offset]).move(old.read(x))
    for found, expected in zip(cells, new.read(x), strict=True):
        np.testing.assert_allclose(found, expected)
    utility = cells.start + new.offset
    winners = cells.status == WINNER
    assert (utility[winners] > 0).all() and (utility[winners] >= utility[winners.any(axis=1)].max(axis=1)).all()
    assert (cells.status[3] == FREE).all()


def table(rng, n=1500):
    """Two classes, four numbers that tell them apart, three nominal columns whose shares differ between them."""
    K = rng.random(n) < 0.35
    numbers = rng.standard_normal((n, 4)) + 3 * K[:, None]
    shares = np.array([[0.55, 0.4, 0.05], [0.15, 0.15, 0.7]])
    draws = rng.random((n, 3))
    labels = (draws[:, :, None] > shares[K.astype(int)].cumsum(axis=1)[:, None, :]).sum(axis=2).clip(max=2)
    return K, np.column_stack([numbers, labels]).astype(float)


KINDS = ["continuous"] * 4 + ["nominal"] * 3


def errors(model, X):
    """Largest difference between the shares of a fitted model's levels, exactly, and those of the data."""
    worst = 0.0
    for j in (4, 5, 6):
        margin, own = model.margins[j], model.layout.column_of == j
        means = np.stack([law.mean[own] for law in model.mixture.laws])
        covariances = np.stack([law.covariance[np.ix_(own, own)] for law in model.mixture.laws])
        found = exact_shares(margin.offset, model.mixture.weights, means, covariances)
        worst = max(worst, *np.abs(found - [(X[:, j] == code).mean() for code in margin.codes]))
    return worst


def test_a_fit_of_several_classes_has_the_shares_of_the_columns(monkeypatch):
    K, X = table(np.random.default_rng(0))
    model = fit_latent(X, rng=np.random.default_rng(1), kinds=KINDS, n_classes=2)
    assert model.n_classes == 2
    assert errors(model, X) < 1e-3
    # and within the classes that made the table: the share of a level differs by at most 5 standard errors of a
    # difference of two independent samples, which in 18 comparisons it does by chance once in 100,000 times
    X_tilde = model.as_sampler().sample(X, np.random.default_rng(2)).X_tilde
    for rows in (K, ~K):
        for j in (4, 5, 6):
            for code in range(3):
                p = (X[rows, j] == code).mean()
                error = np.sqrt(2 * p * (1 - p) / rows.sum())
                assert abs((X_tilde[rows, j] == code).mean() - p) < 5 * error
    # the offsets of one class, left as they were, have other shares
    monkeypatch.setattr(fit_module.Several, "in_margins", lambda self, margins, of: self.cuts.in_margins(margins, of))
    left = fit_latent(X, rng=np.random.default_rng(1), kinds=KINDS, n_classes=2)
    assert errors(left, X) > 2e-3


def test_columns_without_labels_have_no_offsets():
    model = fit_latent(np.random.default_rng(0).standard_normal((60, 2)), rng=np.random.default_rng(1), n_classes=1)
    assert offsets_of(model.margins, model.layout) == Offsets([], [], [])
