"""How often the verdict is wrong: false alarms on valid knockoffs, and faults that it must see."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.verdict import WORDS, small_budget, verdict
from knockoffs.experiments.runner import Context, Table, fingerprint
from knockoffs.experiments.verdict_cases import CASES, CROSSED, FAULTS, VALID, Judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Settings.

    Parameters
    ----------
    valid, faults : tuple of str
        Keys of ``VALID`` and ``FAULTS``.
    valid_sizes, fault_sizes : tuple of pairs of int
        Rows, and the data sets of so many rows for each case.
    """

    valid: tuple[str, ...]
    faults: tuple[str, ...]
    valid_sizes: tuple[tuple[int, int], ...] = ((200, 20), (500, 20), (1000, 16), (5000, 7))
    fault_sizes: tuple[tuple[int, int], ...] = ((500, 40), (1000, 20))


CONFIG = Config(tuple(VALID) + tuple(CROSSED), tuple(FAULTS))
QUICK = Config(tuple(VALID), tuple(FAULTS), ((200, 5), (500, 5)), ((500, 5),))


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


CHECKS = ("support", "margins", "pairs", "classifier", "repeated rows", "order of rows", "neighbouring rows")


def run(config: Config, rng: Generator, context: Context | None = None) -> Table:
    """Rows: how often each word came, and how often each check failed, for each case and number of rows."""
    from joblib import Parallel, delayed

    context = context or Context()
    work = [(case, *size, True) for case in config.valid for size in config.valid_sizes]
    work += [(case, *size, False) for case in config.faults for size in config.fault_sizes]
    table: Table = []
    for (case, n, repetitions, valid), stream in zip(work, rng.spawn(len(work)), strict=True):
        rngs = stream.spawn(repetitions)

        def compute(case: str = case, n: int = n, rngs: list[Generator] = rngs) -> dict[str, NDArray]:
            context.log(f"{case}, {n} rows: {len(rngs)} data sets")
            found = Parallel(n_jobs=context.n_jobs)(delayed(repeat)(case, n, r) for r in rngs)
            return {"found": np.stack(found)}

        found = context.once(f"verdict-{case}-{n}-{fingerprint(case, n, rngs)}", compute)["found"]
        words, small, p_values = found[:, 0], found[:, 1], found[:, 6:]
        table.append(
            {
                "case": case,
                "n": n,
                "valid": valid,
                "doubtful_or_worse": float((words >= 1).mean()),
                "broken": float((words == 2).mean()),
                "small_doubtful_or_worse": float((small >= 1).mean()),
                "small_broken": float((small == 2).mean()),
                "rows_said": float(found[:, 5].mean()),
                "seconds": float(np.median(found[:, 2])),
                "twins": float(found[:, 4].mean()),
                **{
                    f"by_{name.replace(' ', '_')}": float((p_values[:, c] * len(CHECKS) < 0.05).mean())
                    for c, name in enumerate(CHECKS)
                },
                "repetitions": len(found),
            }
        )
    return table


def plot(table: Table) -> Figure:
    """Draw the share of broken verdicts, a bar for each case."""
    from knockoffs.experiments.figures import new_figure

    figure = new_figure(6, 0.18 * len(table) + 1)
    axes = figure.add_subplot()
    places = np.arange(len(table))[::-1]
    axes.barh(places, [row["doubtful_or_worse"] for row in table], color="#E69F00", label="doubtful or broken")
    axes.barh(places, [row["broken"] for row in table], color="#D55E00", label="broken")
    axes.set_yticks(places, [f"{row['case']}, n = {row['n']}" for row in table], fontsize=6)
    axes.set(xlabel="Share of data sets", xlim=(0, 1))
    axes.legend(fontsize=8)
    return figure
