"""Selection from z-scores: blocks are the whole, and the FDR is held where the correlations are right."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from sklearn.linear_model import Lasso
from tests.refusals import refuses

from knockoffs.sampling.diagonal import solve_diagonal
from knockoffs.streaming.ghost import _Block, ghost_scores, noise_penalty, select_ghost, uncorrelated_blocks

N = 2000
d = 8
S = toeplitz(0.6 ** np.arange(d))
D = solve_diagonal(S)
G = np.block([[S, S - D], [S - D, S]])
r = np.random.default_rng(0).standard_normal((2, d)) / 5  # correlations of y with columns and ghosts


def scores_of(r, penalty=0.05, D=D, feature_of=None):
    return ghost_scores(r, S, D, np.arange(d) if feature_of is None else feature_of, penalty)


def test_the_same_as_the_lasso_on_rows():
    """2d rows whose Gram matrix is G and whose correlations with y are r."""
    L = np.linalg.cholesky(G)
    X = np.sqrt(2 * d) * L.T
    y = np.sqrt(2 * d) * np.linalg.solve(L, r.ravel())
    for penalty in (0.01, 0.05, noise_penalty(d, 400)):
        coef = Lasso(alpha=penalty, fit_intercept=False, tol=1e-14, max_iter=1_000_000).fit(X, y).coef_
        np.testing.assert_allclose(scores_of(r, penalty).stacked, np.abs(coef), atol=1e-7)
    assert 0 < (coef != 0).sum() < 2 * d
    assert not scores_of(r, 10.0).stacked.any()


def test_scores_flip_with_their_columns():
    swapped = np.array([True, False, True, True, False, False, True, False])
    after = scores_of(np.where(swapped, r[::-1], r))
    np.testing.assert_allclose(after.stacked, scores_of(r).swap(swapped).stacked, atol=1e-9)


def test_scores_of_groups_are_sums_and_flip_together():
    feature_of = np.arange(d) // 2
    blocks = solve_diagonal(S, feature_of=feature_of)
    grouped = scores_of(r, D=blocks, feature_of=feature_of)
    np.testing.assert_allclose(grouped.Z, scores_of(r, D=blocks).Z.reshape(-1, 2).sum(axis=1))
    swapped = np.array([True, False, False, True])
    after = scores_of(np.where(swapped[feature_of], r[::-1], r), D=blocks, feature_of=feature_of)
    np.testing.assert_allclose(after.Z, grouped.swap(swapped).Z, atol=1e-9)


def study(seed=0, sizes=(10, 20, 5), signals=12, strength=0.12):
    """z-scores with the law they have for Gaussian columns: N(sqrt(n) S beta, S)."""
    rng = np.random.default_rng(seed)
    S = block_diag(*[toeplitz(0.5 ** np.arange(size)) for size in sizes])
    beta = np.zeros(len(S))
    beta[rng.choice(len(S), signals, replace=False)] = strength
    z = np.sqrt(N) * S @ beta + np.linalg.cholesky(S) @ rng.standard_normal(len(S))
    return z, S, beta != 0, rng


def test_blocks_are_found_whatever_the_order_of_the_columns():
    _, S, _, rng = study()
    order = rng.permutation(len(S))
    blocks = uncorrelated_blocks(S[np.ix_(order, order)], np.arange(len(S)))
    found = sorted(sorted(order[block].tolist()) for block in blocks)
    assert found == [list(range(10)), list(range(10, 30)), list(range(30, 35))]
    joined = uncorrelated_blocks(S, np.r_[np.arange(34), 0])  # a feature with a column in two blocks joins them
    assert sorted(len(block) for block in joined) == [15, 20]


def test_scores_of_blocks_are_those_of_the_whole():
    z, S, _, rng = study()
    found = select_ghost(z, S, N, fdr=0.2, rng=rng)
    ghosts, D = (
        found.pair.X_tilde[0],
        block_diag(*[solve_diagonal(S[b][:, b]) for b in uncorrelated_blocks(S, np.arange(35))]),
    )
    whole = ghost_scores(np.stack([z, ghosts]) / np.sqrt(N), S, D, np.arange(35), noise_penalty(35, N))
    np.testing.assert_allclose(found.scores.Z, whole.Z, atol=1e-9)
    np.testing.assert_allclose(found.scores.Z_tilde, whole.Z_tilde, atol=1e-9)
    np.testing.assert_allclose(found.W, whole.Z - whole.Z_tilde, atol=1e-9)


def test_several_draws_and_groups():
    z, S, _, rng = study()
    many = select_ghost(z, S, N, fdr=0.2, n_draws=5, rng=rng)
    assert many.draws.shape == (5, 35) and many.evidence is not None
    feature_of = np.arange(35) // 2
    grouped = select_ghost(z, S, N, fdr=0.2, feature_of=feature_of, rng=rng)
    assert grouped.W.shape == (18,) and len(grouped.feature_names) == 18


def test_shrinking_makes_a_singular_matrix_usable():
    z, S, _, rng = study(sizes=(20, 10))
    S[1] = S[0]
    S[:, 1] = S[:, 0]
    S[1, 1] = 1
    refuses("not positive definite", select_ghost, z, S, N, fdr=0.2, rng=rng)
    assert "shrink=0.1" in select_ghost(z, S, N, fdr=0.2, shrink=0.1, rng=rng).notes["correlation"]


def test_many_columns_of_one_block_go_by_linked_blocks():
    rng = np.random.default_rng(0)
    S = toeplitz(0.3 ** np.arange(520))
    found = select_ghost(rng.standard_normal(520) * 3, S, N, rng=rng)
    assert "1 uncorrelated block, the largest of 520 columns" in found.notes["knockoffs"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"n": 0}, "n=0"),
        ({"n": 9.0}, "beyond sqrt"),
        ({"correlation": np.eye(3)}, r"shape \(3, 3\) for 35"),
        ({"correlation": 2 * np.eye(35)}, "2 on its diagonal"),
        ({"correlation": np.eye(35) * (1 + 0j)}, "correlation holds complex128: correlations are real"),
        ({"correlation": np.eye(35).astype(str)}, "correlation holds <U32"),
        ({"shrink": 1.0}, "shrink=1.0"),
        ({"penalty": -1.0}, "penalty=-1.0: use a number from 0 on"),
        ({"penalty": np.nan}, "penalty=nan"),
        ({"fdr": 0.01}, "can never select"),
        ({"names": ["a"]}, "1 names for 35"),
    ],
)
def test_errors(change, message):
    z, S, _, rng = study()
    refuses(message, select_ghost, **{"z": z, "correlation": S, "n": N, "fdr": 0.2, "rng": rng, **change})


def test_every_block_and_every_draw_has_a_stream_of_its_own():
    """Two blocks alike with z-scores alike: their ghosts are not, nor those of two draws, nor of two generators."""
    S = block_diag(*[toeplitz(0.5 ** np.arange(10))] * 2)
    z = np.tile(np.linspace(-2, 4, 10), 2)
    one, other = (select_ghost(z, S, N, fdr=0.2, n_draws=2, rng=np.random.default_rng(seed)) for seed in (0, 1))
    ghosts = one.pair.X_tilde[0]
    assert (ghosts[:10] != ghosts[10:]).all()
    assert (ghosts != other.pair.X_tilde[0]).all()
    assert (one.draws[0] != one.draws[1]).any()


def test_a_block_knows_its_groups():
    """Of columns 2, 3, ... of a table: D joins the columns of a group, and no others."""
    _, S, _, _ = study(sizes=(2, 6), signals=1)
    block = _Block.of(S, np.arange(2, 8), np.array([0, 1, 3, 3, 3, 2, 2, 2]), 0.0)
    assert block.features.tolist() == [2, 3] and block.feature_of.tolist() == [1, 1, 1, 0, 0, 0]
    np.testing.assert_allclose(block.D, solve_diagonal(S[2:, 2:], feature_of=block.feature_of))
    joined = block.feature_of[:, None] == block.feature_of
    assert (np.abs(block.D[~joined]) < 1e-12).all() and (np.abs(block.D[joined]) > 0.01).all()


def test_shrinking_moves_correlations_and_no_diagonal():
    _, S, _, _ = study(sizes=(6,), signals=1)
    block = _Block.of(S, np.arange(6), np.arange(6), 0.25)
    np.testing.assert_allclose(block.S, 0.75 * S + 0.25 * np.eye(6))
