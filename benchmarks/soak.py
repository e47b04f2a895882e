"""Three hundred fits in one process, and one answer over jobs, threads and forms of a table.

The first table has a row for every tenth fit: memory, open handles, threads, and files that are left. Fits of all kinds
take turns, and one of five fails. The second has a row for every way of asking the same question, with a hash of W: all
are one, to the last bit.

    python -m benchmarks.soak            # results/soak.csv and results/one_answer.csv
    python -m benchmarks.soak --quick    # thirty fits, fewer ways; prints, and writes nothing
"""

from __future__ import annotations

import argparse
import csv
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
FORMS = ("numpy", "pandas", "polars", "csv", "parquet")


def rows_of(n: int = 160, d: int = 12):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] * X[:, 1] + X[:, 2:6].sum(axis=1) + 0.5 * rng.standard_normal(n)


# ---- many fits ------------------------------------------------------------------------------------------------------


def soak(n_fits: int, every: int) -> list[dict[str, float]]:
    """Memory, handles, threads and files after every so many fits; what grows is a leak."""
    from knockoffs import KnockoffSelector

    X, y = rows_of()
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
    labels = np.c_[X.astype(object), np.where(X[:, 0] > 0, "yes", "no")]
    kinds = [
        (X, y, {"method": "knockoffs", "estimator": "lasso"}),
        (gaps, y > 0, {"method": "knockoffs"}),
        (labels, y, {}),
        (X, y, {"n_draws": 3, "n_jobs": 2, "method": "knockoffs", "estimator": "lasso"}),
        (X, y[:5], {}),
    ]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        for i in range(n_fits):
            table, target, options = kinds[i % len(kinds)]
            try:
                selector = KnockoffSelector(0.3, random_state=i, **options).fit(table, target)
                selector.explain()
            except ValueError:
                assert target is kinds[-1][1]
            if (i + 1) % every == 0:
                gc.collect()
                rows.append({"fits": i + 1, **held(Path(folder))})
                print(rows[-1], flush=True)
        tempfile.tempdir = None
    return rows


def held(folder: Path) -> dict[str, float]:
    """What this process holds just now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "mib": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
        "handles": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "files": sum(len(files) for _, _, files in os.walk(folder)),
    }


# ---- one answer -----------------------------------------------------------------------------------------------------


def table_in(form: str, folder: Path):
    """The same rows in a form, under the names that an array's columns get."""
    import pandas as pd
    import polars as pl

    from knockoffs.table.files import read_table_file, write_table_file

    X, y = rows_of()
    if form == "numpy":
        return X, y
    names = [f"x{j}" for j in range(X.shape[1])]
    if form == "pandas":
        return pd.DataFrame(X, columns=names), pd.Series(y)
    frame = pl.DataFrame(X, schema=names)
    if form == "polars":
        return frame, pl.Series(y)
    path = folder / f"t.{form}"
    write_table_file(frame.with_columns(y=pl.Series(y)), path)
    read = read_table_file(path)
    return read.drop("y"), read["y"].to_numpy()


def answer(form: str, jobs: int, folder: Path) -> str:
    """Hash of W, q-values and p-values, by knockoffs and by tests."""
    from knockoffs import KnockoffSelector

    X, y = table_in(form, folder)
    found = hashlib.sha256()
    for options in ({"method": "knockoffs", "n_draws": 2}, {"method": "conditional_test"}):
        selector = KnockoffSelector(0.3, random_state=0, n_jobs=jobs, **options).fit(X, y)
        for numbers in (selector.W_, selector.q_values_, selector.p_values_):
            found.update(b"" if numbers is None else np.ascontiguousarray(numbers).tobytes())
    return found.hexdigest()[:16]


def answers_here(jobs: int, forms: list[str], pool: int) -> dict[str, object]:
    """Hashes by form, in this process; in a pool of threads if asked for. And the threads of BLAS, before and after."""
    from threadpoolctl import threadpool_info

    def blas() -> list[int]:
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        before = blas()
        if pool:
            with ThreadPoolExecutor(pool) as workers:
                found = list(workers.map(lambda i: answer("numpy", jobs, Path(folder)), range(2 * pool)))
            hashes = {f"thread pool, fit {i}": one for i, one in enumerate(found)}
        else:
            hashes = {form: answer(form, jobs, Path(folder)) for form in forms}
        after = blas()
    return {"hashes": hashes, "blas": (before, after[: len(before)])}


def one_answer(jobs: list[int], threads: list[int], forms: list[str], pool: int) -> list[dict[str, object]]:
    """Hash of the answer for every way of asking, each number of threads and jobs in a process of its own."""
    rows = []
    for n_threads, n_jobs, pooled in [*product(threads, jobs, [0]), *((t, 1, pool) for t in threads)]:
        setting = {f"{name}_NUM_THREADS": str(n_threads) for name in ("OMP", "OPENBLAS", "MKL")}
        call = [sys.executable, "-m", "benchmarks.soak", "--here", json.dumps([n_jobs, list(forms), pooled])]
        done = subprocess.run(call, env=os.environ | setting, capture_output=True, text=True, check=True)
        told = json.loads(done.stdout.splitlines()[-1])
        before, after = told["blas"]
        for form, found in told["hashes"].items():
            rows.append({"threads": n_threads, "jobs": n_jobs, "form": form, "W": found, "blas": before == after})
            print(rows[-1], flush=True)
    return rows


def write(rows: list[dict], name: str) -> None:
    with (RESULTS / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(answers_here(*json.loads(arguments.here))))
        return
    warnings.simplefilter("ignore")
    quick = arguments.quick
    ways = one_answer([1, 2] if quick else [1, 2, 4], [1, 2], FORMS[:2] if quick else FORMS, 2 if quick else 4)
    fits = soak(30 if quick else 300, 5 if quick else 10)
    third = fits[len(fits) // 3]
    grown = {name: round(fits[-1][name] - third[name], 1) for name in third if name != "fits"}
    print(f"{len({row['W'] for row in ways})} answer(s) in {len(ways)} ways; from fit {third['fits']} on: {grown}")
    if not quick:
        write(ways, "one_answer.csv")
        write(fits, "soak.csv")


if __name__ == "__main__":
    main()
