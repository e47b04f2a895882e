"""Files are written whole or not at all, together, and never over what is not ours."""

import errno
import inspect
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from tests.refusals import refuses

from knockoffs.errors import InputError
from knockoffs.table import writer
from knockoffs.table.files import write_table_file
from knockoffs.table.writer import atomic_file, atomic_files, check_output, check_place


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

    def test_the_new_file_has_usual_permissions(self, tmp_path):
        path = tmp_path / "new.txt"
        with atomic_file(path) as file:
            file.write(b"new")
        (tmp_path / "usual.txt").write_text("")
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "usual.txt").stat().st_mode)

    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(InputError, match="nowhere: cannot write here"), atomic_file(tmp_path / "nowhere" / "a"):
            pass

    def test_a_link_stays_a_link(self, tmp_path):
        (tmp_path / "real.txt").write_text("old")
        (tmp_path / "link.txt").symlink_to("real.txt")
        with atomic_file(tmp_path / "link.txt") as file:
            file.write(b"new")
        assert (tmp_path / "link.txt").is_symlink()
        assert (tmp_path / "real.txt").read_text() == "new"

    def test_a_long_name_can_be_written(self, tmp_path):
        path = tmp_path / ("x" * 250 + ".csv")
        with atomic_file(path) as file:
            file.write(b"new")
        assert path.read_text() == "new"


def write_two(folder, word):
    with atomic_files(folder / "a.json", folder / "b.csv") as files:
        for file in files:
            file.write(word)


@pytest.mark.parametrize("step", range(1, 3))
def test_an_error_at_any_rename_leaves_files_of_one_run(tmp_path, monkeypatch, step):
    write_two(tmp_path, b"old")
    rename, calls = os.replace, []

    def fails(*names):
        calls.append(names)
        if len(calls) == step:
            raise OSError(5, "Input/output error")
        rename(*names)

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError):
        write_two(tmp_path, b"new")
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert left == {"a.json": b"old" if step == 1 else b"new"}  # the second can be made from it


CODE = f"""
import os, sys
from pathlib import Path
from knockoffs.table.writer import atomic_files
{inspect.getsource(write_two)}
rename, left = os.replace, [int(sys.argv[2])]
def dies(*names):
    left[0] -= 1
    if left[0] < 0:
        os._exit(9)
    rename(*names)
os.replace = dies
write_two(Path(sys.argv[1]), b"new")
"""


@pytest.mark.parametrize("old", [True, False])
def test_a_kill_at_any_rename_leaves_files_of_one_run_and_the_next_clears_up(tmp_path, old):
    for step in range(3):
        folder = tmp_path / str(step)
        folder.mkdir()
        if old:
            write_two(folder, b"old")
        ended = subprocess.run([sys.executable, "-c", CODE, folder, str(step)])
        words = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
        assert len(set(words.values())) <= 1
        assert not old or "a.json" in words
        for leftover in folder.glob(".*"):
            os.utime(leftover, (0, 0))  # it is old
        write_two(folder, b"newer")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"a.json": b"newer", "b.csv": b"newer"}
    assert ended.returncode == 0  # all renames were met


def test_files_of_a_run_that_lives_are_not_cleared(tmp_path):
    with atomic_file(tmp_path / "a") as first:
        first.write(b"1")
        with atomic_file(tmp_path / "a") as second:
            second.write(b"2")
        assert (tmp_path / "a").read_bytes() == b"2"
    assert (tmp_path / "a").read_bytes() == b"1"
    other = tmp_path / ".a.xyz.knockoffs"
    other.write_text("")
    writer.clear_leftovers(tmp_path / "a")
    assert other.exists()
    os.utime(other, (0, 0))
    writer.clear_leftovers(tmp_path / "a")
    assert not other.exists()


