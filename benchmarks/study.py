"""Repetitions of a small simulation on all cores: FDR and power with standard errors, as a table and a csv file."""

from __future__ import annotations

import argparse
import csv
import os
import time
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
    leave_out: Callable[..., bool] = lambda *case: False,
) -> None:
    """Write ``results/NAME.csv`` and print it: mean FDP and power of every combination of settings.

    Parameters
    ----------
    name : str
    once : callable
        (setting, ..., seed) -> (false discovery proportion, power); NaN where the table is refused
    settings : mapping
        Values of every setting, in the order of the arguments of ``once``.
    description : str, optional
        Of the command.
    repetitions : int
        ``--repetitions`` asks for another number. With ``--quick`` a tenth of them, and no file. ``--minutes`` ends the
        study after the last repetition of all cases that is done by then.
    leave_out : callable
        (setting, ...) -> whether the combination is left out
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions, and no file")
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="wall-clock time, if it is limited")
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    n = options.repetitions // 10 if options.quick else options.repetitions
    cases = [case for case in product(*settings.values()) if not leave_out(*case)]
    tasks = (delayed(quietly)(once, *case, seed) for seed in range(n) for case in cases)
    found, end = [], time.monotonic() + 60 * options.minutes
    for values in Parallel(options.jobs, return_as="generator")(tasks):
        found.append(values)
        if time.monotonic() > end:
            break
    n = len(found) // len(cases)
    results = np.array(found[: n * len(cases)]).reshape(n, len(cases), 2).swapaxes(0, 1)
    print(f"{n} repetitions\n\n| " + " | ".join([*settings, "FDR", "power"]) + " |\n|" + "---|" * (len(settings) + 2))
    rows = [[*case, n, *summary(values)] for case, values in zip(cases, results, strict=True)]
    for *case, _, fdr, fdr_se, power, power_se, refused in rows:
        figures = [f"{fdr:.3f} ± {fdr_se:.3f}", f"{power:.2f} ± {power_se:.2f}"]
        print("| " + " | ".join([*map(str, case), *(figures if refused < 1 else ["refused", ""])]) + " |")
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        with open(RESULTS / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            header = [*settings, "repetitions", "fdr", "fdr_se", "power", "power_se", "refused"]
            csv.writer(file).writerows([header, *([*row[:-5], *(f"{x:.4f}" for x in row[-5:])] for row in rows)])


def summary(values: np.ndarray) -> tuple[float, ...]:
    """Mean FDP and power, each with its standard error, and the share of tables that were refused."""
    kept = values[~np.isnan(values[:, 0])]
    if not len(kept):
        return np.nan, np.nan, np.nan, np.nan, 1.0
    (fdr, power), n = kept.mean(axis=0), len(kept)
    fdr_se, power_se = kept.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else (np.nan, np.nan)
    return fdr, fdr_se, power, power_se, 1 - len(kept) / len(values)


def quietly(once: Callable[..., tuple[float, float]], *arguments: object) -> tuple[float, float]:
    """Call it without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return once(*arguments)
