"""How steady a selection is over draws of knockoffs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from knockoffs.errors import InputError
from knockoffs.plots.style import draw_bars, finish, legend_below, new_axes
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 30


def plot_stability(selection: Selection, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the share of the draws that select each feature by themselves, with the e-value of all draws beside it."""
    evidence = selection.evidence
    if selection.p_values is not None:
        raise InputError("features were tested without knockoffs: there are no draws; use method='knockoffs'.")
    if evidence is None or selection.draws is None:
        raise InputError("there was one draw of knockoffs: ask for several with n_draws, for instance n_draws=20.")
    order = np.lexsort((-evidence.frequencies, -evidence.e_values))
    shown = [j for j in order if evidence.frequencies[j] > 0 or evidence.e_values[j] > 0][:MOST]
    if not shown:
        raise InputError("no draw selects anything, and every e-value is 0: there is nothing to draw.")
    ax = new_axes(ax, 6.4, 1.7 + 0.22 * len(shown))
    names = [selection.feature_names[j] for j in shown]
    chosen = selection.selected[shown].tolist()
    draw_bars(ax, names, evidence.frequencies[shown].tolist(), chosen, ("selected", "not selected"))
    for y, value in enumerate(evidence.e_values[shown]):
        ax.annotate(f"{value:.3g}", (1.03, y), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    ax.annotate("e-value", (1.03, -0.9), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of {len(selection.draws)} draws that select it (level {selection.fdr:g})")
    legend_below(ax)
    return finish(ax, f"How often {len(selection.draws)} draws of knockoffs select a feature")
