import importlib.util
import os
import tempfile
from pathlib import Path

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


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the real data sets; tests that need it are skipped without it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("KNOCKOFFS_DATA", default))
    if not folder.is_dir():
        pytest.skip("the real data are not here: set KNOCKOFFS_DATA to their folder")
    return folder


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
