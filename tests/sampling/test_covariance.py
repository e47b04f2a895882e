"""A covariance that cannot be one is refused, with the place and the number."""

import numpy as np
import pytest
from tests.refusals import refuses

from knockoffs.sampling.diagonal import check_covariance


@pytest.mark.parametrize(
    "Sigma, message",
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((2, 3)), r"shape \(2, 3\)"),
        (np.ones((0, 0)), r"shape \(0, 0\)"),
        ([["a", "b"], ["c", "d"]], "not a matrix of numbers"),
        ([[1.0, np.nan], [0.0, 1.0]], "nan at row 0, column 1"),
        ([[1.0, 0.0], [0.0, -2.0]], "variance -2 in column 1"),
        ([[1.0, 0.0], [0.0, 0.0]], "variance 0 in column 1"),
        ([[1.0, 0.5], [0.4, 1.0]], "0.5 at row 0, column 1, but 0.4 at row 1, column 0"),
        ([[1.0, 2.0], [2.0, 1.0]], "smallest eigenvalue -1 "),
        (1e-12 * np.array([[1.0, 1.5], [1.5, 1.0]]), "smallest eigenvalue -0.5 "),
        (np.ones((2, 2)), "not positive definite"),
    ],
)
def test_refused(Sigma, message):
    refuses(message, check_covariance, Sigma)
    refuses("^covariance of component 3 ", check_covariance, Sigma, "covariance of component 3")


def test_units_do_not_matter():
    units = np.array([1e-12, 1.0, 1e12])
    Sigma = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]) * units * units[:, None]
    np.testing.assert_allclose(check_covariance(Sigma), Sigma, rtol=1e-15)


def test_rounding_in_the_symmetry_is_averaged_out():
    Sigma = check_covariance([[1.0, 0.5 + 1e-12], [0.5, 1.0]])
    assert np.array_equal(Sigma, Sigma.T)


def test_nearly_singular_but_usable():
    assert check_covariance([[1.0, 1 - 1e-9], [1 - 1e-9, 1.0]]).shape == (2, 2)
