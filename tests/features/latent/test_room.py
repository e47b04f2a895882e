"""A number beside a label keeps its room: its knockoff is no nearer than the label's true law asks for."""

import numpy as np
import pytest
from scipy.special import ndtri

from knockoffs.features.gaussian import gaussian_features
from knockoffs.features.latent.cells import Cells
from knockoffs.features.latent.chain import lay_out
from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.levels import place_levels

N = 3000
ERROR = 4 / np.sqrt(N)  # of the correlation of a column and its knockoff: four standard errors at most


def beside_a_label(m, explained, seed=0):
    """A label with m levels and a number, Gaussian around the mean of each level, which explains a share of it.

    The means are normal quantiles in a shuffled order, the levels equally frequent.
    """
    rng = np.random.default_rng(seed)
    means = rng.permutation(ndtri((np.arange(m) + 0.5) / m))
    means /= means.std()
    level = rng.permutation(np.arange(N) % m)
    x = np.sqrt(explained) * means[level] + np.sqrt(1 - explained) * rng.standard_normal(N)
    return np.column_stack([level, x])


def true_correlation(explained):
    """Correlation of x and its knockoff where the label has its true values: by D of the Gaussian with their moments."""
    r = np.sqrt(explained)
    return 1 - gaussian_features([0, 0], [[1, r], [r, 1]]).law.D[1, 1]


def correlation(X):
    model = fit_latent(X, kinds=["nominal", "continuous"])
    pair = model.as_sampler().sample(X, np.random.default_rng(1))
    return np.corrcoef(pair.X[:, 1], pair.X_tilde[:, 1])[0, 1]


@pytest.mark.parametrize("explained", [0.0, 0.2, 0.4, 0.6])
@pytest.mark.parametrize("m", [4, 8, 15, 30])
def test_a_number_beside_a_label_keeps_its_room(m, explained):
    assert correlation(beside_a_label(m, explained)) < true_correlation(explained) + 0.05 + ERROR


@pytest.mark.parametrize("m", [2, 3])
def test_two_and_three_labels_ask_for_more_but_never_for_all(m):
    """The fewer the levels, the less a label shows of the normal coordinate that stands for it."""
    for explained in (0.1, 0.2, 0.4):
        assert correlation(beside_a_label(m, explained)) < true_correlation(explained) + 0.2 + ERROR


def test_what_a_label_says_of_a_number_is_kept():
    """The level must not pay for the room: the label explains as much of the knockoff as of the number."""
    X = beside_a_label(12, 0.4)
    pair = fit_latent(X, kinds=["nominal", "continuous"]).as_sampler().sample(X, np.random.default_rng(1))
    level = X[:, 0].astype(int)
    for x in (pair.X_tilde[:, 1],):
        means = np.bincount(level, x) / np.bincount(level)
        assert means[level].var() / x.var() == pytest.approx(0.4, abs=0.06)


def test_a_coordinate_for_each_level_would_leave_no_room(monkeypatch):
    """The fault that this guards against: a level as the largest of many coordinates, hardly any of which is seen."""
    from knockoffs.features.latent import fit as fitting

    X = beside_a_label(20, 0.2)

    def corners(margins, X):
        """One coordinate for each level but the first, positive where it is the level."""
        return tuple(
            _Corners(m) if m.n_coordinates == 1 and hasattr(m, "tree") else m for m in place_levels(margins, X)
        )

    monkeypatch.setattr(fitting, "place_levels", corners)
    assert correlation(X) > true_correlation(0.2) + 0.2


class _Corners:
    """Levels as the largest of as many utilities, each known by an interval."""

    def __init__(self, margin):
        self.codes, self.shares = margin.codes, margin.shares
        self.cut = -ndtri(margin.shares)

    @property
    def n_coordinates(self):
        return len(self.codes)

    def read(self, x):
        own = x[:, None] == self.codes
        low = np.where(own, self.cut, -np.inf)
        high = np.where(own, np.inf, self.cut)
        density = np.exp(-(self.cut**2) / 2) / np.sqrt(2 * np.pi)
        start = np.where(own, density / self.shares, -density / (1 - self.shares))
        return Cells(np.full(own.shape, 2, np.int8), low, high, start)

    def write(self, l):  # noqa: E741
        return self.codes[(l - self.cut).argmax(axis=1)]

    def log_slope(self, x):
        return np.zeros(len(x))


def test_a_coordinate_of_a_label_is_laid_out_with_its_column():
    X = beside_a_label(5, 0.3)
    model = fit_latent(X, kinds=["nominal", "continuous"])
    np.testing.assert_array_equal(lay_out(model.margins).column_of, [0, 1])
