"""The slider: at every level the selection of that level, and no promise but one that holds after looking."""

from itertools import combinations, product

import numpy as np
import pytest

from knockoffs.filter import knockoff_filter
from knockoffs.filter.bounds import fdp_bounds
from knockoffs.filter.e_values import e_bh
from knockoffs.report.levels import CONFIDENCE, holm, most_false, ranked, stops


def first(selection, n):
    chosen = np.zeros(len(selection.feature_names), dtype=bool)
    chosen[ranked(selection)[:n]] = True
    return chosen


@pytest.mark.parametrize("offset", [0, 1])
def test_every_level_selects_what_the_filter_selects_and_bounds_just_that(make, rng, offset):
    for _ in range(20):
        W = np.round(rng.standard_normal(60), 1) + (rng.random(60) < 0.3) * 2  # ties, zeros, signals
        selection = make([f"x{j}" for j in range(60)], W, fdr=0.15, offset=offset, judged=False)
        found = stops(selection)
        assert 0.15 in [stop.level for stop in found]
        bounds = fdp_bounds(W, CONFIDENCE)
        for stop in found:
            chosen = knockoff_filter(W, stop.level, offset=offset)
            assert (first(selection, stop.n_selected) == chosen).all()
            if stop.n_selected:
                false = bounds.false_features(chosen)
                words = (
                    f"at most {false} of {stop.n_selected} feature" if false else f"none of {stop.n_selected} feature"
                )
                assert words in stop.promise


def test_the_rate_is_promised_at_the_level_asked_for_and_nowhere_else(make, selection):
    for stop in stops(selection):
        assert stop.asked == (stop.level == selection.fdr)
        assert ("FDR ≤" in stop.promise) == stop.asked
        if stop.n_selected and not stop.asked:
            assert "not promised" in stop.caution
            assert "confidence" in stop.promise


def test_offset_0_promises_no_false_discovery_rate(make, rng):
    W = np.concatenate([rng.random(10) + 1, [-0.1]])
    selection = make([f"x{j}" for j in range(11)], W, offset=0, judged=False)
    asked = next(stop for stop in stops(selection) if stop.asked)
    assert "FDR ≤" not in asked.promise and "modified" in asked.promise


@pytest.mark.parametrize("level", ["fixed", "post_hoc"])
def test_e_values_promise_the_ratio_after_looking(make, rng, level):
    draws = rng.standard_normal((5, 50)) * 0.2 + (np.arange(50) < 12) * 2
    selection = make([f"x{j}" for j in range(50)], draws=draws, level=level, fdr=0.1, judged=False)
    found = stops(selection)
    assert selection.selected.any()
    for stop in found:
        assert (first(selection, stop.n_selected) == e_bh(selection.evidence.e_values, stop.level)).all()
        assert stop.asked == (level == "fixed" and stop.level == 0.1)
        if stop.n_selected and not stop.asked:
            assert "E[FDP / level] ≤ 1" in stop.promise and "not promised" in stop.caution
        assert "confidence" not in stop.promise  # the bounds are of one draw, not of a mean


def test_a_level_stated_after_looking_is_one_of_the_stops(make, rng):
    draws = np.abs(rng.standard_normal((3, 12))) + 1
    selection = make([f"x{j}" for j in range(12)], draws=draws, level="post_hoc", fdr=0.01, judged=False)
    at = [stop for stop in stops(selection) if stop.level == selection.evidence.stated]
    assert at[0].n_selected == selection.selected.sum() == 12


def test_p_values_are_bounded_by_holm(make, rng):
    p = np.concatenate([[1e-6, 1e-5, 1e-3, 0.004], rng.random(20)])
    selection = make([f"x{j}" for j in range(24)], p_values=p, judged=False)
    sure = holm(p, 1 - CONFIDENCE)
    assert sure.sum() == 3
    counts = np.arange(25)
    for n, false in zip(counts, most_false(selection, counts), strict=True):
        assert false == (first(selection, n) & ~sure).sum()
    assert "with 95 % confidence at most" in next(s for s in stops(selection) if s.asked).promise.lower()


def test_holm_is_closed_testing_with_bonferroni():
    # by enumeration: a feature is rejected where every set that holds it has a p-value <= level / size
    sets = [s for size in range(1, 5) for s in combinations(range(4), size)]
    for values in product([0.001, 0.012, 0.015, 0.02, 0.03, 0.045, 0.2], repeat=4):
        p = np.array(values)
        by_closure = [all(min(p[list(s)]) <= 0.05 / len(s) for s in sets if j in s) for j in range(4)]
        assert holm(p, 0.05).tolist() == by_closure


def test_nothing_selected_claims_nothing(make):
    selection = make([f"x{j}" for j in range(8)], -np.arange(1.0, 9.0), judged=False)
    assert all(stop.n_selected == 0 and not stop.caution for stop in stops(selection))
