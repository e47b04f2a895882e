"""The checks of the knockoffs: what could tell them from the features, and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from knockoffs.diagnostics.verdict import DOUBTFUL
from knockoffs.errors import InputError
from knockoffs.plots.style import KNOCKOFF, QUIET, SELECTED, name_rows, new_axes, plain, short, tidy
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALLEST = 1e-12  # p-values below are drawn here


def plot_verdict(selection: Selection, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the p-value of each check, where it would speak against the knockoffs, and the worst columns.

    Parameters
    ----------
    selection : Selection
    ax : matplotlib axes, or an empty figure, optional

    Returns
    -------
    matplotlib axes
    """
    verdict = selection.verdict
    if verdict is None:
        raise InputError("the knockoffs were not checked: ask for it with verdict=True, on 50 rows or more.")
    checks = verdict.checks
    ax = new_axes(ax, 6.4, 1.5 + 0.3 * len(checks))
    p = np.maximum([check.p_value for check in checks], SMALLEST)
    failed = np.array([check in verdict.failed for check in checks])
    limit = DOUBTFUL / len(checks)
    small = ~failed & (p < limit)
    at = np.arange(len(checks))
    ax.hlines(at, p, 1.0, color=QUIET, linewidth=0.8)
    passed = ~failed & ~small
    ax.scatter(p[passed], at[passed], marker="o", s=40, facecolor="none", edgecolor=SELECTED, zorder=3, label="passed")
    if small.any():
        ax.scatter(
            p[small],
            at[small],
            marker="^",
            s=44,
            facecolor="none",
            edgecolor=SELECTED,
            zorder=3,
            label="seen, too small to matter",
        )
    if failed.any():
        ax.scatter(p[failed], at[failed], marker="s", s=46, color=KNOCKOFF, zorder=3, label="speaks against them")
    ax.axvline(limit, color=KNOCKOFF, linestyle="--", linewidth=1.2, label=f"{DOUBTFUL:g} / {len(checks)} checks")
    for y, check in zip(at, checks, strict=True):
        if failed[y] and check.columns:
            more = f" and {len(check.columns) - 2} more" if len(check.columns) > 2 else ""
            note = ax.annotate(
                "", (p[y], y), xytext=(8, 7), textcoords="offset points", fontsize="x-small", va="center"
            )
            plain([note])
            note.set_text(", ".join(short(name, 18) for name in check.columns[:2]) + more)
    name_rows(ax, [check.name for check in checks], failed)
    ax.set_xscale("log")
    ax.set_xlim(min(float(p.min()) / 3, 1e-4), 1.6)
    ax.set_xlabel(f"p-value (drawn at {SMALLEST:g} if smaller)" if (p <= SMALLEST).any() else "p-value")
    ax.set_title(f"The knockoffs look {verdict.word}", fontsize="medium", loc="left")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.2), ncols=2, frameon=False, fontsize="small")
    tidy(ax)
    return ax
