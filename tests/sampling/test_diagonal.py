"""Every choice of D is feasible and free of units; each optimised one meets its own optimality conditions."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from tests.refusals import refuses

from knockoffs.sampling.diagonal import DIAGONALS, shape_of, solve_diagonal
from knockoffs.sampling.diagonal.newton import (
    ENTROPY,
    MARGIN,
    RECONSTRUCTABILITY,
    barrier,
    dense_step,
    equicorrelated,
    factor,
    feasible_point,
    follow_path,
    inner_start,
    maximum_entropy,
    minimise,
    mvr,
    sdp,
    step_by_conjugate_gradients,
)

GAP = 1e-6  # of follow_path

every_method = pytest.mark.parametrize("method", DIAGONALS)
OBJECTIVES = {"entropy": ENTROPY, "reconstructability": RECONSTRUCTABILITY, "barrier": barrier(0.03)}


def ar1(d, rho):
    return toeplitz(rho ** np.arange(d))


def equal(d, rho):
    return np.full((d, d), rho) + (1 - rho) * np.eye(d)


def random_covariance(d, condition, rng):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    Sigma = (Q * np.logspace(0, -np.log10(condition), d)) @ Q.T
    return (Sigma + Sigma.T) / 2


def covariances():
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((40, 3))
    return {
        "one": np.array([[2.5]]),
        "ar": ar1(60, 0.5),
        "strong ar": ar1(60, 0.99),
        "negative ar": ar1(30, -0.8),
        "equal": equal(50, 0.5),
        "factors": loadings @ loadings.T + np.diag(rng.uniform(0.1, 2, 40)),
        "blocks": block_diag(*[equal(8, rho) for rho in (0.1, 0.5, 0.9, 0.99)]),
        "condition 1e4": random_covariance(40, 1e4, rng),
        "condition 1e8": random_covariance(40, 1e8, rng),
    }


COVARIANCES = covariances()
every_covariance = pytest.mark.parametrize("Sigma", COVARIANCES.values(), ids=COVARIANCES.keys())


def correlation(Sigma):
    sd = np.sqrt(np.diagonal(Sigma))
    return Sigma / sd / sd[:, None]


def smallest_relative(M, Sigma):
    """Smallest eigenvalue of L^-1 M L^-T, Sigma = L L^T."""
    L = np.linalg.cholesky(Sigma)
    return np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, M).T))[0]


@every_method
@every_covariance
def test_strictly_feasible(method, Sigma):
    D = solve_diagonal(Sigma, method)
    assert np.array_equal(D, np.diag(np.diagonal(D)))
    assert (np.diagonal(D) > 0).all()
    # the margin that is promised; half of it is left to the rounding of this check at condition number 1e8
    assert smallest_relative(2 * Sigma - D, Sigma) >= 0.5 * MARGIN
    np.linalg.cholesky(np.block([[Sigma, Sigma - D], [Sigma - D, Sigma]]))


@every_method
def test_strictly_feasible_with_features_of_several_columns(method):
    rng = np.random.default_rng(1)
    Sigma = random_covariance(20, 1e5, rng)
    feature_of = rng.permutation(np.repeat(np.arange(9), [1, 1, 1, 1, 2, 2, 3, 4, 5]))
    D = solve_diagonal(Sigma, method, feature_of)
    same_feature = feature_of[:, None] == feature_of
    assert (D[~same_feature] == 0).all() and np.array_equal(D, D.T)
    assert np.linalg.eigvalsh(D)[0] > 0
    assert smallest_relative(2 * Sigma - D, Sigma) >= 0.5 * MARGIN


@every_method
def test_units_do_not_matter(method):
    Sigma = COVARIANCES["factors"]
    units = 10.0 ** np.random.default_rng(4).uniform(-12, 12, len(Sigma))
    D = solve_diagonal(Sigma, method)
    scaled = solve_diagonal(Sigma * units * units[:, None], method)
    np.testing.assert_allclose(scaled / units / units[:, None], D, rtol=1e-8)


@every_method
def test_basis_within_a_feature_does_not_matter(method):
    rng = np.random.default_rng(5)
    Sigma, feature_of = random_covariance(9, 50, rng), np.repeat(np.arange(3), 3)
    B = block_diag(*rng.standard_normal((3, 3, 3)))
    D = solve_diagonal(Sigma, method, feature_of)
    # the SDP is flat near its optimum, and stops within 1e-4 of it
    rtol, atol = (0.01, 0.01) if method == "sdp" else (1e-6, 1e-7)
    np.testing.assert_allclose(solve_diagonal(B @ Sigma @ B.T, method, feature_of), B @ D @ B.T, rtol=rtol, atol=atol)


@every_method
def test_order_of_columns_and_of_features_does_not_matter(method):
    rng = np.random.default_rng(6)
    Sigma, feature_of = random_covariance(12, 50, rng), np.repeat(np.arange(8), [1, 1, 1, 1, 2, 2, 2, 2])
    order, names = rng.permutation(12), rng.permutation(8)
    D = solve_diagonal(Sigma, method, feature_of)
    other = solve_diagonal(Sigma[np.ix_(order, order)], method, names[feature_of[order]])
    np.testing.assert_allclose(other, D[np.ix_(order, order)], rtol=1e-6, atol=1e-2 if method == "sdp" else 1e-8)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_both_ways_to_solve_the_newton_equation_agree(objective, monkeypatch):
    """By a Cholesky factor of the Hessian, and by conjugate gradients as for blocks, whose derivatives are tested."""
    monkeypatch.setattr("knockoffs.sampling.diagonal.newton.FORCING", 1e-12)
    rng = np.random.default_rng(7)
    R, shape = correlation(random_covariance(9, 20, rng)), shape_of(np.arange(9))
    point = feasible_point(objective, R, shape, inner_start(R, shape) * rng.uniform(0.5, 0.9, 9))
    step, slope, residual = dense_step(objective, shape, point)
    other, other_slope, other_residual = step_by_conjugate_gradients(objective, shape, point)
    np.testing.assert_allclose(other, step, rtol=1e-9)
    assert (other_slope, other_residual) == pytest.approx((slope, residual), rel=1e-9)


@every_covariance
@pytest.mark.parametrize("solver, objective", [(maximum_entropy, ENTROPY), (mvr, RECONSTRUCTABILITY)])
def test_first_order_conditions(solver, objective, Sigma):
    R, shape = correlation(Sigma), shape_of(np.arange(len(Sigma)))
    s = solver(R, shape)
    rise = np.diagonal(objective.rise(factor(R, shape, s).inverse))
    # rounding in A^-1 is the condition number times 1e-16, and more in A^-2
    np.testing.assert_allclose(rise, objective.pull(s), rtol=1e-7 if np.linalg.cond(R) < 1e6 else 1e-3)


def upper_bound(R, s, weight):
    """Bound on the SDP from dual points X = c A^-1, the best c: sum(s) <= trace(2R X) + sum_j max(0, 1 - X_jj)."""
    inverse = np.linalg.inv(2 * R - np.diag(s))
    return min(
        2 * c * np.sum(R * inverse) + np.maximum(0, 1 - c * np.diagonal(inverse)).sum()
        for c in [weight, *(1 / np.diagonal(inverse))]
    )


@every_covariance
def test_sdp_is_optimal_by_its_dual(Sigma):
    R, shape = correlation(Sigma), shape_of(np.arange(len(Sigma)))
    s = follow_path(R, shape, 0.9 * inner_start(R, shape))
    # the dual point wants a centred s, which is made here for it; at condition number 1e8 rounding allows no better
    # centre than that of a heavier barrier
    ill = np.linalg.cond(R) > 1e6
    weight = GAP * s.sum() / (3 * len(R)) * (1000 if ill else 1)
    centred = minimise(barrier(weight), R, shape, s if not ill else 0.99 * s, last=1e-5)
    bound = upper_bound(R, centred, weight)
    assert s.sum() <= bound * (1 + 1e-9)
    assert s.sum() >= bound * (1 - (1e-3 if ill else 5 * GAP))
    # moving inside costs at most MARGIN
    assert sdp(R, shape).sum() >= (1 - MARGIN) * s.sum()


def test_sdp_of_a_sample_covariance():
    """Many constraints are active at once here; a line search that ends on the boundary creeps along it for ever."""
    rng = np.random.default_rng(0)
    R = np.corrcoef(rng.standard_normal((600, 300)) @ np.linalg.cholesky(ar1(300, 0.5)).T, rowvar=False)
    shape = shape_of(np.arange(300))
    s = sdp(R, shape)
    weight = GAP * s.sum() / 900
    centred = minimise(barrier(weight), R, shape, s, last=1e-5)
    assert s.sum() == pytest.approx(upper_bound(R, centred, weight), rel=5 * GAP)


def test_equicorrelated_closed_form():
    shape = shape_of(np.arange(6))
    np.testing.assert_allclose(equicorrelated(equal(6, 0.7), shape), 0.6, rtol=2 * MARGIN)
    np.testing.assert_allclose(equicorrelated(equal(6, 0.2), shape), 1.0, rtol=0)
    Sigma = COVARIANCES["condition 1e4"]
    expected = 2 * np.linalg.eigvalsh(correlation(Sigma))[0]
    np.testing.assert_allclose(
        np.diagonal(solve_diagonal(Sigma, "equicorrelated")) / np.diagonal(Sigma), expected, rtol=1e-5
    )


def test_input_is_left_alone():
    Sigma = ar1(5, 0.5)
    for method in DIAGONALS:
        solve_diagonal(Sigma, method)
    np.testing.assert_array_equal(Sigma, ar1(5, 0.5))


def test_unknown_method_and_singular_covariance():
    refuses("Did you mean 'mvr'", solve_diagonal, np.eye(2), "mvrr")
    refuses("not positive definite", solve_diagonal, np.ones((3, 3)))
    refuses("feature_of has shape", solve_diagonal, np.eye(3), feature_of=[0, 1])
