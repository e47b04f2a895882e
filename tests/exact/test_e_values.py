"""Exact, by enumeration: given |W| and the signs of the non-null features, the signs of the nulls are fair coins."""

from itertools import product

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.filter import false_discovery_proportion, knockoff_filter, path_counts
from knockoffs.filter.e_values import STOPS, choose_level, combine_draws, e_bh, e_levels, knockoff_e_values

EXACT = 1 + 1e-9  # the expectations are sums of a few thousand floats
SIZES = {"distinct": [6, 5, 4, 3, 2, 1], "tied": [3, 3, 3, 2, 2, 1], "all_equal": [1] * 6, "a_zero": [5, 4, 3, 2, 1, 0]}


def tosses(sizes, roles):
    """Every W with the non-nulls' signs as given (+1, -1) and every sign for the nulls (0), shape (2^nulls, d)."""
    choices = [(1, -1) if role == 0 else (role,) for role in roles]
    return np.array([np.multiply(sizes, signs) for signs in product(*choices)], dtype=float)


def worst_mean(quantity, sizes, roles=None):
    """Largest expectation of quantity(W, nulls) over the roles of the features: null, or non-null of either sign."""
    every = product((0, 1, -1), repeat=len(sizes)) if roles is None else roles
    return max(np.mean([quantity(W, np.equal(role, 0)) for W in tosses(sizes, role)]) for role in every)


def null_evidence(e_values):
    """Sum of the null e-values over d: at most 1 in expectation for compound e-values."""
    return lambda W, nulls: e_values(W)[nulls].sum() / len(W)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("level", [0.2, 0.5])
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("offset", [0, 1])
def test_null_e_values_sum_to_at_most_d_in_expectation(sizes, level, stop, offset):
    assert worst_mean(null_evidence(lambda W: knockoff_e_values(W, level, offset=offset, stop=stop)), sizes) <= EXACT


@pytest.mark.parametrize("level", [0.1, 0.25])
def test_null_e_values_of_twelve_features(level, rng):
    roles = [(0,) * 12, (1,) * 4 + (0,) * 8, *rng.choice([0, 0, 0, 1, -1], size=(4, 12))]
    e_values = null_evidence(lambda W: knockoff_e_values(W, level, stop="no_negative"))
    assert worst_mean(e_values, np.arange(12, 0, -1), roles) <= EXACT


def without_negatives(W):
    e = knockoff_e_values(W, 0.5)
    return np.where(e > 0, len(W), 0.0)


def at_the_best_threshold(W):
    t, above, below = path_counts(W)
    if not (above > 0).any():
        return np.zeros(len(W))
    best = np.argmax(above / (1 + below))
    return np.where(t[best] <= W, len(W) / (1 + below[best]), 0.0)


@pytest.mark.parametrize("fault", [without_negatives, at_the_best_threshold])
def test_faulty_e_values_are_seen(fault):
    assert worst_mean(null_evidence(fault), SIZES["distinct"]) > 1.05


def two_draws(combine):
    """Worst expectation over two independent draws of four features, and over one draw handed in twice."""
    sizes = np.array([4.0, 3.0, 2.0, 1.0])

    def worst(pairs):
        means = []
        for roles in product((0, 1, -1), repeat=4):
            W, nulls = tosses(sizes, roles), np.equal(roles, 0)
            means.append(np.mean([combine(np.array([W[a], W[b]]))[nulls].sum() / 4 for a, b in pairs(len(W))]))
        return max(means)

    return worst(lambda n: product(range(n), repeat=2)), worst(lambda n: [(i, i) for i in range(n)])


def draw_e_values(W):
    return np.array([knockoff_e_values(w, 0.5, stop="no_negative") for w in W])


def test_the_mean_over_draws_is_compound_however_dependent_they_are():
    assert max(two_draws(lambda W: draw_e_values(W).mean(axis=0))) <= EXACT


@pytest.mark.parametrize("fault", [np.max, np.sum, np.prod], ids=["max", "counted_twice", "product"])
def test_other_ways_to_combine_draws_are_not(fault):
    assert max(two_draws(lambda W: fault(draw_e_values(W), axis=0))) > 1.05


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("fdr", [0.2, 0.34, 0.5])
def test_fdr_of_a_fixed_level_exactly(sizes, fdr):
    def fdp(W, nulls):
        return false_discovery_proportion(combine_draws([W], fdr, how="fixed", inner=0.5).selected, ~nulls)

    assert worst_mean(fdp, sizes) <= fdr * EXACT


def ratio(selected, stated, nulls):
    return false_discovery_proportion(selected, ~nulls) / stated if selected.any() else 0.0


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize(("fdr", "inner"), [(0.2, 0.2), (0.2, 0.5), (0.5, 0.25)])
def test_fdp_over_the_stated_level_exactly(sizes, fdr, inner):
    def of_one(W, nulls):
        combined = combine_draws([W], fdr, how="post_hoc", inner=inner, cap=1.0)
        return ratio(combined.selected, combined.stated, nulls)

    assert worst_mean(of_one, sizes) <= EXACT


