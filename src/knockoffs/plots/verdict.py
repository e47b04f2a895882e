"""The trial: how often features that do not matter were called on this table, beside what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from knockoffs.diagnostics.verdict import wilson
from knockoffs.errors import InputError
from knockoffs.plots.style import KNOCKOFF, QUIET, SELECTED, finish, legend_below, name_rows, new_axes
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_verdict(selection: Selection, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the rate of false calls of all trials and of the features called most often, with 90 % intervals."""
    trial = None if selection.verdict is None else selection.verdict.trial
    if trial is None:
        raise InputError("there was no trial: ask for it with verdict=True, on 50 rows or more in memory.")
    rows = [("all trials", trial.rate, trial.low, trial.high)]
    rows += [(one.name, one.called / one.n, *wilson(one.called / one.n, one.n)) for one in trial.worst]
    names, rate, low, high = zip(*rows, strict=True)
    at, colour = np.arange(len(rows)), SELECTED if trial.word == "good" else KNOCKOFF
    ax = new_axes(ax, 6.4, 1.7 + 0.3 * len(rows))
    ax.hlines(at, low, high, color=[colour] + [QUIET] * (len(rows) - 1), linewidth=[3.0] + [1.2] * (len(rows) - 1))
    ax.scatter(rate, at, color=[colour] + [QUIET] * (len(rows) - 1), s=40, zorder=3)
    ax.axvline(trial.level, color=SELECTED, linestyle="--", linewidth=1.2, label=f"allowed: {trial.level:g}")
    for border, word in zip(trial.borders, ("doubtful", "broken"), strict=True):
        ax.axvline(border, color=KNOCKOFF, linestyle=":", linewidth=1.2, label=f"border of {word}: {border:g}")
    name_rows(ax, names, at == 0)
    ax.set_xlim(0, min(max(1.05 * max(high), 3 * trial.level), 1.0))
    ax.set_xlabel("share of wrong picks in trials")
    legend_below(ax)
    return finish(ax, f"Wrong picks in trials with features that do not matter: {trial.word}")
