"""The look that the figures share: the panels, axes and names of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paper.repetitions import LABELS
from paper.runner import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# colour-blind safe (Okabe and Ito), with a marker each, so that colour is not needed
LOOKS = {
    "swap_integral": ("#D55E00", "o"),
    "swap": ("#E69F00", "s"),
    "permutation": ("#0072B2", "^"),
    "gradient": ("#009E73", "D"),
    "integrated_gradients": ("#CC79A7", "v"),
    "permutation_integral": ("#56B4E9", "P"),
    "swap_log_loss": ("#000000", "x"),
    "lasso": ("#555555", "X"),
}
NULL, NON_NULL = "0.6", "#C00000"  # grey and red, as in the paper


def new_figure(width: float, height: float) -> Figure:
    """Return a figure without any global state."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def letter(axes: Axes, name: str, title: str) -> None:
    """Title a panel "(a) title"."""
    axes.set_title(f"({name}) {title}", fontsize=10)


def draw_curves(axes: Axes, table: Table, scores: Iterable[str], *, y: str, label: str) -> None:
    """Draw one curve a score against the target FDR, with bars of one standard error."""
    for score in scores:
        rows = [row for row in table if row.get("score") == score]
        if not rows:
            continue
        colour, marker = LOOKS[score]
        axes.errorbar(
            [row["target_fdr"] for row in rows],
            [row[y] for row in rows],
            yerr=[_finite(row.get(f"{y}_se")) for row in rows],
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            elinewidth=0.8,
            label=LABELS[score],
        )
    axes.set_xlabel("Target FDR")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3, linewidth=0.5)


def _finite(value: float | None) -> float:
    return float(value) if value is not None and value == value else 0.0


def values(table: Table, column: str) -> list[Any]:
    """Values of a column in the order in which they first occur."""
    return list(dict.fromkeys(row[column] for row in table if column in row))
