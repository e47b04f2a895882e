"""Labels as boxes of latent coordinates: shares, cells, and where the levels lie."""

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.errors import InputError
from knockoffs.features.latent.kinds import directions, fit_both, place_levels, positions
from knockoffs.features.latent.margins import FREE, INTERVAL, Affine, Steps
from knockoffs.features.latent.model import latent_features
from knockoffs.features.latent.nominal import fit_nominal

S = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])
KINDS = ["continuous", "nominal", "continuous"]


def label(rng, m=7, r=2, n=500):
    """A label with m levels of uneven shares, placed at random in r dimensions."""
    x = np.concatenate([np.arange(m), rng.choice(m, n, p=rng.dirichlet(np.ones(m)))]).astype(float)
    return x, fit_nominal(x, rng.standard_normal((m, r)))


def masses(margin, weights, means, deviations):
    """Probability of each box under a mixture whose coordinates are independent in each class."""
    ends = [ndtr((e[:, None] - means) / deviations) for e in (margin.low, margin.high)]
    return (ends[1] - ends[0]).prod(axis=2) @ weights


@pytest.mark.parametrize("r", [1, 2, 3])
def test_boxes_have_the_shares_and_fill_the_space(r, rng):
    for _ in range(5):
        x, margin = label(rng, r=r)
        c = margin.n_coordinates
        assert c <= r
        found = masses(margin, np.ones(1), np.zeros((1, c)), np.ones((1, c)))
        np.testing.assert_allclose(found, np.bincount(x.astype(int)) / len(x), atol=1e-12)
        L = rng.standard_normal((1000, c))
        inside = ((L[:, None] > margin.low) & (L[:, None] <= margin.high)).all(axis=2)
        assert (inside.sum(axis=1) == 1).all()
        np.testing.assert_array_equal(margin.write(L), margin.codes[inside.argmax(axis=1)])


@pytest.mark.parametrize("r", [1, 2, 3])
def test_boxes_have_the_shares_under_several_classes(r, rng):
    x, margin = label(rng, r=r)
    weights, means = np.array([0.3, 0.7]), 2 * rng.standard_normal((2, margin.n_coordinates))
    deviations = np.exp(rng.standard_normal(means.shape) / 2)
    found = masses(margin.under(weights, means, deviations), weights, means, deviations)
    np.testing.assert_allclose(found, np.bincount(x.astype(int)) / len(x), atol=1e-9)


def test_a_coordinate_that_no_box_cuts_is_left_out():
    """Free in every row, it would be drawn into whatever the other columns have in common."""
    where = np.array([[-3.0, 0.1, 0.0], [-1, 0, 0.1], [1, 0, 0], [3, 0.1, 0.1]])
    margin = fit_nominal(np.repeat([0.0, 1.0, 2.0, 3.0], 5), where)
    assert margin.n_coordinates == 1
    np.testing.assert_array_equal(margin.codes[np.argsort(margin.low[:, 0])], [0, 1, 2, 3])


def test_cells_are_the_boxes_and_scores_lie_inside(rng):
    x, margin = label(rng)
    x[:3] = np.nan
    cells = margin.read(x)
    assert (cells.status[:3] == FREE).all() and (cells.status[3:] == INTERVAL).all()
    assert np.isinf(cells.low[:3]).all() and np.isinf(cells.high[:3]).all()
    np.testing.assert_array_equal(margin.write(cells.start)[3:], x[3:])


def test_levels_in_a_row_are_steps_under_other_names():
    """The same draws as the steps of the ranks, so that what is exact of steps is exact of them."""
    names = np.array([2.0, 0.0, 3.0, 1.0])  # code of each rank
    shares = np.array([30, 25, 25, 20])
    margin = fit_nominal(np.repeat(names, shares), np.argsort(names)[:, None].astype(float))
    cuts = np.append(np.sort(margin.low[:, 0]), np.inf)
    rank = Steps(np.arange(4.0), cuts)
    models = [latent_features([Affine(), m, Affine()], [1.0], [np.zeros(3)], [S]) for m in (rank, margin)]
    X = models[0].sample(200, np.random.default_rng(0))
    named = X.copy()
    named[:, 1] = names[X[:, 1].astype(int)]
    of_ranks, of_labels = (
        model.as_sampler().sample(table, np.random.default_rng(1)).X_tilde
        for model, table in zip(models, (X, named), strict=True)
    )
    np.testing.assert_array_equal(names[of_ranks[:, 1].astype(int)], of_labels[:, 1])
    np.testing.assert_array_equal(of_ranks[:, [0, 2]], of_labels[:, [0, 2]])


def test_a_label_that_was_never_seen_is_refused():
    with pytest.raises(InputError, match="code 7 of a nominal column was not seen"):
        fit_nominal(np.array([0.0, 1.0, 2.0])).read(np.array([7.0]))


def bands(n, seed=0, levels=4, weight=0.8):
    """A label whose bands of a number are coded in a shuffled order, between two numbers; and the true order."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(n)
    around = weight * hidden[:, None] + np.sqrt(1 - weight**2) * rng.standard_normal((n, 2))
    order = rng.permutation(levels).astype(float)
    cuts = np.quantile(hidden, np.arange(1, levels) / levels)
    return np.column_stack([around[:, 0], order[np.searchsorted(cuts, hidden)], around[:, 1]]), order


@pytest.mark.parametrize("seed", range(3))
def test_bands_lie_in_their_order_in_one_direction(seed):
    X, order = bands(1500, seed)
    X[::5, 1] = np.nan
    X[1::5, 0] = np.nan
    margin = place_levels(fit_both(X, KINDS)[0], X)[1]
    assert margin.n_coordinates == 1
    found = margin.codes[np.argsort(margin.low[:, 0])].tolist()
    assert found in (order.tolist(), order[::-1].tolist())


def test_as_many_directions_as_the_levels_have(rng):
    """Nine levels on a grid of two directions of five; three that have nothing to do with any of them."""
    grid = np.array([(a, b) for a in (-2, 0, 2) for b in (-2, 0, 2)], dtype=float)
    level = rng.integers(9, size=2000)
    Z = rng.standard_normal((2000, 5))
    Z[:, :2] += grid[level]
    assert positions(Z, level, 9).shape == (9, 2)
    assert positions(Z[:, 2:], level % 3, 3).tolist() == [[0.0], [1.0], [2.0]]
    assert positions(Z[:, :0], level % 3, 3).shape == (3, 1)
    # a label that another one determines lies in one direction
    assert positions(np.eye(9)[level], level, 9).shape == (9, 1)


def test_directions_are_those_of_canonical_correlations(rng):
    from sklearn.cross_decomposition import CCA

    level = rng.integers(4, size=3000)
    Z = rng.standard_normal((3000, 3)) + rng.standard_normal((4, 3))[level]
    explained, theta, B, shares = directions(Z, level, 4, ridge=0.0, pseudo=0.0)
    G = np.eye(4)[level]
    one, other = CCA(n_components=3, max_iter=5000, tol=1e-10).fit_transform(Z, G[:, 1:])
    expected = [np.corrcoef(one[:, i], other[:, i])[0, 1] ** 2 for i in range(3)]
    np.testing.assert_allclose(explained, expected, atol=1e-4)
    np.testing.assert_allclose(shares @ theta**2, 1)
