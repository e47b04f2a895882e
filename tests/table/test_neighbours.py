"""Groups of neighbouring columns: the tree against joining by brute force, and automatic groups of sites."""

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz

from knockoffs.table.auto_groups import ROOM, WINDOW, auto_groups, cut_neighbours, neighbour_tree, room_of, runs
from knockoffs.table.table import read_table


def joined_by_hand(R):
    """Branches after every join of the two neighbours whose average |correlation| is largest."""
    branches, heights, steps = [[j] for j in range(len(R))], [], []
    while len(branches) > 1:
        means = [np.abs(R[np.ix_(a, b)]).mean() for a, b in zip(branches, branches[1:], strict=False)]
        best = int(np.argmax(means))
        branches[best : best + 2] = [branches[best] + branches[best + 1]]
        heights.append(1 - means[best])
        steps.append([list(branch) for branch in branches])
    return heights, steps


@pytest.mark.parametrize("d", [2, 3, 9, 17])
def test_the_tree_joins_the_nearest_neighbours(d):
    A = np.random.default_rng(d).standard_normal((d, d + 2))
    R = np.corrcoef(A)
    heights, steps = joined_by_hand(R)
    tree = neighbour_tree(R)
    np.testing.assert_allclose(tree[:, 2], heights, atol=1e-12)
    members = [[j] for j in range(d)]
    for left, right, _ in tree:
        members.append(members[int(left)] + members[int(right)])
    assert members[d:] == [
        next(b for b in step if b not in before)
        for before, step in zip([[[j] for j in range(d)], *steps], steps, strict=False)
    ]
    for height in (0.2, 0.5, 0.8):
        n = next((i for i, h in enumerate(heights) if h > height), len(heights))
        assert cut_neighbours(tree, d, height) == (steps[n - 1] if n else [[j] for j in range(d)])


def test_runs_are_stretches_of_one_group():
    assert runs([4, 4, 1, 4, 4, 2]).tolist() == [0, 0, 1, 2, 2, 3]
    assert runs([0]).tolist() == [0]


def test_automatic_groups_of_sites_are_of_neighbours_and_have_room():
    """Far sites that are alike stay apart where columns have an order, and are joined where they have none."""
    block = toeplitz(0.95 ** np.arange(6))
    R = block_diag(block, np.eye(4), block)
    found = auto_groups(R, ordered=True)
    assert "of neighbours" in found.note
    assert (np.diff(found.feature_of) >= 0).all()
    precision = np.linalg.inv(R)
    assert all(room_of(R, precision, found.columns(g)) >= ROOM - 1e-9 for g in range(len(found)))
    order = np.random.default_rng(0).permutation(16)
    mixed = R[np.ix_(order, order)]
    assert (np.diff(auto_groups(mixed, ordered=True).feature_of) >= 0).all()
    assert (np.diff(auto_groups(mixed).feature_of) < 0).any()
    assert auto_groups(R, ordered=True, cut=0.5).feature_of[6:10].tolist() == [*range(1, 5)]


def test_more_sites_than_rows():
    """The window keeps the regressions small: with all 400 sites, 150 rows would leave no variance to any group."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((150, 400))
    for j in range(1, 400):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    assert 2 * WINDOW < 150
    from dataclasses import replace

    table = replace(read_table(X), ordered=True).with_groups("auto")
    sizes = np.bincount(table.feature_of)
    assert len(sizes) > 150 and sizes.max() <= 6  # one site keeps 60 % given the others