def test_any_choice_of_the_level_is_allowed_after_looking():
    # the adversary knows the truth, and takes the level with the largest FDP / level
    def adversary(W, nulls):
        levels = e_levels(knockoff_e_values(W, 0.2, stop="no_negative"))
        return max((ratio(levels <= a, a, nulls) for a in levels if np.isfinite(a)), default=0.0)

    assert worst_mean(adversary, SIZES["distinct"]) <= EXACT


def test_the_smallest_estimate_is_no_post_hoc_level():
    def fault(W, nulls):
        e = at_the_best_threshold(W)
        return ratio(e > 0, (len(W) / ((e > 0).sum() * e.max())) if e.any() else 1.0, nulls)

    assert worst_mean(fault, SIZES["distinct"]) > 1.05


def test_post_hoc_selects_what_the_filter_does_and_states_no_larger_level(rng):
    for _ in range(3_000):
        d = int(rng.integers(1, 30))
        W = rng.integers(-5, 9, size=d) + rng.normal(size=d) * rng.integers(0, 2)
        fdr = float(rng.choice([0.1, 0.2, 0.25, 0.3, 0.5]))
        alone = knockoff_filter(W, fdr)
        assert (combine_draws([W], fdr).selected == alone).all()
        combined = combine_draws([W], fdr, how="post_hoc")
        if alone.any():
            assert (combined.selected == alone).all() and combined.stated <= fdr * EXACT
        elif combined.selected.any():
            assert fdr < combined.stated <= 0.5 * EXACT
        # empty only if the largest |W| is not positive, or the cap is passed
        top = np.abs(W).max()
        if top > 0 and not (-top == W).any():
            assert combine_draws([W], fdr, how="post_hoc", cap=1.0).selected.any()


def e_bh_by_definition(e, fdr):
    ordered = sorted(e, reverse=True)
    sizes = [k for k in range(1, len(e) + 1) if ordered[k - 1] >= len(e) / (k * fdr)]
    return np.array([bool(sizes) and value >= ordered[max(sizes) - 1] for value in e])


def test_e_bh_is_its_definition(rng):
    for _ in range(5_000):
        e = rng.integers(0, 40, size=rng.integers(1, 12)) * rng.choice([1.0, 1.37])
        fdr = float(rng.choice([0.06, 0.11, 0.23, 0.49]))
        assert (e_bh(e, fdr) == e_bh_by_definition(e, fdr)).all()


def test_level_is_the_smallest_at_which_e_bh_selects(rng):
    for _ in range(500):
        e = rng.exponential(20, size=8) * (rng.random(8) < 0.7)
        for j, level in enumerate(e_levels(e)):
            if level < 0.999:
                assert e_bh(e, level)[j] and not e_bh(e, level * 0.999)[j]
            if e[j] == 0:
                assert level == np.inf


def test_frequencies_and_promises():
    W = np.array([[4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, -1.0], [-4.0, 3.0, 2.0, 1.0]])
    assert np.allclose(combine_draws(W, 0.4).frequencies, [2 / 3, 2 / 3, 2 / 3, 1 / 3])
    fixed, after = combine_draws(W, 0.1), combine_draws(W, 0.1, how="post_hoc")
    assert fixed.promise.startswith("FDR <= 0.1") and not fixed.selected.any() and fixed.stated == 0.1
    # e-values 4 4 4 4, 4 4 4 0, 0 0 0 0: means 8/3 8/3 8/3 4/3; the best three at 4 / (3 * 8/3) = 0.5
    assert np.allclose(after.e_values, [8 / 3, 8 / 3, 8 / 3, 4 / 3]) and np.isclose(after.stated, 0.5)
    assert after.selected.tolist() == [True, True, True, False]
    assert "it is 0.5 here" in after.promise and "This is not FDR <= 0.5" in after.promise
    assert "nothing was selected" in combine_draws([[-1.0, 0.0]], 0.1, how="post_hoc").promise


def test_cap():
    selected, stated = choose_level(np.array([0.3, 0.3, np.inf]), 0.1, cap=0.2)
    assert not selected.any() and np.isnan(stated)
    assert choose_level(np.array([0.05, 0.08, 0.3]), 0.1, cap=0.2)[1] == 0.08


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: combine_draws([1.0, 2.0], 0.1), r"W has shape \(2,\)"),
        (lambda: combine_draws([[1.0]], 0.1, how="posthoc"), "Did you mean 'post_hoc'"),
        (lambda: combine_draws([[1.0]], 0.1, how="post_hoc", cap=0.01), "cap=0.01.*between fdr=0.1 and 1"),
        (lambda: combine_draws([[np.nan]], 0.1), "W is NaN"),
        (lambda: e_bh([1.0, -2.0], 0.1), "e-value -2.0 of feature 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InputError, match=message):
        call()
