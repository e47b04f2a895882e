"""Files are read to the last bit by every reader, and written whole or not at all."""

import gzip
import os
import stat

import numpy as np
import pandas as pd
import polars as pl
import pytest

from knockoffs.errors import InputError
from knockoffs.table import files
from knockoffs.table.files import atomic_file, drop_columns, file_hash, read_table_file, take_column, write_table_file
from knockoffs.table.table import PlainFrame, as_table

MIXED = {
    "size": [0.1, 1 / 3, 5e-324],
    "count": [3, -1, 2],
    "colour": ["red, dark", 'a "blue"', "two\nlines"],
    "sick": [True, False, True],
}
READERS = {"polars": files._read_csv_polars, "pandas": files._read_csv_pandas, "plain": files._read_csv_plain}


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    """Pretend that only one of the csv readers is there."""
    monkeypatch.setattr(files, "_reader", lambda ending: lambda path: READERS[request.param](path, ","))
    return request.param


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_table_comes_back_as_it_was_written(tmp_path, ending, make):
    path = tmp_path / f"table{ending}"
    write_table_file(make(MIXED), path)
    back = read_table_file(path)
    assert {name: take_column(back, name).tolist() for name in back.columns} == MIXED


def test_every_reader_gives_the_same_table(tmp_path, reader):
    path = tmp_path / "table.csv"
    write_table_file(pl.DataFrame(MIXED), path)
    table = as_table(read_table_file(path), labels=True)
    assert table.names == tuple(MIXED)
    np.testing.assert_array_equal(table.X[:, 0], MIXED["size"])  # to the last bit, also denormal numbers
    np.testing.assert_array_equal(table.X[:, 1:], [[3, 1, 1], [-1, 0, 0], [2, 2, 1]])
    assert [column.dtype for column in table.columns] == ["number", "integer", "string", "boolean"]


def test_every_reader_sees_missing_cells(tmp_path, reader):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n,3\nNA,4\n")
    with pytest.raises(InputError, match="NaN in column 'a', the first in row 1"):
        as_table(read_table_file(path))


def test_every_reader_refuses_a_ragged_row(tmp_path, reader):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n3,4,5\n")
    with pytest.raises(InputError, match=r"table.csv: "):
        read_table_file(path)


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path, reader):
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
        ("t.csv", b"\xff\xfe\x00a", "t.csv: cannot be read as csv"),
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


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'knockoffs\[tables\]'"):
        files._reader(".parquet")
    with pytest.raises(InputError, match=r"pip install 'knockoffs\[tables\]'"):
        files._parquet_writer(PlainFrame({}))


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        write_table_file(pl.DataFrame(MIXED), tmp_path / name)
    assert file_hash(tmp_path / "a.csv.gz") == file_hash(tmp_path / "b.csv.gz")
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"size,count,colour,sick\n0.1,3,")


class TestAtomicFile:
    def test_an_error_leaves_the_old_file_and_no_other(self, tmp_path):
        path = tmp_path / "old.txt"
        path.write_text("old")
        with pytest.raises(RuntimeError), atomic_file(path) as file:
            file.write(b"half of the n")
            raise RuntimeError
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["old.txt"]

    def test_a_full_disk_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "old.txt"
        path.write_text("old")

        def no_space(handle):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", no_space)
        with pytest.raises(OSError, match="No space"), atomic_file(path) as file:
            file.write(b"new")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["old.txt"]

    def test_a_failed_replacement_leaves_the_old_file(self, tmp_path, monkeypatch):
        path = tmp_path / "old.txt"
        path.write_text("old")
        monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(5, "Input/output error")))
        with pytest.raises(OSError, match="Input/output"), atomic_file(path) as file:
            file.write(b"new")
        assert path.read_text() == "old"
        assert os.listdir(tmp_path) == ["old.txt"]

    def test_the_new_file_has_usual_permissions(self, tmp_path):
        path = tmp_path / "new.txt"
        with atomic_file(path) as file:
            file.write(b"new")
        (tmp_path / "usual.txt").write_text("")
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual.txt").stat().st_mode)

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(InputError, match="nowhere: cannot write here"), atomic_file(tmp_path / "nowhere" / "a"):
            pass
