"""A column beside its knockoff: how their values are spread, and how they are linked to the columns nearest to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import require, unknown_option
from knockoffs.plots.style import HATCHED, KNOCKOFF, SELECTED, Look, finish, name_places, new_axes, plain, short
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 12  # values that get a bar of their own; the rest are one bar
MOST_POINTS = 1500


class Margin(NamedTuple):
    """Shares of the rows in each bar, of a column and of its knockoff: bars are values by name, or intervals."""

    shares: NDArray
    labels: tuple[str, ...] | None
    edges: NDArray | None
    nearness: str


def margin(x: NDArray, x_tilde: NDArray, column: Column) -> Margin:
    """Compare the values of a column, numbers or codes of labels, with those of its knockoff.

    Intervals cover the middle 99 %, so that a stray value does not press the rest flat. Each holds equally many steps
    of whole numbers or tenths, so that bars do not rise and fall by themselves.
    """
    both = np.stack([np.asarray(x, dtype=float), np.asarray(x_tilde, dtype=float)])
    values, n = np.unique(both), both.shape[1]
    if column.kind in ("binary", "nominal") or column.levels is not None or len(values) <= MOST_BARS:
        shares = np.stack([np.bincount(np.searchsorted(values, v), minlength=len(values)) for v in both]) / n
        labels = [value_label(value, column) for value in values]
        if len(values) > MOST_BARS:
            often = np.argsort(-shares[0], kind="stable")[: MOST_BARS - 1]
            kept = often if column.kind == "nominal" else np.sort(often)
            shares = np.column_stack([shares[:, kept], 1.0 - shares[:, kept].sum(axis=1)])
            labels = [*(labels[j] for j in kept), "others"]
        return Margin(shares, tuple(labels), None, f"agreement {np.mean(both[0] == both[1]):.2f}")
    step = np.diff(values).min()
    low, high = np.quantile(both, [0.005, 0.995], method="closest_observation")
    width = np.ceil((high - low + step) / (np.clip(np.sqrt(n), 6, 24) * step)) * step
    edges = np.arange(low - step / 2, high + width, width)
    counts = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] for v in both]
    return Margin(np.stack(counts) / n, None, edges, f"correlation {np.corrcoef(both)[0, 1]:.2f}")


def value_label(value: float, column: Column) -> str:
    """Value as it is read: the label of a code, or a number."""
    if column.levels is not None and 0 <= value < len(column.levels) and value == int(value):
        return str(column.levels[int(value)])
    return f"{value:.4g}"


def plot_margin(x: NDArray, x_tilde: NDArray, column: Column, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw full bars for a column; a line, or hatched bars, for its knockoff."""
    found, ax = margin(x, x_tilde, column), new_axes(ax, 3.2, 2.4)
    if found.edges is not None:
        ax.stairs(found.shares[0], found.edges, fill=True, color=SELECTED, alpha=0.45, label="column")
        ax.stairs(found.shares[1], found.edges, color=KNOCKOFF, linewidth=1.8, label="knockoff")
    else:
        at = np.arange(found.shares.shape[1])
        ax.bar(at - 0.2, found.shares[0], 0.38, color=SELECTED, alpha=0.7, label="column")
        hatched: Look = {**HATCHED, "edgecolor": KNOCKOFF, "linewidth": 1.2}
        ax.bar(at + 0.2, found.shares[1], 0.38, label="knockoff", **hatched)
        name_places(ax, "x", [short(word, 14) for word in found.labels or ()])
    plain(ax.set_xlabel(short(column.name, 40)))
    ax.set_ylabel("share of the rows")
    ax.set_ylim(0, 1.28 * float(found.shares.max()))
    ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    return finish(ax, f"{short(column.name, 28)} and its knockoff: {found.nearness}")


