"""D solved block by block: exact where the blocks are independent, feasible and not far below it elsewhere."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from tests.refusals import refuses
from tests.sampling.test_diagonal import smallest_relative

from knockoffs.sampling.diagonal import DIAGONALS, solve_diagonal
from knockoffs.sampling.diagonal.linkage import linked_blocks, solve_diagonal_blocks
from knockoffs.sampling.diagonal.newton import MARGIN


def shuffled_blocks():
    """Three independent blocks, their columns mixed; and the block of each column."""
    Sigma = block_diag(*[toeplitz(rho ** np.arange(8)) for rho in (0.3, 0.8, -0.6)])
    order = np.random.default_rng(0).permutation(24)
    return Sigma[np.ix_(order, order)], order // 8


@pytest.mark.parametrize("method", DIAGONALS)
def test_independent_blocks_lose_nothing(method):
    Sigma, block_of = shuffled_blocks()
    assert [set(block_of[b]) for b in linked_blocks(Sigma, 8)] == [{k} for k in dict.fromkeys(block_of.tolist())]
    s = solve_diagonal_blocks(Sigma, method, largest=8)
    for k in range(3):
        own = Sigma[np.ix_(block_of == k, block_of == k)]
        np.testing.assert_allclose(s[block_of == k], np.diagonal(solve_diagonal(own, method)), rtol=1e-9)
    if method in ("maximum_entropy", "mvr"):
        np.testing.assert_allclose(s, np.diagonal(solve_diagonal(Sigma, method)), rtol=1e-6)


@pytest.mark.parametrize("method", DIAGONALS)
@pytest.mark.parametrize("rho", [0.5, 0.95])
def test_blocks_that_are_not_independent_are_scaled_just_enough(method, rho):
    rng = np.random.default_rng(1)
    chain = np.linalg.cholesky(toeplitz(rho ** np.arange(60)))
    Sigma = np.cov(rng.standard_normal((300, 60)) @ chain.T, rowvar=False) * 7.0
    s = solve_diagonal_blocks(Sigma, method, largest=7)
    assert max(map(len, linked_blocks(Sigma / 7, 7))) <= 7
    left = smallest_relative(2 * Sigma - np.diag(s), Sigma)
    assert left >= 0.4 * MARGIN
    # one block is the dense solution; many are one multiple of their own, up to the boundary or up to 1
    np.testing.assert_allclose(
        solve_diagonal_blocks(Sigma, method, largest=60), np.diagonal(solve_diagonal(Sigma, method)), rtol=1e-6
    )
    sd = np.sqrt(np.diagonal(Sigma))
    R = Sigma / np.outer(sd, sd)
    alone = np.empty(60)
    for block in linked_blocks(R, 7):
        alone[block] = np.diagonal(solve_diagonal(R[np.ix_(block, block)], method)) * sd[block] ** 2
    scale = s / alone
    assert np.ptp(scale) < 1e-9
    assert scale[0] <= 1 and (scale[0] == pytest.approx(1) or left < 5e-3)


def test_blocks_are_the_largest_branches():
    R = toeplitz([1, 0.1, 0.0, 0.0, 0.0, 0.0])
    R[0, 1] = R[1, 0] = 0.9
    R[2, 3] = R[3, 2] = 0.8
    R[1, 2] = R[2, 1] = 0.7
    R[4, 5] = R[5, 4] = 0.2
    assert [b.tolist() for b in linked_blocks(R, 4)] == [[0, 1, 2, 3], [4, 5]]
    assert [b.tolist() for b in linked_blocks(R, 3)] == [[0, 1], [2, 3], [4, 5]]
    assert sorted(j for b in linked_blocks(R, 1) for j in b) == list(range(6))


def test_input_is_left_alone_and_errors():
    Sigma, _ = shuffled_blocks()
    before = Sigma.copy()
    solve_diagonal_blocks(Sigma, largest=5)
    assert np.array_equal(Sigma, before)
    refuses("expected", solve_diagonal_blocks, np.ones((2, 3)))
    refuses("largest=0", solve_diagonal_blocks, Sigma, largest=0)
    refuses("constant", solve_diagonal_blocks, np.diag([1.0, 0.0]))
