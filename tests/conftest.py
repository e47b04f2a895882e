import os
from pathlib import Path

import numpy as np
import pytest


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
