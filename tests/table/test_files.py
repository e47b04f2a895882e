"""Files are read to the last bit, as data frames of the same cells are, and what is odd is recognised or refused."""

import csv
import datetime
import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs.errors import KnockoffWarning
from knockoffs.table import csv_blocks
from knockoffs.table.files import file_hash, read_table_file, write_table_file
from knockoffs.table.table import read_table

MIXED = {
    "size": [0.1, 1 / 3, 5e-324],
    "count": [3, -1, 2],
    "colour": ["red, dark", 'a "blue"', "two\nlines"],
    "sick": [True, False, True],
}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_table_comes_back_as_it_was_written(tmp_path, ending, make):
    path = tmp_path / f"table{ending}"
    write_table_file(make(MIXED), path)
    back = read_table_file(path)
    assert {name: back[name].to_list() for name in back.columns} == MIXED


HEART = """,age,ca,thal,chest,pain,when,flag
63,0.0,6.0,typical,None,2020-01-05,True
67,3.0,?,none,mild,2020-02-07,False
41,?,3.0,typical,NA,2020-03-09,True
NA,2.0,7.0,none,None,,True
"""


@pytest.mark.parametrize("read", ["pandas", "polars", "text"])
def test_a_table_is_the_same_by_file_and_as_a_data_frame(tmp_path, read):
    """Question marks, NA, the label None, dates, an index without a name, in columns of numbers and of labels."""
    header, *rows = HEART.splitlines()
    (tmp_path / "heart.csv").write_text("\n".join([header, *(f"{i},{rows[i % 4]}" for i in range(36))]) + "\n")
    make = {
        "pandas": lambda path: pd.read_csv(path, keep_default_na=False, na_values=["NA", ""]),
        "polars": lambda path: pl.read_csv(path, infer_schema_length=None),
        "text": lambda path: pl.read_csv(path, infer_schema=False),
    }[read]
    with pytest.warns(KnockoffWarning) as said:
        by_file = read_table(read_table_file(tmp_path / "heart.csv"))
    assert any("'?' taken as missing in 'ca', 'thal'" in str(warning.message) for warning in said)
    with pytest.warns(KnockoffWarning):
        by_frame = read_table(make(tmp_path / "heart.csv"))
    assert by_file.names == by_frame.names == ("age", "ca", "thal", "chest", "pain", "when", "flag")
    assert by_file.kinds == by_frame.kinds
    np.testing.assert_array_equal(by_file.X, by_frame.X)
    assert by_file.columns[4].levels == by_frame.columns[4].levels == ("None", "mild")  # a label among labels


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv: the file is empty"),
        ("t.csv", b"\n\n", "t.csv: the file is empty"),
        ("t.csv", b"\xff\xfe\x00a\x00", "t.csv: the file begins as UTF-16 and is not"),
        ("t.csv", b"a,b\n1,2\nJos\xe9,3\n", "t.csv: line 3 is not UTF-8: it holds the byte 0xe9, which is 'é' in"),
        ("t.csv", b"a,b\n1,\x00\n", "t.csv: line 2 holds a NUL byte"),
        ("t.csv", b"a,,b,\n1,2,3,4\n", "t.csv: columns '2', '4' have no name"),
        ("t.csv", b"a,,b\n1,2,3\n", "t.csv: column 2 has no name"),
        ("t.csv.gz", b"not gzip", "t.csv.gz: cannot be read as csv.gz"),
        ("t.parquet", b"not parquet", "t.parquet: cannot be read as parquet"),
        ("t.xlsx", b"x", "t.xlsx: the ending says the format, one of .csv, .csv.gz"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    refuses(message, read_table_file, tmp_path / name)


def test_a_file_that_is_not_there(tmp_path):
    refuses("nowhere.csv: there is no such file", read_table_file, tmp_path / "nowhere.csv")


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
    "longer than 64 bits": (b"a\n99999999999999999999\n1\n", {"a": ["99999999999999999999", "1"]}),
    "no number of Python's own": (b"a,b\n1_000,\xd9\xa3\n2,4\n", {"a": ["1_000", "2"], "b": ["\u0663", "4"]}),
    "no hexadecimals": (b"a\n0x10\n1\n", {"a": ["0x10", "1"]}),
    "missing in every way": (
        b"a,b\n,1\nNA,N/A\nNaN,nan\nNULL,null\n ,2\n1, NA \n",
        {"a": [None] * 5 + [1], "b": [1, None, None, None, 2, None]},
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
    "quotes": (b'"a ""b""","c, d"\n"1","x\ny"\n2,"z""w"\n', {'a "b"': [1, 2], "c, d": ["x\ny", 'z"w']}),
    "dates": (b"a\n2020-01-01\n2020-01-02\n", {"a": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)]}),
    "dates with a time": (
        b"a\n2020-01-01 10:30\n2020-01-02T00:00:01Z\n",
        {"a": [datetime.datetime(2020, 1, 1, 10, 30), datetime.datetime(2020, 1, 2, 0, 0, 1)]},
    ),
    "apostrophes of a spreadsheet": (b"a,'=b\n'=1+1,1\n'hello,2\n", {"a": ["=1+1", "'hello"], "=b": [1, 2]}),
    "hint of a spreadsheet": (b"sep=,\na,b\n1,2\n", {"a": [1], "b": [2]}),
}


