"""Features along the genome: W or -log10 p by chromosome and position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.plots.style import KNOCKOFF, QUIET, SELECTED, finish, legend_below, new_axes
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_manhattan(
    selection: Selection,
    chromosomes: ArrayLike,
    positions: ArrayLike,
    feature_of: NDArray[np.intp] | None = None,
    *,
    ax: Axes | Figure | None = None,
) -> Axes:
    """Draw W, or -log10 p of tests, of every SNP or group along the genome; what is selected stands out.

    Chromosomes and positions are of the SNPs, in the order of the columns. ``feature_of`` is the feature that owns
    each SNP; a group stands at the mean of its places.
    """
    names, bp = np.asarray(chromosomes).astype(str), np.asarray(positions, dtype=float)
    owner = np.arange(len(bp)) if feature_of is None else feature_of
    place, at, start = np.empty(len(bp)), {}, 0.0
    listed = list(dict.fromkeys(names.tolist()))
    for name in listed:
        own = names == name
        place[own] = start + bp[own] - bp[own].min()
        width = float(np.ptp(bp[own])) or 1.0
        at[name], start = start + width / 2, start + 1.03 * width
    sizes = np.bincount(owner)
    x = np.bincount(owner, weights=place) / sizes
    shade = np.array([listed.index(name) % 2 for name in names])[np.unique(owner, return_index=True)[1]]
    p_values, tested = selection.p_values, selection.p_values is not None
    y = selection.W if p_values is None else -np.log10(np.maximum(p_values, 1e-300))
    ax = new_axes(ax, 8.0, 3.2)
    for which, colour, size in (
        (~selection.selected & (shade == 0), QUIET, 4),
        (~selection.selected & (shade == 1), "#c4c4c4", 4),
        (selection.selected, SELECTED, 18),
    ):
        ax.scatter(x[which], y[which], s=size, color=colour, linewidths=0, rasterized=bool(which.sum() > 5000))
    if not tested and np.isfinite(selection.threshold):
        word = f"threshold {selection.threshold:.3g} (level {selection.fdr:g})"
        ax.axhline(selection.threshold, color=KNOCKOFF, linestyle="--", linewidth=1.2, label=word)
        legend_below(ax)
    ax.set_xticks([at[name] for name in listed], listed)
    ax.set_xlabel("position, by chromosome")
    ax.set_ylabel("−log10 of the p-value" if tested else "W, feature minus knockoff")
    return finish(ax, f"{selection.first_screen.found}, along the genome")
