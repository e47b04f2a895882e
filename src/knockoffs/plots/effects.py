"""Direction and size of an effect: the mean prediction of y along a column, other discovered columns as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.machine.parallel import worthwhile_threads
from knockoffs.plots.knockoffs import value_label
from knockoffs.plots.style import LINES, QUIET, finish, name_places, new_axes, plain, short
from knockoffs.response.cox_boosting import events_as_counts
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table
from knockoffs.table.target import Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.base import BaseEstimator

FEW = 10  # values of a column, of which each is tried and drawn as a point


@dataclass(frozen=True)
class Effect:
    """Partial dependence of y on one column: the mean prediction with the column set to each value of a grid."""

    column: Column
    group: tuple[str, ...]  # features of the discovery that the column belongs to
    grid: NDArray
    means: NDArray  # shape (n_lines, n_points): of several classes the probability of each
    labels: tuple[str, ...]  # names of these classes
    height: str  # what the lines show
    rug: NDArray

    @property
    def size(self) -> str:
        """Direction and size in words: by how much the prediction changes over the middle 90 % of the rows.

        A curve that turns has no direction, nor have labels without an order.
        """
        line = self.means[0]
        change, steps = line[-1] - line[0], np.abs(np.diff(line)).sum()
        if self.column.kind == "nominal" or len(self.means) > 1 or abs(change) < 0.7 * steps:
            return f"varies by {np.ptp(self.means, axis=1).max():.3g}"
        return f"{'rises' if change > 0 else 'falls'} by {abs(change):.3g}"

    @property
    def sentence(self) -> str:
        """What the curve says, with the group that its column stands for."""
        of_group = f" (of a group of {len(self.group)})" if len(self.group) > 1 else ""
        height = short(self.height[:1].upper() + self.height[1:], 40)
        return f"{height} {self.size} along {short(self.column.name, 28)}{of_group}"


def effects(
    selection: Selection, table: Table, target: Target, *, most: int = 12, n_points: int = 25, n_rows: int = 300
) -> list[Effect]:
    """Partial dependence of y on the discoveries, the surest first; empty where there are no rows or no such target.

    A boosting model of y is fitted on the discovered columns alone. Of a group, or of its first 20 columns, the one
    along which the prediction changes most is taken. ``n_points`` values of a column are tried, evenly spaced over the
    middle 90 % of the rows, and predictions are averaged over ``n_rows``, which are drawn in the rug.
    """
    from sklearn.inspection import partial_dependence

    X, owner = np.asarray(selection.pair.X, dtype=float)[target.known_rows], selection.pair.feature_of
    columns = np.flatnonzero(np.isin(owner, np.flatnonzero(selection.selected)))
    if not len(columns) or np.ndim(target.values) != 1 or len(X) != len(target.values) or len(X) < 20:
        return []
    some = X[np.linspace(0, len(X) - 1, min(len(X), n_rows)).astype(int)][:, columns]
    groups: list[tuple[str, ...]] = [(name,) for name in selection.selected_names]
    if selection.discoveries is not None:
        groups = [one.features for one in sorted(selection.discoveries, key=lambda one: -one.score)]
    found: list[Effect] = []
    with worthwhile_threads(len(X) * len(columns)):
        model, labels, height = _fit(X[:, columns], target)
        for group in groups[:most]:
            tried = []
            for name in group[:20]:
                owned = np.flatnonzero(owner == selection.feature_names.index(name))
                if len(owned) != 1:  # a feature of several columns has no one axis
                    continue
                column, k = table.columns[owned[0]], int(np.flatnonzero(columns == owned[0])[0])
                grid = _grid(X[:, owned[0]], column, n_points)
                lines = partial_dependence(model, some, [k], custom_values={k: grid}, method="brute")["average"]
                tried.append(Effect(column, group, grid, lines[: len(LINES)], labels, height, some[:, k]))
            found += [max(tried, key=lambda one: np.ptp(one.means, axis=1).max())] if tried else []
    return found


def _fit(X: NDArray, target: Target) -> tuple[BaseEstimator, tuple[str, ...], str]:
    """Boosting model, the classes that its predictions stand for, and what they are."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    y, weights, called = target.values, target.weights, target.name or "y"
    how: dict[str, object] = {"max_iter": 80, "learning_rate": 0.08, "max_leaf_nodes": 6}
    how |= {"min_samples_leaf": max(10, len(X) // 50), "early_stopping": False, "random_state": 0}
    if target.task == "classification":
        model = HistGradientBoostingClassifier(**how).fit(X, np.asarray(y).astype(str), sample_weight=weights)
        labels = tuple(str(label) for label in model.classes_)
        if len(labels) == 2:
            return model, (), f"share of {labels[1]}"
        return model, labels[: len(LINES)], f"share of each {called}"
    loss, height = "squared_error", f"mean of {called}"
    if target.kind == "survival":
        loss, height = "poisson", "relative hazard"
        y, weights = events_as_counts(y, weights)
    model = HistGradientBoostingRegressor(loss=loss, **how).fit(X, np.asarray(y, dtype=float), sample_weight=weights)
    return model, (), height


def _grid(x: NDArray, column: Column, n_points: int) -> NDArray:
    distinct = np.unique(x)
    low, high = np.quantile(x, [0.05, 0.95])
    if column.levels is not None or len(distinct) <= FEW:
        return distinct
    return np.linspace(low, high, n_points) if low < high else distinct[[0, -1]]


def plot_effect(effect: Effect, *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the mean prediction of y along a column, with ticks at the values of some rows."""
    ax = new_axes(ax, 3.2, 2.4)
    levels, few = effect.column.levels, len(effect.grid) <= FEW
    for line, name, (colour, dash) in zip(effect.means, effect.labels or ("",), LINES, strict=False):
        dash = dash if levels is None else "none"
        marker = "o" if few or levels is not None else ""
        ax.plot(effect.grid, line, color=colour, linestyle=dash, marker=marker, linewidth=1.8, label=f"class {name}")
    if levels is not None:
        name_places(ax, "x", [short(value_label(level, effect.column), 12) for level in range(len(levels))])
    elif few:
        ax.set_xticks(effect.grid, [f"{value:.3g}" for value in effect.grid])
    else:
        inside = effect.rug[(effect.rug >= effect.grid[0]) & (effect.rug <= effect.grid[-1])]
        ticks = np.column_stack([inside, inside, np.full(len(inside), np.nan)]).ravel()  # one line with gaps
        heights = np.tile([0.0, 0.05, np.nan], len(inside))
        ax.plot(ticks, heights, color=QUIET, transform=ax.get_xaxis_transform(), linewidth=0.5, scalex=False)
    low, high = float(effect.means.min()), float(effect.means.max())
    reach = (high - low) or 1.0
    ax.set_ylim(low - 0.25 * reach, high + 0.2 * reach)
    plain(ax.set_xlabel(short(effect.column.name, 36)), ax.set_ylabel(short(effect.height, 28), fontsize="small"))
    if effect.labels:
        for text, name in zip(ax.legend(frameon=False, fontsize="x-small").get_texts(), effect.labels, strict=True):
            plain(text)
            text.set_text(short(name, 16))
    return finish(ax, effect.sentence)


def effect_of(found: Sequence[Effect], name: str) -> Effect:
    """Effect of a feature by its name, or by that of a feature of its group."""
    for effect in found:
        if name in effect.group:
            return effect
    if not found:
        raise InputError("there is no discovery with an effect to draw.")
    raise unknown_option("feature", name, [member for effect in found for member in effect.group])
