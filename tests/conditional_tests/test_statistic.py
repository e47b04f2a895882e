"""The statistic of a group: functions of its columns against plain numpy, and what each part of it sees."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm

from knockoffs.conditional_tests.column_functions import column_functions, function_values
from knockoffs.conditional_tests.statistic import residual_statistic


def evaluate(f, x):
    return function_values(f, x, np.zeros((f.first[-1], x.shape[1])))


@pytest.mark.parametrize("draw", ["normal", "lognormal", "cauchy", "poisson", "coin", "constant"])
def test_ranks_are_linear_between_quantiles(draw):
    """To rounding, for values within the pilot draws, beyond them, at quantiles, and heavy tails."""
    rng = np.random.default_rng(0)
    make = {
        "normal": rng.standard_normal,
        "lognormal": lambda shape: np.exp(3 * rng.standard_normal(shape)),
        "cauchy": rng.standard_cauchy,
        "poisson": lambda shape: rng.poisson(30, shape).astype(float),
        "coin": lambda shape: rng.integers(2, size=shape).astype(float),
        "constant": lambda shape: np.full(shape, 3.0),
    }[draw]
    f = column_functions(make((40, 30, 1)))
    quantiles = f.quantiles[0, : f.n_quantiles[0]]
    x = np.concatenate([make((500,)), quantiles, [quantiles[0] - 1, quantiles[-1] + 1]])[None, :, None]
    values = evaluate(f, x)
    within = x[0, :, 0].clip(*f.fences[0])
    np.testing.assert_allclose(values[0, 0], within - quantiles[len(quantiles) // 2])
    assert (within != x[0, :, 0]).mean() < {"lognormal": 0.2, "cauchy": 0.1}.get(draw, 0.005)
    if len(quantiles) > 2:
        rank = np.interp(x[0, :, 0], quantiles, np.linspace(-1, 1, len(quantiles)))
        np.testing.assert_allclose(values[1, 0], rank, atol=1e-9)
        np.testing.assert_allclose(values[2, 0], np.abs(rank), atol=1e-9)
    else:
        assert len(values) == 1
    assert f.n_levels[0] == 0 and (len(quantiles) > 2) == (draw not in ("coin", "constant"))


def test_columns_side_by_side_have_the_functions_of_each_alone():
    rng = np.random.default_rng(0)
    pilot = np.stack([rng.normal(size=(20, 30)), rng.integers(4, size=(20, 30)), rng.integers(20, size=(20, 30))], 2)
    labels = [False, False, True]
    together = column_functions(pilot, labels)
    x = pilot[:5]
    values = evaluate(together, x)
    for j in range(3):
        alone = evaluate(column_functions(pilot[..., [j]], labels[j : j + 1]), x[..., [j]])
        np.testing.assert_array_equal(values[together.first[j] : together.first[j + 1]], alone)
    assert np.diff(together.first).tolist() == [3, 3 + 4, 12]  # numbers; few levels too; the 12 most frequent labels
    assert together.plain.tolist() == [True, False, False] + [True] + [False] * 6 + [True] * 12
    for place, level in enumerate(together.levels[1, :4]):
        np.testing.assert_array_equal(values[together.first[1] + 3 + place], x[..., 1] == level)
    unseen = evaluate(together, np.full((1, 1, 3), 99.0))
    assert (unseen[together.first[2] :] == 0).all()


def statistic_of(weights, rng, c=1, n_residuals=1):
    return residual_statistic(weights, rng.standard_normal((400, len(weights), c)), n_residuals=n_residuals)


def test_one_column_counts_by_its_p_value_over_its_share_of_the_level(rng):
    """A normal column whose covariance with the residuals is z standard deviations: -log of a normal p-value."""
    r = rng.standard_normal(300)
    r -= r.mean()
    statistic = statistic_of(r[:, None], rng)
    for z in (4.0, 6.0):
        x = rng.standard_normal(300)
        x += r * (z / np.sqrt(r @ r) - x @ r / (r @ r))
        assert statistic(x[None, :, None])[0] == pytest.approx(-np.log(2 * norm.sf(z) / 0.85), rel=0.06)


def test_extreme_cells_do_not_hide_a_group(rng):
    """Ten columns of which one cell in fifty is a thousand times as large: the covariances of the others count."""
    r = rng.standard_normal(400)
    r -= r.mean()
    extreme = np.where(rng.random((400, 10)) < 0.02, 1e3, 1.0)
    statistic = residual_statistic(r[:, None], rng.standard_normal((400, 400, 10)) * extreme)
    x = rng.standard_normal((400, 10))
    x += np.outer(r, 2.0 / np.sqrt(400) - x.T @ r / (r @ r))
    assert statistic((x * extreme)[None])[0] > 0.4 * -np.log(chi2.sf(40, 10))  # the extremes are noise


def test_a_group_counts_by_chi_squared_where_effects_are_spread(rng):
    """Ten columns, each a little related to the residuals: as one, -log of a chi-squared p-value."""
    r = rng.standard_normal(400)
    r -= r.mean()
    statistic = statistic_of(r[:, None], rng, c=10)
    x = rng.standard_normal((400, 10))
    x += np.outer(r, 2.0 / np.sqrt(400) - x.T @ r / (r @ r))  # every z is 2
    x /= np.sqrt((x**2).mean(axis=0))
    square = ((x.T @ r) ** 2 / (r @ r)).sum()
    assert square == pytest.approx(40, rel=0.1)
    assert statistic(x[None])[0] == pytest.approx(-np.log(chi2.sf(square, 10) / 0.8), rel=0.1)


@pytest.mark.parametrize("shape", ["abs", "product"])
def test_shapes_and_products_are_seen_where_plain_covariances_are_not(shape, rng):
    r, partner = rng.standard_normal(500), rng.standard_normal(500)
    weights = np.column_stack([r, r * partner])
    statistic = statistic_of(weights, rng)
    x = rng.standard_normal(500)
    null = statistic(rng.standard_normal((200, 500, 1)))
    size = np.abs(x)[np.argsort(np.argsort(r))] if shape == "abs" else x  # sizes in the order of the residuals
    x = np.sort(np.abs(x))[np.argsort(np.argsort(r))] * np.sign(x) if shape == "abs" else size + 0.5 * r * partner
    assert abs(np.corrcoef(x, r)[0, 1]) < 0.15
    assert statistic(x[None, :, None])[0] > 3 * null.max()


def test_a_column_counts_the_same_if_p_x_takes_it_for_more_variable_than_it_is(rng):
    """Pilot draws of three times the variance change the statistic by less than their noise does."""
    r = rng.standard_normal(400)
    x = rng.standard_normal((50, 400, 2)) + 0.2 * r[:, None]
    right, wrong = (residual_statistic(r[:, None], scale * rng.standard_normal((400, 400, 2))) for scale in (1, 3**0.5))
    assert np.corrcoef(right(x), wrong(x))[0, 1] > 0.99
    assert np.abs(right(x) / wrong(x) - 1).mean() < 0.1  # z would be smaller by 1 / sqrt(3), and -log p by half


def test_a_column_that_never_varies_has_no_say(rng):
    r = rng.standard_normal(100)
    pilot = np.dstack([np.full((50, 100), 7.0), rng.standard_normal((50, 100))])
    statistic = residual_statistic(r[:, None], pilot)
    x = np.dstack([np.full((3, 100), 7.0), rng.standard_normal((3, 100))])
    alone = residual_statistic(r[:, None], pilot[..., 1:])
    assert np.isfinite(statistic(x)).all() and (statistic(x) < alone(x[..., 1:]) + 1).all()


def test_a_sum_that_few_rows_carry_has_the_tails_of_a_t_with_its_kurtosis():
    """0/1 cells with exact moments, and weights on 5 of 60 rows; without the t, 28 of 4,000 draws are as striking.

    nu is off by 5 % at one standard error of 40,000 pilot draws. A statistic above log(1000) + 2.5 has a probability of
    about 0.001 e^-2.5 under the null; 4,000 draws give 0.3 of them, and 6 or more with a probability below 1e-5.
    """
    rng = np.random.default_rng(0)
    p = np.full(60, 0.03)
    weights = np.zeros((60, 1))
    weights[:5, 0] = [1.0, -0.8, 0.6, 0.9, -0.7]
    pilot = (rng.random((40_000, 60, 1)) < p[:, None]).astype(float)
    statistic = residual_statistic(weights, pilot)
    v = p * (1 - p)
    fourth = v * (1 - 3 * v)
    kurtosis = ((fourth - 3 * v**2) @ weights[:, 0] ** 4) / (v @ weights[:, 0] ** 2) ** 2
    assert statistic.nu[0, 0] == pytest.approx(4 + 6 / kurtosis, rel=0.25)
    draws = (rng.random((4_000, 60, 1)) < p[:, None]).astype(float)
    striking = np.log(1000) + 2.5
    assert (statistic(draws) > striking).sum() <= 5
    normal = replace(statistic, nu=np.full_like(statistic.nu, 1e9))
    assert (normal(draws) > striking).sum() > 15  # the planted fault


def test_indicators_of_all_labels_count_by_chi_squared_of_one_degree_less(rng):
    """They add up to one, so three of four are free. The 99 % quantile of draws is near that of chi-squared."""
    p = [0.05, 0.15, 0.3, 0.5]
    r = rng.exponential(size=(150, 1))
    pilot, draws = (rng.choice(4, (m, 150, 1), p=p).astype(float) for m in (100, 4000))
    statistic = residual_statistic(r - r.mean(), pilot, nominal=[True])
    assert statistic.freedom == pytest.approx(3, abs=0.02)
    # -log of a share of .01, the largest of three tests; 18.7 where the fourth direction has a say
    assert np.quantile(statistic(draws), 0.99) < -np.log(0.01 / 3)
