"""Draw docs/selection.svg, the picture at the head of the README: the selection of its six lines.

``make picture`` draws it again. The truth is known because the table is made up: filled bars are selected, a dot stands
at the names of the columns that matter.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from knockoffs import KnockoffSelector
from knockoffs.simulate.patients import MATTER, make_patients

PLACE = Path(__file__).resolve().parents[1] / "docs" / "selection.svg"
BLUE, RED, GREY = "#0072B2", "#D55E00", "#8c8c8c"


def draw_margin(ax, X, X_tilde, column):
    """Draw a column beside its knockoff, which cannot be told from it without the target."""
    real, fake = (table[column].to_numpy(dtype=float) for table in (X, X_tilde))
    bins = np.arange(real.min() - 0.5, real.max() + 6, 6)  # whole numbers: as many of them in every bin
    ax.hist(real, bins, color=BLUE, alpha=0.35, label=column)
    ax.hist(fake, bins, histtype="step", color=RED, linewidth=1.6, label="its knockoff")
    ax.set(xlabel=column, ylabel="patients", title="1. every column gets a knockoff")
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])
    ax.legend(frameon=False, fontsize="small", loc="upper right")


def draw_W(ax, selection):
    """Draw W in order, with the threshold."""
    order = np.argsort(-selection.W, kind="stable")
    W, chosen = selection.W[order], selection.selected[order]
    names = [selection.feature_names[j] for j in order]
    at = np.arange(len(W))
    ax.bar(at[chosen], W[chosen], color=BLUE, width=0.75, label=f"selected ({chosen.sum()})")
    ax.bar(
        at[~chosen],
        W[~chosen],
        width=0.75,
        facecolor="none",
        edgecolor=GREY,
        hatch="////",
        label=f"not selected ({(~chosen).sum()})",
    )
    ax.axhline(0, color=GREY, linewidth=0.8)
    told = f"threshold, for a false discovery rate of {selection.fdr:g}"
    ax.axhline(selection.threshold, color=RED, linestyle="--", linewidth=1.3, label=told)
    labels = [f"{name} ●" if name in MATTER else name for name in names]
    ax.set_xticks(at, labels, rotation=60, ha="right", rotation_mode="anchor", fontsize="small")
    ax.set(ylabel="W", xlim=(-0.7, len(W) - 0.3), title="2. does a model of the target use it more than its knockoff?")
    ax.legend(frameon=False, fontsize="small", title="● matters, in truth", title_fontsize="small")


def main():
    """Select, draw, save: the same bytes from the same numbers."""
    X, y = make_patients(1000, np.random.default_rng(0))
    selector = KnockoffSelector(fdr=0.2, random_state=0).fit(X, y)
    plt.rcParams.update({"svg.hashsalt": "knockoffs", "svg.fonttype": "path", "axes.titlesize": "medium"})
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.9), width_ratios=[1, 2.5], layout="constrained")
    draw_margin(axes[0], X, selector.knockoffs_, "pressure")
    draw_W(axes[1], selector.selection_)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_position((0, 1))
        ax.title.set_horizontalalignment("left")
    figure.savefig(PLACE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
