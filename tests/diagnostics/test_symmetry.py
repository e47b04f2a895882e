"""What every p-value rests on, exactly: a swap in a row changes the sign of that row's number, and nothing else."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from knockoffs.diagnostics import margins, moments, scores
from knockoffs.diagnostics.classifier import swap_rows, tell_apart
from knockoffs.diagnostics.margins import margin_differences
from knockoffs.diagnostics.moments import joint_sums, pair_sums
from knockoffs.diagnostics.scores import link_scores, middle_ranks, pooled_ranks
from knockoffs.diagnostics.support import atoms, round_alike
from knockoffs.sampling.pair import Pair

KINDS = ("continuous", "nominal", "continuous", "binary", "count")
OWNER = np.array([0, 1, 2, 2, 3])  # the third feature has two columns


@pytest.fixture
def pair(rng):
    """Any table at all: the symmetry is a property of the statistics, not of the data."""
    n = 40
    X, X_tilde = (
        np.column_stack(
            [
                rng.standard_normal(n),
                rng.integers(4, size=n),
                np.exp(rng.standard_normal(n)),
                rng.integers(2, size=n),
                rng.poisson(3, size=n),
            ]
        )
        for _ in range(2)
    )
    X_tilde[:7, 3] = 0.5
    return Pair(X, X_tilde, OWNER)


@pytest.fixture
def S(rng, pair):
    return rng.random((len(pair), pair.n_features)) < 0.5


def signs_of(S):
    return np.where(S, -1.0, 1.0)[:, OWNER]


def test_margins_change_their_sign_column_by_column(pair, S):
    before, after = margin_differences(pair, KINDS)[0], margin_differences(swap_rows(pair, S), KINDS)[0]
    for j in range(5):
        np.testing.assert_allclose(after[j], signs_of(S)[:, [j]] * before[j], atol=1e-12)


def test_margins_of_all_columns_change_their_sign_together(pair, rng):
    every = np.repeat(rng.random((len(pair), 1)) < 0.5, pair.n_features, axis=1)
    before, after = margin_differences(pair, KINDS)[1], margin_differences(swap_rows(pair, every), KINDS)[1]
    np.testing.assert_allclose(after, np.where(every[:, :1], -1, 1) * before, atol=1e-12)


def test_scores_move_with_their_values(pair, S):
    before, after = link_scores(pair, KINDS), link_scores(swap_rows(pair, S), KINDS)
    sign = signs_of(S)[:, before.column_of]
    np.testing.assert_array_equal(before.column_of, after.column_of)
    np.testing.assert_allclose(after.difference, sign * before.difference, atol=1e-12)
    np.testing.assert_allclose(after.middle, before.middle, atol=1e-12)


def test_atoms_change_their_sign(pair, S):
    swapped = swap_rows(pair, S)
    for j in range(5):
        for least in (2, 4):
            before, after = (atoms(p.X[:, j], p.X_tilde[:, j], least) for p in (pair, swapped))
            np.testing.assert_array_equal(after, signs_of(S)[:, j] * before)


def test_rounding_moves_with_the_values(rng):
    X = rng.standard_normal((200, 2)).round(1)
    pair = Pair(X, rng.standard_normal((200, 2)), np.arange(2))
    S = rng.random((200, 2)) < 0.5
    kinds = ("continuous", "continuous")
    first, second = swap_rows(round_alike(pair, kinds), S), round_alike(swap_rows(pair, S), kinds)
    np.testing.assert_array_equal(first.stacked, second.stacked)
    assert len(np.unique(first.stacked)) < 80 < len(np.unique(pair.stacked))


def cross_terms(pair):
    """D_i D_j of each row, shape (n, k, k), and which of them `pair_sums` counts."""
    found = link_scores(pair, KINDS)
    D = found.difference
    counted = pair_sums(found, OWNER[found.column_of])[1] > 0
    return np.einsum("ni,nj->nij", D, D), counted, found.column_of


def test_products_of_differences_change_their_sign_with_one_feature(pair):
    """Swap one feature in all rows: D_i D_j of it with another feature changes its sign, everything else stays."""
    for feature in range(pair.n_features):
        S = np.zeros((len(pair), pair.n_features), bool)
        S[:, feature] = True
        (before, counted, column_of), (after, _, _) = cross_terms(pair), cross_terms(swap_rows(pair, S))
        inside = OWNER[column_of] == feature
        flips = inside[:, None] != inside
        np.testing.assert_allclose(after, np.where(flips, -1, 1) * before, atol=1e-12)
        assert not counted[np.ix_(inside, inside)].any()  # these never change: they would be no coin


@pytest.mark.parametrize("half", [0, 1])
def test_joint_sums_change_their_sign(pair, half):
    owner = OWNER[link_scores(pair, KINDS).column_of]
    S = np.ones(pair.n_features, bool) if not half else np.random.default_rng(3).permutation(4) % 2 == 0
    swapped = swap_rows(pair, np.tile(S, (len(pair), 1)))
    before, after = (joint_sums(link_scores(p, KINDS), owner, np.random.default_rng(3)) for p in (pair, swapped))
    np.testing.assert_allclose(after[half::2], -before[half::2], atol=1e-9)


def test_the_largest_sums_are_valid_over_the_orbit_of_a_table(rng):
    """Random swaps of one table are exchangeable data: 400 of them, P(p <= 0.05) at most 0.05 + 4 standard errors."""
    n, d = 60, 4
    base = Pair(rng.standard_normal((n, d)), 0.3 * rng.standard_t(2, (n, d)), np.arange(d))
    names, kinds = "abcd", ("continuous",) * d
    p = []
    for _ in range(400):
        pair = swap_rows(base, rng.random((n, d)) < 0.5)
        found = scores.link_scores(pair, kinds)
        p.append(
            [
                margins.check_margins(pair, names, kinds).p_value,
                moments.check_moments(pair, found, names, rng).p_value,
            ]
        )
    assert (np.mean(np.array(p) <= 0.05, axis=0) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)).all()
    assert margins.check_margins(base, names, kinds).p_value < 0.05  # which is not so for the table itself


BLOCKS = np.array_split(np.random.default_rng(1).permutation(72), 3)  # the first is only learned from


def asked_about(pair, flips, **options):
    """Answers of the classifier with some rows swapped whole."""
    S = np.zeros((len(pair), pair.n_features), bool)
    S[flips] = True
    return tell_apart(swap_rows(pair, S), BLOCKS, [np.arange(2)] * 2, np.random.default_rng(1), halves=False, **options)


def test_answers_of_the_classifier_are_fair_coins(rng):
    """Every pattern of four swaps, two in each block that is asked about: every pattern of answers comes once."""
    X = rng.standard_normal((72, 2))
    pair = Pair(X, X + rng.standard_normal((72, 2)), np.arange(2))
    order = np.concatenate(BLOCKS)
    asked = [24, 25, 48, 49]
    seen = set()
    for pattern in product([False, True], repeat=4):
        answers = asked_about(pair, order[asked][list(pattern)])
        seen.add(tuple(answers[[place - 24 for place in asked]]))
    assert len(seen) == 16


def test_a_classifier_that_has_seen_the_rows_it_is_asked_about_is_caught(rng):
    X = rng.standard_normal((90, 2))
    pair = Pair(X, rng.standard_normal((90, 2)), np.arange(2))
    order = rng.permutation(90)
    blocks = np.array_split(order, 3)
    honest, leaked = (
        tell_apart(pair, [first, *blocks[1:]], [np.arange(2)] * 2, rng, halves=False).mean()
        for first in (blocks[0], order)
    )
    assert leaked > 0.75 > honest  # 60 fair coins are above 0.75 once in 20,000


def test_missing_cells_say_nothing(pair):
    X, X_tilde = pair.X.copy(), pair.X_tilde.copy()
    X[3, 0] = X_tilde[5, 0] = np.nan
    ranks, ranks_tilde = pooled_ranks(Pair(X, X_tilde, OWNER))
    assert ranks[[3, 5], 0].tolist() == ranks_tilde[[3, 5], 0].tolist() == [0.5, 0.5]
    whole = np.delete(np.arange(40), [3, 5])
    expected = pooled_ranks(Pair(X[whole], X_tilde[whole], OWNER))[0]
    np.testing.assert_allclose(ranks[whole], np.where(np.arange(5) == 0, expected, pooled_ranks(pair)[0][whole]))


@pytest.mark.parametrize("n_values", [3, 7, 10**6])
def test_ranks_are_those_of_scipy(rng, n_values):
    x = rng.integers(n_values, size=50).astype(float)
    np.testing.assert_allclose(middle_ranks(x), (rankdata(x) - 0.5) / 50, rtol=1e-12)


def test_waves_are_cosines(pair):
    r, r_tilde = (ranks[:, 0] for ranks in pooled_ranks(pair))
    found = margins.wave_differences(r, r_tilde)
    for k in range(1, margins.N_WAVES + 1):
        np.testing.assert_allclose(found[:, k - 1], np.cos(np.pi * k * r) - np.cos(np.pi * k * r_tilde), atol=1e-12)
    np.testing.assert_array_equal(found[:, margins.N_WAVES], (r < 0.01) * 1.0 - (r_tilde < 0.01))
    np.testing.assert_array_equal(found[:, -1], (1 - r < 0.05) * 1.0 - (1 - r_tilde < 0.05))