class TestCheckOutput:
    @pytest.mark.parametrize("way", ["same", "relative", "link", "hard link", "link to the folder"])
    def test_an_output_that_is_an_input_is_refused_whichever_way_it_is_named(self, tmp_path, monkeypatch, way):
        folder = tmp_path / "data"
        folder.mkdir()
        table = folder / "t.csv"
        table.write_text("x")
        monkeypatch.chdir(tmp_path)
        named = {
            "same": table,
            "relative": type(table)("data/../data/t.csv"),
            "link": tmp_path / "link.csv",
            "hard link": tmp_path / "hard.csv",
            "link to the folder": tmp_path / "other" / "t.csv",
        }[way]
        (tmp_path / "link.csv").symlink_to(table)
        (tmp_path / "hard.csv").hardlink_to(table)
        (tmp_path / "other").symlink_to(folder)
        refuses("is what is read .* would be lost", check_output, named, [table], force=True)

    def test_a_file_that_is_there_needs_force(self, tmp_path):
        path = tmp_path / "a.csv"
        check_output(path)
        path.write_text("theirs")
        refuses("is there already: name another file, or overwrite it with --force", check_output, path)
        check_output(path, force=True)
        check_output(path, ours=lambda path: True)
        assert path.read_text() == "theirs"
        assert os.listdir(tmp_path) == ["a.csv"]

    def test_places_where_nothing_can_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        refuses("is a folder", check_output, tmp_path, force=True)
        refuses("there is no such folder", check_output, tmp_path / "nowhere" / "a.csv")
        refuses("file is no folder", check_place, tmp_path / "file", make=True)
        refuses("file is no folder", check_place, tmp_path / "file" / "a" / "b", make=True)
        check_place(tmp_path / "a" / "b", make=True)
        assert os.listdir(tmp_path) == ["file"]
        (tmp_path / "link").symlink_to(tmp_path / "gone")
        for place in (tmp_path / "link", tmp_path / "link" / "a"):
            refuses("link is no folder", check_place, place, make=True)
        if os.path.exists("/proc/self"):
            refuses("cannot write here", check_place, type(tmp_path)("/proc/self"))

    @pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
    def test_a_folder_without_permission(self, tmp_path):
        tmp_path.chmod(0o500)
        refuses("cannot write here", check_output, tmp_path / "a.csv")
        tmp_path.chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of files")
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz", ".tsv"])
def test_a_disk_that_is_full_is_named_with_the_file_whatever_writes_it(tmp_path, ending):
    """A limit of the size of files stands for a full disk."""
    resource = pytest.importorskip("resource")
    table, path = pl.DataFrame(np.random.default_rng(0).standard_normal((4000, 8))), tmp_path / f"t{ending}"
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as error:
            write_table_file(table, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (error.value.errno, error.value.filename) == (errno.EFBIG, str(path))
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of files")
def test_an_error_of_polars_on_a_full_disk_is_one_of_the_disk_and_no_other_is(tmp_path):
    """At the end of a parquet file polars says "Invalid thrift: transport error" and no more."""
    resource = pytest.importorskip("resource")
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    for limit, kind in ((10_000, OSError), (before[0], pl.exceptions.ComputeError)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            with pytest.raises(kind) as error, atomic_file(tmp_path / "t.parquet"):
                raise pl.exceptions.ComputeError("parquet: File out of specification: Invalid thrift: transport error")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert kind is not OSError or error.value.filename == str(tmp_path / "t.parquet")
        assert os.listdir(tmp_path) == []
    signal.signal(signal.SIGXFSZ, ignored)


WRITES = """
import sys
from pathlib import Path
from knockoffs.table.writer import atomic_files
one, other = (Path(sys.argv[1]) / name for name in ("a.json", "a.csv"))
for i in range(int(sys.argv[3])):
    with atomic_files(one, other) as files:
        for file in files:
            file.write(f"{sys.argv[2]} {i}".encode())
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no locks of folders")
def test_two_programs_that_write_into_one_folder(tmp_path, n=100):
    """Neither fails, and whoever looks finds files of one of them, or the first alone."""
    command = [sys.executable, "-c", WRITES, str(tmp_path)]
    running = [subprocess.Popen([*command, who, str(n)], stderr=subprocess.PIPE) for who in ("one", "other")]
    looks = 0
    while any(process.poll() is None for process in running):
        try:
            before, beside, after = ((tmp_path / name).read_text() for name in ("a.json", "a.csv", "a.json"))
        except FileNotFoundError:
            continue
        if before == after:
            looks += 1
            assert beside == before
    assert [process.communicate()[1] for process in running] == [b"", b""]
    assert (tmp_path / "a.json").read_text() == (tmp_path / "a.csv").read_text()
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "a.json"] and looks
