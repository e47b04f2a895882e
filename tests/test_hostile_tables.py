"""More hostile tables, targets, weights and files: each ends in an answer, or in our own error before the work."""

import bz2
import datetime
import enum
import gzip
import io
import lzma
import warnings
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from knockoffs import KnockoffSelector, read_table
from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table.files import read_table_file
from knockoffs.table.target import as_target

N = 60
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(N)
HALF = np.arange(N) % 2 == 0
DAY = datetime.timedelta(days=1)
NAMES = [*"abcde"]


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


# ---- tables ---------------------------------------------------------------------------------------------------------

REFUSED = {
    "minus infinity among whole numbers": (with_column(np.where(np.arange(N) == 3, -np.inf, 7)), "infinity in row 3"),
    "infinity of half precision": (
        with_column(np.r_[np.float16(np.inf), X[1:, 0]]),
        "'m' of X holds infinity in row 0",
    ),
    "Decimal's infinity": (with_column([Decimal("Infinity"), *map(Decimal, range(N - 1))]), "infinity in row 0"),
    "beyond a long double": (X.astype(np.longdouble) * np.longdouble("1e400"), "'x0' holds infinity in 60 cells"),
    "one cell of 1e308": (with_column(np.r_[1e308, X[1:, 0]]), "as large as 1e[+]308: divide it by a power of ten"),
    "steps below normal": (with_column(np.arange(N) * 5e-324), "varies by less than 1e-300: multiply it"),
    "just beyond 2^53": (with_column(2**53 + np.arange(N)), "beyond 2.53.*drop it if it is an identifier"),
    "lists of Arrow": (arrow([[i] for i in range(N)], pa.list_(pa.int64())), "column 'm' of X holds array"),
    "structs of Arrow": (arrow([{"a": i} for i in range(N)], pa.struct([("a", pa.int64())])), "column 'm' of X holds"),
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
    "decimal commas": (with_column([f"{i},5" for i in range(N)]), "numbers written as text, for instance '0,5': turn"),
    "long minuses": (
        with_column([f"\u2212{i}.5" for i in range(N)]),
        "holds numbers written as text.*: turn them into",
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
}
TAKEN = {
    "Decimal's quiet and signalling NaN": (
        with_column([Decimal("NaN"), Decimal("sNaN"), *(Decimal(i) / 3 for i in range(N - 2))]),
        "number",
        2,
    ),
    "decimals of Arrow": (arrow([Decimal(i) / 4 for i in range(N)], pa.decimal128(12, 3)), "number", 0),
    "decimals of polars": (with_series([Decimal(i) / 4 for i in range(N)]), "number", 0),
    "a dictionary of Arrow": (arrow([*"abc"] * 20, pa.dictionary(pa.int32(), pa.string())), "string", 0),
    "booleans of Arrow with gaps": (arrow([True, None, False] * 20, pa.bool_()), "boolean", 20),
    "dates of Arrow": (arrow([datetime.date(2020, 1, 1) + i * DAY for i in range(N)], pa.date32()), "date", 0),
    "times of Arrow": (arrow([datetime.time(i % 24, i) for i in range(N)], pa.time64("us")), "time", 0),
    "durations of Arrow": (arrow([i * i * DAY for i in range(N)], pa.duration("us")), "duration", 0),
    "bytes of Arrow": (arrow([b"a", b"b"] * 30, pa.binary()), "string", 0),
    "long strings of Arrow": (arrow(["a", None] * 30, pa.large_string()), "string", 30),
    "zones of Arrow": (arrow(pd.date_range("2020", periods=N, tz="UTC"), pa.timestamp("us", "UTC")), "date", 0),
    "NaN and null": (with_series([float("nan"), None, *X[2:, 0].tolist()]), "number", 2),
    "an enum with a level nobody has": (with_series(["a", "b"] * 30, dtype=pl.Enum([*"abc"])), "category", 0),
    "categories of polars with gaps": (with_series(["a", None, "c"] * 20, dtype=pl.Categorical), "category", 20),
    "empty strings": (with_series(["", "a", "b"] * 20), "string", 0),
    "a zone of polars": (with_series([datetime.datetime(2020, 1, 1) + i * DAY for i in range(N)]), "date", 0),
    "a matrix": (np.matrix(X), "number", 0),
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
    "periods with gaps": (with_column(pd.PeriodIndex([None, "2020-01", "2020-02"] * 20, freq="M")), "date", 20),
    "intervals with gaps": (
        with_column(pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), np.nan] * 20)),
        "category",
        20,
    ),
    "intervals that overlap": (
        with_column(pd.arrays.IntervalArray.from_tuples([(0, 2), (1, 3), (0, 3)] * 20)),
        "category",
        0,
    ),
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
    "NA as a word": (with_column(["NA", "nan", "b"] * 20), "string", 0),
    "booleans and None": (with_column(pd.Series([True, None, False] * 20, dtype=object)), "boolean", 20),
    "three columns of zeros": (np.c_[X, np.zeros((N, 3))], "number", 0),
    "one cell that differs": (with_column((np.arange(N) == 0) * 1.0), "number", 0),
    "five rows": (X[:5], "number", 0),
}


