"""Appendix C: empirical against target FDR for every score, from the runs of Figure 3 a to c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.random import Generator

from knockoffs.experiments import power
from knockoffs.experiments.power import Synthetic
from knockoffs.experiments.repetitions import FIVE, power_rows, statistics
from knockoffs.experiments.runner import Context, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Config:
    """Settings of the runs; those of Figure 3, whose runs are found again where they are kept."""

    synthetic: Synthetic = power.CONFIG.synthetic


PACKAGES = ("torch",)
CONFIG = Config()
QUICK = Config(power.QUICK.synthetic)


def run(config: Config, rng: Generator, context: Context | None = None) -> Table:
    """Rows: empirical FDR at each target for each number of components and score, and whether it is controlled."""
    synthetic_rng, _ = rng.spawn(2)  # as in Figure 3, so that the runs are the same
    table: Table = []
    for count, arrays in power.synthetic_scores(config.synthetic, synthetic_rng, context or Context()).items():
        for score in power.SCORES:
            W = statistics(arrays[score])
            table += power_rows(W, arrays["non_nulls"], n_components=count, score=score)
    for row in table:
        row["controlled"] = not row["fdr"] > row["target_fdr"] + 2 * row["fdr_se"]
    return table


def plot(table: Table) -> Figure:
    """One panel for each number of components, with the diagonal."""
    from knockoffs.experiments.figures import draw_curves, letter, new_figure, values

    figure = new_figure(10, 3.6)
    counts = values(table, "n_components")
    for place, count in enumerate(counts):
        rows = [row for row in table if row["n_components"] == count]
        axes = figure.add_subplot(1, len(counts), place + 1)
        top = max(row["target_fdr"] for row in rows) * 1.05
        axes.plot([0, top], [0, top], color="0.4", linestyle="--", linewidth=1)
        draw_curves(axes, rows, FIVE, y="fdr", label="Empirical FDR")
        axes.set(xlim=(0, top), ylim=(0, top))
        letter(axes, "abcdefgh"[place], f"{count} components")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    return figure
