"""Files are read to the last bit, the same whatever is installed, and what is odd is recognised or refused."""

import csv
import datetime
import gzip
import time
import tracemalloc
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table import files
from knockoffs.table.files import drop_columns, file_hash, read_table_file, take_column, write_table_file
from knockoffs.table.table import PlainFrame, as_table

MIXED = {
    "size": [0.1, 1 / 3, 5e-324],
    "count": [3, -1, 2],
    "colour": ["red, dark", 'a "blue"', "two\nlines"],
    "sick": [True, False, True],
}


@pytest.fixture(params=["polars and pyarrow", "pyarrow", "polars", "neither"])
def installed(request, monkeypatch):
    """Pretend that only some of the libraries are there."""
    there = request.param.split(" and ")
    monkeypatch.setattr(files, "find_spec", lambda name: name if name in there else None)
    return there


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_table_comes_back_as_it_was_written(tmp_path, ending, make):
    path = tmp_path / f"table{ending}"
    write_table_file(make(MIXED), path)
    back = read_table_file(path)
    assert {name: take_column(back, name).tolist() for name in back.columns} == MIXED


def test_every_installation_gives_the_same_table(tmp_path, installed):
    path = tmp_path / "table.csv"
    write_table_file(pl.DataFrame(MIXED), path)
    table = as_table(read_table_file(path), labels=True)
    assert table.names == tuple(MIXED)
    np.testing.assert_array_equal(table.X[:, 0], MIXED["size"])  # to the last bit, also denormal numbers
    np.testing.assert_array_equal(table.X[:, 1:], [[3, 1, 1], [-1, 0, 0], [2, 2, 1]])
    assert [column.dtype for column in table.columns] == ["number", "integer", "string", "boolean"]


