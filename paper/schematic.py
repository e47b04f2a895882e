"""Appendix E: why permuting misleads. Decision boundaries of a network on one feature and its knockoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs import NeuralClassifier, sample_knockoffs
from knockoffs.features.gaussian_mixture import gaussian_mixture_features
from paper.figures import letter, new_figure
from paper.mixtures import MixtureParameters, sample_mixture
from paper.runner import Context, Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#56B4E9", "#E69F00", "#009E73")


@dataclass(frozen=True)
class Config:
    """Settings: one feature from well separated Gaussians; the class says on which side of its centre a row is.

    Parameters
    ----------
    n : int
    centres : tuple of float
        Means of the components.
    sd : float
        Standard deviation of the components.
    hidden, epochs
        Of the network.
    grid : int
        Points a side at which the decision is drawn.
    """

    n: int = 1500
    centres: tuple[float, ...] = (-4.0, 0.0, 4.0)
    sd: float = 0.7
    hidden: tuple[int, ...] = (100, 100, 100)
    epochs: int = 40
    grid: int = 80


CONFIG = Config()
QUICK = CONFIG


def run(config: Config, rng: Generator, context: Context) -> Table:
    """Rows: the decision on a grid, some of the data, one point moved in four ways, and how often each is wrong."""
    data_rng, draw_rng, train_rng, move_rng = rng.spawn(4)
    l = len(config.centres)  # noqa: E741 - the paper's l
    means, covariances = np.array(config.centres)[:, None], np.full((l, 1, 1), config.sd**2)
    weights = np.full(l, 1 / l)
    X, K = sample_mixture(MixtureParameters(weights, means, covariances), config.n, rng=data_rng)
    y = (X[:, 0] > means[K, 0]).astype(np.intp)
    model = gaussian_mixture_features(weights, means, covariances)
    XX = np.hstack([X, sample_knockoffs(model.as_network(), X, draw_rng)])
    network = NeuralClassifier(
        config.hidden,
        epochs=config.epochs,
        patience=None,
        device=context.device,
        random_state=int(train_rng.integers(2**31)),
    ).fit(XX, y)

    moves = moved_copies(XX, move_rng)
    wrong = {name: network.predict(points) != y for name, points in moves.items()}
    right_before = ~wrong["as it is"]
    table: Table = [{"kind": "summary", "move": name, "wrong": float(w.mean())} for name, w in wrong.items()]
    # a row that shows the effect: permuting misleads for the knockoff too, swapping only for the feature
    shows = right_before & wrong["swapped feature"] & ~wrong["swapped knockoff"]
    shows &= wrong["permuted feature"] & wrong["permuted knockoff"]
    row = int(np.flatnonzero(shows if shows.any() else right_before)[0])
    for name, points in moves.items():
        table.append(_point("point", points[row], network, true_class=int(y[row]), move=name))
    table += [_point("data", XX[i], network, true_class=int(y[i])) for i in range(min(300, config.n))]
    reach = np.abs(XX).max() * 1.05
    side = np.linspace(-reach, reach, config.grid)
    points = np.column_stack([a.ravel() for a in np.meshgrid(side, side)])
    for point, decision in zip(points, network.predict(points), strict=True):
        table.append({"kind": "grid", "x": point[0], "x_tilde": point[1], "decision": int(decision)})
    return table


def moved_copies(XX: NDArray, rng: Generator) -> dict[str, NDArray]:
    """Copy the rows as they are, and with the feature or its knockoff permuted or swapped."""
    permuted, swapped = XX[rng.permutation(len(XX))], XX[:, ::-1]
    copies = {"as it is": XX}
    for way, fake in (("permuted", permuted), ("swapped", swapped)):
        for column, name in enumerate(("feature", "knockoff")):
            copies[f"{way} {name}"] = XX.copy()
            copies[f"{way} {name}"][:, column] = fake[:, column]
    return copies


def _point(kind: str, point: NDArray, network: NeuralClassifier, **columns: object) -> Row:
    decision = int(network.predict(point[None])[0])
    return {"kind": kind, "x": point[0], "x_tilde": point[1], "decision": decision} | columns


def plot(table: Table) -> Figure:
    """Draw the decision boundaries, a point with its feature moved, and the same point with its knockoff moved."""
    from matplotlib.colors import ListedColormap

    figure = new_figure(11, 5)
    grid = [row for row in table if row["kind"] == "grid"]
    size = int(round(len(grid) ** 0.5))
    decision = np.array([row["decision"] for row in grid]).reshape(size, size)
    side = np.array([row["x"] for row in grid[:size]])
    data = [row for row in table if row["kind"] == "data"]
    points = {row["move"]: row for row in table if row["kind"] == "point"}
    wrong = {row["move"]: row["wrong"] for row in table if row["kind"] == "summary"}
    n_classes = int(decision.max()) + 1
    titles = ("a trained network", "the feature is moved", "the knockoff is moved")
    for place, (title, column) in enumerate(zip(titles, (None, "feature", "knockoff"), strict=True)):
        axes = figure.add_subplot(1, 3, place + 1)
        colours = ListedColormap(COLOURS[:n_classes])
        axes.pcolormesh(side, side, decision, cmap=colours, alpha=0.3, vmin=0, vmax=n_classes - 1, rasterized=True)
        axes.scatter(
            [row["x"] for row in data],
            [row["x_tilde"] for row in data],
            c=[COLOURS[row["true_class"] % len(COLOURS)] for row in data],
            s=6,
            linewidths=0,
        )
        if column is not None:
            here = points["as it is"]
            axes.scatter(here["x"], here["x_tilde"], color="black", s=50, zorder=4, label="a sample")
            for way, colour in (("permuted", "#C00000"), ("swapped", "#0072B2")):
                there = points[f"{way} {column}"]
                arrow = {"arrowstyle": "->", "color": colour, "linewidth": 1.8}
                place_to = (there["x"], there["x_tilde"])
                axes.annotate("", xy=place_to, xytext=(here["x"], here["x_tilde"]), arrowprops=arrow, zorder=5)
                share = f"{way} (wrong in {wrong[f'{way} {column}']:.0%} of all rows)"
                axes.scatter(*place_to, color=colour, marker="X", s=60, zorder=6, label=share)
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)
        axes.set(xlabel="feature $X$", ylabel="knockoff $\\tilde{X}$")
        axes.set_aspect("equal")
        letter(axes, "abc"[place], title)
    return figure
