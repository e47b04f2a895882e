"""How often the verdict is wrong: false alarms on valid knockoffs, and faults that it must detect.

    PYTHONPATH=src python -m benchmarks.verdict_study --jobs 2 [--quick]

``verdict.csv``: how often each word came for the cases of ``verdict_cases.py``. ``verdict_excess.csv``: the smallest
excess of the false discovery rate that is detected, with a link between columns that bends more and more. Both are
written to ``benchmarks/results``; docs/verdict.md discusses them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from paper.runner import Context, Row, Table, mean_and_error, write_table

from benchmarks.verdict_cases import CASES, CROSSED, FAULTS, VALID, Judged
from knockoffs import false_discovery_proportion, fit_gaussian, knockoff_filter
from knockoffs.diagnostics.verdict import WORDS, small_budget, verdict
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import NetworkSampler

Sizes = Sequence[tuple[int, int]]  # rows, and the data sets of so many rows for each case
CHECKS = ("support", "margins", "pairs", "classifier", "repeated rows", "order of rows", "neighbouring rows")
N_SIGNALS, D = 15, 30  # of the excess
BENDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)  # share of the sd of a null that is a square of its signal; 0 is a valid P^X
JUDGED = 12  # data sets whose verdict is asked for
TARGET = 0.1


def rates(words: NDArray, small: NDArray) -> Row:
    """How often the verdict was doubtful or broken, by the full budget and by the small one."""
    return {
        "doubtful_or_worse": float((words >= 1).mean()),
        "broken": float((words == 2).mean()),
        "small_doubtful_or_worse": float((small >= 1).mean()),
        "small_broken": float((small == 2).mean()),
    }


# Cases


def repeat(case: str, n: int, rng: Generator) -> NDArray:
    """One data set: words and seconds by the full budget and the small one, twins, whether rows were said, p-values."""
    data_rng, check_rng, small_rng = rng.spawn(3)
    made = CASES[case](n, data_rng)
    pair, kinds = (made.pair, made.kinds) if isinstance(made, Judged) else (made, None)
    names = [f"x{j}" for j in range(pair.n_columns)]
    start = time.process_time()
    found = verdict(pair, names=names, kinds=kinds, rng=check_rng)
    between = time.process_time()
    small = verdict(pair, names=names, kinds=kinds, rng=small_rng, budget=small_budget(pair.n_columns))
    seconds = (between - start, time.process_time() - between)
    words = (WORDS.index(found.word), WORDS.index(small.word))
    return np.array([*words, *seconds, len(found.twins), bool(found.rows), *(check.p_value for check in found.checks)])


def run_cases(valid: Sizes, faults: Sizes, rng: Generator, context: Context) -> Table:
    """Rows: how often each word came, and how often each check failed, for each case and number of rows."""
    work = [(case, *size, True) for case in VALID | CROSSED for size in valid]
    work += [(case, *size, False) for case in FAULTS for size in faults]
    table: Table = []
    for (case, n, repetitions, is_valid), stream in zip(work, rng.spawn(len(work)), strict=True):
        context.log(f"{case}, {n} rows: {repetitions} data sets")
        found = np.stack(context.repeat(repeat, [(case, n, r) for r in stream.spawn(repetitions)]))
        row = {"case": case, "n": n, "valid": is_valid} | rates(found[:, 0], found[:, 1])
        row |= {"rows_said": float(found[:, 5].mean()), "seconds": float(np.median(found[:, 2]))}
        row |= {"twins": float(found[:, 4].mean())}
        for c, name in enumerate(CHECKS):
            row[f"by_{name.replace(' ', '_')}"] = float((found[:, 6 + c] * len(CHECKS) < 0.05).mean())
        table.append(row | {"repetitions": len(found)})
    return table


# Excess


def simulate(n: int, bend: float, rng: Generator) -> tuple[NDArray, NDArray]:
    """15 signals; 15 nulls, each partly the square of a signal; y is the sum of the squares, plus noise."""
    X = rng.standard_normal((n, D))
    squares = (X[:, :N_SIGNALS] ** 2 - 1) / np.sqrt(2)
    X[:, N_SIGNALS:] = bend * squares + np.sqrt(1 - bend**2) * X[:, N_SIGNALS:]
    return X, (squares + X[:, :N_SIGNALS]).sum(axis=1) + np.sqrt(N_SIGNALS) * rng.standard_normal(n)


def false_discoveries(pair: Pair, y: NDArray) -> float:
    """FDP of least squares coefficients: the squares are what a linear model sees through the nulls."""
    U = pair.stacked - pair.stacked.mean(axis=0)
    Z = np.abs(np.linalg.lstsq(U, y - y.mean(), rcond=None)[0])
    return false_discovery_proportion(knockoff_filter(Z[:D] - Z[D:], TARGET), np.arange(D) < N_SIGNALS)


def repeat_bent(n: int, bend: float, judge: bool, rng: Generator) -> NDArray:
    """FDP, and the places of the words by the full budget and the small one (nan if not judged)."""
    data_rng, draw_rng, check_rng, small_rng = rng.spawn(4)
    X, y = simulate(n, bend, data_rng)
    pair = NetworkSampler(fit_gaussian(X).as_network()).sample(X, draw_rng)
    names, words = [f"x{j}" for j in range(D)], [np.nan, np.nan]
    if judge:
        found = [
            verdict(pair, names=names, rng=check_rng),
            verdict(pair, names=names, rng=small_rng, budget=small_budget(pair.n_columns)),
        ]
        words = [WORDS.index(one.word) for one in found]
    return np.array([false_discoveries(pair, y), *words])


def run_excess(sizes: Sequence[int], selections: int, rng: Generator, context: Context) -> Table:
    """Rows: FDR, and how often the verdict was doubtful or broken, for each bend and number of rows."""
    work = [(n, bend) for n in sizes for bend in BENDS]
    table: Table = []
    for (n, bend), stream in zip(work, rng.spawn(len(work)), strict=True):
        context.log(f"bend {bend:g}, {n} rows")
        each = [(n, bend, i < JUDGED, r) for i, r in enumerate(stream.spawn(selections))]
        found = np.stack(context.repeat(repeat_bent, each))
        fdr, error = mean_and_error(found[:, 0])
        words, small = found[~np.isnan(found[:, 1]), 1:].T
        row = {"n": n, "bend": bend, "target_fdr": TARGET, "fdr": fdr, "fdr_se": error}
        table.append(row | rates(words, small) | {"repetitions": len(words)})
    return table


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="How often the verdict is wrong")
    parser.add_argument("--quick", action="store_true", help="a few data sets, into build/verdict")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    out = Path("build/verdict") if given.quick else Path(__file__).parent / "results"
    out.mkdir(parents=True, exist_ok=True)
    context = Context("cpu", given.jobs, Path("build/verdict/kept"), verbose=1)
    valid: Sizes = ((200, 2),) if given.quick else ((200, 20), (500, 20), (1000, 16), (5000, 7))
    faults: Sizes = ((500, 2),) if given.quick else ((500, 40), (1000, 20))
    write_table(out / "verdict.csv", run_cases(valid, faults, np.random.default_rng(2019), context))
    sizes, selections = ((500,), 12) if given.quick else ((500, 2000, 5000), 100)
    table = run_excess(sizes, selections, np.random.default_rng(2019), context)
    write_table(out / "verdict_excess.csv", table)


if __name__ == "__main__":
    main()
