"""Groups in every form a user gives them, those found from the correlations, and what represents them."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz

from knockoffs.errors import InputError
from knockoffs.table.auto_groups import FLOOR, ROOM, auto_groups, room_of
from knockoffs.table.groups import Groups, as_groups, name_group, read_groups

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
    with pytest.raises(InputError, match=message):
        as_groups(groups, NAMES)


def test_a_column_twice_in_one_group_is_no_error():
    assert as_groups([("ldl", "a"), ("ldl", "a")], NAMES).names == ("age", "a", "hdl", "sbp", "dbp")


def test_csv_file(tmp_path):
    path = tmp_path / "groups.csv"
    path.write_text("column,group\nldl,lipids\nhdl,lipids\n\nsbp,pressure\ndbp,pressure\n")
    assert as_groups(read_groups(path), NAMES).names == ("age", "lipids", "pressure")
    path.write_text("ldl,lipids\n")
    with pytest.raises(InputError, match="begins with the line column,group"):
        read_groups(path)
    path.write_text("column,group\nldl\n")
    with pytest.raises(InputError, match="row 2 has 1 cells"):
        read_groups(path)


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
        with pytest.raises(InputError, match="between 0 and 1"):
            auto_groups(R, **wrong)
