"""How steady a selection is over draws of knockoffs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from knockoffs.errors import InputError
from knockoffs.plots.style import HATCHED, SELECTED, finish, legend_below, name_rows, new_axes
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 30


def plot_stability(selection: Selection, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the share of the draws that select each feature by themselves, with the e-value of all draws beside it.

    Parameters
    ----------
    selection : Selection
        Of several draws.
    ax : matplotlib axes, or an empty figure, optional

    Returns
    -------
    matplotlib axes
    """
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
    chosen, at = selection.selected[shown], np.arange(len(shown))
    share, e = evidence.frequencies[shown], evidence.e_values[shown]
    ax.barh(at[chosen], share[chosen], height=0.7, color=SELECTED, label=f"selected ({int(chosen.sum())})")
    if (~chosen).any():
        ax.barh(at[~chosen], share[~chosen], height=0.7, label=f"not selected ({int((~chosen).sum())})", **HATCHED)
    for y, value in zip(at, e, strict=True):
        ax.annotate(f"{value:.3g}", (1.03, y), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    ax.annotate("e-value", (1.03, -0.9), xycoords=("axes fraction", "data"), va="center", fontsize="small")
    name_rows(ax, [selection.feature_names[j] for j in shown], chosen)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"share of {len(selection.draws)} draws that select it (level {selection.fdr:g})")
    legend_below(ax)
    return finish(ax, f"How often {len(selection.draws)} draws of knockoffs select a feature")