def test_missing_cells(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n,3\nNA,4\n")
    with pytest.raises(InputError, match="NaN in column 'a', the first in row 1"):
        as_table(read_table_file(path))


def test_a_ragged_row_is_refused_with_its_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4,5\n")
    with pytest.raises(InputError, match=r"table.csv: line 3 has 3 values and the header has 2 names"):
        read_table_file(path)


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b\n1,2\n")
    assert list(read_table_file(path).columns) == ["a", "b"]


def test_a_plain_frame_goes_through_a_table_and_back(tmp_path):
    frame = PlainFrame({"a": np.array([1.5, 2.5]), "c": np.array(["u", "v"], dtype=object)})
    table = as_table(frame, labels=True)
    back = table.decode(table.X)
    assert back.data["c"].tolist() == ["u", "v"]
    assert drop_columns(back, ["a"]).columns == ["c"]
    write_table_file(back, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,c\n1.5,u\n2.5,v\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"a,b,a\n1,2,3\n", "two columns of the same name: 'a'"),
        ("t.csv", b"\n\n", "t.csv: the file is empty"),
        ("t.csv", b"a,b\n", "t.csv: the file has a header and no rows"),
        ("t.csv", b"\xff\xfe\x00a\x00", "t.csv: the file begins as UTF-16 and is not"),
        ("t.csv", b"a,b\n1,2\nJos\xe9,3\n", "t.csv: line 3 is not UTF-8: it holds the byte 0xe9, which is 'é' in"),
        ("t.csv", b"a,b\n1,\x00\n", "t.csv: line 2 holds a NUL byte"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "t.csv: line 3 cannot be read as csv .*: a quote that opens a cell must"),
        ("t.csv", b"a,,b,\n1,2,3,4\n", "t.csv: columns '2', '4' have no name"),
        ("t.csv", b"a,,b\n1,2,3\n", "t.csv: column 2 has no name"),
        ("t.csv.gz", b"not gzip", "t.csv.gz: cannot be read as csv.gz"),
        ("t.parquet", b"not parquet", "t.parquet: cannot be read as parquet"),
        ("t.xlsx", b"x", "t.xlsx: the format is told by the ending, one of .csv, .csv.gz"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table_file(tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="nowhere.csv: there is no such file"):
        read_table_file(tmp_path / "nowhere.csv")


def test_the_missing_extra_is_named(monkeypatch, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'knockoffs\[tables\]'"):
        read_table_file(tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"pip install 'knockoffs\[tables\]'"):
        write_table_file(PlainFrame({}), tmp_path / "new.parquet")


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table_file(pl.DataFrame(MIXED), tmp_path / name)
    assert file_hash(tmp_path / "a.csv.gz") == file_hash(tmp_path / "b.csv.gz")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"size,count,colour,sick\n0.1,3,")


ODD = {
    "integers": (b"a,b\n1,+2\n 3 ,-4\n", {"a": [1, 3], "b": [2, -4]}),
    "floats": (b"a,b\n1.5,.5\n1e-3,5.\n", {"a": [1.5, 0.001], "b": [0.5, 5.0]}),
    "integers, then floats": (b"a\n1\n2.5\n", {"a": [1.0, 2.5]}),
    "infinity": (b"a,b\ninf,-INF\n1,Infinity\n", {"a": [np.inf, 1.0], "b": [-np.inf, np.inf]}),
    "longer than 64 bits": (b"a\n99999999999999999999\n1\n", {"a": [1e20, 1.0]}),
    "no number of Python's own": (b"a,b\n1_000,\xd9\xa3\n2,4\n", {"a": ["1_000", "2"], "b": ["\u0663", "4"]}),
    "no hexadecimals": (b"a\n0x10\n1\n", {"a": ["0x10", "1"]}),
    "missing in every way": (
        b"a,b\n,1\nNA,N/A\nNaN,nan\nNULL,null\n ,2\n1, NA \n",
        {"a": [None] * 5 + [1.0], "b": [1.0, None, None, None, 2.0, None]},
    ),
    "all missing": (b"a,b\n,1\nNA,2\n", {"a": [None, None], "b": [1, 2]}),
    "booleans": (b"a,b\ntrue,TRUE\nfalse,False\n", {"a": [True, False], "b": [True, False]}),
    "booleans, one missing": (b"a,b\ntrue,1\n,2\n", {"a": [True, None], "b": [1, 2]}),
    "a number among labels": (b"a\n1\nx\n01\n", {"a": ["1", "x", "01"]}),
    "a label among booleans": (b"a\ntrue\nTrue\nx\n", {"a": ["true", "True", "x"]}),
    "blanks of labels": (b"a,b\n x,1\nx ,2\n", {"a": [" x", "x "], "b": [1, 2]}),
    "blank lines": (b"a,b\n\n1,2\n   \n3,4\n\n", {"a": [1, 3], "b": [2, 4]}),
    "no last newline": (b"a,b\n1,2", {"a": [1], "b": [2]}),
    "carriage returns": (b"a,b\r\n1,2\r\n3,4\r\n", {"a": [1, 3], "b": [2, 4]}),
    "carriage returns alone": (b"a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
    "quotes": (b'"a ""b""","c, d"\n"1","x\ny"\n2,z"w\n', {'a "b"': [1, 2], "c, d": ["x\ny", 'z"w']}),
    "dates": (b"a\n2020-01-01\n2020-01-02\n", {"a": ["2020-01-01", "2020-01-02"]}),
    "apostrophes of a spreadsheet": (b"a,'=b\n'=1+1,1\n'hello,2\n", {"a": ["=1+1", "'hello"], "=b": [1, 2]}),
    "hint of a spreadsheet": (b"sep=,\na,b\n1,2\n", {"a": [1], "b": [2]}),
}


def plain(frame):
    """Values of a frame as lists, None where missing."""
    listed = {name: take_column(frame, name).tolist() for name in files.column_names(frame)}
    return {name: [None if v is None or v != v else v for v in values] for name, values in listed.items()}


@pytest.mark.parametrize("case", ODD)
def test_odd_cells_are_read_as_the_page_on_formats_says(tmp_path, case, installed, monkeypatch):
    content, expected = ODD[case]
    (tmp_path / "t.csv").write_bytes(content)
    found = plain(read_table_file(tmp_path / "t.csv"))
    assert found == expected
    assert [[type(v) for v in values] for values in found.values()] == [
        [type(v) for v in values] for values in expected.values()
    ]
    monkeypatch.setattr("knockoffs.table.delimited.CELLS_AT_ONCE", 1)  # a row at a time gives the same
    assert plain(read_table_file(tmp_path / "t.csv")) == expected


@pytest.mark.parametrize(
    ("content", "expected", "said"),
    [
        (b"a;b\n1;2\n", {"a": [1], "b": [2]}, ["semicolons between the cells, not commas"]),
        (b"a\tb\n1\t2\n", {"a": [1], "b": [2]}, ["tabs between the cells"]),
        (
            b"a, years;b\n1,5;2\n-2;,5\n",
            {"a, years": [1.5, -2.0], "b": [2.0, 0.5]},
            ["semicolons", "decimal commas in 'a, years', 'b'"],
        ),
        (b"sep=;\na;b\n1;2,5\n", {"a": [1], "b": [2.5]}, ["semicolons", "decimal commas in 'b'"]),
        (b"a;b\n1,5;1.5\n1.5;2\n", {"a": ["1,5", "1.5"], "b": [1.5, 2.0]}, ["semicolons"]),
        ("a,b\né,2\n".encode("utf-16"), {"a": ["é"], "b": [2]}, ["read as UTF-16"]),
        (b",a\n0,5\n1,7\n", {"a": [5, 7]}, ["the column '' numbers the rows: left out"]),
        (b'"",a\n"1",5\n"2",7\n', {"a": [5, 7]}, ["the column '' numbers the rows"]),
        (b'"",a\n"Mazda RX4",5\n"Datsun 710",7\n', {"a": [5, 7]}, ["the column '' names the rows: left out"]),
        (b"Unnamed: 0,a\n0,5\n1,7\n", {"a": [5, 7]}, ["the column 'Unnamed: 0' numbers the rows"]),
        (b"a,b,\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, ["without a name and without a value"]),
    ],
    ids=range(11),
)
def test_what_is_recognised_is_said(tmp_path, content, expected, said):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.warns(KnockoffWarning) as caught:
        assert plain(read_table_file(tmp_path / "t.csv")) == expected
    assert len(caught) == len(said)
    for warning, words in zip(caught, said, strict=True):
        assert words in str(warning.message)


def test_a_column_of_row_numbers_that_is_asked_for_stays(tmp_path):
    (tmp_path / "t.csv").write_text("Unnamed: 0,a\n0,5\n1,7\n")
    assert list(read_table_file(tmp_path / "t.csv", asked=["Unnamed: 0"]).columns) == ["Unnamed: 0", "a"]
    (tmp_path / "t.csv").write_text("Unnamed: 0,a\n0,5\n2,7\n")  # no row numbers
    assert list(read_table_file(tmp_path / "t.csv").columns) == ["Unnamed: 0", "a"]


def test_labels_come_back_and_no_spreadsheet_runs_them(tmp_path):
    labels = [
        "=SUM(A1)",
        "+1+1",
        "-x",
        "@a",
        "\tb",
        "\r=c",
        "'",
        "''",
        "'=d",
        "",
        "NA",
        " NA",
        "a,b",
        'q"',
        "-5",
        "plain",
    ]
    path = tmp_path / "t.csv"
    write_table_file({"=name": labels, "n": list(range(len(labels)))}, path)
    assert plain(read_table_file(path)) == {"=name": labels, "n": list(range(len(labels)))}
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r")) or cell == "-x"]


def test_a_label_after_many_numbers_leaves_them_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr("knockoffs.table.delimited.CELLS_AT_ONCE", 8)
    (tmp_path / "t.csv").write_text("a,b\n" + "01,1\n" * 9 + "x,2.5\n" + "2,\n")
    found = plain(read_table_file(tmp_path / "t.csv"))
    assert found == {"a": ["01"] * 9 + ["x", "2"], "b": [1.0] * 9 + [2.5, None]}


def test_one_name_twice_among_many_is_found_in_no_time(tmp_path):
    names = [f"x{j}" for j in range(100_000)]
    (tmp_path / "t.csv").write_text(",".join([*names, "x7"]) + "\n")
    start = time.process_time()
    with pytest.raises(InputError, match="two columns of the same name: 'x7'"):
        read_table_file(tmp_path / "t.csv")
    assert time.process_time() - start < 5  # 0.1 s; comparing each with each took 100 s


def test_a_wide_file_takes_little_memory(tmp_path):
    """Six rows of 20,000 columns, 0.9 MB: 40 MB are ten times the texts."""
    names = [f"column{j}" for j in range(20_000)]
    rows = "\n".join(",".join(["1.2345"] * 20_000) for _ in range(6))
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + rows + "\n")
    tracemalloc.start()
    frame = read_table_file(tmp_path / "t.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(frame.columns) == 20_000
    assert peak < 40e6


PARQUET = {
    "decimal": (pl.Series([Decimal("1.5"), Decimal("2.5")]), [1.5, 2.5]),
    "beyond 63 bits": (pl.Series([2**64 - 1, 1], dtype=pl.UInt64), [float(2**64 - 1), 1.0]),
    "within 63 bits": (pl.Series([2**40, 1], dtype=pl.UInt64), [2**40, 1]),
    "integers, one missing": (pl.Series([1, None]), [1.0, None]),
    "boolean": (pl.Series([True, False]), [True, False]),
    "categories": (pl.Series(["u", "v"], dtype=pl.Categorical), ["u", "v"]),
}


@pytest.mark.parametrize("case", PARQUET)
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_every_library_reads_the_same_from_parquet(tmp_path, monkeypatch, case, library):
    values, expected = PARQUET[case]
    pl.DataFrame({"a": values, "b": [1.0, 2.0]}).write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(files, "find_spec", lambda name: name if name == library else None)
    frame = read_table_file(tmp_path / "t.parquet")
    assert type(frame).__module__.split(".")[0] in (library, f"{library}.lib")
    assert plain(frame) == {"a": expected, "b": [1.0, 2.0]}
    write_table_file(frame, tmp_path / "back.parquet")
    assert plain(read_table_file(tmp_path / "back.parquet")) == {"a": expected, "b": [1.0, 2.0]}


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("values", [[[1], [2]], [datetime.time(1), datetime.time(2)], [b"a", b"b"]], ids=str)
def test_a_column_that_is_neither_numbers_nor_labels_is_refused(tmp_path, monkeypatch, values, library):
    pl.DataFrame({"a": values}).write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(files, "find_spec", lambda name: name if name == library else None)
    with pytest.raises(InputError, match="column 'a' holds .*, which is neither numbers nor labels"):
        take_column(read_table_file(tmp_path / "t.parquet"), "a")


def test_the_index_that_pandas_keeps_is_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 9]))
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(KnockoffWarning, match="__index_level_0__"):
        assert plain(read_table_file(tmp_path / "t.parquet")) == {"a": [1, 2]}
