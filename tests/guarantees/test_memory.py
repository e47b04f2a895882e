"""The memory that is said to be needed is what is taken, up to a factor of 1.5: peaks of processes of their own."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import knockoffs
from knockoffs.table.memory import needed_memory

SOURCE = str(Path(knockoffs.__file__).parents[1])
RUN = """
import sys
from pathlib import Path
from knockoffs.cli.app import main
try:
    main(sys.argv[1:])
finally:  # not ru_maxrss, which begins with the memory of the process that started this one
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(int(line.split()[1]) * 1024, file=sys.stderr)
"""
MODELS = {
    "default": (),
    "gaussian": ("--feature-model", "gaussian", "--estimator", "lasso"),
    "boosting": ("--estimator", "boosting"),
}


def peak(folder, n, d, options):
    """Bytes that a selection from a parquet file of n rows of d columns takes at its peak."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = 0.3 * X[:, :10].sum(axis=1) + rng.standard_normal(n)
    path = folder / f"table{n}.parquet"
    pl.DataFrame(X, schema=[f"x{j}" for j in range(d)]).with_columns(y=pl.Series(y)).write_parquet(path)
    call = [sys.executable, "-c", RUN, "select", str(path), "--target", "y", "--stream", "never", "--fdr", "0.3"]
    environment = {"PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1"}
    run = subprocess.run([*call, "--method", "knockoffs", *options], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    return int(run.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    ("model", "n", "d"),
    [
        ("default", 100_000, 40),
        ("gaussian", 100_000, 40),
        ("boosting", 100_000, 40),
        ("default", 300_000, 12),
        ("default", 30_000, 150),
    ],
)
def test_the_estimate_is_what_is_taken(tmp_path, model, n, d):
    taken = peak(tmp_path, n, d, MODELS[model]) - peak(tmp_path, 300, d, MODELS[model])
    assert 1 / 1.5 < needed_memory(n, d + 1) / taken < 1.5, f"{taken / (8 * n * (d + 1)):.1f} tables"
