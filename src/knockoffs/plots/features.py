"""The answer: W, feature by feature, with the threshold; or tests, with their p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.plots.layout import largest
from knockoffs.plots.style import HATCHED, KNOCKOFF, QUIET, SELECTED, Look, entitled, name_rows, new_axes, tidy
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 40  # features with a bar; the others are counted


def plot_features(selection: Selection, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw W of the features with the largest |W|: full bars are selected, hatched ones are not.

    Where features were tested without knockoffs, the statistics of the tests are drawn with their p-values: full bars
    are discoveries, and the features of a group follow it.

    Parameters
    ----------
    selection : Selection
    ax : matplotlib axes, or an empty figure, optional

    Returns
    -------
    matplotlib axes
    """
    if selection.p_values is not None:
        return entitled(_plot_tests(selection, ax), selection.first_screen.found)
    W = selection.W
    shown = largest(W, MOST)
    if not len(shown):
        raise InputError("W is 0 for every feature: there is nothing to draw.")
    ax = new_axes(ax, 6.4, 1.3 + 0.2 * len(shown))
    chosen = selection.selected[shown]
    _bars(ax, W[shown], chosen)
    ax.axvline(0.0, color=QUIET, linewidth=0.8)
    if np.isfinite(selection.threshold):
        told = f"threshold {selection.threshold:.3g} (level {selection.fdr:g})"
        ax.axvline(selection.threshold, color=KNOCKOFF, linestyle="--", linewidth=1.4, label=told)
    name_rows(ax, [selection.feature_names[j] for j in shown], chosen)
    others = int((W != 0).sum()) - len(shown)
    _count_others(ax, f"{others} of a smaller |W| not shown" if others else "")
    draws = "" if selection.draws is None or len(selection.draws) == 1 else f" (mean of {len(selection.draws)} draws)"
    ax.set_xlabel(f"W, feature minus knockoff{draws}")
    ax.legend(loc="best", frameon=False, fontsize="small")
    tidy(ax)
    return entitled(ax, selection.first_screen.found)


def _rows_of_tests(selection: Selection) -> list[tuple[str, float, float, bool]]:
    """Name, p-value, length and whether it was found, of each bar: a group before its features, then all others."""
    names, scores = selection.feature_names, selection.test_scores
    p = dict(zip(names, np.asarray(selection.p_values).tolist(), strict=True))
    length = {name: -np.log10(max(p[name], 1e-300)) for name in names}
    if scores is not None:
        length = dict(zip(names, np.maximum(scores, 0.0).tolist(), strict=True))
    if selection.discoveries is None:
        return [(names[j], p[names[j]], length[names[j]], bool(selection.selected[j])) for j in selection.surest_first]
    rows: list[tuple[str, float, float, bool]] = []
    for found in sorted(selection.discoveries, key=lambda found: -found.score):
        size = -np.log10(max(found.p_value, 1e-300)) if scores is None else max(found.score, 0.0)
        if len(found.features) == 1:
            rows.append((str(found), found.p_value, size, True))
        else:
            rows.append((f"one of {len(found.features)}:", found.p_value, size, True))
            rows += [(f"– {name}", p[name], length[name], False) for name in sorted(found.features, key=p.__getitem__)]
    alone = [names[j] for j in selection.surest_first if not selection.selected[j]]
    return rows + [(name, p[name], length[name], False) for name in alone]


def _bars(ax: Axes, values: NDArray, chosen: NDArray[np.bool_], found: str = "selected") -> None:
    at = np.arange(len(values))
    full: Look = {"color": SELECTED, "linewidth": 0.8}
    looks = (
        (chosen, found, full),
        (~chosen, "not selected" if found == "selected" else "finest group tested", HATCHED),
    )
    for which, word, look in looks:
        if which.any():
            ax.barh(at[which], values[which], height=0.7, label=f"{word} ({int(which.sum())})", **look)


def _count_others(ax: Axes, words: str) -> None:
    """Add a line of the legend that stands for nothing drawn."""
    if words:
        ax.plot([], [], linestyle="none", label=words)


def _plot_tests(selection: Selection, ax: Axes | Figure | None) -> Axes:
    rows = _rows_of_tests(selection)
    shown = rows[:MOST]
    lengths, chosen = np.array([row[2] for row in shown]), np.array([row[3] for row in shown])
    ax = new_axes(ax, 6.4, 1.5 + 0.2 * len(shown))
    _bars(ax, lengths, chosen, "selected" if selection.discoveries is None else "discovery")
    for y, (_, p, length, _) in enumerate(shown):
        ax.annotate(f"p = {p:.2g}", (length, y), (3, 0), textcoords="offset points", va="center", fontsize="x-small")
    ax.set_xlim(0, 1.18 * (float(lengths.max(initial=0.0)) or 1.0))
    name_rows(ax, [row[0] for row in shown], chosen)
    _count_others(ax, f"{len(rows) - MOST} less sure not shown" if len(rows) > MOST else "")
    ax.set_xlabel("−log10 of the p-value" if selection.test_scores is None else "test statistic, standard deviations")
    ax.legend(loc="lower right", frameon=False, fontsize="small")
    tidy(ax)
    return ax
