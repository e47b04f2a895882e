"""Draw docs/selection.svg, the picture at the head of the README: what goes with the price, and what it depends on.

``make picture`` draws it again. The table is made up, so the truth is known: a dot stands at the columns that matter.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from scipy.stats import spearmanr

from knockoffs import KnockoffSelector
from knockoffs.conditional_tests.resolution import discovery_name
from knockoffs.simulate.examples import PRICED_BY, houses

PLACE = Path(__file__).resolve().parents[1] / "docs" / "selection.svg"
BLUE, GREY = "#0072B2", "#8c8c8c"


def draw_bars(ax, features, sizes, colour, title, label):
    """Draw horizontal bars from the largest down, with a dot at the names of columns that matter."""
    order = np.argsort(-sizes, kind="stable")
    ax.barh(np.arange(len(order)), sizes[order], color=colour, height=0.7)
    names = [discovery_name(features[j]).replace("one of ", "one of\n") for j in order]
    marks = ["  ●" if set(features[j]) & set(PRICED_BY) else "" for j in order]
    ax.set_yticks(range(len(order)), [name + mark for name, mark in zip(names, marks, strict=True)])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set(xlabel=label)
    ax.set_title(title, loc="left")
    ax.spines[["top", "right"]].set_visible(False)


def main():
    """Select, draw, save: the same bytes from the same numbers."""
    table = pl.DataFrame(houses())
    X, y = table.drop("price"), table["price"]
    selector = KnockoffSelector().fit(X, y)
    plt.rcParams.update({"svg.hashsalt": "knockoffs", "svg.fonttype": "path", "axes.titlesize": "medium"})
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.9), width_ratios=[1, 1.1], layout="constrained")
    numbers = [name for name in X.columns if X[name].dtype.is_numeric()]
    links = np.array([abs(spearmanr(X[name], y).statistic) for name in numbers])
    titles = ("What goes with the price: nearly everything", "What it depends on: five discoveries")
    draw_bars(axes[0], [(name,) for name in numbers], links, GREY, titles[0], "|rank correlation| with the price")
    found = selector.discoveries_
    scores = np.array([one.score for one in found])
    draw_bars(axes[1], [one.features for one in found], scores, BLUE, titles[1], "test statistic")
    axes[1].legend([plt.Line2D([], [], linestyle="none")], ["● matters, in truth"], frameon=False, loc="lower right")
    figure.savefig(PLACE, metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
