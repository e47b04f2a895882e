"""Tables as people have them: what is no feature is refused by name, all at once, and nothing innocent is blamed."""

import datetime
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.table import InputTypeError, read_table
from knockoffs.table.target import as_target

RNG = np.random.default_rng(7)
N = 60
SIZE = RNG.standard_normal(N)


def frames(**columns):
    """The same columns as a frame of pandas and of polars."""
    data = {"size": SIZE, **columns}
    return [pd.DataFrame(data), pl.DataFrame(data)]


def refusal(X, **options):
    with pytest.raises(InputError) as error:
        read_table(X, **options)
    return str(error.value)


NAMES = [f"person {k}" for k in RNG.permutation(N)]
NOTES = [f"note {k}" for k in RNG.integers(0, 45, N)]
STRAY = [str(v) for v in np.round(RNG.standard_normal(N), 3)]


@pytest.mark.parametrize("which", [0, 1], ids=["pandas", "polars"])
def test_identifiers_and_free_text_are_refused_by_name(which):
    message = refusal(frames(name=NAMES)[which])
    assert "column 'name' of X has a different label in each of 60 rows, for instance 'person 0'" in message
    assert "drop it" in message
    message = refusal(frames(note=NOTES)[which])
    assert f"column 'note' of X has {len(set(NOTES))} different labels in 60 rows" in message


def test_an_identifier_stays_one_as_a_category_and_with_gaps():
    assert "different label in each of 60" in refusal(pd.DataFrame({"name": pd.Categorical(NAMES)}))
    with_gaps = [None if k < 5 else name for k, name in enumerate(NAMES)]
    assert "different label in each of 55" in refusal(frames(name=with_gaps)[0])


def test_an_order_of_all_different_labels_is_a_ranking():
    frame = pd.DataFrame({"rank": pd.Categorical(NAMES, sorted(NAMES), ordered=True)})
    assert read_table(frame).columns[0].kind == "ordinal"


def test_a_user_may_insist_on_many_categories():
    assert read_table(frames(note=NOTES)[0], kinds={"note": "nominal"}).columns[1].kind == "nominal"
    assert "different label" in refusal(frames(name=NAMES)[0], kinds={"name": "nominal"})


@pytest.mark.parametrize("which", [0, 1], ids=["pandas", "polars"])
def test_a_stray_word_is_blamed_and_not_the_numbers(which):
    message = refusal(frames(dose=[*STRAY[:17], "soon", *STRAY[18:]])[which])
    assert "column 'dose' of X holds numbers, but 'soon' in row 17: make missing cells empty" in message
    assert all(repr(number) not in message for number in STRAY)


def test_a_stray_word_is_blamed_in_a_table_of_few_rows():
    dose = ["1.5", "2.25", "soon", "0.5", "7", "3"]
    assert "column 'dose' of X holds numbers, but 'soon' in row 2:" in refusal(pd.DataFrame({"dose": dose}))
    assert "an identifier" in refusal(pd.DataFrame({"dose": ["a1", "2", "b", "3", "c", "4"]}))


def test_stray_words_among_python_numbers():
    cells = [float(v) for v in SIZE]
    cells[3], cells[40] = "unknown", "?"
    message = refusal(pd.DataFrame({"size": SIZE, "dose": pd.Series(cells, dtype=object)}))
    assert "column 'dose' of X holds numbers, but 'unknown' in row 3 (2 cells of '?', 'unknown')" in message
    assert "'x1' of X mixes strings with 7 in row 2" in refusal([[1.5, "a"], [2.5, "b"], [0.5, 7], [1.0, "b"]])
    days = [datetime.date(2020, 1, 1)] * 4 + ["?"]
    assert "holds dates, but '?' in row 4" in refusal(pd.DataFrame({"d": pd.Series(days, dtype=object)}))


def test_codes_with_a_word_among_them_are_categories():
    dependents = ["0", "1", "2", "3+"] * 15
    assert read_table(frames(dependents=dependents)[1]).columns[1].kind == "nominal"


