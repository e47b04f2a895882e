"""D with a full block for each feature: derivatives, optimality, and the group swap it is made for."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from tests.sampling.test_diagonal import random_covariance

from knockoffs.sampling.diagonal import DIAGONALS, shape_of, solve_diagonal, whiten
from knockoffs.sampling.diagonal.newton import (
    ENTROPY,
    RECONSTRUCTABILITY,
    barrier,
    factor,
    feasible_point,
    follow_path,
    inner_start,
    maximum_entropy,
    minimise,
    mvr,
    symmetric,
)

BLOCK_GAP = 1e-4  # of follow_path

every_objective = pytest.mark.parametrize("objective", [ENTROPY, RECONSTRUCTABILITY, barrier(0.03)])
FEATURE_OF = np.array([2, 0, 1, 2, 1, 2, 3])  # sizes 1, 2, 3, 1


def whitened(Sigma, feature_of):
    """Shape of D, and R in its order."""
    shape = shape_of(feature_of)
    return shape, whiten(Sigma, feature_of)[0][np.ix_(shape.order, shape.order)]


def covariances():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((120, 60)) @ np.linalg.cholesky(toeplitz(0.9 ** np.arange(60))).T
    loadings = rng.standard_normal((40, 3))
    return {
        "ar": (toeplitz(0.9 ** np.arange(60)), np.arange(60) // 5),
        "sample": (np.cov(rows, rowvar=False), rng.permutation(np.arange(60) // 4)),
        "factors": (loadings @ loadings.T + np.diag(rng.uniform(0.1, 2, 40)), np.maximum(np.arange(40) - 20, 0) // 2),
        "equal": (np.full((30, 30), 0.5) + 0.5 * np.eye(30), np.repeat(np.arange(9), [1, 1, 1, 2, 2, 3, 5, 7, 8])),
        "condition 1e4": (random_covariance(30, 1e4, rng), np.arange(30) // 3),
    }


COVARIANCES = covariances()
every_covariance = pytest.mark.parametrize("case", COVARIANCES.values(), ids=COVARIANCES.keys())


def test_shape_moves_blocks_in_and_out():
    shape = shape_of(FEATURE_OF)
    assert shape.order.tolist() == [1, 6, 2, 4, 0, 3, 5]
    rng = np.random.default_rng(1)
    M, N = (random_covariance(7, 10, rng) for _ in range(2))
    same = FEATURE_OF[shape.order][:, None] == FEATURE_OF[shape.order]
    V = np.where(same, rng.standard_normal((7, 7)), 0.0)
    flat = shape.gather(V)
    assert np.array_equal(shape.scatter(flat), V)
    np.testing.assert_allclose(shape.left(flat, M), V @ M)
    np.testing.assert_allclose(shape.sandwich(M, flat, N), shape.gather(M @ V @ N))
    np.testing.assert_allclose(shape.rotate(flat, M), V.T @ M @ V)
    np.testing.assert_allclose(shape.scatter(shape.product(flat, shape.transpose(flat))), V @ V.T)
    assert shape.trace(flat) == pytest.approx(np.trace(V))
    assert np.array_equal(shape.scatter(shape.from_diagonal(np.arange(7.0))), np.diag(np.arange(7.0)))


@every_objective
def test_derivatives_against_differences(objective):
    """Gradient and Hessian in the eigenvectors of the blocks, as the Newton step uses them."""
    rng = np.random.default_rng(7)
    shape, R = whitened(random_covariance(7, 20, rng), FEATURE_OF)
    noise = rng.standard_normal((7, 7))
    D = 0.7 * inner_start(R, shape) + 0.02 * shape.gather(noise @ noise.T) * R.min()
    D = (D + shape.transpose(D)) / 2

    def at(D):
        point = feasible_point(objective, R, shape, D)
        assert point is not None
        return point

    def gradient(D):
        point = at(D)
        values = objective.push(point.values) - objective.pull(point.values)
        assert (objective.pull(point.values) > 0).all()
        Q = shape.scatter(point.vectors)
        inner = shape.gather((Q * values) @ Q.T)
        return shape.gather(symmetric(objective.rise(point.A.inverse))) + inner

    def hessian(V):
        point = at(D)
        Q = shape.scatter(point.vectors)
        turned = shape.gather(Q.T @ shape.scatter(V) @ Q)
        inner = shape.scatter(shape.outer(objective.bend, point.values) * turned)
        inverse = symmetric(point.A.inverse)
        half = shape.sandwich(inverse, V, symmetric(objective.rise(inverse)))
        return shape.gather(Q @ inner @ Q.T) + objective.power / 2 * (half + shape.transpose(half))

    for _ in range(5):
        V = shape.gather(rng.standard_normal((7, 7)))
        V = (V + shape.transpose(V)) / 2
        h = 1e-5 * np.abs(D).max()
        ahead, behind = at(D + h * V), at(D - h * V)
        slope = (objective.value(ahead.values, ahead.A) - objective.value(behind.values, behind.A)) / (2 * h)
        assert gradient(D) @ V == pytest.approx(slope, rel=1e-5, abs=1e-5 * np.abs(gradient(D)).max())
        bend = (gradient(D + h * V) - gradient(D - h * V)) / (2 * h)
        np.testing.assert_allclose(hessian(V), bend, rtol=1e-4, atol=1e-5 * np.abs(bend).max())


@every_covariance
def test_first_order_conditions(case):
    """(A^-1)_gg = S_g^-1 for maximum entropy, (A^-2)_gg = S_g^-2 for MVR; both problems are convex."""
    shape, R = whitened(*case)
    for solver, power in [(maximum_entropy, 1), (mvr, 2)]:
        D = shape.scatter(solver(R, shape))
        inverse = np.linalg.inv(2 * R - D)
        left = shape.gather(np.linalg.matrix_power(inverse, power))
        right = shape.gather(np.linalg.matrix_power(np.linalg.inv(D), power))
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-7 * np.abs(right).max())
        # what makes the margin of feasibility: A >= D / d, or D / sqrt(d)
        L = np.linalg.cholesky(D)
        relative = np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, 2 * R - D).T))[0]
        assert relative >= len(R) ** (-1 / power) * (1 - 1e-3)


@every_covariance
def test_sdp_is_optimal_by_its_dual(case):
    """trace(D) <= trace(2 R X) + sum_g trace((I - X_gg)_+) for every positive semi-definite X; here X = c A^-1."""
    shape, R = whitened(*case)
    D = follow_path(R, shape, 0.9 * inner_start(R, shape))
    weight = BLOCK_GAP * shape.trace(D) / (3 * len(R))
    centred = minimise(barrier(weight), R, shape, D, last=1e-3)
    X = weight * np.linalg.inv(2 * R - shape.scatter(centred))
    rest = [np.maximum(0, np.linalg.eigvalsh(np.eye(p.shape[-1]) - p)).sum() for p in shape.cut(shape.gather(X))]
    bound = 2 * np.sum(R * X) + sum(rest)
    assert shape.trace(D) <= bound * (1 + 1e-9)
    assert shape.trace(D) >= bound * (1 - 5 * BLOCK_GAP)


@pytest.mark.parametrize("method", DIAGONALS)
def test_groups_that_are_independent_are_drawn_afresh(method):
    rng = np.random.default_rng(6)
    Sigma = block_diag(*[random_covariance(3, 30, rng) for _ in range(3)])
    D = solve_diagonal(Sigma, method, np.arange(9) // 3)
    np.testing.assert_allclose(D, Sigma, rtol=0, atol=2 * BLOCK_GAP if method == "sdp" else 1e-8)


def test_an_infeasible_point_is_none():
    shape, R = whitened(random_covariance(7, 20, np.random.default_rng(9)), FEATURE_OF)
    assert feasible_point(ENTROPY, R, shape, shape.from_diagonal(np.full(7, 2.0))) is None
    assert feasible_point(ENTROPY, R, shape, shape.from_diagonal(np.full(7, -0.1))) is None
    assert factor(R, shape, shape.from_diagonal(np.full(7, 2.0))) is None
