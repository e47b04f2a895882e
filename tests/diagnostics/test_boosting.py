"""The trees of the verdict: cuts, leaves and missing cells, exactly; what they learn, and what they cannot."""

import numpy as np
import pytest

from knockoffs.diagnostics.boosting import (
    BIN_ROWS,
    LEAST_CURVATURE,
    N_VERDICT_BINS,
    SUM_OF_RATES,
    _bin,
    bin_edges,
    fit_trees,
)


def decided_slowly(trees, v):
    """Walk down every tree: the definition."""
    total = 0.0
    for column, cut, leaf in zip(trees.column, trees.cut, trees.leaf, strict=True):
        node = 0
        for _ in range(3):
            left = v[column[node]] <= cut[node] or cut[node] == np.inf
            node = 2 * node + (1 if left else 2)
        total += leaf[node - 7]
    return total


@pytest.fixture
def table(rng):
    V = rng.standard_normal((300, 6))
    V[:, 4] = V[:, 4] > 0
    V[rng.random((300, 6)) < 0.1] = np.nan
    return V


def test_decisions_are_sums_of_leaves(table, rng):
    y = np.nan_to_num(table[:, 0]) + np.nan_to_num(table[:, 1]) * np.nan_to_num(table[:, 2]) > 0
    trees = fit_trees(table, y, rng, n_trees=7, n_tried=3)
    np.testing.assert_allclose(trees.decide(table), [decided_slowly(trees, v) for v in table], rtol=1e-12)
    assert ((trees.decide(table) > 0) == y).mean() > 0.7


def test_bins_and_cuts_agree(table):
    """v <= edge b if and only if the bin is b or lower: trees learn by bins and decide by values."""
    edges = bin_edges(table)
    codes = _bin(np.ascontiguousarray(table.T), edges)
    assert edges.shape == (6, N_VERDICT_BINS - 1) and (np.diff(edges, axis=1) >= 0).all()
    for b in range(N_VERDICT_BINS - 1):
        np.testing.assert_array_equal(codes <= b, table.T <= edges[:, [b]])
    assert (codes[np.isnan(table.T)] == N_VERDICT_BINS - 1).all()  # missing cells go right, whatever the cut


def test_noise_is_not_learned_beyond_the_rows(rng):
    """On 2000 new rows fair coins are told in 50 +- 5.6 % (five standard errors)."""
    V, y = rng.standard_normal((4000, 5)), rng.random(4000) < 0.5
    trees = fit_trees(V[:2000], y[:2000], rng)
    assert abs(((trees.decide(V[2000:]) > 0) == y[2000:]).mean() - 0.5) < 0.056


def test_constant_and_missing_columns(rng):
    V = np.column_stack([np.ones(50), np.full(50, np.nan)])
    trees = fit_trees(V, np.arange(50) % 2 == 0, rng)
    assert np.isfinite(trees.decide(V)).all() and len(np.unique(trees.decide(V))) == 1


def test_the_same_seed_gives_the_same_trees(table):
    y = table[:, 3] > 0
    first, second = (fit_trees(table, y, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.leaf, second.leaf)


def grown_slowly(V, y, n_trees):
    """Sum of the leaves of trees grown by the definition: every cut of every column tried at every node of a level."""
    edges, score = bin_edges(V), np.zeros(len(V))

    def explained(rows, g, h):
        return g[rows].sum() ** 2 / h[rows].sum()

    def best_left(rows, g, h):
        best = np.ones(len(V), dtype=bool)  # no cut: all go left
        most = explained(rows, g, h) if rows.any() else np.inf
        for left in (V[:, j] <= edge for j in range(V.shape[1]) for edge in edges[j]):
            if min(h[rows & left].sum(), h[rows & ~left].sum()) >= LEAST_CURVATURE:
                here = explained(rows & left, g, h) + explained(rows & ~left, g, h)
                if here > most:
                    best, most = left, here
        return best

    for _ in range(n_trees):
        p = 1 / (1 + np.exp(-score))
        g, h = y - p, p * (1 - p)
        nodes = [np.ones(len(V), dtype=bool)]
        for _ in range(3):
            lefts = [best_left(rows, g, h) for rows in nodes]
            nodes = [rows & side for rows, left in zip(nodes, lefts, strict=True) for side in (left, ~left)]
        for rows in nodes:
            score[rows] += SUM_OF_RATES / n_trees * g[rows].sum() / (h[rows].sum() + 1e-3)
    return score


def test_several_trees_are_those_of_the_definition(table, rng):
    """Steps after the first have a p of every row; all rows give the edges, all columns are tried: nothing is drawn."""
    table = table[:BIN_ROWS]
    y = np.nan_to_num(table[:, 0]) + 2 * np.nan_to_num(table[:, 1]) * np.nan_to_num(table[:, 2]) > 0
    trees = fit_trees(table, y, rng, n_trees=5, n_tried=6)
    np.testing.assert_allclose(trees.decide(table), grown_slowly(table, y, 5), rtol=1e-9)
