"""Ghost knockoffs: the affine map and the noise give the exchangeable covariance, exactly."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from tests.refusals import refuses

from knockoffs.sampling.diagonal import solve_diagonal
from knockoffs.streaming.ghost import sample_ghost_knockoffs

S = toeplitz(0.7 ** np.arange(5))


@pytest.mark.parametrize("feature_of", [np.arange(5), np.array([0, 0, 1, 1, 1])], ids=["columns", "groups"])
def test_covariance_under_the_null(feature_of):
    """Z ~ N(0, S) gives Cov(Z, Z_tilde) = [[S, S - D], [S - D, S]]: the map and the noise are read off the draws."""
    D = solve_diagonal(S, feature_of=feature_of)

    def draw(z):
        return sample_ghost_knockoffs(z, S, D, np.random.default_rng(0))  # the same noise each time

    noise = draw(np.zeros(5))
    move = np.column_stack([draw(e) - noise for e in np.eye(5)])
    np.testing.assert_allclose(move, np.eye(5) - D @ np.linalg.inv(S), atol=1e-12)
    # the noise is linear in the normals of one row: C read off by drawing them as unit vectors
    C = np.column_stack([sample_ghost_knockoffs(np.zeros(5), S, D, Unit(j)) for j in range(5)])
    np.testing.assert_allclose(move @ S, S - D, atol=1e-12)
    np.testing.assert_allclose(move @ S @ move.T + C @ C.T, S, atol=1e-12)


class Unit:
    """In the place of a Generator: its normals are the unit vector of one coordinate."""

    def __init__(self, j):
        self.j = j

    def standard_normal(self, out):
        out[:] = 0.0
        out[:, self.j] = 1.0


def test_shapes_are_checked():
    rng = np.random.default_rng(0)
    refuses("must agree", sample_ghost_knockoffs, np.zeros(4), S, S, rng)
    refuses("nan at column 2", sample_ghost_knockoffs, [0, 1, np.nan, 0, 0], S, S, rng)
    refuses("one score for each column", sample_ghost_knockoffs, np.zeros((5, 1)), S, S, rng)
