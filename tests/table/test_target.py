"""The target: what it is taken for, which rows of it are known, and what is refused."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.table import read_table
from knockoffs.table.target import Target, as_target

N = 40
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 2))
TABLE = read_table(X)
COUNTS = np.repeat([0, 1, 2, 3, 4], [16, 12, 7, 3, 2])
WORDS = ["yes", "no"] * 20
GRADES = ["low", "mid", "high", "mid"] * 10


@pytest.mark.parametrize(
    ("y", "kind", "task"),
    [
        (RNG.standard_normal(N), "number", "regression"),
        (COUNTS, "count", "count"),
        (COUNTS.astype(float), "count", "count"),
        (pd.Series(COUNTS, dtype="Int64"), "count", "count"),
        (pl.Series(COUNTS), "count", "count"),
        (WORDS, "binary", "classification"),
        (pd.Series(WORDS, dtype="category"), "binary", "classification"),
        (pd.Series(WORDS, dtype=pd.CategoricalDtype(["no", "yes"], ordered=True)), "binary", "classification"),
        (np.array(WORDS) == "yes", "binary", "classification"),
        (pd.Series(np.array(WORDS) == "yes", dtype="boolean"), "binary", "classification"),
        ([0, 1] * 20, "binary", "classification"),
        (GRADES, "classes", "classification"),
        (pl.Series(GRADES, dtype=pl.Categorical), "classes", "classification"),
        (pd.Series(GRADES, dtype="category"), "classes", "classification"),
        ([0, 1, 2, 1] * 10, "classes", "classification"),
        ([str(v) for v in np.arange(N) / 7], "number", "regression"),  # as a csv file has them
    ],
)
def test_what_y_is(y, kind, task):
    target = as_target(y, TABLE)
    assert (target.kind, target.task, len(target)) == (kind, task, N)
    assert target.observed.all() and target.weights is None
    assert as_target(target, TABLE) is target


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(GRADES, dtype=pd.CategoricalDtype(["low", "mid", "high", "top"], ordered=True)),
        pl.Series(GRADES, dtype=pl.Enum(["low", "mid", "high", "top"])),
    ],
)
def test_ordered_categories_are_ranks(y):
    target = as_target(y, TABLE)
    assert target.kind == "ordinal" and target.levels == ("low", "mid", "high")
    assert target.values[:4].tolist() == [0, 1, 2, 1] and target.values.dtype == float
    assert target.note == (
        "y is ordinal, 'low', 'mid', 'high', and predicted by its ranks; if it is a number, pass task='regression'; if "
        "its values are classes, pass task='classification'."
    )
    classes = as_target(y, TABLE, task="classification")
    assert classes.kind == "classes" and set(classes.values.tolist()) == {"low", "mid", "high"}


@pytest.mark.parametrize(
    "y",
    [
        np.linspace(0.25, 7.125, N),  # fractions are nothing but a number
        np.arange(N) * 7,
        -np.arange(N) * 7,
        np.tile([5, 60, 7, 80, 9, 100, 11, 120, 13, 140, 15, 16, 19, 22, 23, 24, 25, 26, 27, 28], 2),
        np.repeat([0, 1, 2, 3, 4, 5], [6, 11, 11, 7, 4, 1]),
        np.repeat([1, 2, 3, 4, 5], [2, 6, 17, 13, 2]),
        np.tile([0, 1], N // 2),
        np.tile([3, 1, 2, 7], N // 4),
        np.tile(["a", "b"], N // 2),
    ],
)
def test_the_note_names_the_tasks_that_would_be_taken_instead_and_no_others(y):
    target = as_target(y, TABLE)
    named = re.findall(r"pass task='(\w+)'", target.note)
    taken = {}
    for task in ("regression", "count", "ordinal", "classification"):
        try:
            taken[task] = as_target(y, TABLE, task=task).kind
        except InputError:
            continue
    for task in named:
        assert taken[task] != target.kind, task
    numbers = target.kind not in ("binary", "classes")
    assert "classification" in named or not numbers or "classification" not in taken
    if y.dtype.kind == "f":
        assert named == [] and target.note == "y is a number between 0.25 and 7.125."
    assert "says otherwise" not in target.note
    assert "pass" not in as_target(y, TABLE, task=next(iter(taken))).note  # who asked knows how


GAPS = [
    [1.5, None, *range(38)],
    np.array([1.5, np.nan, *range(38)]),
    pd.Series([1.5, None, *range(38)], dtype="Float64"),
    pl.Series([1.5, None, *map(float, range(38))]),
    np.ma.array([1.5, 9.0, *range(38)], mask=[0, 1] + 38 * [0]),
    pd.Series([1.5, pd.NA, *range(38)], dtype=object),
]


@pytest.mark.parametrize("y", GAPS, ids=range(len(GAPS)))
def test_rows_missing_in_y_are_left_out_with_a_sentence(y):
    target = as_target(y, TABLE, weights=np.arange(N) + 1.0)
    assert np.flatnonzero(~target.observed).tolist() == [1]
    assert target.values.tolist() == [1.5, *range(38)] and target.values.dtype == float
    assert target.weights.tolist() == [1.0, *range(3, N + 1)]
    assert target.note.endswith(" 1 row is left out, because y is missing there.")


def test_missing_labels_and_flags():
    target = as_target([None if i in (3, 5) else word for i, word in enumerate(WORDS)], TABLE)
    assert target.kind == "binary" and len(target) == 38
    assert "2 rows are left out" in target.note
    flags = as_target(pd.Series([None, *[True, False] * 19, True], dtype="boolean"), TABLE)
    assert flags.kind == "binary" and flags.values.dtype == bool and len(flags) == 39


def test_words_for_missing_values_among_numbers_as_text():
    with pytest.warns(KnockoffWarning, match="y: '[?]' taken as missing"):
        target = as_target([*map(str, np.arange(N - 1) / 7), "?"], TABLE)
    assert target.kind == "number" and len(target) == N - 1


def test_the_note_says_how_to_overrule():
    assert as_target(COUNTS, TABLE).note == (
        "y is a count, whole numbers from 0 to 4 that thin out upwards; if it is a number, pass task='regression'; if "
        "its values are classes, pass task='classification'."
    )
    assert as_target(COUNTS, TABLE, task="regression").kind == "number"
    assert as_target(COUNTS, TABLE, task="classification").kind == "classes"
    assert "task=" not in as_target(COUNTS, TABLE, task="classification").note
    assert as_target([0, 1, 2, 1] * 10, TABLE, task="count").kind == "count"
    assert as_target([0, 1, 2, 1] * 10, TABLE, task="ordinal").kind == "ordinal"
    assert as_target(pd.Series(COUNTS, name="visits"), TABLE).name == "visits"


REFUSED = [
    ([None] * N, "y is missing in all 40 rows"),
    (None, "y is None"),
    ([1.0, 2.0], "y has 2 values and X has 40 rows"),
    ([1.0, np.inf] * 20, "y is infinity in 20 rows, the first is row 1"),
    ([3, None] * 20, "y has the one value 3"),
    ([*range(39), "?"], r"y holds numbers, but '\?' in row 39: make missing cells empty"),
    (
        [f"${k}.50" for k in range(N)],
        r"amounts as text, for instance '\$0.50': .*: y.str.replace\('.*astype\(float\)",
    ),
    ([Decimal(k) for k in range(N)], "Decimal.*astype"),
    ([f"name {k}" for k in range(N)], "y has 40 different labels in 40 rows .* too many for classes"),
    (pd.date_range("2020-01-01", periods=N), "y holds dates"),
    (X[:, 1], "column 'x1' of X equals y in every row"),
    (np.where(np.arange(N) == 4, np.nan, X[:, 1]), "column 'x1' of X equals y"),
    (np.zeros((N, 2)), r"y has shape \(40, 2\)"),
    (1j * np.arange(N), "complex"),
]


@pytest.mark.parametrize(("y", "message"), REFUSED, ids=range(len(REFUSED)))
def test_a_target_that_cannot_be_used_is_refused(y, message):
    with pytest.raises(InputError, match=message):
        as_target(y, TABLE)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("regresion", "Did you mean 'regression'"),
        ("binary", "task='binary', but y has 5 distinct values"),
    ],
)
def test_a_task_that_is_none(task, message):
    with pytest.raises(InputError, match=message):
        as_target(COUNTS, TABLE, task=task)


def test_counts_have_no_fractions_and_no_minus():
    with pytest.raises(InputError, match="task='count', but y holds 0.5, a fraction"):
        as_target([0, 0.5] * 20, TABLE, task="count")
    with pytest.raises(InputError, match="task='count', but y holds -1, a negative number"):
        as_target([0, -1] * 20, TABLE, task="count")
    with pytest.raises(InputError, match="task='count', but y holds labels"):
        as_target(WORDS, TABLE, task="count")


def test_a_target_of_another_table_is_refused():
    target = Target(np.arange(3.0))
    with pytest.raises(InputError, match="a target of 3 rows and X has 40"):
        as_target(target, TABLE)
    weights = np.where(np.arange(N) == 1, 1.0, 0.0)
    with pytest.raises(InputError, match="zero in every row in which y is known"):
        as_target(GAPS[0], TABLE, weights=weights)


def test_the_word_none_is_a_label_among_labels_and_missing_among_numbers():
    table = read_table(np.arange(24.0).reshape(12, 2) % 7)
    assert as_target(["None", "mild", "severe"] * 4, table).values.tolist() == ["None", "mild", "severe"] * 4
    with pytest.warns(KnockoffWarning, match="y: 'None' taken as missing"):
        target = as_target(["None", "1.5", "2.5"] * 4, table)
    assert target.kind == "number" and "4 rows are left out, because y is missing there" in target.note
