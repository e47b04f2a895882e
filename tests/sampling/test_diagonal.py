"""Every choice of D is feasible and free of units; each optimised one meets its own optimality conditions."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from scipy.optimize import minimize as nelder_mead

from knockoffs.errors import InputError
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL, DIAGONALS, solve_diagonal, whiten
from knockoffs.sampling.diagonal.equicorrelated import equicorrelated
from knockoffs.sampling.diagonal.maximum_entropy import Entropy, maximum_entropy
from knockoffs.sampling.diagonal.mvr import Reconstructability, mvr
from knockoffs.sampling.diagonal.newton import MARGIN, factor, inner_start, minimise, symmetric
from knockoffs.sampling.diagonal.sdp import BLOCK_GAP, GAP, Barrier, follow_path, sdp

every_method = pytest.mark.parametrize("method", DIAGONALS)
OBJECTIVES = [Entropy(), Reconstructability(), Barrier(0.03)]


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
def test_scaled_blocks_are_multiples_of_those_of_sigma(method):
    rng = np.random.default_rng(1)
    Sigma = random_covariance(20, 1e5, rng)
    feature_of = rng.permutation(np.repeat(np.arange(9), [1, 1, 1, 1, 2, 2, 3, 4, 5]))
    D = solve_diagonal(Sigma, method, feature_of, full_blocks=False)
    for feature in range(9):
        block = np.ix_(feature_of == feature, feature_of == feature)
        assert np.ptp(D[block] / Sigma[block]) < 1e-9 * np.abs(D[block] / Sigma[block]).max()


@every_method
def test_identity(method):
    np.testing.assert_allclose(solve_diagonal(np.eye(5), method), np.eye(5), atol=3e-6)  # GAP + MARGIN, for the SDP


@every_method
def test_one_feature_that_owns_every_column(method):
    # alone, a feature can be drawn afresh: D = Sigma
    Sigma = random_covariance(4, 100, np.random.default_rng(3))
    atol = 2 * BLOCK_GAP if method == "sdp" else 3e-6
    np.testing.assert_allclose(solve_diagonal(Sigma, method, np.zeros(4, dtype=int)), Sigma, rtol=0, atol=atol)


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
    # the SDP is flat near its optimum, and stops within BLOCK_GAP of it
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


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("feature_of", [np.arange(6), np.array([0, 1, 1, 2, 0, 3])], ids=["columns", "features"])
def test_derivatives_against_differences(objective, feature_of):
    rng = np.random.default_rng(7)
    R, _ = whiten(random_covariance(6, 20, rng), feature_of)
    sizes = np.bincount(feature_of).astype(float)
    s = inner_start(R, feature_of) * rng.uniform(0.5, 0.9, len(sizes))

    def value(s):
        return objective.value(s, sizes, factor(R, feature_of, s))

    def gradient(s):
        rise, pull, _ = objective.derivatives(s, sizes, factor(R, feature_of, s), feature_of)
        assert (rise > 0).all() and (pull > 0).all()
        return rise - pull

    def differences(function, s):
        steps = 1e-6 * np.diag(s)
        return np.array([(function(s + h) - function(s - h)) / (2 * h.sum()) for h in steps])

    hessian = symmetric(objective.derivatives(s, sizes, factor(R, feature_of, s), feature_of).hessian)
    np.testing.assert_allclose(gradient(s), differences(value, s), rtol=1e-6)
    np.testing.assert_allclose(hessian, differences(gradient, s), rtol=1e-6, atol=1e-6 * np.abs(hessian).max())


@every_covariance
@pytest.mark.parametrize("solver, objective", [(maximum_entropy, Entropy()), (mvr, Reconstructability())])
def test_first_order_conditions(solver, objective, Sigma):
    R, feature_of = correlation(Sigma), np.arange(len(Sigma))
    s = solver(R, feature_of)
    A = factor(R, feature_of, s)
    rise, pull, _ = objective.derivatives(s, np.ones(len(s)), A, feature_of)
    # rounding in A^-1 is the condition number times 1e-16, and more in A^-2
    np.testing.assert_allclose(rise, pull, rtol=1e-7 if np.linalg.cond(R) < 1e6 else 1e-3)


@every_covariance
def test_promised_margins_of_the_optimised_choices(Sigma):
    R, feature_of = correlation(Sigma), np.arange(len(Sigma))
    d = len(R)
    for solver, bound in [(maximum_entropy, 1 / d), (mvr, 1 / np.sqrt(d))]:
        D = np.diag(solver(R, feature_of))
        assert smallest_relative(2 * R - D, D) >= bound * (1 - 1e-3)


def upper_bound(R, s, weight):
    """Bound on the SDP from dual points X = c A^-1, the best c: sum(s) <= trace(2R X) + sum_j max(0, 1 - X_jj)."""
    inverse = np.linalg.inv(2 * R - np.diag(s))
    return min(
        2 * c * np.sum(R * inverse) + np.maximum(0, 1 - c * np.diagonal(inverse)).sum()
        for c in [weight, *(1 / np.diagonal(inverse))]
    )


@every_covariance
def test_sdp_is_optimal_by_its_dual(Sigma):
    R, feature_of = correlation(Sigma), np.arange(len(Sigma))
    s = follow_path(R, feature_of, 0.9 * inner_start(R, feature_of))
    # the dual point wants a centred s, which is made here for it; at condition number 1e8 rounding allows no better
    # centre than that of a heavier barrier
    ill = np.linalg.cond(R) > 1e6
    weight = GAP * s.sum() / (3 * len(R)) * (1000 if ill else 1)
    centred = minimise(Barrier(weight), R, feature_of, s if not ill else 0.99 * s, last=1e-5)
    bound = upper_bound(R, centred, weight)
    assert s.sum() <= bound * (1 + 1e-9)
    assert s.sum() >= bound * (1 - (1e-3 if ill else 5 * GAP))
    # moving inside costs at most MARGIN
    assert sdp(R, feature_of).sum() >= (1 - MARGIN) * s.sum()


def test_sdp_of_a_sample_covariance():
    """Many constraints are active at once here; a line search that ends on the boundary creeps along it for ever."""
    rng = np.random.default_rng(0)
    R = np.corrcoef(rng.standard_normal((600, 300)) @ np.linalg.cholesky(ar1(300, 0.5)).T, rowvar=False)
    feature_of = np.arange(300)
    s = sdp(R, feature_of)
    weight = GAP * s.sum() / 900
    centred = minimise(Barrier(weight), R, feature_of, s, last=1e-5)
    assert s.sum() == pytest.approx(upper_bound(R, centred, weight), rel=5 * GAP)


def test_sdp_closed_forms():
    # equal correlations rho: s = min(1, 2 (1 - rho)); pairs: the same; a block design: block by block
    for d, rho in [(2, 0.8), (2, -0.8), (10, 0.7), (10, 0.3)]:
        expected = min(1, 2 * (1 - abs(rho)))
        np.testing.assert_allclose(sdp(equal(d, rho), np.arange(d)), expected, rtol=5e-6)
    s = sdp(block_diag(equal(5, 0.6), equal(7, 0.9)), np.arange(12))
    np.testing.assert_allclose(s, np.repeat([0.8, 0.2], [5, 7]), rtol=1e-4)


def test_entropy_and_mvr_closed_form_of_equal_correlations():
    # by symmetry s is a scalar t: maximise (d - 1) log(2 (1 - rho) - t) + log(2 (1 + (d - 1) rho) - t) + d log t
    d, rho = 10, 0.6
    t = np.linspace(1e-4, 2 * (1 - rho) - 1e-4, 400_001)
    small, large = 2 * (1 - rho) - t, 2 * (1 + (d - 1) * rho) - t
    entropy = (d - 1) * np.log(small) + np.log(large) + d * np.log(t)
    trace = (d - 1) / small + 1 / large + d / t
    R, feature_of = equal(d, rho), np.arange(d)
    np.testing.assert_allclose(maximum_entropy(R, feature_of), t[entropy.argmax()], atol=3e-6)
    np.testing.assert_allclose(mvr(R, feature_of), t[trace.argmin()], atol=3e-6)


def test_equicorrelated_closed_form():
    np.testing.assert_allclose(equicorrelated(equal(6, 0.7), np.arange(6)), 0.6, rtol=2 * MARGIN)
    np.testing.assert_allclose(equicorrelated(equal(6, 0.2), np.arange(6)), 1.0, rtol=0)
    Sigma = COVARIANCES["condition 1e4"]
    expected = 2 * np.linalg.eigvalsh(correlation(Sigma))[0]
    np.testing.assert_allclose(
        np.diagonal(solve_diagonal(Sigma, "equicorrelated")) / np.diagonal(Sigma), expected, rtol=1e-5
    )


@pytest.mark.parametrize("method", ["maximum_entropy", "mvr"])
def test_features_of_two_columns_against_brute_force(method):
    """Against Nelder-Mead on the definition: log det and trace over block-diagonal D with blocks s_g Sigma_gg."""
    Sigma = random_covariance(4, 30, np.random.default_rng(8))
    feature_of = np.array([0, 1, 0, 1])
    same = feature_of[:, None] == feature_of

    def D_of(s):
        return np.where(same, s[feature_of][:, None] * Sigma, 0.0)

    def loss(s):
        D = D_of(s)
        A = 2 * Sigma - D
        if min(s) <= 0 or np.linalg.eigvalsh(A)[0] <= 0:
            return np.inf
        # D and A stand for their whitened versions, which is what makes the trace free of units
        L = np.zeros((4, 4))
        for g in (0, 1):
            block = np.ix_(feature_of == g, feature_of == g)
            L[block] = np.linalg.cholesky(Sigma[block])
        A, D = (np.linalg.solve(L, np.linalg.solve(L, M).T) for M in (A, D))
        if method == "maximum_entropy":
            return -np.linalg.slogdet(A)[1] - np.linalg.slogdet(D)[1]
        return np.trace(np.linalg.inv(A) + np.linalg.inv(D))

    start = np.full(2, np.linalg.eigvalsh(correlation(Sigma))[0] / 4)
    options = {"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
    best = nelder_mead(loss, start, method="Nelder-Mead", options=options)
    best = nelder_mead(loss, best.x, method="Nelder-Mead", options=options)
    D = solve_diagonal(Sigma, method, feature_of, full_blocks=False)
    s = np.array([D[0, 0] / Sigma[0, 0], D[1, 1] / Sigma[1, 1]])
    assert loss(s) <= best.fun + 1e-9 * abs(best.fun)
    np.testing.assert_allclose(D, D_of(best.x), rtol=1e-6)


def test_sdp_with_features_of_two_columns_against_brute_force():
    """For each s_0 the largest s_1 is an eigenvalue; the best s_0 by a search in one variable."""
    feature_of = np.array([0, 1, 0, 1, 1])
    R, _ = whiten(random_covariance(5, 30, np.random.default_rng(8)), feature_of)
    first, second = feature_of == 0, feature_of == 1

    def largest_second(s_0):
        A, C, B = 2 * R[np.ix_(first, first)] - s_0 * np.eye(2), R[np.ix_(first, second)], R[np.ix_(second, second)]
        return min(1.0, np.linalg.eigvalsh(2 * B - 4 * C.T @ np.linalg.solve(A, C))[0])

    largest = 2 * np.linalg.eigvalsh(R[np.ix_(first, first)])[0]
    grid = np.linspace(0, min(1, largest) - 1e-9, 5_001)
    grid = grid[[largest_second(s_0) >= 0 for s_0 in grid]]
    best = max(2 * s_0 + 3 * largest_second(s_0) for s_0 in grid)
    s = sdp(R, feature_of)
    assert 2 * s[0] + 3 * s[1] == pytest.approx(best, rel=2e-5)


def test_inner_start_is_below_R():
    for Sigma in COVARIANCES.values():
        R = correlation(Sigma)
        assert smallest_relative(R - np.diag(inner_start(R, np.arange(len(R)))), R) >= -1e-7


def test_every_choice_is_best_by_its_own_measure():
    """Entropy, reconstructability and sum of the four choices: each optimised one wins its own."""
    R = correlation(COVARIANCES["factors"])
    feature_of, sizes = np.arange(len(R)), np.ones(len(R))
    solved = {name: np.diagonal(solve_diagonal(R, name)) for name in DIAGONALS}

    def best(measure):
        return min(solved, key=lambda name: measure(solved[name]))

    assert best(lambda s: Entropy().value(s, sizes, factor(R, feature_of, s))) == "maximum_entropy"
    assert best(lambda s: Reconstructability().value(s, sizes, factor(R, feature_of, s))) == "mvr"
    assert best(lambda s: -s.sum()) == "sdp"


def test_default_is_registered():
    assert DEFAULT_DIAGONAL in DIAGONALS
    np.testing.assert_array_equal(solve_diagonal(ar1(5, 0.5)), solve_diagonal(ar1(5, 0.5), DEFAULT_DIAGONAL))


def test_input_is_left_alone():
    Sigma = ar1(5, 0.5)
    for method in DIAGONALS:
        solve_diagonal(Sigma, method)
    np.testing.assert_array_equal(Sigma, ar1(5, 0.5))


def test_unknown_method_and_singular_covariance():
    with pytest.raises(InputError, match="Did you mean 'mvr'"):
        solve_diagonal(np.eye(2), "mvrr")
    with pytest.raises(InputError, match="not positive definite"):
        solve_diagonal(np.ones((3, 3)))
    with pytest.raises(InputError, match="feature_of has shape"):
        solve_diagonal(np.eye(3), feature_of=[0, 1])
