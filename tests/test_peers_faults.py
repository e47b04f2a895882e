"""Faults found in other packages that a user meets at the surface.

Of the others, ties of mixed sign and W = 0 are in tests/exact/test_filter.py, a transposed factor in
tests/exact/test_gaussian_map.py; knockoffs kept from an earlier fit, global seeds, classes read as numbers are in
tests/test_selector.py; ``fdr=20`` is in tests/hostile/test_arguments.py.
"""

import numpy as np
import pytest

from knockoffs.selector import KnockoffSelector

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 15))
Y = 2 * X[:, :8].sum(axis=1) + RNG.standard_normal(300)
EVERY_SECOND = np.arange(15) % 2 == 1


def selected(X, y):
    options = {"method": "knockoffs", "feature_model": "gaussian", "random_state": 0, "verdict": False}
    return KnockoffSelector(0.2, **options).fit(X, y).get_support()


@pytest.fixture(scope="module")
def expected():
    found = selected(X, Y)
    assert found[:8].all()
    return found


SAME = {f"y in units of {unit:g}": (X, unit * Y) for unit in (1e-12, 1e-6, 1e6, 1e12)}
SAME |= {f"some columns in units of {unit:g}": (X * np.where(EVERY_SECOND, unit, 1.0), Y) for unit in (1e-6, 1e6)}
SAME |= {"y with the other sign": (X, -Y), "y from 1000 down": (X, 1e3 - Y)}


@pytest.mark.parametrize("case", SAME)
def test_units_signs_and_offsets_do_not_change_the_selection(expected, case):
    np.testing.assert_array_equal(selected(*SAME[case]), expected)


def test_the_order_of_the_columns_does_not_decide():
    """Non-nulls in front and at the back are found alike: nothing rests on where a column stands."""
    assert selected(X[:, ::-1], Y)[-8:].all()
