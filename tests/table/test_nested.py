"""Trees of columns that users give, and those that are none."""

import numpy as np
import pytest

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.groups import as_groups
from knockoffs.table.nested import columns_of, prune, read_nested

NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("groups", "tree"),
    [
        ([["a", "b"], ["c", ["d", "e"]]], (("a", "b"), ("c", ("d", "e")))),
        ({"x": {"y": ["a", "b"], "z": ["c"]}, "w": ["d", "e"]}, ((("a", "b"), "c"), ("d", "e"))),
        ({"x": [["a", "b"], "c"]}, ("d", "e", (("a", "b"), "c"))),
    ],
)
def test_dicts_of_dicts_and_lists_of_lists_are_trees_over_all_columns(groups, tree):
    found = as_groups(groups, NAMES)
    assert found.tree == tree and found.names == tuple(NAMES)
    assert sorted(columns_of(found.tree)) == NAMES


def test_flat_groups_are_leaves():
    assert as_groups({"pair": ["a", "b"]}, NAMES).tree is None and as_groups(list("xxyyz"), NAMES).tree is None


def test_a_column_that_is_dropped_leaves_the_tree():
    found = as_groups([["a", "b"], ["c", "d"], "e"], NAMES).keep(np.array([True, False, True, True, False]))
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
    with pytest.raises(InputError, match=message):
        read_nested(groups, NAMES)


@pytest.fixture
def table(rng):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rng.standard_normal((200, 5)), columns=NAMES)
    return X, X["a"].to_numpy() + rng.standard_normal(200)


def test_tests_go_down_the_tree_that_is_given(table):
    X, y = table
    options = {"random_state": 0, "feature_model": "gaussian", "verdict": False}
    selector = KnockoffSelector(groups=[["a", "e"], ["b", "c", "d"]], **options).fit(X, y)
    assert [found.features for found in selector.discoveries_] == [("a",)]
    assert selector.selection_.notes["tested"].startswith("5 groups and features")  # the root, two below, a and e
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
