"""g_j: monotone, undone by its inverse, within the support of the column, finite in the tails."""

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.features.latent.fit import fit_latent
from knockoffs.features.latent.kinds import mixture_quantiles
from knockoffs.features.latent.margins import (
    FREE,
    INTERVAL,
    POINT,
    Affine,
    Constant,
    Curve,
    Rounded,
    Steps,
    fit_affine,
    fit_curve,
    fit_steps,
)

N = 500


def zero_inflated(rng, n=N):
    return np.where(rng.random(n) < 0.4, 0.0, np.exp(rng.standard_normal(n)))


def heaped(rng, n=N):
    x = rng.gamma(2.0, size=n)
    return np.where(rng.random(n) < 0.1, 2.0, x)


COLUMNS = {
    "normal": lambda rng: rng.standard_normal(N),
    "log-normal": lambda rng: np.exp(2 * rng.standard_normal(N)),
    "t": lambda rng: rng.standard_t(2, N),
    "uniform": lambda rng: rng.uniform(5, 6, N),
    "zero-inflated": zero_inflated,
    "heaped": heaped,
    "negative": lambda rng: -np.exp(rng.standard_normal(N)),
    "tiny units": lambda rng: 1e-9 * rng.standard_normal(N) + 1,
    "huge": lambda rng: 1e12 * rng.standard_normal(N),
    "atom at the top": lambda rng: np.minimum(rng.standard_normal(N), 1.0),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_curves(name, rng):
    x = COLUMNS[name](rng)
    curve = fit_curve(x)
    cells = curve.read(x)
    l = np.linspace(-9, 9, 5001)  # noqa: E741
    value = curve.write(l[:, None])
    assert np.isfinite(value).all()
    assert (np.diff(value) >= 0).all()
    back = curve.write(cells.start)
    scale = np.abs(x).max()
    np.testing.assert_allclose(back, x, rtol=1e-9, atol=1e-12 * scale)
    step = cells.status[:, 0] == INTERVAL
    assert (np.isin(x, curve.atoms) == step).all()
    inside = (cells.low < cells.start) & (cells.start < cells.high)
    assert inside[step].all()
    # pooled normal scores: each tenth of the normal has its share of the rows, up to the rows beside its ends
    points = cells.start[~step, 0]
    for cut in (-1.0, 0.0, 1.0):
        if not ((curve.low < cut) & (cut < curve.high)).any():
            share = (cells.start[:, 0] <= cut).mean()
            assert share == pytest.approx(ndtr(cut), abs=0.03)
    assert np.isfinite(points).all()


def test_values_beyond_the_extremes_have_an_inverse(rng):
    x = np.exp(rng.standard_normal(N))
    curve = fit_curve(x)
    new = np.array([1.5 * x.max(), 10 * x.max(), 0.5 * x.min()])
    np.testing.assert_allclose(curve.write(curve.read(new).start), new, rtol=1e-9)
    assert curve.write(np.array([[-30.0]])) > 0  # positive columns stay positive


@pytest.mark.parametrize("name", ["normal", "log-normal", "t", "uniform"])
def test_the_slope_is_the_derivative(name, rng):
    x = COLUMNS[name](rng)
    curve = fit_curve(x)
    where = np.quantile(x, [0.013, 0.21, 0.477, 0.8, 0.9871]) + 1e-9 * np.ptp(x)
    where = np.append(where, [x.max() + 0.1 * np.ptp(x), x.min() - 0.01 * abs(x.min())])
    h = 1e-7 * np.minimum(np.ptp(x), 1 + np.abs(where))
    slope = (curve.read(where + h).start - curve.read(where - h).start)[:, 0] / (2 * h)
    np.testing.assert_allclose(curve.log_slope(where), np.log(slope), atol=1e-3)


def test_the_density_of_a_curve_integrates_to_one(rng):
    curve = fit_curve(np.exp(rng.standard_normal(N)))
    x = curve.write(np.linspace(-8, 8, 200_001)[:, None])
    l = curve.read(x).start[:, 0]  # noqa: E741
    density = np.exp(-0.5 * l**2 + curve.log_slope(x)) / np.sqrt(2 * np.pi)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-3)


