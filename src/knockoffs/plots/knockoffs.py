"""A column beside its knockoff: how their values are spread, and how they are linked to the columns nearest to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import require, unknown_option
from knockoffs.plots.margins import Margin, margin, rank_correlations, strongest_pairs
from knockoffs.plots.style import HATCHED, KNOCKOFF, SELECTED, Look, finish, name_places, new_axes, plain, short
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 1500


def plot_knockoffs(
    selection: Selection, table: Table, column: str, *, ax: Axes | None = None, n_pairs: int = 2
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
    n_pairs : int
        Columns that it is drawn against.

    Returns
    -------
    matplotlib axes, or an array of them: the margins, then a pair each
    """
    require("matplotlib", "plots")
    if column not in table.names:
        raise unknown_option("column", column, table.names)
    j, pair = table.names.index(column), selection.pair
    found = margin(pair.X[:, j], pair.X_tilde[:, j], table.columns[j])
    nearest = [] if ax is not None else strongest_pairs(pair.X, j, n_pairs)
    if not nearest:
        return plot_margin(found, column, ax=new_axes(ax, 4.6, 3.2))
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 1 + len(nearest), figsize=(3.6 + 3.0 * len(nearest), 3.2), layout="constrained")
    plot_margin(found, column, ax=axes[0])
    for panel, k in zip(axes[1:], nearest, strict=True):
        _draw_pair(panel, pair.X, pair.X_tilde, (k, j), (table.columns[k], table.columns[j]))
    return axes


def plot_margin(found: Margin, name: str, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw full bars for the column; a line, or hatched bars, for its knockoff."""
    ax = new_axes(ax, 3.2, 2.4)
    if found.edges is not None:
        ax.stairs(found.shares[0], found.edges, fill=True, color=SELECTED, alpha=0.45, label="column")
        ax.stairs(found.shares[1], found.edges, color=KNOCKOFF, linewidth=1.8, label="knockoff")
    else:
        at = np.arange(found.shares.shape[1])
        ax.bar(at - 0.2, found.shares[0], 0.38, color=SELECTED, alpha=0.7, label="column")
        hatched: Look = {**HATCHED, "edgecolor": KNOCKOFF, "linewidth": 1.2}
        ax.bar(at + 0.2, found.shares[1], 0.38, label="knockoff", **hatched)
        name_places(ax, "x", [short(word, 14) for word in found.labels or ()])
    plain(ax.set_xlabel(short(name, 40)))
    ax.set_ylabel("share of the rows")
    ax.set_ylim(0, 1.28 * float(found.shares.max()))
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    return finish(ax, f"{short(name, 28)} and its knockoff: {found.nearness}")


def _draw_pair(ax: Axes, X: NDArray, X_tilde: NDArray, places: tuple[int, int], columns: tuple[Column, Column]) -> None:
    """Column (dots) and knockoff (crosses) against another column; few values are spread a little, to be seen."""
    rng = np.random.default_rng(0)  # of the spread alone
    rows = np.sort(rng.choice(len(X), min(len(X), MOST_POINTS), replace=False))
    k, j = places
    across, size = _spread(X[rows, k], rng), 12 if len(rows) < 500 else 6
    for values, marker, colour in ((X, "o", SELECTED), (X_tilde, "x", KNOCKOFF)):
        points = ax.scatter(across, _spread(values[rows, j], rng), s=size, marker=marker, color=colour)
        points.set(alpha=0.45, linewidths=0.8)
    for axis, place, column in zip("xy", places, columns, strict=True):
        _fit_axis(ax, axis, np.concatenate([X[:, place], X_tilde[:, place]]), column)
    plain(ax.set_xlabel(short(columns[0].name, 36)), ax.set_ylabel(short(columns[1].name, 28)))
    words = "column (dots) and knockoff (crosses)"
    if "nominal" not in (columns[0].kind, columns[1].kind):  # labels without an order have no ranks
        own, copied = np.nan_to_num(rank_correlations(np.column_stack([X[:, j], X_tilde[:, j]]), X[:, k]))
        words = f"rank correlation {own:.2f}; knockoff {copied:.2f}"
    finish(ax, words)


def _fit_axis(ax: Axes, axis: str, values: NDArray, column: Column) -> None:
    """Ticks at the values where they are few; else limits that a few stray values do not set."""
    which, limits = (ax.xaxis, ax.set_xlim) if axis == "x" else (ax.yaxis, ax.set_ylim)
    distinct = np.unique(values)
    low, high = np.quantile(values, [0.005, 0.995])
    if column.levels is not None and len(column.levels) <= 8:
        name_places(ax, axis, [short(str(level), 12) for level in column.levels])
    elif len(distinct) <= 8:
        which.set_ticks(distinct)
    elif low < high:
        limits(low - 0.1 * (high - low), high + 0.1 * (high - low))


def _spread(values: NDArray, rng: np.random.Generator) -> NDArray:
    distinct = np.unique(values)
    if not 2 <= len(distinct) <= 20:
        return values
    return values + 0.3 * np.diff(distinct).min() * (rng.random(len(values)) - 0.5)
