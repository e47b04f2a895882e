import gzip
from urllib.error import URLError

import numpy as np
import pytest

from knockoffs.datasets import files
from knockoffs.errors import InputError


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KNOCKOFFS_DATA", raising=False)


def read(fetch=None, **options):
    defaults = dict(data_folder=None, download=False, source="https://example.org/a.zip")
    return files.read_table("group/a.csv.gz", fetch=fetch, **(defaults | options))


def test_folder_by_argument_and_by_environment(tmp_path, monkeypatch):
    (tmp_path / "data" / "group").mkdir(parents=True)
    with gzip.open(tmp_path / "data" / "group" / "a.csv.gz", "wt") as file:
        file.write("x,y\n1,yes\n,no\n")
    expected = {"x": ["1", ""], "y": ["yes", "no"]}
    assert read(data_folder=tmp_path / "data") == expected
    monkeypatch.setenv("KNOCKOFFS_DATA", str(tmp_path / "data"))
    assert read() == expected


def test_nothing_is_fetched_unless_asked():
    def fetch():
        raise AssertionError("fetched without being asked")

    with pytest.raises(InputError, match=r"group/a.csv.gz is not in .*cache.*pass download=True.*KNOCKOFFS_DATA"):
        read(fetch)


def test_what_is_fetched_is_cached():
    calls = []

    def fetch():
        calls.append(1)
        return {"x": ["1", "2"], "y": ["a", "b"]}

    assert read(fetch, download=True) == read(fetch, download=True) == read(fetch)
    assert len(calls) == 1
    assert [p.name for p in (files.cache_folder() / "group").iterdir()] == ["a.csv.gz"]


def test_a_failed_transfer_is_one_sentence():
    def fetch():
        raise URLError("no route to host")

    with pytest.raises(InputError) as caught:
        read(fetch, download=True)
    assert str(caught.value) == (
        "group/a.csv.gz could not be fetched from https://example.org/a.zip: <urlopen error no route to host>."
    )


def test_only_https():
    with pytest.raises(InputError, match="not an https address"):
        files.fetch_bytes("http://example.org/a")
    with pytest.raises(InputError, match="not an https address"):
        files.fetch_bytes("file:///etc/hostname")


def test_sha256():
    # sha256 of nothing, from the standard
    nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert files.check_sha256(b"", nothing, "empty") == b""
    with pytest.raises(InputError, match=f"expected {nothing}"):
        files.check_sha256(b"x", nothing, "empty")


def test_content_checksum_sees_a_changed_cell():
    table = {"a": ["1", "2"], "b": ["3", "4"]}
    assert files.content_sha256(table) != files.content_sha256({"a": ["1", "2"], "b": ["4", "3"]})
    assert files.content_sha256(table) != files.content_sha256({"a": ["1", "2"], "c": ["3", "4"]})


def test_numbers_and_words():
    arrays = files.as_arrays({"x": ["1.5", "", "?"], "w": ["1", "b", "c"]})
    np.testing.assert_array_equal(arrays["x"], [1.5, np.nan, np.nan])
    assert list(arrays["w"]) == ["1", "b", "c"]
