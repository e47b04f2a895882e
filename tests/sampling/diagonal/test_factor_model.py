"""D of a factor model without its matrix: the same as with it, and certified."""

import numpy as np
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.diagonal import solve_diagonal
from knockoffs.sampling.diagonal.factor_model import factor_point, solve_diagonal_factor

CASES = {
    "more columns than factors": (40, 3, 1.0),
    "strong factors": (40, 3, 10.0),
    "many factors": (10, 8, 1.0),
    "one column": (1, 1, 3.0),
    "two columns, where 2 noise - s is negative": (2, 1, 5.0),
}


def model(d, k, strength, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.2, 2, d), strength * rng.standard_normal((d, k))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_same_as_the_dense_solver(case):
    noise, U = model(*case)
    Sigma = np.diag(noise) + U @ U.T
    s = solve_diagonal_factor(noise, U)
    np.testing.assert_allclose(s, np.diagonal(solve_diagonal(Sigma)), rtol=1e-6)
    np.linalg.cholesky(2 * Sigma - np.diag(s))
    # first-order conditions, on the definition
    np.testing.assert_allclose(np.diagonal(np.linalg.inv(2 * Sigma - np.diag(s))) * s, 1, rtol=1e-6)


def test_a_negative_entry_of_a_is_met():
    """Else the inertia is not tested: one column whose factor is stronger than its noise has D = Sigma > 2 noise."""
    noise, U = np.array([1.0, 1.0]), np.array([[3.0], [0.1]])
    s = solve_diagonal_factor(noise, U)
    assert (2 * noise - s).min() < 0
    np.testing.assert_allclose(s, np.diagonal(solve_diagonal(np.diag(noise) + U @ U.T)), rtol=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_inertia_tells_what_is_positive_definite(seed):
    rng = np.random.default_rng(seed)
    noise, U = model(6, 2, 1.0, seed)
    s = rng.uniform(0.1, 3, 6)
    A = 2 * np.diag(noise) + 2 * U @ U.T - np.diag(s)
    point = factor_point(noise, U, s)
    assert (point is not None) == (np.linalg.eigvalsh(A)[0] > 0)
    if point is not None:
        inverse = np.linalg.inv(A)
        assert point.log_determinant == pytest.approx(np.linalg.slogdet(A)[1])
        np.testing.assert_allclose(point.diagonal, np.diagonal(inverse))
        v = rng.standard_normal(6)
        np.testing.assert_allclose(point.squares(v), (inverse * inverse) @ v, rtol=1e-8)


def test_units_do_not_matter():
    noise, U = model(30, 2, 2.0)
    units = 10.0 ** np.random.default_rng(1).uniform(-6, 6, 30)
    scaled = solve_diagonal_factor(noise * units**2, U * units[:, None])
    np.testing.assert_allclose(scaled / units**2, solve_diagonal_factor(noise, U), rtol=1e-8)


def test_a_column_where_the_split_is_singular():
    s = solve_diagonal_factor([1.0, 1.0], [[0.0], [1.0]])  # D = Sigma = 2 = 2 noise: a = 0
    np.testing.assert_allclose(s, [1.0, 2.0], rtol=1e-5)


def test_errors():
    with pytest.raises(InputError, match=r"expected \(d,\) and \(d, k\)"):
        solve_diagonal_factor([1.0, 1.0], [[1.0]])
    with pytest.raises(InputError, match="noise positive"):
        solve_diagonal_factor([0.0], [[1.0]])
