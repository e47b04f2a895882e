"""Hostile tables: each is read and given back in its format, or refused before the work with what to do."""

import datetime
import enum
import fractions
import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from tests.refusals import refuses

from knockoffs import KnockoffSelector, read_table
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.dependent_rows import take_clusters
from knockoffs.table.redundancy import find_relations
from knockoffs.table.table import without_columns
from knockoffs.table.target import as_target

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
HALF = np.arange(N) % 2 == 0
DAY = ONE_DAY = datetime.timedelta(days=1)
NAMES = [*"abcde"]
FLAT = np.tile(X[:, :1], (1, 5))
DATES = pd.date_range("2020", periods=N)
OPTIONS = {"fdr": 0.3, "estimator": "lasso", "verdict": False, "method": "knockoffs", "random_state": 0}


def with_column(values, dtype=None):
    values = pd.Series(values, dtype=dtype) if dtype is not None else values
    return pd.DataFrame(X, columns=NAMES).assign(m=values)


def arrow(values, type):
    return with_column(values, pd.ArrowDtype(type))


def with_series(values, **options):
    return pl.DataFrame(X, schema=NAMES).with_columns(pl.Series("m", values, **options))


class Unequal:
    """A cell that cannot be compared."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("never compare me")


@pytest.fixture(autouse=True)
def only_our_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        yield


REFUSED = {
    "no rows": (X[:0], "at least 5 are needed"),
    "no columns": (X[:, :0], "a minimum of 1 is required"),
    "one dimension": (X[:, 0], "Reshape your data"),
    "three dimensions": (X[:, :, None], "Reshape your data"),
    "a number": (5, "X is int: pass an array or a data frame"),
    "a word": ("abc", "X is str: pass an array or a data frame"),
    "nothing": (None, "pass an array or a data frame"),
    "a dict": ({"a": [1, 2]}, "X is dict: pass an array or a data frame"),
    "a generator": ((row for row in X), "expected 2D array"),
    "ragged rows": ([[1, 2], [3]] * 30, "row 0 has 2 values, row 1 has 1"),
    "infinity": (np.where(X > 2, np.inf, X), "holds infinity in row"),
    "huge": (X / np.abs(X).max() * 1.7e308, "holds numbers as large as .*divide it by a power of ten"),
    "denormal": (X * 1e-310, "varies by less than 1e-300: multiply it by a power of ten"),
    "whole numbers that floats merge": (2**60 + RNG.integers(0, 50, (N, 5)), "beyond 2.53.*subtract the smallest"),
    "merged in pandas": (with_column(2**60 + np.arange(N)), "beyond 2.53"),
    "merged, nullable": (with_column(pd.array([2**60 + i for i in range(N)], dtype="Int64")), "beyond 2.53"),
    "merged in polars": (with_series([2**60 + i for i in range(N)]), "beyond 2.53"),
    "merged, with a gap": (with_series([None, *(2**60 + i for i in range(N - 1))]), "beyond 2.53"),
    "beyond any float": (np.array([[10**400 + i * j for j in range(5)] for i in range(N)], dtype=object), "infinity"),
    "complex": (X + 1j, "pass real and imaginary parts"),
    "a complex column": (with_column(X[:, 0] + 1j), "pass real and imaginary parts"),
    "sparse": (scipy.sparse.csr_array(X), r"pass X.toarray\(\)"),
    "structured": (np.zeros(N, dtype=[("a", float), ("b", int)]), "pass a data frame"),
    "void": (np.zeros((N, 3), dtype="V4"), "neither numbers nor labels"),
    "a lazy frame": (pl.DataFrame(X).lazy(), r"pass X.collect\(\)"),
    "lists in cells": (with_series([[1]] * N), "neither numbers nor labels"),
    "structs in cells": (with_series([{"a": 1}] * N), "neither numbers nor labels"),
    "arrays in cells": (with_column([np.arange(3)] * N), "must be a string .* or a number"),
    "sets in cells": (with_column([frozenset([i % 3]) for i in range(N)]), "must be a string .* or a number"),
    "uuids": (with_column([uuid.UUID(int=i) for i in range(N)]), "must be a string .* or a number"),
    "enums": (with_column([enum.Enum("E", "A B")["AB"[i % 2]] for i in range(N)]), "must be a string .* or a number"),
    "functions": (with_column([len] * N), "must be a string .* or a number"),
    "numbers and words": (with_column([1, "a", 2.5, None, True] * 12), "make missing cells empty"),
    "numbers and their text": (with_column([1, "2"] * 30), "make all of them strings, or numbers"),
    "a label a row": (with_column([f"l{i}" for i in range(N)]), "drop it, or make categories"),
    "all missing": (np.full((N, 5), np.nan), "is missing in all 60 rows: drop it"),
    "one column missing": (with_series([None] * N), "is missing in all 60 rows: drop it"),
    "one cell observed": (np.c_[X, np.r_[1.0, np.full(N - 1, np.nan)]], "too few for a model of it"),
    "categories all missing": (with_column(pd.Categorical([None] * N, categories=["a"])), "missing in all 60 rows"),
    "one name twice": (pd.DataFrame(X, columns=[*"aabcd"]), "two columns of the same name: 'a'"),
    "names of several types": (pd.DataFrame(X, columns=["a", 1, 2.5, None, ("x",)]), "make all of them strings"),
    "1 and '1'": (pd.DataFrame(X, columns=[1, "1", 2, 3, 4]), "make all of them strings"),
    "no name twice": (pd.DataFrame(X, columns=[np.nan, np.nan, 1, 2, 3]), "two columns of the same name"),
    "minus infinity among whole numbers": (with_column(np.where(np.arange(N) == 3, -np.inf, 7)), "infinity in row 3"),
    "infinity of half precision": (
        with_column(np.r_[np.float16(np.inf), X[1:, 0]]),
        "'m' of X holds infinity in row 0",
    ),
    "beyond a long double": (X.astype(np.longdouble) * np.longdouble("1e400"), "'x0' holds infinity in 60 cells"),
    "one cell of 1e308": (with_column(np.r_[1e308, X[1:, 0]]), "as large as 1e[+]308: divide it by a power of ten"),
    "steps below normal": (with_column(np.arange(N) * 5e-324), "varies by less than 1e-300: multiply it"),
    "just beyond 2^53": (with_column(2**53 + np.arange(N)), "beyond 2.53.*drop it if it is an identifier"),
    "lists of Arrow": (
        arrow([[i] for i in range(N)], pa.list_(pa.int64())),
        "column 'm' of X has dtype List.*or drop it",
    ),
    "structs of Arrow": (
        arrow([{"a": i} for i in range(N)], pa.struct([("a", pa.int64())])),
        "column 'm' of X has dtype Struct",
    ),
    "nothing of Arrow": (arrow([None] * N, pa.null()), "column 'm' of X is missing in all 60 rows: drop it"),
    "arrays of polars": (
        with_series([[1, 2]] * N, dtype=pl.Array(pl.Int64, 2)),
        "'m' of X has dtype Array.*or drop it",
    ),
    "objects of polars": (with_series([object()] * N, dtype=pl.Object), "column 'm' of X holds <object"),
    "nulls of polars": (with_series([None] * N, dtype=pl.Null), "column 'm' of X is missing in all 60 rows: drop it"),
    "cells that hate comparison": (with_column([Unequal() for _ in range(N)]), "column 'm' of X holds"),
    "nested lists": ([[[1, 2], 3.0]] * N, "X has cells that hold several values: a cell is one number"),
    "a list of dicts": ([{"a": 1.0, "b": 2.0}] * N, r"list of dicts: pass a data frame, .* pandas.DataFrame\(X\)"),
    "a set": ({1, 2, 3}, "X is set: pass an array or a data frame"),
    "a series": (pd.Series(X[:, 0]), "expected 2D array"),
    "records": (pd.DataFrame(X, columns=NAMES).to_records(), "structured array: pass a data frame"),
    "dates and durations": (
        with_column([DAY if i % 2 else datetime.date(2020, 1, 1) for i in range(N)]),
        "mixes durations with",
    ),
    "durations and numbers": (
        with_column([DAY if i % 2 else i for i in range(N)]),
        "column 'm' of X mixes durations with 0 in row 0",
    ),
    "no duration": (
        with_column(pd.Series([pd.NaT] * N, dtype="m8[ns]")),
        "'m' of X is missing in all 60 rows: drop it",
    ),
    "a category a row": (with_column(pd.Categorical([f"l{i}" for i in range(N)])), "drop it, or make categories"),
    "all masked": (np.ma.masked_all((N, 5)), r"missing in all 60 rows.*drop=\['x0', 'x1', 'x2', 'x3', 'x4'\]"),
    "names equal when joined": (
        pd.DataFrame(
            X, columns=pd.MultiIndex.from_tuples([("a", "b.c"), ("a.b", "c"), *zip("def", "ghi", strict=True)])
        ),
        "two columns of the same name: 'a.b.c'. Rename or drop one",
    ),
    "one name is missing": (pd.DataFrame(X, columns=[None, *"abcd"]), "make all of them strings"),
    "a frame without anything": (pd.DataFrame(), "0 feature.s."),
    "a frame without rows": (pd.DataFrame({"a": [], "b": []}), "at least 5 are needed"),
    "a frame without columns": (pd.DataFrame(index=range(N)), "0 feature.s."),
    "polars without anything": (pl.DataFrame(), "0 feature.s."),
    "voids": (with_column([np.void(b"a")] * N), "column 'm' of X holds"),
    "an enum": (with_column([enum.Enum("E", "A B").A] * N), "column 'm' of X holds"),
    "bytes": (with_column(np.where(HALF, b"a", b"b")), r"holds b'a' .bytes. in row 0: decode them, .str.decode"),
    "binary of polars": (with_series([b"a", b"b"] * 30), "decode them"),
    "decimals": (with_column([Decimal(i) for i in range(N)]), r"make floats of them, .astype\(float\)"),
    "periods": (with_column(pd.period_range("2020", periods=N, freq="M")), r"make dates of them, .dt.to_timestamp\(\)"),
    "intervals": (
        with_column(pd.arrays.IntervalArray.from_tuples([(0, 2), (1, 3), (0, 3)] * 20)),
        r"make categories of them, .astype\('category'\)",
    ),
    "half of a letter in a name": (
        pd.DataFrame(X, columns=pd.Index(["a", "\ud83d", "b", "c", "d"], dtype=object)),
        "not valid Unicode: rename the column",
    ),
    "half of a letter": (
        with_column(pd.Series(["a", "\ud83d", "b"] * 20, dtype=object)),
        "cannot be read .*surrogates",
    ),
    "amounts": (with_column([f"${i},000.50" for i in range(N)]), r"make numbers of them: X\['m'\].str.replace"),
    "commas and points": (
        with_column([f"{i},5" if i % 2 else f"{i}.5" for i in range(N)]),
        "for instance '1,5' and '0.5'",
    ),
}
TAKEN = {
    "large": X * 1e290,
    "small": X * 1e-290,
    "far from zero": X + 1e15,
    "of all scales": X * np.array([1e-200, 1, 1e200, 1, 1]),
    "whole numbers beyond 2^53": RNG.integers(2**60, 2**62, (N, 5)),
    "beyond 2^63": np.uint64(2**63) + RNG.integers(0, 2**60, (N, 5)).astype(np.uint64),
    "beyond 64 bits": np.array([[int(10**30 * v) for v in row] for row in X.tolist()], dtype=object),
    "of 128 bits": with_series([10**20 + i * i for i in range(N)], dtype=pl.Int128),
    "objects": X.astype(object),
    "objects with gaps": np.where(X > 2, None, X),
    "half precision": X.astype(np.float16),
    "long doubles": X.astype(np.longdouble),
    "the other byte order": X.astype(">f8"),
    "read only": np.broadcast_to(X, X.shape),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "a list of tuples": [tuple(row) for row in X.tolist()],
    "fractions": with_column([fractions.Fraction(int(v * 100), 7) for v in X[:, 0]]),
    "a zone": with_column(DATES.tz_localize("Europe/Zurich")),
    "far days": with_column([datetime.date(1 + 150 * i, 1, 1) for i in range(N)]),
    "Arrow": with_column([*"abc"] * 20).convert_dtypes(dtype_backend="pyarrow"),
    "categories": with_column(pd.Categorical(["a", None, "b"] * 20)),
    "categories of two types": with_column(pd.Categorical([1, "1"] * 30)),
    "long labels": with_column(["x" * 10**6, "y" * 10**6] * 30),
    "odd labels": with_column(["\U0001f600", "\u202e", "\x00"] * 20),
    "labels and blanks": with_column(["a", " a", "a "] * 20),
    "names that are numbers": pd.DataFrame(X),
    "names that are dates": pd.DataFrame(X, columns=DATES[:5]),
    "odd names": pd.DataFrame(X, columns=["", "a\nb", "\x00", "\u202e", "e\u0301"]),
    "long names": pd.DataFrame(X, columns=[letter * 100_000 for letter in "abcde"]),
    "rows of one index": pd.DataFrame(X, index=[0] * N),
}
READ_AS = {  # the dtype and the missing cells of the last column
    "decimals of Arrow": (arrow([Decimal(i) / 4 for i in range(N)], pa.decimal128(12, 3)), "number", 0),
    "decimals of polars": (with_series([Decimal(i) / 4 for i in range(N)]), "number", 0),
    "a dictionary of Arrow": (arrow([*"abc"] * 20, pa.dictionary(pa.int32(), pa.string())), "category", 0),
    "booleans of Arrow with gaps": (arrow([True, None, False] * 20, pa.bool_()), "boolean", 20),
    "dates of Arrow": (arrow([datetime.date(2020, 1, 1) + i * DAY for i in range(N)], pa.date32()), "date", 0),
    "times of Arrow": (arrow([datetime.time(i % 24, i) for i in range(N)], pa.time64("us")), "time", 0),
    "durations of Arrow": (arrow([i * i * DAY for i in range(N)], pa.duration("us")), "duration", 0),
    "long strings of Arrow": (arrow(["a", None] * 30, pa.large_string()), "string", 30),
    "zones of Arrow": (arrow(pd.date_range("2020", periods=N, tz="UTC"), pa.timestamp("us", "UTC")), "date", 0),
    "NaN and null": (with_series([float("nan"), None, *X[2:, 0].tolist()]), "number", 2),
    "an enum with a level nobody has": (with_series(["a", "b"] * 30, dtype=pl.Enum([*"abc"])), "category", 0),
    "categories of polars with gaps": (with_series(["a", None, "c"] * 20, dtype=pl.Categorical), "category", 20),
    "empty strings": (with_series(["", "a", "b"] * 20), "string", 20),
    "a zone of polars": (with_series([datetime.datetime(2020, 1, 1) + i * DAY for i in range(N)]), "date", 0),
    "a tuple of arrays": (tuple(X), "number", 0),
    "names of booleans": (pd.DataFrame(X, columns=[True, False, 2, 3, 4]), "number", 0),
    "names of intervals": (pd.DataFrame(X, columns=pd.interval_range(0, 5)), "number", 0),
    "names with blanks": (pd.DataFrame(X, columns=[" ", " a", "a", "b", "c"]), "number", 0),
    "names that are categories": (pd.DataFrame(X, columns=pd.CategoricalIndex(NAMES)), "number", 0),
    "rows of two indexes": (pd.DataFrame(X, index=pd.MultiIndex.from_product([range(6), range(10)])), "number", 0),
    "a sparse boolean": (with_column(pd.arrays.SparseArray(X[:, 0] > 0)), "boolean", 0),
    "an outlier of 1e100": (with_column(np.r_[1e100, X[1:, 0] + X[1:, 1]]), "number", 0),
    "whole numbers far apart beyond 2^53": (with_column(2**53 + 4 * np.arange(N) ** 2), "integer", 0),
    "minus zero": (with_column(np.where(HALF, -0.0, 0.0)), "number", 0),
    "aware of many zones": (
        with_column(
            [datetime.datetime(2020, 1, 1, i % 24, tzinfo=datetime.timezone(i % 3 * DAY / 24)) for i in range(N)]
        ),
        "date",
        0,
    ),
    "categories of dates": (with_column(pd.Categorical([*pd.date_range("2020", periods=3)] * 20)), "category", 0),
    "categories of tuples": (with_column(pd.Categorical(pd.Series([(1, 2), (3, 4)] * 30))), "category", 0),
    "ordered categories of numbers": (with_column(pd.Categorical([3, 1, 2] * 20, ordered=True)), "category", 0),
    "one category": (with_column(pd.Categorical(["a"] * N, categories=["a", "b"])), "category", 0),
    "markup": (with_column(["<b>x</b>", "<script>alert(1)</script>", "&amp;"] * 20), "string", 0),
    "NA as a category": (with_column(pd.Categorical(["NA", "nan", "b"] * 20)), "category", 0),
    "NA as a word": (with_column(["NA", "nan", "b"] * 20), "string", 40),
    "booleans and None": (with_column(pd.Series([True, None, False] * 20, dtype=object)), "boolean", 20),
    "three columns of zeros": (np.c_[X, np.zeros((N, 3))], "number", 0),
    "one cell that differs": (with_column((np.arange(N) == 0) * 1.0), "number", 0),
    "five rows": (X[:5], "number", 0),
    "numbers as text": (with_column([f"{v:.3f}" for v in X[:, 0]]), "number", 0),
    "decimal commas": (with_column([f"{i},5" for i in range(N)]), "number", 0),
    "long minuses": (with_column(["\u22121.5", "\u22122.5", "a"] * 20), "string", 0),
    "ISO dates as text": (with_column([str(datetime.date(2020, 1, 1) + i * DAY) for i in range(N)]), "date", 0),
    "truth as text": (with_column(["True", "False", "?"] * 20), "boolean", 20),
}


@pytest.mark.parametrize(("table", "words"), REFUSED.values(), ids=REFUSED)
def test_tables_that_are_refused_before_the_work(table, words):
    refuses(f"(?s){words}", read_table, table, min_rows=5)


@pytest.mark.parametrize("table", [*TAKEN.values(), *(case[0] for case in READ_AS.values())], ids=[*TAKEN, *READ_AS])
def test_tables_that_are_taken_come_back_in_their_format(table):
    read = read_table(table, min_rows=5)
    as_target(Y[: len(read)], read)
    again = read_table(read.decode(read.X), min_rows=5)
    assert not np.isinf(read.X).any()
    assert again.names == read.names
    np.testing.assert_allclose(again.X, read.X, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("table", "dtype", "missing"), READ_AS.values(), ids=READ_AS)
def test_what_the_last_column_is_read_as(table, dtype, missing):
    column = read_table(table).columns[-1]
    assert (column.dtype, column.n_missing) == (dtype, missing)


FITTED = {
    **{name: TAKEN[name] for name in ("large", "small", "far from zero", "a zone", "Arrow", "categories", "odd names")},
    **{name: READ_AS[name][0] for name in ("an outlier of 1e100", "one category", "five rows", "numbers as text")},
}


@pytest.mark.parametrize(
    "table", [X[:, 0], np.array(3.0), {"a": [1]}, None], ids=["a row", "a number", "a dict", "None"]
)
def test_columns_of_what_is_no_table_cannot_be_dropped(table):
    with pytest.raises(InputError, match="Reshape your data|pass an array or a data frame"):
        without_columns(table, ["x0"])


def test_columns_of_an_array_are_dropped_and_named_after_that():
    clusters, rest = take_clusters("x1", without_columns(np.c_[X[:, 0], np.arange(N) // 2, X], ["x0"]))
    assert len(set(clusters)) == N // 2 and rest.names == ("x2", "x3", "x4", "x5", "x6")


@pytest.mark.parametrize("table", FITTED.values(), ids=FITTED)
def test_they_are_fitted_too(table):
    assert np.isfinite(KnockoffSelector(**OPTIONS).fit(table, Y[: len(table)]).W_).all()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (X[:2], "at least 5 are needed"),
        (X[:, :1], "with 1 feature "),
        (np.ones((N, 5)), "every column of X is constant"),
    ],
    ids=["two rows", "one column", "constant"],
)
def test_tables_that_are_refused_by_a_fit(table, words):
    refuses(words, KnockoffSelector(**OPTIONS).fit, table, Y[: len(table)])


@pytest.mark.parametrize(
    "table",
    [np.c_[X, X[:, 0]], np.c_[X, np.exp(X[:, 0])], np.c_[X, np.ones(N)], np.c_[X, X.sum(axis=1)]],
    ids=["twin", "monotone", "one", "sum"],
)
def test_redundant_columns_are_named(table):
    with pytest.warns(KnockoffWarning, match="'x5'"):
        KnockoffSelector(**OPTIONS).fit(table, Y)


def test_equal_columns_are_one():
    with (
        pytest.warns(KnockoffWarning, match="'x1' of 'x0'; .*'x4' of 'x0'"),
        pytest.raises(InputError, match="with 1 feature "),
    ):
        KnockoffSelector(**OPTIONS).fit(FLAT, Y)


def test_few_rows_do_not_make_copies():
    """Five rows of two columns have one order, or the reverse, once in 60 times."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        few = rng.standard_normal((5, 12))
        assert find_relations(read_table(few)) == {}
        assert {j: of.tolist() for j, of in find_relations(read_table(np.c_[few, 3 - 2 * few[:, 4]])).items()} == {
            12: [4]
        }