def plain(frame):
    """Values of a frame as lists, None where missing."""
    return {name: [None if v is None or v != v else v for v in frame[name].to_list()] for name in frame.columns}


@pytest.mark.parametrize("case", ODD)
def test_odd_cells_are_read_as_the_page_on_formats_says(tmp_path, case, monkeypatch):
    content, expected = ODD[case]
    (tmp_path / "t.csv").write_bytes(content)
    found = plain(read_table_file(tmp_path / "t.csv"))
    assert found == expected
    assert [[type(v) for v in values] for values in found.values()] == [
        [type(v) for v in values] for values in expected.values()
    ]
    monkeypatch.setattr(csv_blocks.text_blocks, "__kwdefaults__", {"size": 1})  # a record at a time gives the same
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
        (b'a,b\n"1,5",1\n"-0,25",2\n', {"a": [1.5, -0.25], "b": [1, 2]}, ["decimal commas in 'a'"]),
        ("a,b\né,2\n".encode("utf-16"), {"a": ["é"], "b": [2]}, ["read as UTF-16"]),
        (b",a\n0,5\n1,7\n", {"a": [5, 7]}, ["the column '' numbers the rows and is left out"]),
        (b'"",a\n"1",5\n"2",7\n', {"a": [5, 7]}, ["the column '' numbers the rows"]),
        (b'"",a\n"Mazda RX4",5\n"Datsun 710",7\n', {"a": [5, 7]}, ["the column '' names the rows and is left out"]),
        (b"Unnamed: 0,a\n0,5\n1,7\n", {"a": [5, 7]}, ["the column 'Unnamed: 0' numbers the rows"]),
        (b"a,b,\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, ["holds nothing"]),
    ],
    ids=range(12),
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
        "a,b",
        'q"',
        "-5",
        "plain",
    ]
    path = tmp_path / "t.csv"
    write_table_file({"=name": labels, "n": list(range(len(labels)))}, path)
    back = [label.replace("\r", "\n") for label in labels]  # ends of lines are newlines
    assert plain(read_table_file(path)) == {"=name": back, "n": list(range(len(labels)))}
    with path.open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r")) or cell == "-x"]


def test_a_label_after_many_numbers_leaves_them_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_blocks.text_blocks, "__kwdefaults__", {"size": 8})
    (tmp_path / "t.csv").write_text("a,b\n" + "01,1\n" * 9 + "x,2.5\n" + "2,\n")
    found = plain(read_table_file(tmp_path / "t.csv"))
    assert found == {"a": ["01"] * 9 + ["x", "2"], "b": [1.0] * 9 + [2.5, None]}