@pytest.mark.parametrize("which", [0, 1], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__", "index", "level_0", "row.names"])
def test_an_index_that_was_written_beside_the_table_is_left_out(name, which):
    for values, does in ((range(N), "numbers"), (range(1, N + 1), "numbers"), (NAMES, "names")):
        with pytest.warns(KnockoffWarning, match=f"X: the column '{name}' {does} the rows and is left out"):
            assert read_table(frames(**{name: list(values)})[which]).names == ("size",)


def test_a_column_that_counts_the_rows_under_another_name_is_said():
    with pytest.warns(KnockoffWarning, match="columns 'day', 'patient_id' of X number the rows"):
        read_table(pd.DataFrame({"size": SIZE, "day": np.arange(1, N + 1), "patient_id": RNG.permutation(N) + 7000}))
    with pytest.warns(KnockoffWarning, match="column 'x1' of X numbers the rows"):
        read_table(np.column_stack([SIZE, np.arange(N)]))


def test_whole_numbers_under_other_names_are_left_alone():
    read_table(pd.DataFrame({"size": SIZE, "index": RNG.permutation(N), "width": RNG.permutation(N)}))  # unordered
    read_table(pd.DataFrame({"id": RNG.integers(0, 5, N), "size": SIZE}))  # a group, not an identifier
    read_table([[1, 2.5], [2, 0.5], [3, 1.5]])  # three rows are counted by chance


@pytest.mark.parametrize("which", [0, 1], ids=["pandas", "polars"])
def test_columns_with_too_few_cells_are_refused(which):
    def column(observed):
        return [float(SIZE[k]) if k < observed else None for k in range(N)]

    assert "column 'a' of X is missing in all 60 rows: drop it" in refusal(frames(a=column(0))[which])
    assert "column 'a' of X has 9 observed cells in 60 rows" in refusal(frames(a=column(9))[which])
    assert read_table(frames(a=column(10))[which]).columns[1].n_missing == 50


def test_a_share_of_the_cells_is_needed_in_long_tables():
    n = 1000
    few = np.where(np.arange(n) < 49, RNG.standard_normal(n), np.nan)
    enough = np.where(np.arange(n) < 50, RNG.standard_normal(n), np.nan)
    message = refusal(np.column_stack([RNG.standard_normal(n), few, enough]))
    assert "column 'x1' of X has 49 observed cells in 1000 rows" in message and "'x2'" not in message


def test_all_offending_columns_are_in_one_error():
    frame = pd.DataFrame(
        {
            "name": NAMES,
            "dose": [*STRAY[:5], "soon", *STRAY[6:]],
            "empty": np.full(N, np.nan),
            "size": np.where(np.arange(N) == 8, np.inf, SIZE),
            "fine": SIZE,
            "mixed": pd.Series(["a", 1] * 30, dtype=object),
        }
    )
    message = refusal(frame)
    assert message.startswith("X has 5 columns that cannot be used as they are:\n")
    for name in ("name", "dose", "empty", "size", "mixed"):
        assert f"\n  {name!r} " in message
    assert "'fine'" not in message
    assert message.endswith(
        "To leave them out: drop=['mixed', 'name', 'dose', 'empty', 'size'], or --drop on the command line."
    )
    only = refusal(frame[["dose", "fine"]])
    assert only.endswith("\nTo leave it out: drop=['dose'], or --drop on the command line.")


def test_objects_that_are_no_cells_are_type_errors():
    for odd in ({"a": 1}, [1, 2], object(), np.zeros(2), {1}):
        column = np.empty(4, dtype=object)
        column[:] = ["a", "b", odd, "a"]
        with pytest.raises(InputTypeError, match=r"column 'x' of X holds .* in row 2: every argument must be a string"):
            read_table(pd.DataFrame({"x": column}))


def test_rows_without_any_value_are_said():
    X = np.column_stack([SIZE, SIZE])
    X[[4, 9]] = np.nan
    with pytest.warns(KnockoffWarning, match="X has no value at all in 2 rows, the first is row 4"):
        read_table(X)


def test_odd_but_usable_cells():
    """Booleans of get_dummies, encoders' output, big integers, negative zero, NA of every kind."""
    dummies = pd.get_dummies(pd.DataFrame({"c": list("abc") * 20, "size": SIZE}))
    assert [column.kind for column in read_table(dummies).columns] == ["continuous", "binary", "binary", "binary"]
    onehot = np.eye(3)[RNG.integers(0, 3, N)]
    assert {column.kind for column in read_table(onehot).columns} == {"binary"}
    cells = pd.Series([1.5, None, float("nan"), pd.NA, pd.NaT, 2, np.float32(0.5), 7, 8, 9, 10], dtype=object)
    table = read_table(pd.DataFrame({"a": cells, "b": np.arange(11) / 3}))
    np.testing.assert_array_equal(table.X[:, 0], [1.5, np.nan, np.nan, np.nan, np.nan, 2, 0.5, 7, 8, 9, 10])
    assert read_table([["a", None], ["b", 1.5], ["a", 2.5]]).X[:, 1].tolist()[1:] == [1.5, 2.5]
    assert read_table([[True, 1], [False, 2], [None, 3], [True, 4]]).columns[0].dtype == "boolean"


def test_a_category_that_appears_once_is_taken_and_said():
    table = read_table(pd.DataFrame({"size": SIZE, "c": ["a", "b", "c"] * 19 + ["a", "b", "rare"]}))
    assert table.columns[1].levels == ("a", "b", "c", "rare")
    assert "'rare' in one row only" in table.columns[1].why


def test_a_big_table_of_floats_is_not_copied():
    X = np.random.default_rng(0).standard_normal((20_000, 300))
    tracemalloc.start()
    table = read_table(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table.X is X and peak < 0.2 * X.nbytes


def test_what_is_read_is_not_changed():
    frame = pd.DataFrame({"size": SIZE, "d": ["2020-01-01", "2020-02-01"] * 30, "c": ["a", None, "b"] * 20})
    before = frame.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frame, kinds={"c": ["b", "a"]})
    pd.testing.assert_frame_equal(frame, before)
    X = np.column_stack([np.tile([1.0, 2.0, 5.0], 20), SIZE])
    kept = X.copy()
    read_table(X, kinds={"x0": "nominal"})
    np.testing.assert_array_equal(X, kept)


HALF = np.arange(N) % 2 == 0


def test_a_number_that_stands_for_missing_is_named():
    values = np.where(HALF, -999, RNG.integers(0, 30, N))
    with pytest.warns(KnockoffWarning, match="-999 in 30 cells of column 'm', far from the other numbers"):
        read_table(frames(m=values)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(frames(m=np.where(HALF, 99, RNG.integers(0, 90, N)))[0])


def test_a_number_that_stands_for_a_missing_target_is_named():
    table = read_table(RNG.standard_normal((N, 3)))
    for y, said in (
        (np.where(HALF, -999, RNG.standard_normal(N)), "y is -999 in 30 rows"),
        (np.where(np.arange(N) < 9, -9, 1 + HALF), "y is -9 in 9 rows"),
    ):
        with pytest.warns(KnockoffWarning, match=f"{said}, far from the other numbers: .* make these cells empty"):
            as_target(y, table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for y in (np.where(HALF, 99, RNG.integers(0, 90, N)), np.where(HALF, -9, 9), np.where(HALF, "-9", "1")):
            as_target(y, table)
        as_target(np.r_[-999, RNG.standard_normal(N - 1)], table)