@pytest.mark.parametrize(("table", "words"), REFUSED.values(), ids=REFUSED)
def test_tables_that_are_refused_before_the_work(table, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        with pytest.raises(InputError, match=f"(?s){words}"):
            read_table(table, min_rows=5)


@pytest.mark.parametrize(("table", "dtype", "missing"), TAKEN.values(), ids=TAKEN)
def test_tables_that_are_taken(table, dtype, missing):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        read = read_table(table, min_rows=5)
        assert (read.columns[-1].dtype, read.columns[-1].n_missing) == (dtype, missing)
        again = read_table(read.decode(read.X))
        np.testing.assert_allclose(again.X, read.X, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["Decimal's quiet and signalling NaN", "an outlier of 1e100", "one category", "five rows"]
)
def test_they_are_fitted_too(name):
    table = TAKEN[name][0]
    options = {"estimator": "lasso", "verdict": False, "method": "knockoffs", "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", KnockoffWarning)
        selector = KnockoffSelector(0.3, **options).fit(table, Y[: len(table)])
    assert np.isfinite(selector.W_).all()


def test_few_rows_do_not_make_copies():
    """Five rows of two columns have one order, or the reverse, once in 60 times."""
    rng = np.random.default_rng(1)
    from knockoffs.features.dependent import find_relations

    for _ in range(20):
        few = rng.standard_normal((5, 12))
        assert find_relations(read_table(few)) == {}
        assert {j: of.tolist() for j, of in find_relations(read_table(np.c_[few, 3 - 2 * few[:, 4]])).items()} == {
            12: [4]
        }


# ---- targets and weights --------------------------------------------------------------------------------------------

TARGETS = {
    "intervals": (pd.Series(pd.cut(Y, 4)).astype("interval"), "y holds Interval.*in row 0.*turn them into numbers or"),
    "lists of different lengths": ([[1], [1, 2]] * 30, "y holds lists of different lengths"),
    "lists of polars": (pl.Series([[i] for i in range(N)]), "y holds array.*one number or one label a row"),
    "objects": ([object() for _ in range(N)], "y holds <object.*in row 0"),
    "a stray word": (
        [*Y[:-1].round(3).astype(str), "error"],
        "and error in row 59, which is none: make what is missing",
    ),
    "numbers as text": (Y.round(3).astype(str), "y holds numbers, for instance .*, as text: turn them into numbers"),
    "a generator": ((v for v in Y), "y should be a 1d array"),
    "no values": ([], "y has 0 values and X has 60 rows"),
    "complex objects": ([complex(v) for v in Y], "y is complex"),
    "one category of two": (pd.Series(pd.Categorical(["a"] * N, categories=["a", "b"])), "a target that does not vary"),
    "one value where it is known": (np.where(HALF, 1.0, np.nan), "in all 30 rows .one class only."),
    "periods": (pd.Series(pd.period_range("2020", periods=N)), "turn them into numbers or classes"),
}
WEIGHTS = {
    "complex": (np.ones(N) + 1j, Y, "sample_weight is complex"),
    "none where the second class is": (
        HALF * 1.0,
        np.where(HALF, "a", "b"),
        "one value 'a' in all rows that weigh more",
    ),
    "nothing": ([None] * N, Y, "sample_weight is nan in row 0"),
}


@pytest.mark.parametrize(("y", "words"), TARGETS.values(), ids=TARGETS)
def test_targets_that_are_refused(y, words):
    with pytest.raises(InputError, match=words):
        as_target(y, read_table(X))


@pytest.mark.parametrize(("weights", "y", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_are_refused(weights, y, words):
    with pytest.raises(InputError, match=words):
        as_target(y, read_table(X), weights=weights)


IN_OTHER_WORDS = {
    "other units": (X, 2 * X[:, 2] + 1, "x2"),
    "the other way round": (X, -X[:, 2], "x2"),
    "another scale": (X, np.exp(X[:, 2]), "x2"),
    "other labels": (np.c_[X, HALF], np.where(HALF, "yes", "no"), "x5"),
    "codes of classes": (np.c_[X, np.arange(N) % 3], np.array([*"cab"] * 20), "x5"),
    "where it is known": (X, np.where(HALF, np.exp(X[:, 1]), np.nan), "x1"),
}


@pytest.mark.parametrize(("table", "y", "name"), IN_OTHER_WORDS.values(), ids=IN_OTHER_WORDS)
def test_the_target_in_other_words_is_told(table, y, name):
    with pytest.warns(KnockoffWarning, match=f"^y and '{name}' determine each other in all .* rows.*Drop it then"):
        as_target(y, read_table(table))


@pytest.mark.parametrize(
    ("table", "y"),
    [
        (X, Y),
        (X, X.sum(axis=1)),
        (X, X[:, 2] > 0),
        (np.c_[X, np.arange(N) % 3], np.arange(N) % 3 == 0),
        (np.c_[X, HALF][:8], np.where(HALF, "a", "b")[:8]),
    ],
    ids=["noise", "a sum", "a class of a number", "a coarser class", "few rows"],
)
def test_other_targets_are_not(table, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_target(y, read_table(table))


# ---- files ----------------------------------------------------------------------------------------------------------

ROWS = [[f"{v:.4f}" for v in (*row, y)] for row, y in zip(X, Y, strict=True)]


def written(separator=",", end="\n", header=(*NAMES, "y"), change=lambda i, row: row, before=""):
    lines = [separator.join(header), *(separator.join(change(i, row)) for i, row in enumerate(ROWS))]
    return (before + end.join(lines) + end).encode()


def zipped():
    place = io.BytesIO()
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("t.csv", written())
    return place.getvalue()


def parquet():
    place = io.BytesIO()
    pl.DataFrame(X, schema=NAMES).write_parquet(place)
    return place.getvalue()


def first(cell):
    return lambda i, row: [cell(i) if callable(cell) else cell, *row[1:]]


FILES = {
    "gzip under another name": ("t.csv", gzip.compress(written()), "t.csv: .*compressed by gzip: call it .csv.gz"),
    "a zip archive": ("t.csv", zipped(), "t.csv: .*a zip archive or a spreadsheet: unpack or export it"),
    "gzip cut short": ("t.csv.gz", gzip.compress(written())[:-100], "cannot be read as csv.gz"),
    "bzip2 under another name": ("t.csv", bz2.compress(written()), "t.csv: .*compressed by bzip2: unpack it"),
    "xz under another name": ("t.csv", lzma.compress(written()), "t.csv: .*compressed by xz: unpack it"),
    "zstd under another name": ("t.csv", pa.compress(written(), "zstd", asbytes=True), "compressed by zstd: unpack it"),
    "parquet under another name": ("t.csv", parquet(), "t.csv: this is no text, but parquet: call it .parquet"),
    "bzip2": ("t.csv.bz2", bz2.compress(written()), "the format is told by the ending"),
    "UTF-32": ("t.csv", written().decode().encode("utf-32"), "line 1 holds a NUL byte.*Save it as csv in UTF-8"),
    "Latin-1": ("t.csv", written(header=("größe", *"bcdey")).decode().encode("latin-1"), "Save the file as UTF-8"),
    "only a mark": ("t.csv", b"\xef\xbb\xbf", "the file is empty"),
    "a comment first": ("t.csv", written(before="# made by hand\n"), "line 2 has 6 values.*Delete what stands before"),
    "a short row": ("t.csv", written(change=lambda i, row: row[: 4 if i == 20 else 9]), "line 22 has 4 values"),
    "a long row": ("t.csv", written(change=lambda i, row: row + ["7"] * (i == 20)), "line 22 has 7 values"),
    "an open quote": ("t.csv", written(change=first('"open')), "a quote that opens a cell must close it"),
    "one name twice": ("t.csv", written(header=[*"aacdey"]), "two columns of the same name: 'a'. Rename or drop"),
    "a page of the web": ("t.csv", b"<!DOCTYPE html><html><body>404</body></html>", "a header and no rows"),
}
READ = {
    "a mark first": (b"\xef\xbb\xbf" + written(), None),
    "carriage returns alone": (written(end="\r"), None),
    "mixed ends of lines": (written(end="\r\n").replace(b"\r\n", b"\n", 9), None),
    "bars": (written("|"), "read with bars between the cells, not commas"),
    "semicolons and decimal commas": (written(";").replace(b".", b","), "read with decimal commas"),
    "a comma at every end": (written(header=(*NAMES, "y", ""), change=lambda i, row: [*row, ""]), "without a name"),
    "no last end": (written()[:-1], None),
}


@pytest.mark.parametrize(("name", "content", "words"), FILES.values(), ids=FILES)
def test_files_that_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_table_file(tmp_path / name)


@pytest.mark.parametrize("name", ["BZh9", "PAR1"])
def test_a_name_that_begins_as_a_packed_file_does_is_a_name(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(written(header=(name, *"bcdey")))
    assert read_table(read_table_file(tmp_path / "t.csv")).names[0] == name


@pytest.mark.parametrize(("content", "said"), READ.values(), ids=READ)
def test_files_that_are_read(tmp_path, content, said):
    (tmp_path / "t.csv").write_bytes(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(read_table_file(tmp_path / "t.csv"))
    assert table.names == (*NAMES, "y")
    np.testing.assert_array_equal(table.X, np.array(ROWS, dtype=float))
    words = [str(warning.message) for warning in caught]
    assert any(said in word for word in words) if said else not words


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (lambda i: str(2**60 + i), "beyond 2.53"),
        (lambda i: str(10**30 + i), "a different label in each of 60 rows|numbers written as text"),
        (lambda i: str(2**60 + i) if i else "", "a different label in each of 59 rows|numbers written as text"),
        ("1e400", "holds infinity"),
    ],
    ids=["of 64 bits", "of more", "with a gap", "beyond floats"],
)
def test_whole_numbers_that_floats_merge_are_refused_in_files_too(tmp_path, cell, words):
    (tmp_path / "t.csv").write_bytes(written(change=first(cell)))
    with pytest.raises(InputError, match=f"column 'a' of X .*({words})"):
        read_table(read_table_file(tmp_path / "t.csv"))


def test_long_whole_numbers_that_floats_hold_stay_numbers(tmp_path):
    (tmp_path / "t.csv").write_bytes(written(change=first(lambda i: str(10**30 + i * 10**25))))
    table = read_table(read_table_file(tmp_path / "t.csv"))
    assert table.kinds[0] == "continuous" and table.X[1, 0] == 1e30 + 1e25
