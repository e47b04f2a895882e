"""Knockoffs at the resolution the data allow: near copies, a few of them, and none.

    PYTHONPATH=src:. python -m benchmarks.localise --jobs 16 --reps 100 --out benchmarks/results/localise.csv

"copies": 40 blocks of five columns with correlation 0.95, 15 of them with a signal in one column. "few copies": 200
columns, AR(1) 0.5, of which ten are copies of others with correlation 0.95; 20 signals, two of them at a copied column.
"none": the same without copies. n = 600, level 0.1, noise 1, all else by default. "columns" judges single columns,
"auto" joins columns and groups of near copies. False is the share of discoveries without a signal, covered that of the
signals inside a discovery, alone that of the signals found as single columns, size the mean number of columns.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from itertools import product
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402

from knockoffs import KnockoffSelector  # noqa: E402

DESIGNS = {"copies": (0.17, 0.25, 0.35, 0.5), "few copies": (0.15, 0.25), "none": (0.15, 0.25)}  # sizes of the signals
ANSWERS = ("columns", "auto")
FIGURES = ("false", "covered", "alone", "size", "seconds")


def draw_design(name, size, rng, n=600):
    """X, y and the columns that matter."""
    if name == "copies":
        blocks = np.arange(200) // 5
        X = np.sqrt(0.95) * rng.standard_normal((n, 40))[:, blocks] + np.sqrt(0.05) * rng.standard_normal((n, 200))
        causal = 5 * rng.choice(40, 15, replace=False) + rng.integers(0, 5, 15)
    else:
        X = rng.standard_normal((n, 200))
        for j in range(1, 200):
            X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
        causal = rng.choice(np.arange(2, 180, 2), 20, replace=False)
        if name == "few copies":
            copied = np.append(causal[:2], rng.choice(np.setdiff1d(np.arange(180), causal), 8, replace=False))
            X[:, 190:] = 0.95 * X[:, copied] + np.sqrt(1 - 0.95**2) * rng.standard_normal((n, 10))
    y = X[:, causal] @ (size * rng.choice([-1, 1], len(causal))) + rng.standard_normal(n)
    return X, y, set(causal.tolist())


def once(name, size, answer, seed):
    """Figures of one table."""
    X, y, causal = draw_design(name, size, np.random.default_rng([seed, sorted(DESIGNS).index(name)]))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"method": "knockoffs", "resolution": answer, "verdict": False, "random_state": seed}
        selector = KnockoffSelector(0.1, **options).fit(X, y)
    seconds = time.process_time() - start
    if selector.discoveries_ is None:
        found = [{int(j)} for j in np.flatnonzero(selector.get_support())]
    else:
        found = [{int(feature[1:]) for feature in one.features} for one in selector.discoveries_]
    false = np.mean([not (group & causal) for group in found]) if found else 0.0
    covered = len(causal & set().union(*found)) / len(causal)
    alone = sum(next(iter(group)) in causal for group in found if len(group) == 1) / len(causal)
    return false, covered, alone, np.mean([len(group) for group in found]) if found else np.nan, seconds


def main():
    """Run all designs and write the means with their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--reps", type=int, default=100)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "localise.csv")
    options = parser.parse_args()
    cases = [(name, size, answer) for name in options.designs for size, answer in product(DESIGNS[name], ANSWERS)]
    tasks = (delayed(once)(*case, seed) for case in cases for seed in range(options.reps))
    found = np.array(Parallel(options.jobs)(tasks)).reshape(len(cases), options.reps, len(FIGURES))
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["design", "signal", "answer", "repetitions", *(f"{a}{b}" for a in FIGURES for b in ("", "_se"))]
        )
        for case, values in zip(cases, found, strict=True):
            known = np.maximum((~np.isnan(values)).sum(axis=0), 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # nothing found in any repetition
                mean, error = np.nanmean(values, axis=0), np.nanstd(values, axis=0) / np.sqrt(known)
            row = [*case, options.reps, *(f"{x:.3f}" for both in zip(mean, error, strict=True) for x in both)]
            writer.writerow(row)
            print(*row, sep=", ", flush=True)


if __name__ == "__main__":
    main()
