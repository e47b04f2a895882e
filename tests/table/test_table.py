"""What comes in is read as numbers with its names and kinds, goes back as it came, and is refused with reasons."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.filter import check_level
from knockoffs.table.coding import check_knockoffs
from knockoffs.table.table import names_of, read_table, without_columns
from knockoffs.table.target import as_target, check_weights

VALUES = np.array([[1.5, -2.0, 3.0], [0.0, 4.0, 5.5], [7.0, 8.0, 9.0]])


@pytest.mark.parametrize("make", [np.array, np.asfortranarray, list, pd.DataFrame, pl.DataFrame, pl.from_numpy])
def test_numbers_are_read_as_they_are(make):
    table = read_table(make(VALUES))
    np.testing.assert_array_equal(table.X, VALUES)
    assert table.X.dtype == np.float64


def test_names_come_from_the_frame_or_are_numbered():
    assert read_table(VALUES).names == ("x0", "x1", "x2")
    assert read_table(pd.DataFrame(VALUES, columns=list("abc"))).names == ("a", "b", "c")
    assert read_table(pl.DataFrame(VALUES, schema=["a", "b", "c"])).names == ("a", "b", "c")
    assert read_table(pd.DataFrame(VALUES, columns=[7, 8, 9])).names == ("7", "8", "9")


def test_integers_become_floats_only_when_they_must():
    table = read_table(pl.DataFrame({"count": pl.Series([1, 2], dtype=pl.Int8)}))
    assert table.decode(np.array([[2.0], [1.0]]))["count"].dtype == pl.Int8
    assert table.decode(np.array([[2.5], [1.0]]))["count"].to_list() == [2.5, 1.0]


def test_indexes_that_disagree_are_refused():
    frame = pd.DataFrame(VALUES, index=[10, 11, 12])
    with pytest.raises(InputError, match="first in row 1: 11 in X and 12 in y. They hold the same labels"):
        as_target(pd.Series([1, 2, 3], index=[10, 12, 11]), read_table(frame))
    refuses("first in row 0: 10 in X and 0 in y. Align", as_target, pd.Series([1, 2, 3]), read_table(frame))
    as_target(pd.Series([1, 2, 3], index=[10, 11, 12]), read_table(frame))
    as_target(np.array([1, 2, 3]), read_table(frame))


def test_a_target_with_the_name_of_a_column_is_refused():
    frame = pd.DataFrame(VALUES, columns=["a", "b", "c"])
    with pytest.raises(InputError, match="y is called 'b', and X has a column 'b' too"):
        as_target(pd.Series([1.0, 2.0, 3.0], name="b"), read_table(frame))
    refuses("y is called 'b'", as_target, pl.Series("b", [1.0, 2.0, 3.0]), read_table(pl.from_pandas(frame)))


def test_a_copy_of_the_target_is_found_among_many_columns(seed=0):
    X = np.random.default_rng(seed).integers(0, 2, (500, 300)).astype(float)
    y = X[:, 217].copy()
    refuses("column 'x217' of X equals y", as_target, y, read_table(X))
    y[499] = 1 - y[499]  # equal in all rows but the last
    as_target(y, read_table(X))


def test_targets_keep_their_labels():
    table = read_table(VALUES)
    assert as_target(["u", "v", "u"], table).values.tolist() == ["u", "v", "u"]
    assert as_target(pd.Series([True, False, True]), table).values.tolist() == [True, False, True]
    assert as_target(pl.Series(["u", "v", "u"]), table).values.tolist() == ["u", "v", "u"]
    assert as_target(pd.Series(["u", "v", "u"], dtype="category"), table).values.tolist() == ["u", "v", "u"]


@pytest.mark.parametrize("y", [pd.Series([1, 2, 4], dtype="Int64"), np.array([1, 2, 4], dtype=object), [1, 2, 4]])
def test_numbers_in_boxes_are_numbers(y):
    assert as_target(y, read_table(VALUES)).values.tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("fdr", "n_features", "message"),
    [
        (
            0.05,
            10,
            "fdr=0.05 can never select with 10 features: knockoff. needs at least 20 selections. Use method='condit",
        ),
        (0.1, 7, "with 7 features: knockoff. needs at least 10 selections"),
        (0.03, 30, "with 30 features: knockoff. needs at least 34 selections"),
        (0.9, 1, "with 1 feature .n_features=1.: knockoff. needs at least 2 selections"),
    ],
)
def test_a_level_that_can_never_select_is_refused(fdr, n_features, message):
    refuses(message, check_level, fdr, n_features, offset=1)
    check_level(fdr, n_features, offset=0)


@pytest.mark.parametrize(("fdr", "n_features"), [(0.1, 10), (0.05, 20), (1 / 3, 3), (0.0334, 30), (0.01, 100)])
def test_a_level_that_can_just_select_is_taken(fdr, n_features):
    check_level(fdr, n_features, offset=1)


def test_weights_are_checked():
    assert check_weights(None, 3) is None
    np.testing.assert_array_equal(check_weights([1, 0, 2], 3), [1.0, 0.0, 2.0])
    refuses(r"shape \(2,\): expected one weight for each of 3", check_weights, [1, 2], 3)
    refuses("-1.0 in row 1", check_weights, [1, -1, 2], 3)
    refuses("zero in every row", check_weights, [0, 0, 0], 3)


def test_knockoffs_that_are_brought_along_are_checked():
    table = read_table(pd.DataFrame(VALUES, columns=list("abc")))
    np.testing.assert_array_equal(check_knockoffs(VALUES + 1, table), VALUES + 1)
    refuses(r"shape \(2, 3\) and X has shape \(3, 3\)", check_knockoffs, VALUES[:2], table)
    refuses("knockoffs is a function: pass what it makes of X", check_knockoffs, lambda X: X, table)
    refuses("knockoffs are equal to X", check_knockoffs, VALUES, table)
    with pytest.raises(InputError, match="column 0 is called 'b' in knockoffs and 'a' in X"):
        check_knockoffs(pd.DataFrame(VALUES + 1, columns=list("bac")), table)
    refuses("knockoffs contains NaN", check_knockoffs, np.full((3, 3), np.nan), table)
    with pytest.warns(KnockoffWarning, match=r"equal X in 1 columns \('b'\)"):
        check_knockoffs(VALUES + np.array([1, 0, 1]), table)


# ---- columns that are left out ---------------------------------------------------------------------------------------

ROWS = [[f"id {i}", i * 7 % 12 + 0.5, 2.5 * i**2, i % 3] for i in range(12)]  # the first column cannot be a feature
COLUMNS = {name: np.array([row[j] for row in ROWS], dtype=float if j else object) for j, name in enumerate("abcd")}
NAMED = {
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame({name: values.tolist() for name, values in COLUMNS.items()}),
}


@pytest.mark.parametrize("format", NAMED)
def test_frames_stay_frames(format):
    X = NAMED[format]
    assert names_of(X) == list("abcd")
    rest = without_columns(X, ["a", "c"])
    assert type(rest) is type(X) and list(rest.columns) == ["b", "d"]
    assert read_table(rest).names == ("b", "d")
    assert without_columns(X, None) is X and without_columns(X, []) is X
    refuses("drop='e' is not known", without_columns, X, ["e"])


@pytest.mark.parametrize("X", [ROWS, np.array(ROWS, dtype=object)], ids=["rows", "array"])
def test_columns_of_an_array_keep_their_names(X):
    assert names_of(X) == ["x0", "x1", "x2", "x3"]
    table = read_table(without_columns(X, ["x0", "x2"]), kinds={"x3": "nominal"})
    assert table.names == ("x1", "x3") and not table.named and table.kinds[1] == "nominal"
    np.testing.assert_array_equal(table.X[:, 0], COLUMNS["b"])
    assert table.decode(table.X).shape == (12, 2)


def test_a_table_that_was_read_loses_columns_too():
    masked = np.ma.array(np.arange(24.0).reshape(8, 3) ** 2, mask=False)
    masked.mask[2, 1] = True
    table = read_table(without_columns(masked, "x0"))
    assert np.isnan(table.X[2, 0])
    assert without_columns(read_table(masked), ["x1"]).names == ("x0", "x2")
