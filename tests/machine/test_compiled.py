"""Compiled loops without a place to keep them, on a full disk and with damaged files of an earlier run."""

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import knockoffs
from knockoffs.machine import compiled

SOURCE = Path(knockoffs.__file__).resolve().parent
RUN = """
from knockoffs.response.coordinate_descent import lasso_gap
from loop import double
print(double(21))
"""
LOOP = """
from knockoffs.machine.compiled import njit
@njit(cache=True)
def double(x):
    return 2 * x
"""


@pytest.fixture
def install(tmp_path):
    """A copy of the package without anything compiled, and a module with one loop."""
    shutil.copytree(SOURCE, tmp_path / "knockoffs", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "loop.py").write_text(LOOP)
    return tmp_path


def run(folder, *before, **environment):
    command = [*before, sys.executable, "-B", "-c", RUN]
    env = os.environ | {"PYTHONPATH": str(folder)} | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout == "42\n", done.stderr


def test_a_read_only_install_without_a_home(install):
    """As root, without the right to write where nobody may; without setpriv, where root may do all, as it comes."""
    for folder in (install, *install.rglob("*/")):
        folder.chmod(0o555)
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may write anywhere")
        before = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    else:
        before = ()
    try:
        run(install, *before, HOME="/proc/none", XDG_CACHE_HOME="/proc/none")
    finally:
        for folder in (install, *install.rglob("*/")):
            folder.chmod(0o755)
    assert not list(install.rglob("*.nbi"))


def test_damaged_files_of_an_earlier_run(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")  # beside the file, whatever NUMBA_CACHE_DIR says
    (tmp_path / "loop.py").write_text(LOOP)

    def answers():
        """As a process of its own does: the module is read again, and looks for what is kept."""
        spec = importlib.util.spec_from_file_location("loop", tmp_path / "loop.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double(21) == 42 and sum(module.double.stats.cache_hits.values())

    assert [answers(), answers()] == [0, 1]
    kept = [path for path in tmp_path.rglob("*") if path.suffix in (".nbi", ".nbc")]
    assert len(kept) == 2
    for path in kept:
        for damaged in (path.read_bytes()[:-20], b""):
            path.write_bytes(damaged)
            assert answers() is not False


def test_a_full_disk(tmp_path, monkeypatch):
    def full(self, sig, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.Cache._save_overload", full)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    @compiled.njit(cache=True)
    def double(x):
        return 2 * x

    assert double(21) == 42


SWEEP = """
import numpy as np
from knockoffs.features.latent import gibbs
from knockoffs.features.latent.margins import LatentCells
rows = np.zeros((3, 2))
cells = LatentCells(np.zeros((3, 2), np.int8) + gibbs.FREE, rows - np.inf, rows + np.inf, rows)
law = gibbs.Classes(np.zeros(1), rows[:1], np.eye(2)[None], np.eye(2)[None], np.zeros(1))
gibbs.sweep_rows(rows + 0, np.zeros(3, np.int64), cells, law, np.zeros(4, np.uint64), 0, 2, False)
for loop in (gibbs._factor, gibbs._solve_lower, gibbs._draw_free):
    print(list(loop.overloads))
"""


def test_no_loop_is_compiled_for_a_literal_too(tmp_path):
    """In a process without a cache, from which loops inside of others would not be compiled."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", SWEEP], env=environment, capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == 3 and "[]" not in lines and "Literal" not in run.stdout
