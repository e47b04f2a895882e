"""A file in batches is read as the whole file is: the same kinds, words for missing cells and separators."""

import gzip

import numpy as np
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table import csv_blocks
from knockoffs.table.coding import code_like
from knockoffs.table.files import read_table_file
from knockoffs.table.stream import open_rows
from knockoffs.table.table import read_table

ROWS = [
    # late labels, late floats, booleans that turn out labels, empty first, a comma in quotes, a line break in quotes
    ("1", "1", "true", "", '"a,b"', "2020-01-01", "NA"),
    ("2", "2", "false", "", '"c""d"', "2020-01-02", "-1"),
    ("3", "NA", "true", "", '"two\nlines"', "", "3"),
    ("4", "4.5", "7", "", "'=1", "2020-01-04", "null"),
    ("x", "5", "", "9", "plain", "2020-01-05", "1e3"),
    ("6", "6", "false", "1", "plain", "2020-01-06", "5"),
]


def write(path, rows, header="a,b,c,d,e,f,g", separator=","):
    text = "\n".join([header, *(separator.join(row) for row in rows)]) + "\n"
    if path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("size", [1, 14, 10**6])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_batches_are_pieces_of_the_whole(tmp_path, monkeypatch, name, size):
    path = write(tmp_path / name, ROWS)
    monkeypatch.setattr(csv_blocks.text_blocks, "__kwdefaults__", {"size": size})
    whole, rows = read_table_file(path), open_rows(path)
    assert rows.names == tuple(whole.columns) and len(rows) == len(ROWS)
    check_batches(rows, whole)


def check_batches(rows, whole):
    for size in (1, 2, 4, 6, 100):
        starts = rows.starts(7, size)
        frames = list(rows.frames(rows.names, starts, range(len(starts) - 1)))
        assert [len(frame) for frame in frames] == np.diff(starts).tolist()
        assert pl.concat(frames).equals(whole)
    for column in (name for name in whole.columns if whole[name].dtype != pl.Date):
        missing = [value is None or value != value for value in rows.column(column).to_list()]
        assert missing == whole[column].is_null().to_list()
    for some in ([0], [1, 4], [0, 2, 3, 5]):
        assert rows.take(["g", "a"], np.array(some)).equals(whole[["g", "a"]][some])
    again = list(rows.frames(["b"], rows.starts(7, 2), [1, 2, 0]))  # not in their order
    assert pl.concat(again).equals(whole[["b"]][[2, 3, 4, 5, 0, 1]])


def test_batches_of_parquet_are_pieces_of_the_whole(tmp_path):
    """One file with several row groups, and a folder whose files hold a column as whole numbers and as fractions."""
    whole = read_table_file(write(tmp_path / "t.csv", ROWS)).with_columns(f=pl.Series("x" * (k + 1) for k in range(6)))
    whole.write_parquet(tmp_path / "t.parquet", row_group_size=4)
    check_batches(open_rows(tmp_path / "t.parquet"), whole)
    (tmp_path / "parts").mkdir()
    whole[:1].with_columns(pl.col("b").cast(pl.Int8), pl.col("d").cast(pl.Null)).write_parquet(
        tmp_path / "parts" / "0.parquet"
    )
    whole[1:].select(reversed(whole.columns)).write_parquet(tmp_path / "parts" / "1.parquet")
    rows = open_rows(tmp_path / "parts")
    check_batches(rows, whole)
    whole.with_columns(b=pl.lit("x")).write_parquet(tmp_path / "parts" / "2.parquet")
    with pytest.raises(
        InputError, match="column 'b' is String in 2.parquet and Float64 in 0.parquet: make it the same"
    ):
        open_rows(tmp_path / "parts")
    whole.drop("b").write_parquet(tmp_path / "parts" / "2.parquet")
    refuses("2.parquet and 0.parquet have other columns: 'b'", open_rows, tmp_path / "parts")


def test_kinds_of_all_rows_and_not_of_a_batch(tmp_path):
    """The planted fault would be a kind by the batch: column a is of numbers in the first four rows."""
    rows = open_rows(write(tmp_path / "t.csv", ROWS))
    first = next(rows.frames(rows.names, rows.starts(7, 4), [0]))
    assert first["a"].to_list() == ["1", "2", "3", "4"] and first["b"].dtype == pl.Float64
    assert list(rows.text.kinds.values()) == ["label", "number", "label", "integer", "label", "date", "number"]


def test_text_of_a_batch_is_read_as_that_of_the_table():
    """Numbers are labels where the table has labels, and labels are refused where it has numbers."""
    with pytest.warns(KnockoffWarning, match="'[?]' taken as missing in 'b'"):
        table = read_table(pl.DataFrame({"a": ["1", "2", "x"] * 4, "b": ["1,5", "2,5", "?"] * 4}))
    X, _ = code_like(pl.DataFrame({"a": ["2", "1"], "b": ["1,234", "-"]}), table.columns, "X")
    np.testing.assert_array_equal(X, [[1, 1.234], [0, np.nan]])
    assert code_like(pl.DataFrame({"a": ["3", "x"], "b": ["1", "2"]}), table.columns, "X")[1].tolist() == [1, 0]
    with pytest.raises(InputError, match="column 'b' of X holds labels, 'soon', where the rows that were read first"):
        code_like(pl.DataFrame({"a": ["1"], "b": ["soon"]}), table.columns, "X")


def test_warnings_and_refusals_are_those_of_the_whole_file(tmp_path):
    path = write(tmp_path / "t.csv", [("1,5", "2"), ("2,5", "3"), ("3", "4")], "x;y", ";")
    with pytest.warns(KnockoffWarning) as said:
        rows = open_rows(path)
    messages = [str(warning.message) for warning in said]
    assert "semicolons" in messages[0] and "decimal commas in 'x'" in messages[1]
    assert rows.column("x").to_list() == [1.5, 2.5, 3.0]
    path = write(tmp_path / "u.csv", [("0", "2"), ("1", "3"), ("2", "9")], ",y")
    with pytest.warns(KnockoffWarning, match="numbers the rows"):
        assert open_rows(path).names == ("y",)
    path = write(tmp_path / "v.csv", [("", "2"), ("", "3"), ("", "9")], ",y")
    with pytest.warns(KnockoffWarning, match="holds nothing"):
        assert open_rows(path).names == ("y",)
    refuses("has no name", open_rows, write(tmp_path / "w.csv", [("4", "2"), ("1", "3")], ",y"))
    refuses("line 3 has 1 values", open_rows, write(tmp_path / "x.csv", [("4", "2"), ("1",)], "x,y"))
    refuses("header and no rows", open_rows, write(tmp_path / "y.csv", [], "x,y"))
    damaged = tmp_path / "z.csv.gz"
    damaged.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 10000)[:-40])
    refuses("cannot be read as csv.gz", open_rows, damaged)
