"""The one criterion: fixed folds, a floor under densities, and the simplest candidate within one standard error."""

import numpy as np
import pytest

from knockoffs.features.held_out import N_FOLDS, bounded, fold_of, is_behind, simplest


def test_every_row_is_held_out_once_and_folds_differ_by_one_row_at_most():
    for n in (1, 7, 100):
        counts = np.bincount(fold_of(n), minlength=N_FOLDS)
        assert counts.sum() == n and np.ptp(counts) <= 1


@pytest.mark.parametrize(("spread", "chosen"), [(0.0, 2), (1.9, 2), (2.1, 1)], ids=["sure", "just", "just not"])
def test_the_simplest_within_one_standard_error_is_chosen(spread, chosen):
    """100 rows prefer the third to the second by 0.2 on average: the standard error is 0.1 times the spread."""
    signs = np.tile([-1.0, 1.0], 50)
    densities = [np.full(100, -1.0), np.zeros(100), 0.2 + spread * signs, np.full(100, 0.1)]
    assert simplest(densities) == chosen


def test_differences_count_and_not_levels():
    """Rows that differ by hundreds among themselves, and by 0.1 between candidates."""
    rows = 100 * np.random.default_rng(0).standard_normal(50)
    assert is_behind(rows, rows + 0.1)
    assert not is_behind(rows + 0.1, rows)


def test_a_bounded_density_is_one_up_to_its_share_and_has_a_floor():
    grid = np.linspace(-2000, 2000, 4_000_001)
    density = np.exp(bounded(-0.5 * (grid**2 + np.log(2 * np.pi)), grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-4)
    assert bounded(np.array([-1e6]), np.zeros((1, 3)))[0] == pytest.approx(np.log(0.01) - 3 * np.log(np.pi))
