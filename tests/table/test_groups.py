"""Groups in every form a user gives them, those found from the correlations, and what represents them."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from tests.refusals import refuses

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.auto_groups import FLOOR, ROOM, WINDOW, auto_groups, cut_tree, neighbour_tree, room_of, runs
from knockoffs.table.groups import Groups, as_groups, columns_of, name_group, prune, read_groups, read_nested
from knockoffs.table.table import read_table

NAMES = ["age", "ldl", "hdl", "sbp", "dbp"]
FORMS = {
    "group to columns": {"lipids": ["ldl", "hdl"], "pressure": ("sbp", "dbp")},
    "column to group": {"ldl": "lipids", "hdl": "lipids", "sbp": "pressure", "dbp": "pressure"},
    "pairs": [("dbp", "pressure"), ("ldl", "lipids"), ("hdl", "lipids"), ("sbp", "pressure")],
    "in order": [None, "lipids", "lipids", "pressure", "pressure"],
    "array": np.array([np.nan, "lipids", "lipids", "pressure", "pressure"], dtype=object),
}


@pytest.mark.parametrize("groups", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_the_same_groups(groups):
    found = as_groups(groups, NAMES)
    assert found.feature_of.tolist() == [0, 1, 1, 2, 2]
    assert found.names == ("age", "lipids", "pressure")
    assert len(found) == 3 and found.columns(2).tolist() == [3, 4]
    assert as_groups(found, NAMES) is found


def test_numbers_are_named_with_their_columns():
    found = as_groups(np.array([7, 7, 7, 7, 2]), NAMES)
    assert found.feature_of.tolist() == [0, 0, 0, 0, 1]
    assert found.names == ("7: age, ldl and 2 more", "2: dbp")
    assert as_groups(np.array([7.0, 7.0, np.nan, 2.0, 2.0]), NAMES).names == ("7: age and ldl", "hdl", "2: sbp and dbp")


def test_none_is_every_column_alone():
    assert as_groups(None, NAMES).names == tuple(NAMES)
    assert as_groups({}, NAMES).feature_of.tolist() == [0, 1, 2, 3, 4]


def test_names_in_words():
    words = [name_group(NAMES[:n]) for n in (1, 2, 3, 4)]
    assert words == ["age", "age and ldl", "age, ldl and hdl", "age, ldl and 2 more"]


@pytest.mark.parametrize(
    "groups, message",
    [
        ({"lipids": ["ldl", "ldll"]}, r"no column 'ldll'\. Did you mean 'ldl'\?"),
        ({"ldll": "lipids", "zzz": "lipids"}, r"no columns 'ldll', 'zzz'\. Did you mean 'ldl'\?"),
        ({"a": ["ldl"], "b": ["ldl", "hdl"]}, "column 'ldl' is in two groups, 'a' and 'b'"),
        ({"a": ["ldl"], "b": "hdl"}, "'b' maps to 'hdl', others to lists"),
        (["a", "b"], "has 2 entries: expected 5"),
        ([], "has 0 entries: expected 5"),
        ({"age": ["ldl", "hdl"]}, "'age' is the name of a group and of a column that is in none"),
        ("atuo", "groups='atuo'"),
        (Groups(np.arange(2), ("a", "b")), "has 2 columns: the table has 5"),
    ],
)
def test_errors_name_the_column_and_the_remedy(groups, message):
    refuses(message, as_groups, groups, NAMES)


def test_a_column_twice_in_one_group_is_no_error():
    assert as_groups([("ldl", "a"), ("ldl", "a")], NAMES).names == ("age", "a", "hdl", "sbp", "dbp")


def test_csv_file(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("column,group\nldl,lipids\nhdl,lipids\n\nsbp,pressure\ndbp,pressure\n")
    assert as_groups(read_groups(path), NAMES).names == ("age", "lipids", "pressure")
    path.write_text("ldl,lipids\n")
    refuses("begins with the line column,group", read_groups, path)
    path.write_text("column,group\nldl\n")
    refuses("row 2 has 1 cells", read_groups, path)


def test_room_is_the_mean_of_one_minus_squared_canonical_correlations():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 9))
    R = A @ A.T
    columns, rest = np.array([0, 2, 5]), np.array([1, 3, 4])
    L = [np.linalg.cholesky(R[np.ix_(c, c)]) for c in (columns, rest)]
    canonical = np.linalg.svd(np.linalg.solve(L[0], R[np.ix_(columns, rest)]) @ np.linalg.inv(L[1]).T)[1]
    assert room_of(R, np.linalg.inv(R), columns) == pytest.approx(np.mean(1 - canonical**2))


def test_auto_groups_are_the_finest_branches_with_room():
    """Every group has room, and none can be split at its own branch of the tree into parts that all have it."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 60)) @ np.linalg.cholesky(toeplitz(0.9 ** np.arange(60))).T
    R = np.corrcoef(X, rowvar=False)
    precision = np.linalg.inv(R)
    found = auto_groups(R)
    assert 5 < len(found) < 30
    for g in range(len(found)):
        columns = found.columns(g)
        assert room_of(R, precision, columns) >= ROOM
        if len(columns) == 2:
            assert min(room_of(R, precision, columns[[j]]) for j in (0, 1)) < ROOM
    assert f"{len(found)} groups of 60 columns" in found.note and "50%" in found.note


