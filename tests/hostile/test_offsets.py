"""Numbers far from zero: the answer is that of the same numbers near zero, and lost digits are said."""

import warnings

import numpy as np
import pytest

from knockoffs import KnockoffSelector, read_table
from knockoffs.errors import KnockoffWarning
from knockoffs.table.target import as_target

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 14))
Y = X[:, :6].sum(axis=1) + RNG.standard_normal(200)
OPTIONS = {"fdr": 0.3, "feature_model": "gaussian", "verdict": False, "random_state": 0}
HOW = {
    "lasso": {"estimator": "lasso", "method": "knockoffs"},
    "defaults": {"method": "knockoffs"},
    "tests": {"method": "conditional_test"},
}


def selected(X, y, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KnockoffWarning)
        return KnockoffSelector(**OPTIONS, **HOW[how]).fit(X, y).get_support().tolist()


@pytest.fixture(scope="module")
def near_zero():
    return {how: selected(X, Y, how) for how in HOW}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("of_X", "of_y"), [(1e12, 0), (0, 1e13), (-1e12, -1e13)], ids=["X", "y", "both"])
def test_an_offset_does_not_change_the_selection(near_zero, how, of_X, of_y):
    assert any(near_zero[how])
    assert selected(X + of_X, Y + of_y, how) == near_zero[how]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("exponent", [-700, 700])
def test_a_scale_whose_squares_are_no_floats_does_not_change_the_selection(near_zero, how, exponent):
    """Squared errors were zero, or infinite: tests and boosting found nothing, without a word."""
    assert selected(X, np.ldexp(Y, exponent), how) == near_zero[how]


@pytest.mark.parametrize(
    ("table", "y", "words"),
    [
        (X + 1e14, Y, "^X: 'x0', 'x1', .*so far from zero that digits are lost.*0.0156 apart. Subtract a constant"),
        (X, Y - 1e14, "^y lies so far from zero that digits are lost"),
    ],
    ids=["X", "y"],
)
def test_lost_digits_are_said(table, y, words):
    with pytest.warns(KnockoffWarning, match=words):
        as_target(y, read_table(table))


@pytest.mark.parametrize("table", [X + 1e11, 2.0**52 + np.arange(200)[:, None] ** 2 % 97], ids=["enough", "whole"])
def test_digits_that_are_there_are_not_said_to_be_lost(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(table)
