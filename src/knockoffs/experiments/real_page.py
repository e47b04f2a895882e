"""The page and the figure of real tables and of simulated ones: FDR and power of every method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knockoffs.experiments.runner import Row
from knockoffs.experiments.runner import Table as Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE_LEVEL = 0.2


def plot_fdr(table: Rows) -> Figure:
    """FDR at the page's level, a point for each method on each table."""
    from knockoffs.experiments.figures import new_figure

    rows = [row for row in table if row["target_fdr"] == PAGE_LEVEL]
    names = list(dict.fromkeys(row["table"] for row in rows))
    kinds = list(dict.fromkeys(row["labels"] for row in rows))
    figure = new_figure(4.5 * len(kinds), 0.35 * len(names) + 1.5)
    for i, labels in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), i + 1)
        for k, method in enumerate(dict.fromkeys(row["method"] for row in rows)):
            mine = [row for row in rows if row["labels"] == labels and row["method"] == method]
            places = [len(names) - names.index(row["table"]) - 0.12 * k for row in mine]
            errors = [2 * row["fdr_se"] for row in mine]
            axes.errorbar([row["fdr"] for row in mine], places, xerr=errors, fmt="o", markersize=3, label=method)
        axes.axvline(PAGE_LEVEL, color="0.5", linestyle=":")
        axes.set_yticks([len(names) - j - 0.25 for j in range(len(names))], names if i == 0 else [""] * len(names))
        axes.set(title=f"{labels} labels", xlabel=f"FDR, target {PAGE_LEVEL:g}")
    figure.axes[0].legend(fontsize=7)
    return figure


def write_page(table: Rows, page: Path, intro: Sequence[str]) -> None:
    """Write FDR and power of every method on every table as Markdown, after an introduction."""
    first = {row["table"]: row for row in reversed(table)}
    lines = [
        *intro,
        "",
        "| table | rows | columns | missing | kinds |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {r['n']} | {r['d']} | {100 * r['missing']:.1f} % | {r['kinds']} |"
            for name, r in ((name, first[name]) for name in dict.fromkeys(row["table"] for row in table))
        ),
    ]
    for q in dict.fromkeys(row["target_fdr"] for row in table):
        for labels in dict.fromkeys(row["labels"] for row in table):
            rows = [row for row in table if row["labels"] == labels and row["target_fdr"] == q]
            lines += ["", f"## {labels.capitalize()} labels, target {q:g}", ""] + table_of(rows)
    lines += ["", "## Where the level is not held", ""] + above(table)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_of(rows: Rows) -> list[str]:
    """Markdown table: a row for each table, a column for each method, and the repetitions."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = [f"| table | {' | '.join(methods)} | draws |", f"|{'---|' * (len(methods) + 2)}"]
    for name in dict.fromkeys(row["table"] for row in rows):
        mine = {row["method"]: row for row in rows if row["table"] == name}
        draws = max(row["repetitions"] for row in mine.values())
        cells = [cell(mine[method], draws) if method in mine else "" for method in methods]
        lines.append(f"| {name} | {' | '.join(cells)} | {draws} |")
    return lines


def cell(row: Row, draws: int) -> str:
    """FDR and power in a few characters, and the draws where they are fewer."""
    fdr = f"{row['fdr']:.3f} ± {row['fdr_se']:.3f}"
    fewer = f" ({row['repetitions']} draws)" if row["repetitions"] < draws else ""
    return f"{f'**{fdr}**' if too_high(row) else fdr} / {row['power']:.2f}{fewer}"


def too_high(row: Row) -> bool:
    """Whether the FDR is above its target by more than two standard errors."""
    return bool(row["fdr"] > row["target_fdr"] + 2 * row["fdr_se"])


def above(table: Rows) -> list[str]:
    """Say where the default's FDR is too high, and by which column most."""
    bad = [row for row in table if row["method"].startswith("default") and too_high(row)]
    if not bad:
        return ["Nowhere: every FDR of the default is at most its target plus two standard errors."]
    return [
        f"- {row['table']}, {row['labels']} labels, {row['method']} at {row['target_fdr']:g}: {row['fdr']:.3f}"
        + worst_of(row)
        for row in bad
    ]


def worst_of(row: Row) -> str:
    """Say which null is selected most often, where it is known."""
    if "worst_null" not in row:
        return "."
    share = 100 * row["worst_share"]
    return f"; of the nulls `{row['worst_null']}` is selected most often, in {share:.0f} % of its draws."
