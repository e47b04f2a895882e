"""Families fitted to normal scores: maps there and back, densities that add up, knockoffs in the units of X."""

import numpy as np
import pytest

from knockoffs.features.source import knockoff_source
from knockoffs.features.transformed import Transformed, can_transform


@pytest.fixture
def settled(rng):
    X = np.exp(rng.standard_normal((400, 3)) + 0.5 * rng.standard_normal((400, 1)))
    X[:, 2] = np.log(X[:, 2])
    source = Transformed(knockoff_source("gaussian"), ("x0", "x1"))
    return source(source.read(X), rng=rng), X


def test_there_and_back(settled):
    found, X = settled
    scores = found.sampler.scores
    Z = scores.to(X)
    np.testing.assert_allclose(scores.back(Z), X, rtol=1e-9)
    np.testing.assert_array_equal(Z[:, 2], X[:, 2])
    assert (np.diff(Z[np.argsort(X[:, 0]), 0]) > 0).all()
    assert np.abs(Z[:, :2].mean(axis=0)).max() < 0.05 and np.abs(Z[:, :2].std(axis=0) - 1).max() < 0.05


def test_knockoffs_are_those_of_the_scores_taken_back(settled):
    """The map of a column is the same for X and X_tilde, so swaps of one are swaps of the other."""
    found, X = settled
    pair = found.sampler.sample(X, np.random.default_rng(3))
    inner = found.sampler.inner.sample(found.sampler.scores.to(X), np.random.default_rng(3))
    np.testing.assert_array_equal(pair.X, X)
    np.testing.assert_array_equal(pair.X_tilde, found.sampler.scores.back(inner.X_tilde))
    assert (pair.X_tilde[:, :2] > 0).all() and found.notes["transformation"] == "normal scores of 'x0', 'x1'"


def test_the_density_is_that_of_the_scores_by_the_slopes(settled):
    found, X = settled
    law, step = found.model, 1e-6
    j = 0
    scores = law.scores
    rows = X[50:80]
    up, down = rows.copy(), rows.copy()
    up[:, j] *= 1 + step
    down[:, j] *= 1 - step
    slope = (scores.to(up)[:, j] - scores.to(down)[:, j]) / (up[:, j] - down[:, j])
    one = type(law)(law.law, type(scores)({j: scores.curves[j]}))
    mixed = one.scores.to(rows)
    ratio = one.log_density(rows) - law.law.log_density(mixed)
    smooth = np.isclose(ratio, np.log(slope), rtol=1e-3, atol=1e-3)
    assert smooth.mean() > 0.8  # elsewhere the two steps lie on different segments


def test_one_column_given_the_others_is_drawn_in_its_units(settled):
    found, X = settled
    drawn = found.model.conditional(0, X, np.random.default_rng(0), 3)
    assert drawn.shape == (3, 400) and (drawn > 0).all()
    assert abs(np.median(drawn) - np.median(X[:, 0])) < 0.3


def test_what_can_be_transformed(rng):
    X = np.column_stack([rng.standard_normal((200, 2)), rng.integers(2, size=200), np.maximum(rng.normal(size=200), 0)])
    gaussian = knockoff_source("gaussian")
    table = gaussian.read(X)
    assert can_transform(gaussian, table, ("x0", "x2", "x3")) == ("x0",)  # 0/1 has a kind; many zeros have no scores
    assert can_transform(knockoff_source(np.eye(4)), table, ("x0",)) == ()
