"""CPU seconds and peak memory of the plain defaults on eight sizes, of the import, and of a first call.

    OMP_NUM_THREADS=1 python benchmarks/costs.py --against benchmarks/results/costs.csv --out new.csv

fits ``KnockoffSelector(random_state=0)``, with the verdict, each time in a process of its own. Seconds are those of the
fit alone, after two small fits that load modules and compiled code; a size below five seconds is the best of three
processes. Memory is the peak of the whole process. "import" is that of the selector's class. "first call" is the first
fit of the iris-like table in a process that finds no compiled code. Rows are written to results/costs.csv;
``--against`` prints the ratios to an older file.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks.memory, wherever this is called from

RESULTS = Path(__file__).resolve().parent / "results" / "costs.csv"
FIELDS = ("size", "cpu_seconds", "peak_mib")
QUICK, REPEATS = 5.0, 3  # a size below so many seconds is the best of so many processes


def iris_like():
    import numpy as np

    rng, K = np.random.default_rng(0), np.repeat(np.arange(3), 50)
    X = rng.standard_normal((150, 4)) + 0.6 * rng.standard_normal((150, 1)) + K[:, None] * [2.0, -0.5, 3.0, 1.0]
    return X.round(1), np.array(["setosa", "versicolor", "virginica"])[K]


def diabetes():
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)


def breast_cancer():
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(return_X_y=True)


def numbers(n: int, d: int):
    """Gaussian columns, neighbours correlated, of which at most twenty matter."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    strength = 1.0 if n < 1000 else 0.3
    return X, strength * X[:, : min(20, d // 2)].sum(axis=1) + rng.standard_normal(n)


def mixed():
    """Twelve numbers, four counts, four grades and four labels; one cell in twenty is missing."""
    import numpy as np
    import pandas as pd

    rng, n = np.random.default_rng(0), 2000
    L = rng.standard_normal((n, 24)) + 0.6 * rng.standard_normal((n, 1))
    columns = {f"number{j}": L[:, j] for j in range(12)}
    columns |= {f"count{j}": rng.poisson(np.exp(0.4 * L[:, 12 + j])).astype(float) for j in range(4)}
    columns |= {f"grade{j}": np.digitize(L[:, 16 + j], [-1, 0, 1]) + 1.0 for j in range(4)}
    labels = np.array(["blue", "green", "red"])
    columns |= {f"label{j}": labels[np.digitize(L[:, 20 + j], [-0.6, 0.6])] for j in range(4)}
    y = 0.4 * L[:, ::2].sum(axis=1) + rng.standard_normal(n)
    frame = pd.DataFrame(columns)
    return frame.mask(rng.random(frame.shape) < 0.05), y


SIZES: dict[str, tuple[Callable, dict[str, object]]] = {
    "150x4 classes": (iris_like, {}),
    "442x10 diabetes": (diabetes, {}),
    "569x30 breast cancer": (breast_cancer, {}),
    "1000x60 numbers": (lambda: numbers(1000, 60), {}),
    "2000x24 mixed, missing": (mixed, {}),
    "10000x50 numbers": (lambda: numbers(10_000, 50), {}),
    "200x1000 numbers": (lambda: numbers(200, 1000), {}),
    "20000x20 knockoffs": (lambda: numbers(20_000, 20), {"method": "knockoffs"}),
}
IMPORT, FIRST = "import", "first call"


def child(size: str) -> dict[str, float]:
    """CPU seconds and MiB of one size, in this process."""
    from benchmarks.memory import peak_kib

    warnings.simplefilter("ignore")
    if size == IMPORT:
        start = time.process_time()
        from knockoffs import KnockoffSelector

        return {"cpu_seconds": time.process_time() - start, "peak_mib": peak_kib() / 1024}
    from knockoffs import KnockoffSelector

    make, options = SIZES["150x4 classes" if size == FIRST else size]
    X, y = make()
    if size != FIRST:
        for table, method in ((iris_like(), "conditional_test"), (numbers(300, 14), "knockoffs")):
            KnockoffSelector(fdr=0.3, random_state=0, method=method).fit(*table)
    selector = KnockoffSelector(random_state=0, **options)
    start = time.process_time()
    selector.fit(X, y)
    return {"cpu_seconds": time.process_time() - start, "peak_mib": peak_kib() / 1024}


def measure(size: str) -> dict[str, float]:
    """CPU seconds and MiB of one size, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        variables = os.environ | ({"NUMBA_CACHE_DIR": folder} if size == FIRST else {})
        call = [sys.executable, __file__, "--child", size]
        run = subprocess.run(call, stdout=subprocess.PIPE, text=True, env=variables, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def best_of(size: str) -> dict[str, object]:
    """One row of the results: of a quick size the smallest of several processes."""
    found = [measure(size)]
    while found[0]["cpu_seconds"] < QUICK and len(found) < REPEATS:
        found.append(measure(size))
    seconds, mib = (min(run[field] for run in found) for field in FIELDS[1:])
    return {"size": size, "cpu_seconds": round(seconds, 3), "peak_mib": round(mib, 1)}


def compared(row: dict[str, object], old: dict[str, str] | None) -> str:
    """Format a row, with the ratios to an older row where there is one."""
    line = f"{row['size']:<24} {row['cpu_seconds']:>9.3f} s {row['peak_mib']:>8.1f} MiB"
    if old is None:
        return line
    return line + "".join(f"  x{row[field] / float(old[field]):.2f}" for field in FIELDS[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="an older csv, for the ratios new / old")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child)))
        return
    older = {}
    if given.against:
        with given.against.open(newline="") as file:
            older = {row["size"]: row for row in csv.DictReader(file)}
    rows = []
    for size in (*SIZES, IMPORT, FIRST):
        rows.append(best_of(size))
        print(compared(rows[-1], older.get(size)), flush=True)
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
