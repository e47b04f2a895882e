"""With the bare dependencies everything works, or says in one sentence, before any work, what installs the rest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import knockoffs

SOURCE = Path(knockoffs.__file__).resolve().parents[1]
EXTRAS = "torch matplotlib pandas pyarrow bed_reader hmmlearn xgboost lightgbm streamlit "
EXTRAS += "dask distributed"
HIDE = f"""
import sys
from importlib.machinery import PathFinder
class Bare(PathFinder):
    @classmethod
    def find_spec(cls, name, *places):
        return None if name.partition(".")[0] in {EXTRAS.split()} else PathFinder.find_spec(name, *places)
sys.meta_path[sys.meta_path.index(PathFinder)] = Bare
"""
COMMANDS = """
import contextlib, io, json
from knockoffs.cli.app import main
ends = []
for arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as end:
            ends.append([end.code, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""


def bare(code, *flags, **options):
    """Run code in a process in which no extra can be imported."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"} | options.pop("env", {})
    command = [sys.executable, *flags, "-c", HIDE + code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bare")
    X = np.random.default_rng(0).standard_normal((80, 6))
    rows = np.c_[X, X[:, :4].sum(axis=1)].tolist()
    lines = [",".join("abcdefy"), *(",".join(map(repr, row)) for row in rows)]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    (folder / "t.parquet").write_bytes(b"PAR1")
    (folder / "t.bed").write_bytes(b"\x6c\x1b\x01")
    return folder / "t.csv"


def commands(*calls, flags=()):
    """Ends of some calls: status, standard output, standard error."""
    calls = [[str(argument) for argument in call] for call in calls]
    return json.loads(bare(COMMANDS, *flags, input=json.dumps(calls)))


GAUSSIAN = ("--feature-model", "gaussian", "--estimator", "lasso")


def working(table, out):
    select = (table, "--target", "y", "--fdr", 0.3, *GAUSSIAN, "--method", "knockoffs")
    return (
        ("select", *select, "--out", out / "s", "--report", out / "report.html"),
        ("rerun", out / "s" / "selection.json", table),
        ("check", table, "--feature-model", "gaussian", "--drop", "y"),
        ("sample", table, "--feature-model", "gaussian", "--drop", "y", "--out", out / "k.csv"),
        ("sample", table, "--feature-model", "gaussian", "--drop", "y", "--out", out / "k.parquet"),
        ("check", out / "k.parquet", "--feature-model", "gaussian"),
    )


def test_every_command_works(table, tmp_path):
    """Without assertions and docstrings too, on which nothing rests."""
    for call, end in zip(working(table, tmp_path), commands(*working(table, tmp_path), flags=("-OO",)), strict=True):
        assert end[0] == 0, (call, end)
    assert (tmp_path / "report.html").stat().st_size > 1000


REFUSED = {
    "page": (("app", "--no-browser"), "pages in the browser need Streamlit"),
    "neural": (
        ("select", "{}", "--target", "y", "--estimator", "neural"),
        "--estimator neural: such models need PyTorch",
    ),
    "plink": (("sample", "{}.bed", "--fastphase", "fp", "--out", "{}.k.bed"), "PLINK files need bed-reader"),
}


def test_what_cannot_be_done_says_so_before_any_work(table):
    before = sorted(table.parent.iterdir())
    calls = [[part.format(table) for part in call] for call, _ in REFUSED.values()]
    for (call, words), (status, out, err) in zip(REFUSED.values(), commands(*calls), strict=True):
        assert status == 1 and out == "", call
        assert err.startswith(f"knockoffs: {words}") and err.count("\n") == 1, err
        assert "pip install 'knockoffs[" in err
    assert sorted(table.parent.iterdir()) == before


NAMES = """
from knockoffs import *
KnockoffSelector, InputError
import knockoffs
help(knockoffs)
print("names that need more:")
for name in ("NeuralClassifier", "NeuralRegressor", "TorchModel"):
    try:
        getattr(knockoffs, name)
    except (ImportError, InputError) as error:
        print(error)
try:
    from knockoffs import NeuralClassifier
except ImportError as error:
    print(error)
import numpy as np
def fit(X, *, rng, n_jobs=None):
    raise AssertionError("the features were modelled")
X = np.random.default_rng(0).standard_normal((200, 30))
try:
    KnockoffSelector(0.2, feature_model=fit, estimator="neural").fit(X, 2 * X[:, 0] + X[:, 1])
except MissingPackageError as error:
    print(error)
"""


def test_names_and_help_are_there_and_what_needs_more_says_so_before_any_work():
    shown, _, refused = bare(NAMES).partition("names that need more:\n")
    assert "class KnockoffSelector" in shown and "NeuralClassifier" not in shown
    assert refused.splitlines() == ["neural networks need PyTorch: pip install 'knockoffs[neural]'."] * 5
