"""Kinds of columns: what is recognised, what is said, what may be overruled, and what a model of y gets."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError
from knockoffs.sampling.pair import Pair
from knockoffs.table.columns import describe, design, looks_like_counts, recognise_kind
from knockoffs.table.table import read_table

RNG = np.random.default_rng(20261115)
N = 400


def zero_inflated(share):
    return np.where(RNG.random(N) < share, 0.0, RNG.lognormal(size=N))


NUMBERS = {
    "normal": (RNG.standard_normal(N), "continuous"),
    "normal, two decimals": (np.round(RNG.standard_normal(N), 2), "continuous"),
    "log-normal": (RNG.lognormal(size=N), "continuous"),
    "half zeros, continuous rest": (zero_inflated(0.5), "continuous"),
    "95 % zeros, continuous rest": (zero_inflated(0.95), "continuous"),
    "zeros and heaps, continuous rest": (np.where(RNG.random(N) < 0.3, 10.0, zero_inflated(0.5)), "continuous"),
    "salaries": (np.round(RNG.lognormal(10, 1, N)), "continuous"),
    "whole numbers, all different": (RNG.permutation(N) * 7.0, "continuous"),
    "0/1": (RNG.integers(0, 2, N), "binary"),
    "1/2": (RNG.integers(1, 3, N), "binary"),
    "-1/1": (2 * RNG.integers(0, 2, N) - 1, "binary"),
    "two fractions": (RNG.choice([0.3, 0.7], N), "binary"),
    "genotypes": (RNG.binomial(2, 0.3, N), "ordinal"),
    "grades 1 to 5": (RNG.integers(1, 6, N), "ordinal"),
    "half steps": (RNG.integers(0, 9, N) / 2, "ordinal"),
    "months": (RNG.integers(1, 13, N), "ordinal"),
    "negative scale": (RNG.integers(-3, 4, N), "ordinal"),
    "one decimal, 40 values": (np.tile(np.arange(40) / 10, 10), "ordinal"),
    "Poisson 0.5": (RNG.poisson(0.5, N), "count"),
    "Poisson 2": (RNG.poisson(2.0, N), "count"),
    "Poisson 10": (RNG.poisson(10.0, N), "count"),
    "overdispersed": (RNG.negative_binomial(1, 0.2, N), "count"),
    "ages in years, many rows": (np.tile(np.arange(18, 90), 20), "count"),
    "constant": (np.full(N, 3.0), "ordinal"),
    "three rows": (np.array([0.5, 1.5, 2.5]), "continuous"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_recognised(name):
    values, kind = NUMBERS[name]
    assert recognise_kind(np.asarray(values, dtype=float))[0] == kind
    with_gaps = np.where(np.arange(len(values)) % 50 == 7, np.nan, values)
    if len(values) > 50:
        assert recognise_kind(with_gaps)[0] == kind
    table = read_table(np.column_stack([with_gaps, np.random.default_rng(0).random(len(values))]))
    assert [column.kind for column in table.columns] == [kind, "continuous"]
    assert table.columns[0].n_missing == np.isnan(with_gaps).sum()


def test_the_kind_depends_neither_on_the_order_of_the_rows_nor_on_dtype():
    for values, _ in NUMBERS.values():
        values = np.asarray(values, dtype=float)
        kinds = {read_table(values[order, None]).columns[0].kind for order in (np.argsort(values), np.argsort(-values))}
        if (values == np.rint(values)).all():
            kinds.add(read_table(values.astype(int)[np.argsort(-values), None]).columns[0].kind)
        assert kinds == {recognise_kind(values)[0]}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series(["a", "b", "c"] * 5), "nominal"),
        (pd.Series(["a", "b"] * 5), "binary"),
        (pd.Series([True, False] * 5), "binary"),
        (pd.Series([True] * 5), "binary"),
        (pd.Series(["x"] * 6), "nominal"),
        (pd.Series(["a", "b", "c"] * 5, dtype="category"), "nominal"),
        (pd.Series(["a", "b", "c"] * 5, dtype=pd.CategoricalDtype(["c", "a", "b"], ordered=True)), "ordinal"),
        (pd.cut(pd.Series(np.arange(15) * 1.5), 4), "ordinal"),
        (pl.Series(["a", "b", "c"] * 5, dtype=pl.Categorical), "nominal"),
        (pl.Series(["a", "b", "c"] * 5, dtype=pl.Enum(["c", "a", "b"])), "ordinal"),
        (pd.Series(pd.date_range("2020-01-01", periods=15, freq="h")), "continuous"),
        (pd.Series(pd.to_datetime(["2020-01-01", "2020-02-01", "2020-03-01"] * 5)), "ordinal"),
        (pd.Series(["2020-01-01", "2020-02-03"] * 5), "binary"),
        (pd.Series([f"2020-01-{day:02d}" for day in range(1, 21)]), "continuous"),
    ],
)
def test_labels_and_dates_are_recognised(column, kind):
    frame = column.to_frame("column")
    assert read_table(frame).columns[0].kind == kind


def test_ordered_categories_have_codes_in_their_order():
    frame = pd.DataFrame(
        {"g": pd.Categorical(["mid", "low", "high"] * 4, ["low", "unused", "mid", "high"], ordered=True)}
    )
    table = read_table(frame)
    assert table.columns[0].levels == ("low", "mid", "high")
    assert table.X[:3, 0].tolist() == [1, 0, 2]
    read = read_table(pl.DataFrame({"g": pl.Series(list("bac") * 4, dtype=pl.Enum(["c", "unused", "a", "b"]))}))
    assert read.columns[0].levels == ("c", "a", "b") and read.X[:3, 0].tolist() == [2, 1, 0]


def test_dates_are_days():
    frame = pd.DataFrame(
        {"d": pd.to_datetime(["1970-01-02 00:00", "1970-01-03 12:00", None] * 4), "x": np.arange(12) / 7}
    )
    table = read_table(frame)
    np.testing.assert_array_equal(table.X[:3, 0], [1, 2.5, np.nan])
    spans = read_table(pd.DataFrame({"d": pd.to_timedelta([36, 12, 24] * 4, unit="h")}))
    np.testing.assert_array_equal(spans.X[:3, 0], [1.5, 0.5, 1])


def test_each_column_is_described_in_one_sentence():
    frame = pd.DataFrame(
        {
            "size": np.where(np.arange(60) == 4, np.nan, RNG.standard_normal(60)),
            "grade": np.tile([1, 2, 3, 4, 5], 12),
            "colour": ["red", "green", "blue"] * 20,
            "sick": [True, False] * 30,
            "visits": RNG.poisson(2.0, 60),
            "level": pd.Categorical(["low", "high", "mid"] * 20, ["low", "mid", "high"], ordered=True),
        }
    )
    said = [describe(column) for column in read_table(frame).columns]
    assert said[0].startswith("'size' is continuous: numbers from -") and said[0].endswith("; 1 cell is missing.")
    assert said[1] == (
        "'grade' is ordinal: 5 different whole numbers, 1 to 5; if they are codes, say kinds={'grade': 'nominal'}."
    )
    assert said[2] == "'colour' is nominal: text with 3 different values."
    assert said[3] == "'sick' is binary: boolean."
    assert said[4].startswith("'visits' is count: whole numbers from 0 to ")
    assert said[5] == "'level' is ordinal: 3 categories in the order low < mid < high."


# ---- overruling --------------------------------------------------------------------------------------------------


def frame_to_overrule():
    return pd.DataFrame(
        {
            "code": np.tile([1, 2, 5], 10),
            "size": np.arange(30) / 7,
            "colour": ["red", "green", "blue"] * 10,
            "low": np.tile([-1, 0, 1], 10),
        }
    )


def test_kinds_are_overruled():
    frame = frame_to_overrule()
    order = ["red", "green", "blue", "black"]
    table = read_table(frame, kinds={"code": "nominal", "colour": order, "low": "continuous"})
    assert [column.kind for column in table.columns] == ["nominal", "continuous", "ordinal", "continuous"]
    assert table.columns[0].levels == (1, 2, 5) and table.X[:3, 0].tolist() == [0, 1, 2]
    assert table.columns[2].levels == ("red", "green", "blue") and table.X[:3, 2].tolist() == [0, 1, 2]
    assert "in the order red < green < blue" in describe(table.columns[2])
    pd.testing.assert_frame_equal(table.decode(table.X), frame)
    again = read_table(table)
    assert again is table
    assert read_table(table, kinds={"size": "ordinal"}).columns[1].kind == "ordinal"


def test_missing_cells_survive_an_overruled_kind():
    frame = frame_to_overrule().astype({"code": "Int64", "colour": object})
    frame.loc[3, "code"], frame.loc[4, "colour"] = pd.NA, None
    table = read_table(frame, kinds={"code": "nominal", "colour": ["green", "red", "blue"]})
    assert np.argwhere(np.isnan(table.X)).tolist() == [[3, 0], [4, 2]]
    pd.testing.assert_frame_equal(table.decode(table.X), frame)


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"coulour": "nominal"}, "kinds names 'coulour', which is no column of X. Did you mean 'colour'?"),
        ({"colour": "nomnal"}, "kinds['colour']='nomnal' is not known. Did you mean 'nominal'?"),
        (
            {"colour": "continuous"},
            "column 'colour' of X holds labels, for instance 'blue': use 'nominal' or 'ordinal'",
        ),
        ({"colour": "count"}, "holds labels"),
        ({"colour": "binary"}, "column 'colour' of X has 3 different values: use 'nominal'"),
        ({"low": "count"}, "column 'low' of X holds -1, a negative number: use 'continuous' or 'ordinal'"),
        ({"size": "count"}, "column 'size' of X holds 0.142857, a fraction"),
        ({"code": "binary"}, "column 'code' of X has 3 different values: use 'ordinal'"),
        ({"size": "nominal"}, "column 'size' of X has 30 different values in 30 rows, too many for labels"),
        ({"colour": ["red", "green"]}, "also holds 'blue': list all of its labels"),
        ({"colour": ["red", "green", "blue", "red"]}, "has its labels listed twice: 'red'"),
        ({"code": [1, 2, 5]}, "holds numbers, which have their own order: say 'ordinal'"),
    ],
)
def test_a_kind_that_contradicts_the_data_is_refused(kinds, message):
    with pytest.raises(InputError) as error:
        read_table(frame_to_overrule(), kinds=kinds)
    assert message in str(error.value)


def test_all_wrong_kinds_are_in_one_error():
    with pytest.raises(InputError, match="no column.*negative number.*holds labels"):
        read_table(frame_to_overrule(), kinds={"nothing": "count", "low": "count", "colour": "count"})


# ---- for a model of y --------------------------------------------------------------------------------------------


def mixed_table():
    frame = pd.DataFrame(
        {
            "size": [0.5, 1.5, 2.5, 3.5],
            "colour": ["red", "green", "blue", "red"],
            "sick": [True, False, True, False],
            "one": ["x"] * 4,
            "code": [1, 7, 1, 7],
        }
    )
    return read_table(frame)


def test_nominal_columns_become_indicators_and_the_others_stay():
    table = mixed_table()
    made = design(table.columns)
    np.testing.assert_array_equal(made.feature_of, [0, 1, 1, 1, 2, 3, 4])
    np.testing.assert_array_equal(
        made(table.X),
        [[0.5, 0, 0, 1, 1, 0, 1], [1.5, 0, 1, 0, 0, 0, 7], [2.5, 1, 0, 0, 1, 0, 1], [3.5, 0, 0, 1, 0, 0, 7]],
    )
    np.testing.assert_array_equal(design(table.columns, np.array([0, 0, 1, 1, 2])).feature_of, [0, 0, 0, 0, 1, 1, 2])


def test_the_design_commutes_with_every_swap():
    table = mixed_table()
    made = design(table.columns)
    X_tilde = table.X[[2, 3, 1, 0]]
    for bits in range(2**5):
        S = np.array([bits >> j & 1 for j in range(5)], dtype=bool)
        first = Pair(table.X, X_tilde, np.arange(5)).swap(S)
        after = Pair(made(table.X), made(X_tilde), made.feature_of).swap(S)
        np.testing.assert_array_equal(made(first.X), after.X)
        np.testing.assert_array_equal(made(first.X_tilde), after.X_tilde)


def test_a_table_without_nominal_columns_is_not_copied():
    X = RNG.standard_normal((5, 3))
    assert design(read_table(X).columns)(X) is X


def test_counts_are_not_classes():
    assert not looks_like_counts(np.arange(10), np.full(10, 50))
    assert not looks_like_counts(np.array([-1, 0, 1]), np.array([70, 20, 2]))
    assert not looks_like_counts(np.array([0, 0.5, 1]), np.array([70, 20, 2]))
    assert not looks_like_counts(np.array([0, 1, 2, 7]), np.array([40, 40, 40, 1]))
    assert looks_like_counts(np.arange(4), np.array([370, 111, 17, 2]))
    assert looks_like_counts(np.arange(9), np.array([300, 50, 75, 75, 56, 34, 17, 7, 3]))  # many zeros


def test_nearly_all_zeros_and_a_few_small_whole_numbers_are_no_continuous_column():
    values = np.zeros(600)
    values[:9] = [1, 2, 3, 4, 5, 8, 1, 1, 2]
    assert recognise_kind(values)[0] in ("count", "ordinal")
    values[:9] = [10, 210, 350, 421, 57, 800, 999, 123, 224]
    assert recognise_kind(values)[0] == "continuous"
