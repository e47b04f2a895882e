"""Kaplan-Meier curves of survival times, by the values of a column."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.plots.style import LINES, finish, new_axes, plain, short
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.table.target_kind import split_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_survival(selection: Selection, table: Table, target: Target, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw Kaplan-Meier curves by the surest selected feature: by each value, or up to its median and above."""
    if target.kind != "survival":
        raise InputError("y is no survival time: Kaplan-Meier curves need y=(time, event).")
    alone = np.bincount(table.feature_of, minlength=len(selection.W)) == 1
    found = [j for j in selection.surest_first if selection.selected[j] and alone[j]]
    if not found:
        raise InputError("no feature of one column is selected: there is no curve to draw.")
    k = int(np.flatnonzero(table.feature_of == found[0])[0])
    column = table.columns[k]
    ax = new_axes(ax, 6.4, 3.4)
    groups = split_column(selection.pair.X[target.known_rows, k], column)
    for (name, rows), (colour, dash) in zip(groups.items(), LINES, strict=False):
        times, share = kaplan_meier(target.values[rows])
        ax.step(times, share, where="post", color=colour, linestyle=dash, label=f"{name} ({int(rows.sum())} rows)")
    ax.set_ylim(0, 1.02)
    plain(ax.set_xlabel(short(target.name or "time", 40)))
    ax.set_ylabel("share without the event")
    legend = ax.legend(title=short(column.name, 28), frameon=False, fontsize="small")
    plain(*legend.get_texts(), legend.get_title())
    return finish(ax, f"Share of rows without the event over time, by {short(column.name, 28)}")


def split_column(x: NDArray, column: Column, most: int = 5) -> dict[str, NDArray[np.bool_]]:
    """Rows of each of at most ``most`` values of a column, by name; of more values, those up to the median and above.

    >>> split_column(np.array([1.5, 2.5, 9.0]), Column("x"), most=2)
    {'up to 2.5': array([ True,  True, False]), 'above 2.5': array([False, False,  True])}
    """
    values = np.unique(x)
    if len(values) <= most:
        names = [f"{v:g}" if column.levels is None else short(str(column.levels[int(v)]), 28) for v in values]
        return {name: x == value for name, value in zip(names, values, strict=True)}
    middle = float(np.median(x)) if np.median(x) < values[-1] else float(values[-2])
    return {f"up to {middle:.4g}": x <= middle, f"above {middle:.4g}": x > middle}


def kaplan_meier(y: NDArray) -> tuple[NDArray, NDArray]:
    """Return 0, times of events and the last time, and the estimated share of rows without the event up to each.

    >>> times, share = kaplan_meier(np.array([1.0, -2.0, 3.0, -4.0]))
    >>> times.tolist(), share.tolist()
    ([0.0, 1.0, 3.0, 4.0], [1.0, 0.75, 0.375, 0.375])
    """
    time, event, entry = split_times(y)
    times, deaths = np.unique(time[event], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), times)
    if entry is not None:
        at_risk = at_risk - (len(time) - np.searchsorted(np.sort(entry), times))
    share = np.append(1.0, np.cumprod(1 - deaths / at_risk))
    return np.concatenate([[0.0], times, [time.max()]]), np.append(share, share[-1])