def test_auto_groups_of_blocks_are_the_blocks():
    twins = np.array([[1.0, 0.97], [0.97, 1.0]])
    R = block_diag(twins, np.eye(3), -0.9 * np.ones((3, 3)) + 1.9 * np.eye(3) + 1.8 * (np.eye(3) * 0))
    R[5:, 5:] = [[1.0, 0.9, -0.9], [0.9, 1.0, -0.9], [-0.9, -0.9, 1.0]]  # the sign does not matter
    order = np.random.default_rng(2).permutation(8)
    names = np.array(list("abcdefgh"))
    found = auto_groups(R[np.ix_(order, order)], names[order])
    groups = {frozenset(names[order][found.columns(g)]) for g in range(len(found))}
    assert groups == {frozenset("ab"), frozenset("c"), frozenset("d"), frozenset("e"), frozenset("fgh")}
    # units do not matter
    units = 10.0 ** np.arange(8)
    assert np.array_equal(auto_groups(R * np.outer(units, units)).feature_of, auto_groups(R).feature_of)


def test_columns_without_links_are_left_alone_and_hopeless_groups_are_said():
    assert len(auto_groups(np.eye(7))) == 7
    # a smooth curve seen at 60 places: each is known from its neighbours, however they are grouped
    S = toeplitz(np.exp(-((np.arange(60) / 4) ** 2))) + 1e-6 * np.eye(60)
    found = auto_groups(S)
    assert len(found) > 1
    assert "keep less than 50%" in found.note
    for g, h in combinations(range(len(found)), 2):
        assert S[np.ix_(found.columns(g), found.columns(h))].mean() < FLOOR


def test_cut():
    R = block_diag(toeplitz([1, 0.6]), toeplitz([1, 0.4]))
    assert auto_groups(R, list("abcd"), cut=0.5).names == ("a and b", "c", "d")
    assert auto_groups(R, list("abcd"), cut=0.3).names == ("a and b", "c and d")
    assert auto_groups([[2.0]]).feature_of.tolist() == [0]
    for wrong in ({"cut": 1.5}, {"room": -0.1}):
        refuses("between 0 and 1", auto_groups, R, **wrong)


# ---- trees of columns ------------------------------------------------------------------------------------------------

NAMES_OF_NESTED = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("groups", "tree"),
    [
        ([["a", "b"], ["c", ["d", "e"]]], (("a", "b"), ("c", ("d", "e")))),
        ({"x": {"y": ["a", "b"], "z": ["c"]}, "w": ["d", "e"]}, ((("a", "b"), "c"), ("d", "e"))),
        ({"x": [["a", "b"], "c"]}, ("d", "e", (("a", "b"), "c"))),
    ],
)
def test_dicts_of_dicts_and_lists_of_lists_are_trees_over_all_columns(groups, tree):
    found = as_groups(groups, NAMES_OF_NESTED)
    assert found.tree == tree and found.names == tuple(NAMES_OF_NESTED)
    assert sorted(columns_of(found.tree)) == NAMES_OF_NESTED


def test_flat_groups_are_leaves():
    assert (
        as_groups({"pair": ["a", "b"]}, NAMES_OF_NESTED).tree is None
        and as_groups(list("xxyyz"), NAMES_OF_NESTED).tree is None
    )


def test_a_column_that_is_dropped_leaves_the_tree():
    found = as_groups([["a", "b"], ["c", "d"], "e"], NAMES_OF_NESTED).keep(np.array([True, False, True, True, False]))
    assert found.tree == ("a", ("c", "d")) and prune("a", {"b"}) == ()


def itself():
    tree = [["a"], "b"]
    tree[0].append(tree)
    return tree


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["a", "b"], ["b", "c"]], "column 'b' is in two places"),
        ({"x": {"y": ["a"]}, "z": {"y": ["b"]}}, "two groups are named 'y'"),
        ([["a", "bb"]], "no column 'bb'"),
        ([["a"], []], "empty"),
        (itself(), "contains itself"),
    ],
)
def test_a_tree_that_is_none_is_refused(groups, message):
    refuses(message, read_nested, groups, NAMES_OF_NESTED)


@pytest.fixture
def table(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.standard_normal((200, 5)), columns=NAMES_OF_NESTED)
    return X, X["a"].to_numpy() + rng.standard_normal(200)


def test_tests_go_down_the_tree_that_is_given(table):
    X, y = table
    options = {"random_state": 0, "feature_model": "gaussian", "verdict": False}
    selector = KnockoffSelector(groups=[["a", "e"], ["b", "c", "d"]], **options).fit(X, y)
    assert [found.features for found in selector.discoveries_] == [("a",)]
    assert selector.selection_.notes["tested"].endswith(": 5")  # the root, two below, a and e
    beside = KnockoffSelector(groups=[["a", "e"], ["b", "c"]], covariates=["d"], **options).fit(X, y)
    assert [found.features for found in beside.discoveries_] == [("a",)]
    by_knockoffs = KnockoffSelector(groups=[["a", "e"], ["b", "c", "d"]], method="knockoffs", fdr=0.5, **options)
    assert by_knockoffs.fit(X, y).discoveries_ is not None
    with pytest.raises(InputError, match="groups is a tree, which knockoffs use with resolution='auto'"):
        by_knockoffs.set_params(resolution="columns").fit(X, y)


def test_columns_that_are_copies_of_one_are_one(table):
    X, y = table
    copies = X[["a"]].assign(b=X["a"], c=X["a"])
    with pytest.warns(KnockoffWarning, match="dropped as copies"):
        selector = KnockoffSelector(random_state=0, groups=[["a", "b"], "c"], verdict=False).fit(copies, y)
    assert [found.features for found in selector.discoveries_] == [("a",)]


# ---- groups of neighbours --------------------------------------------------------------------------------------------


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
        assert cut_tree(tree, d, height) == (steps[n - 1] if n else [[j] for j in range(d)])


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
