"""A kill at every step of every command that writes: nothing is lost, and the next run ends well."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.fastphase import write_fastphase

import knockoffs
from knockoffs import Mosaic
from knockoffs.table.files import read_table_file

SOURCE = Path(knockoffs.__file__).resolve().parents[1]
DIES = """
import os, signal, sys
root, left = sys.argv[1], [int(sys.argv[2])]
def dies(name):
    does = getattr(os, name)
    def did(what, *rest, **options):
        made = name != "open" or (rest and rest[0] & os.O_CREAT)
        if made and (name == "fsync" or os.path.realpath(what).startswith(root)):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return does(what, *rest, **options)
    setattr(os, name, did)
for name in ("open", "mkdir", "fsync", "replace", "unlink", "rmdir"):
    dies(name)
from knockoffs.cli.app import main
main(sys.argv[3:])
"""
KILLED = -signal.SIGKILL


def run(root, *arguments, step=10**6):
    """Run the program in a process of its own, killed before it changes anything under root but for the first steps.

    A step is a file or a folder that is made, put on the disk, renamed or removed.
    """
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", DIES, os.path.realpath(root), str(step), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


def until_it_lives(root, *arguments, check):
    """Kill at the first step, then at the second, and so on, an hour apart; ``check`` looks at what each kill left."""
    for step in range(200):
        for left in root.rglob(".*.knockoffs"):
            os.utime(left, (0, 0))
        ended = run(root, *arguments, step=step)
        assert ended.returncode in (0, KILLED), ended.stderr
        check(ended.returncode == 0)
        if ended.returncode == 0:
            print(arguments[0], "was killed", step, "times")
            return step
    raise AssertionError("it was killed two hundred times")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    path = tmp_path / "in" / "t.csv"
    path.parent.mkdir()
    pl.DataFrame(X, schema=[*"abcdef"]).with_columns(y=X[:, :4].sum(axis=1)).write_csv(path)
    return path


SELECT = ("--target", "y", "--fdr", 0.3, "--feature-model", "gaussian", "--estimator", "lasso")


def visible(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.parametrize("command", ["select", "rerun"])
def test_a_selection_is_the_old_or_the_new_one_and_never_half_of_each(table, tmp_path, command):
    out = tmp_path / "out"
    assert run(tmp_path, "select", table, *SELECT, "--seed", 1, "--out", out).returncode == 0
    old = visible(out)
    assert run(tmp_path, "select", table, *SELECT, "--seed", 2, "--out", tmp_path / "new").returncode == 0
    new = visible(tmp_path / "new")
    call = (
        ("select", table, *SELECT, "--seed", 2)
        if command == "select"
        else ("rerun", tmp_path / "new" / "selection.json", table)
    )

    def check(lived):
        found = visible(out)
        assert found.items() <= old.items() or found.items() <= new.items()
        assert "selection.json" in found  # from which the csv can be made again
        json.loads(found["selection.json"])
        if found != new:
            for name, content in old.items():
                (out / name).write_bytes(content)

    assert until_it_lives(tmp_path, *call, "--out", out, check=check) >= 10  # among them: csv aside, json, csv
    assert visible(out) == new
    assert sorted(os.listdir(out)) == ["selection.csv", "selection.json"]  # what the dead left is cleared


def test_a_sample_is_there_whole_or_not_at_all(table, tmp_path):
    before, out, seen = table.read_bytes(), tmp_path / "k.csv", []
    out.write_text("old")

    def check(lived):
        assert table.read_bytes() == before
        seen.append(out.read_text() == "old")
        assert seen[-1] or len(read_table_file(out).columns) > 1

    call = ("sample", table, "--feature-model", "gaussian", "--drop", "y", "--out", out, "--force")
    assert until_it_lives(tmp_path, *call, check=check) >= 5
    assert seen == sorted(seen, reverse=True) and not seen[-1]
    assert sorted(os.listdir(tmp_path)) == ["in", "k.csv"]


def test_a_bed_is_there_whole_or_not_at_all(tmp_path):
    to_bed = pytest.importorskip("bed_reader").to_bed
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(20, 6)).astype(np.int8)
    to_bed(tmp_path / "in.bed", X, properties={"chromosome": ["1"] * 3 + ["2"] * 3}, num_threads=1)
    mosaic = Mosaic(rng.uniform(0.1, 1, 6), np.full((6, 2), 0.5), rng.uniform(0.2, 0.8, (6, 2)))
    write_fastphase(tmp_path / "fp", mosaic)
    inputs = {path: path.read_bytes() for path in tmp_path.iterdir()}
    call = ("sample", tmp_path / "in.bed", "--fastphase", tmp_path / "fp", "--rows-at-once", 8)
    assert run(tmp_path, *call, "--out", tmp_path / "whole.bed").returncode == 0

    def check(lived):
        assert all(path.read_bytes() == content for path, content in inputs.items())
        if (tmp_path / "out.bed").exists():
            assert (tmp_path / "out.bed").read_bytes() == (tmp_path / "whole.bed").read_bytes()

    assert until_it_lives(tmp_path, *call, "--out", tmp_path / "out.bed", "--jobs", 2, "--force", check=check) >= 10
    for ending in (".bed", ".bim", ".fam"):
        assert (tmp_path / f"out{ending}").read_bytes() == (tmp_path / f"whole{ending}").read_bytes()
