"""Thousands of damaged files: answers and errors of ours, and nothing else."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

N = 1000  # of each kind

place = Path(__file__).resolve().parents[1] / "hostile" / "test_fuzz.py"
spec = importlib.util.spec_from_file_location("few_damaged_files", place)
few = importlib.util.module_from_spec(spec)
spec.loader.exec_module(few)
good = few.good


@pytest.mark.parametrize("name", few.FILES)
def test_thousands_of_damaged_files(good, tmp_path, name, seed):
    if name.startswith("g."):
        pytest.importorskip("bed_reader")
    counts = few.outcomes(good, tmp_path, name, N, np.random.default_rng([seed, len(name)]))
    print(name, dict(counts))
    assert sum(counts.values()) == N
