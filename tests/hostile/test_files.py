"""Hostile files: each is read as it stands, or refused with its name and its line."""

import bz2
import gzip
import io
import lzma
import warnings
import zipfile

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.refusals import refuses

from knockoffs import read_table
from knockoffs.table.files import read_table_file

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] + X[:, 1] + 0.3 * RNG.standard_normal(60)
NAMES = [*"abcde"]
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
    "bzip2": ("t.csv.bz2", bz2.compress(written()), "the ending says the format"),
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
    "mixed ends of lines": (written(end="\r\n").replace(b"\r\n", b"\n", 9), None),
    "bars": (written("|"), "read with bars between the cells, not commas"),
}


@pytest.mark.parametrize(("name", "content", "words"), FILES.values(), ids=FILES)
def test_files_that_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    refuses(words, read_table_file, tmp_path / name)


def test_parquet_is_decoded_by_pyarrow(tmp_path, monkeypatch):
    """Some damaged files end the process of polars: a length of a page that it believes takes all memory."""
    (tmp_path / "t.parquet").write_bytes(parquet())
    monkeypatch.setattr(pl, "read_parquet", None)
    np.testing.assert_array_equal(read_table_file(tmp_path / "t.parquet").to_numpy(), X)
    (tmp_path / "t.parquet").write_bytes(written())
    refuses("t.parquet: cannot be read as parquet: .*not a parquet file", read_table_file, tmp_path / "t.parquet")


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
        (lambda i: str(2**60 + i) if i else "", "beyond 2.53"),
        (lambda i: str(10**30 + i), "a different label in each of 60 rows"),
        ("1e400", "holds infinity"),
    ],
    ids=["of 64 bits", "with a gap", "of more", "beyond floats"],
)
def test_whole_numbers_that_floats_merge_are_refused_in_files_too(tmp_path, cell, words):
    (tmp_path / "t.csv").write_bytes(written(change=first(cell)))
    refuses(f"column 'a' of X .*{words}", read_table, read_table_file(tmp_path / "t.csv"))


def test_stars_in_a_name_are_no_pattern(tmp_path):
    for name in ("[ab]*.parquet", "a.parquet"):
        pl.DataFrame({name[0]: [1, 2]}).write_parquet(tmp_path / name)
    assert read_table_file(tmp_path / "[ab]*.parquet").columns == ["["]
