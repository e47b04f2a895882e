"""A csv file in batches is read as the whole file is: the same kinds, words for missing cells and separators."""

import gzip

import numpy as np
import pytest

from knockoffs.errors import InputError, KnockoffWarning
from knockoffs.table import delimited
from knockoffs.table.files import read_table_file
from knockoffs.table.stream import open_rows

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


def same(left, right):
    assert len(left) == len(right)
    for one, other in zip(left.tolist(), right.tolist(), strict=True):
        assert one == other or (one != one and other != other) or (one is None and other is None)


@pytest.mark.parametrize("at_once", [1, 14, 10**6])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_batches_are_pieces_of_the_whole(tmp_path, monkeypatch, name, parallel_map):
    path = write(tmp_path / name, ROWS)
    monkeypatch.setattr(delimited, "CELLS_AT_ONCE", parallel_map)
    whole, rows = read_table_file(path).data, open_rows(path)
    assert rows.names == tuple(whole) and len(rows) == len(ROWS)
    for size in (1, 2, 4, 6, 100):
        starts = rows.starts(7, size)
        frames = list(rows.frames(rows.names, starts, range(len(starts) - 1)))
        assert [len(frame.data["a"]) for frame in frames] == np.diff(starts).tolist()
        for column, values in whole.items():
            same(np.concatenate([frame.data[column].astype(object) for frame in frames]), values.astype(object))
    for column, values in whole.items():
        same(rows.column(column), values)
    for some in ([0], [1, 4], [0, 2, 3, 5]):
        taken = rows.take(["g", "a"], np.array(some)).data
        assert list(taken) == ["g", "a"]
        same(taken["a"], whole["a"][some])
        same(taken["g"].astype(float), whole["g"].astype(float)[some])
    again = list(rows.frames(["b"], rows.starts(7, 2), [1, 2, 0]))  # not in their order
    same(np.concatenate([frame.data["b"].astype(float) for frame in again]), whole["b"][[2, 3, 4, 5, 0, 1]])


def test_kinds_of_all_rows_and_not_of_a_batch(tmp_path):
    """The planted fault would be a kind told by the batch: column a is of numbers in the first four rows."""
    rows = open_rows(write(tmp_path / "t.csv", ROWS))
    first = next(rows.frames(rows.names, rows.starts(7, 4), [0])).data
    assert first["a"].tolist() == ["1", "2", "3", "4"] and first["b"].dtype == float
    assert rows.layout.kinds == ["label", "float", "label", "integer", "label", "label", "float"]


def test_warnings_and_refusals_are_those_of_the_whole_file(tmp_path):
    path = write(tmp_path / "t.csv", [("1,5", "2"), ("2,5", "3"), ("3", "4")], "x;y", ";")
    with pytest.warns(KnockoffWarning) as said:
        rows = open_rows(path)
    messages = [str(warning.message) for warning in said]
    assert "semicolons" in messages[0] and "decimal commas in 'x'" in messages[1]
    assert rows.column("x").tolist() == [1.5, 2.5, 3.0]
    path = write(tmp_path / "u.csv", [("0", "2"), ("1", "3"), ("2", "9")], ",y")
    with pytest.warns(KnockoffWarning, match="numbers the rows"):
        assert open_rows(path).names == ("y",)
    path = write(tmp_path / "v.csv", [("", "2"), ("", "3"), ("", "9")], ",y")
    with pytest.warns(KnockoffWarning, match="without a value"):
        assert open_rows(path).names == ("y",)
    with pytest.raises(InputError, match="has no name"):
        open_rows(write(tmp_path / "w.csv", [("4", "2"), ("1", "3")], ",y"))
    with pytest.raises(InputError, match="line 3 has 1 values"):
        open_rows(write(tmp_path / "x.csv", [("4", "2"), ("1",)], "x,y"))
    with pytest.raises(InputError, match="header and no rows"):
        open_rows(write(tmp_path / "y.csv", [], "x,y"))
    damaged = tmp_path / "z.csv.gz"
    damaged.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 10000)[:-40])
    with pytest.raises(InputError, match="cannot be read as csv.gz"):
        open_rows(damaged)
