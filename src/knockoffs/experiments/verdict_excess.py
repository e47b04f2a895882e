"""The smallest excess of the false discovery rate that the verdict sees: a link that bends more and more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.diagnostics.verdict import WORDS, small_budget, verdict
from knockoffs.experiments.runner import Context, Table, fingerprint, mean_and_error
from knockoffs.features.gaussian import fit_gaussian
from knockoffs.filter import false_discovery_proportion, knockoff_filter
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import NetworkSampler

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_SIGNALS, D = 15, 30


@dataclass(frozen=True)
class Config:
    """Settings.

    Parameters
    ----------
    n : tuple of int
        Rows.
    bends : tuple of float
        Share of the standard deviation of a null that is a square of its signal; 0 is a valid P^X.
    repetitions : int
        Data sets whose verdict is asked for; the false discovery rate is measured on ``selections`` of them.
    selections : int
    target_fdr : float
    """

    n: tuple[int, ...] = (500, 2000, 5000)
    bends: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6)
    repetitions: int = 12
    selections: int = 100
    target_fdr: float = 0.1


CONFIG = Config()
QUICK = Config((500,), (0.0, 0.3, 0.6), 3, 20)


def simulate(n: int, bend: float, rng: Generator) -> tuple[NDArray, NDArray]:
    """15 signals; 15 nulls, each partly the square of a signal; y is the sum of the squares, plus noise."""
    X = rng.standard_normal((n, D))
    squares = (X[:, :N_SIGNALS] ** 2 - 1) / np.sqrt(2)
    X[:, N_SIGNALS:] = bend * squares + np.sqrt(1 - bend**2) * X[:, N_SIGNALS:]
    return X, (squares + X[:, :N_SIGNALS]).sum(axis=1) + np.sqrt(N_SIGNALS) * rng.standard_normal(n)


def false_discoveries(pair: Pair, y: NDArray, q: float) -> float:
    """FDP of least squares coefficients: the squares are what a linear model sees through the nulls."""
    U = pair.stacked - pair.stacked.mean(axis=0)
    Z = np.abs(np.linalg.lstsq(U, y - y.mean(), rcond=None)[0])
    return false_discovery_proportion(knockoff_filter(Z[:D] - Z[D:], q), np.arange(D) < N_SIGNALS)


def repeat(n: int, bend: float, q: float, judge: bool, rng: Generator) -> NDArray:
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
    return np.array([false_discoveries(pair, y, q), *words])


def run(config: Config, rng: Generator, context: Context | None = None) -> Table:
    """Rows: FDR, and how often the verdict was doubtful or broken, for each bend and number of rows."""
    from joblib import Parallel, delayed

    context = context or Context()
    work = [(n, bend) for n in config.n for bend in config.bends]
    table: Table = []
    for (n, bend), stream in zip(work, rng.spawn(len(work)), strict=True):
        rngs = stream.spawn(config.selections)

        def compute(n: int = n, bend: float = bend, rngs: list[Generator] = rngs) -> dict[str, NDArray]:
            context.log(f"bend {bend:g}, {n} rows")
            tasks = (delayed(repeat)(n, bend, config.target_fdr, i < config.repetitions, r) for i, r in enumerate(rngs))
            return {"found": np.stack(Parallel(n_jobs=context.n_jobs)(tasks))}

        found = context.once(f"excess-{n}-{bend:g}-{fingerprint(config, stream)}", compute)["found"]
        fdr, error = mean_and_error(found[:, 0])
        words, small = found[~np.isnan(found[:, 1]), 1:].T
        table.append(
            {
                "n": n,
                "bend": bend,
                "target_fdr": config.target_fdr,
                "fdr": fdr,
                "fdr_se": error,
                "doubtful_or_worse": float((words >= 1).mean()),
                "broken": float((words == 2).mean()),
                "small_doubtful_or_worse": float((small >= 1).mean()),
                "small_broken": float((small == 2).mean()),
                "repetitions": len(words),
            }
        )
    return table


def plot(table: Table) -> Figure:
    """Draw how often the verdict is broken against the FDR, a line for each number of rows."""
    from knockoffs.experiments.figures import new_figure, values

    figure = new_figure(5, 4)
    axes = figure.add_subplot()
    for n in values(table, "n"):
        rows = [row for row in table if row["n"] == n]
        axes.plot([row["fdr"] for row in rows], [row["broken"] for row in rows], marker="o", label=f"n = {n}")
    axes.axvline(table[0]["target_fdr"], color="0.4", linestyle="--", linewidth=1)
    axes.set(xlabel="Empirical FDR", ylabel="Share of broken verdicts", ylim=(-0.02, 1.02))
    axes.legend(fontsize=8)
    return figure
