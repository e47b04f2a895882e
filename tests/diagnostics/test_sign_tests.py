"""The bound on Rademacher sums, against every pattern of signs."""

from itertools import product

import numpy as np
import pytest
from scipy.special import ndtr

from knockoffs.diagnostics import sign_tests as signs
from knockoffs.diagnostics.sign_tests import critical_value, either, sign_p_value, sign_sums, studentise, worst_columns

WEIGHTS = {
    "one": [1.0],
    "two equal": [1, 1],
    "equal": [1] * 11,
    "one large": [5] + [1] * 9,
    "halving": [2.0**-i for i in range(12)],
    "slow": [1 / (i + 1) for i in range(12)],
    "some zero": [0, 0, 3, 2, 1, 1, 0],
}


def largest_excess(weights, p_value):
    """Largest P(p <= alpha) - alpha over all alpha, exactly: above 0 the p-value is not valid."""
    patterns = np.array(list(product([-1, 1], repeat=len(weights))))
    t = np.array([sign_sums((pattern * weights)[:, None])[0] for pattern in patterns])
    p = p_value(t)
    return max((p <= alpha).mean() - alpha for alpha in p)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("one_sided", [False, True])
def test_the_p_value_is_valid_under_every_pattern_of_signs(name, one_sided):
    excess = largest_excess(np.array(WEIGHTS[name], float), lambda t: sign_p_value(t, one_sided=one_sided))
    assert excess <= 1e-12


def test_the_bound_is_attained():
    """P(t >= sqrt 2) = 1/4 for two equal weights, which is what the bound says: a smaller constant would be wrong."""
    assert sign_p_value(np.sqrt(2), one_sided=True) == pytest.approx(0.25)
    assert largest_excess(np.ones(2), lambda t: 0.99 * sign_p_value(t, one_sided=True)) > 0


def test_the_normal_tail_alone_is_not_valid():
    assert largest_excess(np.ones(11), lambda t: 2 * ndtr(-np.abs(t))) > 0


def test_many_sums_are_corrected_by_their_number():
    assert sign_p_value(5.0, 30) == pytest.approx(30 * float(sign_p_value(5.0)))
    assert sign_p_value(0.1, 30) == 1.0
    assert sign_p_value(critical_value(70, 0.03), 70) == pytest.approx(0.03)
    assert either((6.0, 10), (2.0, 1)) == (pytest.approx(20 * float(sign_p_value(6.0))), 6.0)


def test_rows_of_zeros_give_no_sum():
    assert studentise(np.zeros(2), np.zeros(2)).tolist() == [0.0, 0.0]
    assert sign_sums(np.array([[3.0, 0.0], [4.0, 0.0]])).tolist() == [7 / 5, 0.0]


def test_columns_are_named_worst_first():
    assert worst_columns(np.array([1.0, 9.0, 5.0]), "abc", 4.0) == ("b", "c")
    assert signs.C == pytest.approx(3.1787, abs=1e-3)
