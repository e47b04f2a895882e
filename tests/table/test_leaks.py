"""Leaks: the target as a sum or difference of columns is warned of with the line that drops them."""

import numpy as np
import pytest

from knockoffs.errors import KnockoffWarning
from knockoffs.table.derived import warn_of_leaks
from knockoffs.table.table import read_table


def leaks(X, y, kind="number"):
    warn_of_leaks(y, kind, read_table(X), np.ones(len(y), dtype=bool))


@pytest.mark.parametrize("signs", [(1, 1, 0), (1, -1, 0), (1, 1, -1)])
def test_a_sum_or_difference_of_columns_is_named(signs, rng):
    X = rng.normal(50, [3.0, 2.5, 2.0, 9.0], (200, 4))
    y = X[:, :3] @ np.array(signs) + 0.001 * rng.standard_normal(200)
    names = [f"x{j}" for j in range(3) if signs[j]]
    with pytest.warns(KnockoffWarning, match="drop=") as caught:
        leaks(X, y)
    assert all(name in str(caught[0].message) for name in names) and "x3" not in str(caught[0].message)


def test_a_strong_signal_is_no_leak(rng):
    """Warnings are errors: none comes where noise is a twentieth of y, or where coefficients are those of no sum."""
    X = rng.standard_normal((400, 5))
    leaks(X, X[:, 0] + 0.05 * rng.standard_normal(400))
    leaks(X, X @ np.array([1.0, 2.0, 0.5, 0.0, 0.0]))
    leaks(X, (X[:, 0] > 0).astype(float), kind="binary")
