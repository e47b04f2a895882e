"""A column beside its knockoff: how their values are spread, and how they are linked to the columns nearest to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.plots.margins import Margin, margin, strongest_pairs
from knockoffs.plots.style import KNOCKOFF, SELECTED, Look, check_matplotlib, new_axes, plain, short, tidy
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_PAIRS = 2
MOST_POINTS = 1500


def plot_knockoffs(
    selection: Selection, table: Table, column: str, *, ax: Axes | None = None
) -> Axes | NDArray[np.object_]:
    """Draw the margins of a column and of its knockoff, and both against the columns nearest to it.

    If the knockoff is exchangeable with the column, the two margins are alike, and so are their links to the others.

    Parameters
    ----------
    selection : Selection
    table : Table
    column : str
    ax : matplotlib axes, optional
        For the margins alone.

    Returns
    -------
    matplotlib axes, or an array of them: the margins, then a pair each
    """
    check_matplotlib()
    if column not in table.names:
        raise unknown_option("column", column, table.names)
    j, pair = table.names.index(column), selection.pair
    nearest = [] if ax is not None else strongest_pairs(pair.X, j, N_PAIRS)
    if ax is not None or not nearest:
        axes = [new_axes(ax, 4.6, 3.2)]
    else:
        import matplotlib.pyplot as plt

        _, grid = plt.subplots(1, 1 + len(nearest), figsize=(3.6 + 3.0 * len(nearest), 3.2), layout="constrained")
        axes = list(grid)
    draw_margin(axes[0], margin(pair.X[:, j], pair.X_tilde[:, j], table.columns[j]), column)
    for panel, k in zip(axes[1:], nearest, strict=True):
        _draw_pair(panel, pair.X, pair.X_tilde, (k, j), (table.columns[k], table.columns[j]))
    return axes[0] if len(axes) == 1 else np.array(axes)


def draw_margin(ax: Axes, found: Margin, name: str) -> None:
    """Full bars for the column; a line, or hatched bars, for its knockoff."""
    if found.edges is not None:
        ax.stairs(found.shares[0], found.edges, fill=True, color=SELECTED, alpha=0.45, label="column")
        ax.stairs(found.shares[1], found.edges, color=KNOCKOFF, linewidth=1.8, label="knockoff")
        plain([ax.set_xlabel(short(name, 40))])
    else:
        at = np.arange(found.shares.shape[1])
        ax.bar(at - 0.2, found.shares[0], 0.38, color=SELECTED, alpha=0.7, label="column")
        hatched: Look = {"facecolor": "none", "edgecolor": KNOCKOFF, "hatch": "////", "linewidth": 1.2}
        ax.bar(at + 0.2, found.shares[1], 0.38, label="knockoff", **hatched)
        label_values(ax, "x", [short(word, 14) for word in found.labels or ()])
        plain([ax.set_xlabel(short(name, 40))])
    ax.set_ylabel("share of the rows")
    ax.set_title(f"{found.nearness} with its knockoff", fontsize="small", loc="left")
    ax.set_ylim(0, 1.28 * float(found.shares.max()))
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    tidy(ax)


def label_values(ax: Axes, axis: str, words: list[str]) -> None:
    """Words at 0, 1, 2, ... of an axis, slanted where they are long."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    which = ax.xaxis if axis == "x" else ax.yaxis
    which.set_major_locator(FixedLocator(range(len(words))))
    which.set_major_formatter(FixedFormatter(words))
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    plain(labels)
    if axis == "x" and sum(map(len, words)) > 20:
        for label in labels:
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def _draw_pair(ax: Axes, X: NDArray, X_tilde: NDArray, places: tuple[int, int], columns: tuple[Column, Column]) -> None:
    """Column (dots) and knockoff (crosses) against another column; few values are spread a little, to be seen."""
    rng = np.random.default_rng(0)  # of the spread alone
    rows = np.sort(rng.choice(len(X), min(len(X), MOST_POINTS), replace=False))
    k, j = places
    across = _spread(X[rows, k], rng)
    size = 12 if len(rows) < 500 else 6
    looks = ((X, "o", SELECTED, "column"), (X_tilde, "x", KNOCKOFF, "knockoff"))
    for values, marker, colour, word in looks:
        ax.scatter(
            across,
            _spread(values[rows, j], rng),
            s=size,
            marker=marker,
            color=colour,
            alpha=0.45,
            linewidths=0.8,
            label=word,
        )
    for axis, place, column in zip("xy", places, columns, strict=True):
        _fit_axis(ax, axis, np.concatenate([X[:, place], X_tilde[:, place]]), column)
    plain([ax.set_xlabel(short(columns[0].name, 36)), ax.set_ylabel(short(columns[1].name, 28))])
    if "nominal" not in (columns[0].kind, columns[1].kind):  # labels without an order have no ranks
        links = [_rank_correlation(X[:, k], values[:, j]) for values in (X, X_tilde)]
        ax.set_title(f"rank correlation {links[0]:.2f}; knockoff {links[1]:.2f}", fontsize="small", loc="left")
    tidy(ax)


def _fit_axis(ax: Axes, axis: str, values: NDArray, column: Column) -> None:
    """Ticks at the values where they are few; else limits that a few stray values do not set."""
    which, limits = (ax.xaxis, ax.set_xlim) if axis == "x" else (ax.yaxis, ax.set_ylim)
    distinct = np.unique(values)
    if column.levels is not None and len(column.levels) <= 8:
        label_values(ax, axis, [short(str(level), 12) for level in column.levels])
    elif len(distinct) <= 8:
        which.set_ticks(distinct)
    else:
        low, high = np.quantile(values, [0.005, 0.995])
        if low < high:
            limits(low - 0.1 * (high - low), high + 0.1 * (high - low))


def _spread(values: NDArray, rng: np.random.Generator) -> NDArray:
    distinct = np.unique(values)
    if len(distinct) > 20 or len(distinct) < 2:
        return values
    return values + 0.3 * np.diff(distinct).min() * (rng.random(len(values)) - 0.5)


def _rank_correlation(x: NDArray, y: NDArray) -> float:
    from scipy.stats import rankdata

    a, b = (rankdata(v) - (len(v) + 1) / 2 for v in (x, y))
    scale = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / scale) if scale > 0 else 0.0