def test_steps():
    margin = fit_steps(np.array([3.0, 1, 1, 7, 1, 3, 3, 3, 7, 7]))
    np.testing.assert_array_equal(margin.values, [1, 3, 7])
    np.testing.assert_allclose(ndtr(margin.cuts), [0, 0.3, 0.7, 1])
    cells = margin.read(np.array([1.0, 3.0, 7.0, np.nan]))
    assert cells.status[:, 0].tolist() == [INTERVAL, INTERVAL, INTERVAL, FREE]
    np.testing.assert_array_equal(margin.write(cells.start[:3]), [1, 3, 7])
    assert (np.diff(cells.start[:3, 0]) > 0).all()
    # the score is the mean of L in the step: shares times scores add up to zero
    assert (np.array([0.3, 0.4, 0.3]) @ margin.scores) == pytest.approx(0, abs=1e-12)
    # at a cut the lower value: cuts_m < L <= cuts_{m+1}
    np.testing.assert_array_equal(margin.write(margin.cuts[1:-1, None]), [1, 3])
    # a value never seen belongs to the nearest that was
    np.testing.assert_array_equal(
        margin.read(np.array([-5.0, 4.0, 100.0])).start, margin.read(np.array([1.0, 3, 7])).start
    )


def test_affine_and_constant():
    margin = fit_affine(np.array([1.0, 3.0]))
    assert margin == Affine(2.0, 1.0)
    assert margin.read(np.array([5.0, np.nan])).status[:, 0].tolist() == [POINT, FREE]
    assert Constant(4.0).write(np.empty((2, 0))).tolist() == [4.0, 4.0]


def test_atoms_are_steps(rng):
    x = zero_inflated(rng)
    curve = fit_curve(x)
    assert isinstance(curve, Curve) and curve.atoms.tolist() == [0.0]
    assert curve.low[0] == -np.inf and ndtr(curve.high[0]) == pytest.approx((x == 0).mean())
    drawn = curve.write(rng.standard_normal((20_000, 1)))
    assert (drawn == 0).mean() == pytest.approx((x == 0).mean(), abs=5 * np.sqrt(0.25 / 20_000))
    assert drawn.min() == 0  # nothing between zero and the smallest value seen
    assert drawn[drawn > 0].min() >= x[x > 0].min()


def test_quantiles_of_a_mixture_are_where_it_has_the_probabilities():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p, weights = np.sort(rng.random(7)), rng.dirichlet(np.ones(4))
        means, deviations = 3 * rng.standard_normal(4), np.exp(rng.standard_normal(4))
        at = mixture_quantiles(p, weights, means, deviations)
        reached = weights @ ndtr((at - means[:, None]) / deviations[:, None])
        assert np.abs(reached - p).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fit_with_classes_has_the_shares_of_every_column(seed):
    rng = np.random.default_rng(seed)
    centre = 2.5 * rng.standard_normal((3, 6))
    X = np.round(rng.standard_normal((1200, 6)) + centre[rng.integers(3, size=1200)]).clip(-4, 4)
    model = fit_latent(X, rng=rng, n_classes=3, kinds=["ordinal"] * 6)
    assert model.n_classes == 3
    for j, margin in enumerate(model.margins):
        assert isinstance(margin, Steps)
        means = np.array([law.mean[j] for law in model.mixture.laws])
        deviations = np.sqrt([law.covariance[j, j] for law in model.mixture.laws])
        below = model.mixture.weights @ ndtr((margin.cuts[1:-1] - means[:, None]) / deviations[:, None])
        shares = np.array([(X[:, j] <= value).mean() for value in margin.values[:-1]])
        assert np.abs(below - shares).max() < 1e-9


def test_numbers_with_ties_in_their_own_units():
    rng = np.random.default_rng(0)
    values = np.array([0.0, 0.1, 0.2, 0.4])
    margin = Rounded(0.1, 0.5, values)
    x = rng.choice(values, 200)
    np.testing.assert_array_equal(margin.write(margin.read(x).start), x)
    assert set(margin.write(rng.standard_normal((500, 1)))) == set(values)
    moved = margin.spread(x, rng)
    assert len(np.unique(moved)) == 200
    np.testing.assert_array_equal(values[np.abs(moved[:, None] - values).argmin(axis=1)], x)


def test_rounded_columns_of_classes_stay_in_their_own_units():
    """Normal scores would close the gap between two classes; 150 rows, as iris has, of 25 to 40 values."""
    rng = np.random.default_rng(0)
    K = np.arange(150) % 3 == 0
    X = np.round(rng.normal(np.where(K, 1.5, 5.0)[:, None], np.where(K, 0.2, 0.8)[:, None], (150, 3)), 1)
    model = fit_latent(X, rng=rng)
    assert model.n_classes == 2 and all(isinstance(margin, Rounded) for margin in model.margins)
    pair = model.as_sampler().sample(X, rng)
    assert all(np.isin(pair.X_tilde[:, j], X[:, j]).all() for j in range(3))
