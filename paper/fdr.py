"""Appendix C: empirical against target FDR for every score, from the runs of Figure 3 a to c."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.random import Generator

from paper import fig3
from paper.figures import draw_curves, letter, new_figure, values
from paper.repetitions import FIVE, power_rows, statistics
from paper.runner import Context, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# the settings of Figure 3, whose runs are found again where they are kept
CONFIG = fig3.CONFIG.synthetic
QUICK = fig3.QUICK.synthetic


def run(config: fig3.Synthetic, rng: Generator, context: Context) -> Table:
    """Rows: empirical FDR at each target for each number of components and score, and whether it is controlled."""
    synthetic_rng, _ = rng.spawn(2)  # as in Figure 3, so that the runs are the same
    table: Table = []
    for count, arrays in fig3.synthetic_scores(config, synthetic_rng, context).items():
        for score in fig3.SCORES:
            W = statistics(arrays[score])
            table += power_rows(W, arrays["non_nulls"], n_components=count, score=score)
    for row in table:
        row["controlled"] = not row["fdr"] > row["target_fdr"] + 2 * row["fdr_se"]
    return table


def plot(table: Table) -> Figure:
    """One panel for each number of components, with the diagonal."""
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