def plot_knockoffs(
    selection: Selection, table: Table, column: str, *, ax: Axes | None = None, n_pairs: int = 2
) -> Axes | NDArray[np.object_]:
    """Draw the margins of a column and of its knockoff, and both against the columns nearest to it.

    If the knockoff is exchangeable with the column, the two margins are alike, and so are their links to the others.
    The axes are those of the margins, then of each of ``n_pairs`` columns; where axes are given, of the margins alone.
    """
    require("matplotlib", "plots")
    if column not in table.names:
        raise unknown_option("column", column, table.names)
    j, pair = table.names.index(column), selection.pair
    both = pair.X[:, j], pair.X_tilde[:, j]
    nearest = [] if ax is not None else strongest_pairs(pair.X, j, n_pairs)
    if not nearest:
        return plot_margin(*both, table.columns[j], ax=new_axes(ax, 4.6, 3.2))
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 1 + len(nearest), figsize=(3.6 + 3.0 * len(nearest), 3.2), layout="constrained")
    plot_margin(*both, table.columns[j], ax=axes[0])
    for panel, k in zip(axes[1:], nearest, strict=True):
        _draw_pair(panel, pair.X[:, k], both, (table.columns[k], table.columns[j]))
    return axes


def _draw_pair(ax: Axes, other: NDArray, both: tuple[NDArray, NDArray], columns: tuple[Column, Column]) -> None:
    """Column (dots) and knockoff (crosses) against another column; few values are spread a little, to be seen."""
    rng = np.random.default_rng(0)  # of the spread alone
    rows = np.sort(rng.choice(len(other), min(len(other), MOST_POINTS), replace=False))
    across, size = _spread(other[rows], rng), 12 if len(rows) < 500 else 6
    for values, marker, colour in zip(both, "ox", (SELECTED, KNOCKOFF), strict=True):
        points = ax.scatter(across, _spread(values[rows], rng), s=size, marker=marker, color=colour)
        points.set(alpha=0.45, linewidths=0.8)
    for axis, column in zip("xy", columns, strict=True):
        if column.levels is not None and len(column.levels) <= 8:
            name_places(ax, axis, [short(str(level), 12) for level in column.levels])
    plain(ax.set_xlabel(short(columns[0].name, 36)), ax.set_ylabel(short(columns[1].name, 28)))
    words = "column (dots) and knockoff (crosses)"
    if "nominal" not in (columns[0].kind, columns[1].kind):  # labels without an order have no ranks
        own, copied = np.nan_to_num(rank_correlations(np.column_stack(both), other))
        words = f"rank correlation {own:.2f}; knockoff {copied:.2f}"
    finish(ax, words)


def _spread(values: NDArray, rng: np.random.Generator) -> NDArray:
    distinct = np.unique(values)
    if not 2 <= len(distinct) <= 20:
        return values
    return values + 0.3 * np.diff(distinct).min() * (rng.random(len(values)) - 0.5)


def rank_correlations(X: NDArray, y: NDArray) -> NDArray:
    """Spearman's correlation of each column of X with y, shape (d,); NaN where one of the two is constant.

    >>> rank_correlations(np.array([[1.0, 4.0], [2.0, 4.0], [9.0, 4.0]]), np.array([1.0, 2.0, 3.0])).round(9).tolist()
    [1.0, nan]
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.column_stack([X, y]), axis=0)
    ranks -= ranks.mean(axis=0)
    scale = np.sqrt((ranks**2).sum(axis=0))
    scale[scale == 0] = np.nan
    return ranks[:, :-1].T @ ranks[:, -1] / (scale[:-1] * scale[-1])


def strongest_pairs(X: NDArray, j: int, most: int = 2) -> list[int]:
    """Columns that are linked most closely to column j, by the correlation of ranks; constant ones never are."""
    links = np.nan_to_num(np.abs(rank_correlations(X[:5000], X[:5000, j])), nan=-1.0)
    links[j] = -1.0
    return [int(k) for k in np.argsort(-links, kind="stable")[:most] if links[k] >= 0]
