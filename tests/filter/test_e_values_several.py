"""Exact, by enumeration: e-values of m knockoffs, where the sign of a null feature is positive once in m + 1 times."""

from itertools import product

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.filter import false_discovery_proportion, filter_statistics, several_statistics
from knockoffs.filter.e_values import STOPS, combine_draws, knockoff_e_values

EXACT = 1 + 1e-9
SIZES = {"distinct": [5, 4, 3, 2, 1], "tied": [3, 3, 2, 2, 1], "a_zero": [4, 3, 2, 1, 0]}


def worst_mean(quantity, sizes, m, chance=None):
    """Largest expectation over the roles of the features: null, positive with ``chance``, or non-null."""
    chance = 1 / (m + 1) if chance is None else chance
    worst = 0.0
    for roles in product((0, 1, -1), repeat=len(sizes)):
        nulls, mean = np.equal(roles, 0), 0.0
        for signs in product(*[(1, -1) if role == 0 else (role,) for role in roles]):
            positive = int((np.array(signs)[nulls] > 0).sum())
            weight = chance**positive * (1 - chance) ** (int(nulls.sum()) - positive)
            mean += weight * quantity(np.multiply(sizes, signs).astype(float), nulls)
        worst = max(worst, mean)
    return worst


def null_evidence(**options):
    return lambda W, nulls: knockoff_e_values(W, **options)[nulls].sum() / len(W)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("stop", STOPS)
def test_null_e_values_sum_to_at_most_d_in_expectation(sizes, m, stop):
    for level in (0.1, 0.3):
        for offset in (0, 1):
            e = null_evidence(level=level, offset=offset, stop=stop, n_knockoffs=m)
            assert worst_mean(e, sizes, m) <= EXACT


def test_the_bound_is_reached():
    """Five nulls, the threshold at the smallest |W|: the expectation is 1 - (m + 1)^-5, as the closed form says."""
    m = 2

    def at_the_bottom(W, nulls):
        return m * (W[nulls] > 0).sum() / (1 + (W < 0).sum())

    assert worst_mean(at_the_bottom, SIZES["distinct"], m) == pytest.approx(1 - 3.0**-5)


@pytest.mark.parametrize("fault", ["coins", "twice", "no negatives"])
def test_mistakes_are_seen(fault):
    """Fair coins with the factor m (several W handed in that are of one knockoff); m + 1; no count of negatives."""
    m, sizes = 2, SIZES["distinct"]
    e = null_evidence(level=0.3, stop="no_negative", n_knockoffs=m)
    if fault == "coins":
        assert worst_mean(e, sizes, m, chance=0.5) > 1.3
    elif fault == "twice":
        assert worst_mean(lambda W, nulls: (m + 1) / m * e(W, nulls), sizes, m) > 1.05
    else:

        def without(W, nulls):
            return m * (knockoff_e_values(W, 0.3, n_knockoffs=m)[nulls] > 0).sum()

        assert worst_mean(without, sizes, m) > 1.05


@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("fdr", [0.2, 0.4])
def test_fdr_and_a_level_chosen_after_looking_exactly(m, fdr):
    """E[FDP] <= fdr, and E[FDP / stated level] <= 1, of one draw."""

    def fdp(W, nulls):
        return false_discovery_proportion(combine_draws([W], fdr, inner=0.3, n_knockoffs=m).selected, ~nulls)

    def ratio(W, nulls):
        found = combine_draws([W], fdr, how="post_hoc", n_knockoffs=m)
        share = false_discovery_proportion(found.selected, ~nulls)
        return share / found.stated if found.selected.any() else 0.0

    for sizes in ([4, 3, 2, 1], [2, 2, 1, 1]):
        assert worst_mean(fdp, sizes, m) <= fdr * EXACT
        assert worst_mean(ratio, sizes, m) <= EXACT


@pytest.mark.parametrize("m", [1, 3, 5])
def test_one_draw_at_its_own_level_is_the_filter(m, rng):
    """With inner = fdr and T at the level, e-BH selects what the filter of m knockoffs selects, and no other."""
    for _ in range(50):
        W = several_statistics(rng.standard_normal((m + 1, 12)) + np.where(np.arange(12) < 6, 1.5, 0.0))
        for fdr in (0.1, 0.3):
            found = combine_draws([W], fdr, inner=fdr, stop="level", n_knockoffs=m)
            np.testing.assert_array_equal(found.selected, filter_statistics(W, fdr, 1, m).selected)
            np.testing.assert_array_equal(found.frequencies, found.selected)


@pytest.mark.parametrize("number", [0, 1.5, True, "3"])
def test_a_number_of_knockoffs_is_a_whole_number(number):
    refuses("n_knockoffs=.*whole number of at least 1", knockoff_e_values, [1.0, -1.0], 0.2, n_knockoffs=number)
    refuses("n_knockoffs", combine_draws, [[1.0, -1.0]], 0.2, n_knockoffs=number)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("m", [1, 3])
def test_where_a_draw_stops_is_the_definition(stop, m):
    """The smallest t among the |W| > 0 at which it says so, in words; ties, and counts that meet a bound exactly."""
    rng = np.random.default_rng(4)
    for level, offset, n in product((0.1, 0.25, 0.5), (0, 1), (4, 10, 20)):
        for _ in range(40):
            W = rng.integers(-4, 9, size=n).astype(float)
            expected = np.zeros(n)
            for t in sorted({abs(w) for w in W} - {0.0}):
                above, below = sum(w >= t for w in W), sum(w <= -t for w in W)
                reached = (offset + below) / m <= level * above * EXACT
                unreachable = stop == "unreachable" and above < offset / (m * level) / EXACT
                if reached or unreachable or (stop == "no_negative" and below == 0):
                    expected = np.where(W >= t, m * n / (1 + below), 0.0)
                    break
            found = knockoff_e_values(W, level, offset=offset, stop=stop, n_knockoffs=m)
            np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("m", [1, 3])
def test_several_draws_stop_at_half_the_level_and_one_at_the_level(m):
    rng = np.random.default_rng(5)
    W = rng.standard_normal((20, 40)) + 0.3 / m
    for draws, inner in ((W, 0.2), (W[:1], 0.4), (W[1:2], 0.4)):
        told, default = (combine_draws(draws, 0.4, n_knockoffs=m, **options) for options in ({"inner": inner}, {}))
        np.testing.assert_array_equal(default.e_values, told.e_values)
    others = (combine_draws(draws, 0.4, n_knockoffs=m, inner=inner) for draws, inner in ((W, 0.4), (W, 0.1)))
    assert all((combine_draws(W, 0.4, n_knockoffs=m).e_values != other.e_values).any() for other in others)
