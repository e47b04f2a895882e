"""Repetitions of a small simulation on all cores: FDR and power with standard errors, as a table and a csv file."""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402

RESULTS = Path(__file__).parent / "results"


def run_study(
    name: str,
    once: Callable[..., tuple[float, float]],
    settings: Mapping[str, list],
    description: str | None,
    repetitions: int = 100,
) -> None:
    """Write ``results/NAME.csv`` and print it: mean FDP and power of every combination of settings.

    Parameters
    ----------
    name : str
    once : callable
        (setting, ..., seed) -> (false discovery proportion, power)
    settings : mapping
        Values of every setting, in the order of the arguments of ``once``.
    description : str, optional
        Of the command.
    repetitions : int
        With ``--quick`` a tenth of them.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    n = repetitions // 10 if options.quick else repetitions
    cases = list(product(*settings.values()))
    tasks = (delayed(quietly)(once, *case, seed) for case in cases for seed in range(n))
    found = np.array(Parallel(options.jobs)(tasks)).reshape(len(cases), n, 2)
    mean, error = found.mean(axis=1), found.std(axis=1, ddof=1) / np.sqrt(n)
    RESULTS.mkdir(exist_ok=True)
    with open(RESULTS / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*settings, "repetitions", "fdr", "fdr_se", "power", "power_se"])
        for case, m, e in zip(cases, mean, error, strict=True):
            writer.writerow([*case, n, *(f"{value:.4f}" for value in (m[0], e[0], m[1], e[1]))])
    print("| " + " | ".join([*settings, "FDR", "power"]) + " |\n|" + "---|" * (len(settings) + 2))
    for case, m, e in zip(cases, mean, error, strict=True):
        figures = [f"{m[0]:.3f} ± {e[0]:.3f}", f"{m[1]:.2f} ± {e[1]:.2f}"]
        print("| " + " | ".join([*map(str, case), *figures]) + " |")


def quietly(once: Callable[..., tuple[float, float]], *arguments: object) -> tuple[float, float]:
    """Call it without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return once(*arguments)