def test_amounts_and_marks_in_doubt_are_refused_with_the_line_that_mends_them(tmp_path):
    cells = {
        "mixed": (["-0,590", "0.254", "0.1"], "has decimal commas and decimal points, .*'-0,590' and '0.254'"),
        "thousands": (["1,234", "5,678", "9,012"], "holds '1,234', a decimal comma or a thousand"),
        "money": (["$1,234.50", "$7", "$8"], r"numbers of them: pl.col\('money'\).str.replace_all\(.*cast\(float\)"),
    }
    for name, (values, words) in cells.items():
        pl.DataFrame({name: values, "x": [1.5, 2.5, 3.5]}).write_csv(tmp_path / "t.csv")
        refuses(f"column '{name}' of X .*{words}", read_table, read_table_file(tmp_path / "t.csv"))
    frame = pd.DataFrame({"money": cells["money"][0]})
    refuses(r"make numbers of them: X\['money'\].str.replace.*astype\(float\)", read_table, frame)
    frame["money"] = frame["money"].str.replace("[^0-9.-]", "", regex=True).astype(float)  # as the message says
    assert frame["money"].tolist() == [1234.5, 7, 8]


def test_a_wide_file_is_read_and_one_name_twice_is_found(tmp_path):
    names = [f"column{j}" for j in range(4_000)]
    row = ",".join(["1.2345"] * 4_000)
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *[row] * 6]) + "\n")
    assert read_table_file(tmp_path / "t.csv").shape == (6, 4_000)
    (tmp_path / "t.csv").write_text("\n".join([",".join([*names[1:], "column7"]), row]) + "\n")
    refuses("two columns of the same name: 'column7'", read_table_file, tmp_path / "t.csv")


PARQUET = {
    "decimal": (pl.Series([Decimal("1.5"), Decimal("2.5")]), [1.5, 2.5]),
    "beyond 63 bits": (pl.Series([2**64 - 1, 1], dtype=pl.UInt64), [2**64 - 1, 1]),
    "within 63 bits": (pl.Series([2**40, 1], dtype=pl.UInt64), [2**40, 1]),
    "integers, one missing": (pl.Series([1, None]), [1.0, None]),
    "boolean": (pl.Series([True, False]), [True, False]),
    "categories": (pl.Series(["u", "v"], dtype=pl.Categorical), ["u", "v"]),
}


@pytest.mark.parametrize("case", PARQUET)
def test_parquet_is_read_and_written(tmp_path, case):
    values, expected = PARQUET[case]
    pl.DataFrame({"a": values, "b": [1.0, 2.0]}).write_parquet(tmp_path / "t.parquet")
    frame = read_table_file(tmp_path / "t.parquet")
    found = frame["a"].to_list()
    assert [None if v is None or v != v else v for v in found] == expected
    write_table_file(frame, tmp_path / "back.parquet")
    assert read_table_file(tmp_path / "back.parquet").equals(frame)


@pytest.mark.parametrize("values", [[[1], [2]], [{"u": 1}, {"u": 2}], [b"a", b"b"]], ids=str)
def test_a_column_that_is_neither_numbers_nor_labels_is_refused(tmp_path, values):
    pl.DataFrame({"a": values, "b": [1, 2]}).write_parquet(tmp_path / "t.parquet")
    frame = read_table_file(tmp_path / "t.parquet")
    refuses(r"^column 'a' of X [^\n]*\.\nTo leave it out: drop=\['a'\]", read_table, frame)


def test_the_index_that_pandas_keeps_is_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([7, 9]))
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.warns(KnockoffWarning, match="__index_level_0__"):
        assert plain(read_table_file(tmp_path / "t.parquet")) == {"a": [1, 2]}


def test_half_of_a_letter_does_not_lose_a_table(tmp_path):
    write_table_file({"name": ["a\ud800b", "c"], "W": [1.0, None]}, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "name,W\na?b,1.0\nc,\n"
