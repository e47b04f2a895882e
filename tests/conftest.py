import importlib.util
import json
import os
import tempfile
from pathlib import Path

import joblib
import numpy as np
import pytest

from knockoffs.progress import Progress

Progress.compiled = True  # else the first test of an empty cache would say "compiling, once"


@pytest.fixture
def seed():
    """One seed by default; KNOCKOFFS_TEST_SEED tries another."""
    return int(os.environ.get("KNOCKOFFS_TEST_SEED", "0"))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def jobs_are_threads():
    """Processes take seconds to start: they are for tests of the command line and of tests/streaming."""
    with joblib.parallel_config("threading"):
        yield


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the real data sets; tests that need it are skipped without it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("KNOCKOFFS_DATA", default))
    if not folder.is_dir():
        pytest.skip("the real data are not here: set KNOCKOFFS_DATA to their folder")
    return folder


@pytest.fixture
def select_and_rerun(tmp_path):
    """Select from a frame on the command line and run the record again, which must say "identical".

    Returns the record and the text of the report.
    """
    from typer.testing import CliRunner

    from knockoffs.cli.app import app

    def run(frame, *options):
        table, out, report = tmp_path / "t.csv", tmp_path / "out", tmp_path / "report.html"
        frame.to_csv(table, index=False)
        call = ["select", table, *options, "--out", out, "--report", report]
        found = CliRunner().invoke(app, [str(word) for word in call])
        assert found.exit_code == 0, found.output
        again = CliRunner().invoke(app, ["rerun", str(out / "selection.json"), str(table)])
        assert again.exit_code == 0 and "The answer is identical" in again.output
        return json.loads((out / "selection.json").read_text()), report.read_text()

    return run


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; tests that need it are skipped without it."""
    spec = importlib.util.spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        opened = module.Browser(folder)
        yield opened
        opened.close()
