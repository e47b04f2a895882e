"""Direction and size of an effect: the mean prediction of y along a column, other discovered columns as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.plots.knockoffs import label_values
from knockoffs.plots.margins import value_label
from knockoffs.plots.style import LINES, QUIET, new_axes, plain, short, tidy
from knockoffs.selection import Selection
from knockoffs.table.columns import Column
from knockoffs.table.table import Table
from knockoffs.table.target import Target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Effect:
    """Partial dependence of y on one column.

    Parameters
    ----------
    column : Column
    group : tuple of str
        Features of the discovery that the column belongs to; more than one if it is a group.
    grid : array, shape (n_points,)
        Values of the column.
    means : array, shape (n_lines, n_points)
        Mean prediction with the column set to each value; of classes, the probability of each.
    lines : tuple of str
        What the lines are called: labels of classes, or one line without a name.
    rug : array
        Values of some rows.
    """

    column: Column
    group: tuple[str, ...]
    grid: NDArray
    means: NDArray
    lines: tuple[str, ...]
    rug: NDArray

    @property
    def size(self) -> str:
        """Direction and size in words: by how much the prediction changes over the middle 90 % of the rows.

        A curve that turns has no direction, nor have labels without an order.
        """
        line = self.means[-1]
        change, steps = line[-1] - line[0], np.abs(np.diff(line)).sum()
        if self.column.kind == "nominal" or len(self.lines) > 2 or abs(change) < 0.7 * steps:
            return f"differs by {np.ptp(self.means, axis=1).max():.3g}"
        return f"{'rises' if change > 0 else 'falls'} by {abs(change):.3g}"


def effects(
    selection: Selection, table: Table, target: Target, *, most: int = 12, n_points: int = 25, n_rows: int = 300
) -> list[Effect]:
    """Partial dependence of y on the discoveries, the surest first; empty where there are no rows or no such target.

    A boosting model of y is fitted on the discovered columns alone. Of a group the column with the smallest p-value is
    taken.

    Parameters
    ----------
    selection : Selection
    table : Table
    target : Target
    most : int
        Discoveries.
    n_points : int
        Values of a column that are tried, evenly spaced over the middle 90 % of the rows.
    n_rows : int
        Rows over which predictions are averaged, and at most drawn in the rug.
    """
    X = np.asarray(selection.pair.X, dtype=float)[target.known_rows]
    values = np.asarray(target.values)
    columns = np.flatnonzero(selection.selected[np.minimum(selection.pair.feature_of, len(selection.selected) - 1)])
    columns = columns[selection.pair.feature_of[columns] < len(selection.selected)]
    if not len(columns) or values.ndim != 1 or len(X) != len(values) or len(X) < 20:
        return []
    model, lines = _fit(X[:, columns], values, target)
    some = X[np.linspace(0, len(X) - 1, min(len(X), n_rows)).astype(int)][:, columns]
    found = []
    for group in _groups(selection)[:most]:
        feature = selection.feature_names.index(group[0])
        owned = np.flatnonzero(selection.pair.feature_of == feature)
        if len(owned) != 1:  # a feature of several columns has no one axis
            continue
        k = int(np.flatnonzero(columns == owned[0])[0])
        grid = _grid(X[:, owned[0]], table.columns[owned[0]], n_points)
        means = np.array([_predict(model, _set(some, k, value)).mean(axis=0) for value in grid]).T
        found.append(Effect(table.columns[owned[0]], group, grid, means, lines, some[:, k]))
    return found


def _groups(selection: Selection) -> list[tuple[str, ...]]:
    """Features of each discovery, the one with the smallest p-value, or the largest W, first."""
    if selection.discoveries is None:
        return [(name,) for name in selection.selected_names]
    order = -selection.W if selection.p_values is None else selection.p_values
    first = dict(zip(selection.feature_names, order.tolist(), strict=True))
    return [tuple(sorted(found.features, key=first.__getitem__)) for found in selection.discoveries]


def _fit(X: NDArray, y: NDArray, target: Target) -> tuple[object, tuple[str, ...]]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    options = {"max_iter": 80, "learning_rate": 0.08, "max_leaf_nodes": 6, "min_samples_leaf": max(10, len(X) // 50)}
    if target.task == "classification":
        labels = np.asarray(y).astype(str)
        model = HistGradientBoostingClassifier(**options, early_stopping=False, random_state=0)
        model.fit(X, labels, sample_weight=target.weights)
        return model, tuple(str(label) for label in model.classes_)
    model = HistGradientBoostingRegressor(**options, early_stopping=False, random_state=0)
    return model.fit(X, np.asarray(y, dtype=float), sample_weight=target.weights), ("",)


def _predict(model: object, X: NDArray) -> NDArray:
    """Predictions, shape (n, n_lines)."""
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)[:, None]  # type: ignore[attr-defined]


def _set(X: NDArray, k: int, value: float) -> NDArray:
    changed = X.copy()
    changed[:, k] = value
    return changed


def _grid(x: NDArray, column: Column, n_points: int) -> NDArray:
    distinct = np.unique(x)
    if column.levels is not None or len(distinct) <= 10:
        return distinct
    low, high = np.quantile(x, [0.05, 0.95])
    return np.linspace(low, high, n_points) if low < high else distinct[[0, -1]]


def plot_effect(effect: Effect, target: str = "y", *, ax: Axes | Figure | None = None) -> Axes:
    """Draw the mean prediction of y along a column, with ticks at the values of some rows.

    Parameters
    ----------
    effect : Effect
    target : str
        What y is called.
    ax : matplotlib axes, or an empty figure, optional

    Returns
    -------
    matplotlib axes
    """
    ax = new_axes(ax, 3.2, 2.5)
    stepped = effect.column.levels is not None
    shown = effect.means[-1:] if len(effect.lines) == 2 else effect.means[: len(LINES)]
    names = effect.lines[-1:] if len(effect.lines) == 2 else effect.lines
    for line, name, (colour, dash) in zip(shown, names, LINES, strict=False):
        marker = "o" if stepped or len(effect.grid) <= 10 else ""
        dash = "none" if stepped else dash
        ax.plot(effect.grid, line, color=colour, linestyle=dash, marker=marker, linewidth=1.8, label=short(name, 16))
    if stepped:
        levels = range(len(effect.column.levels or ()))
        label_values(ax, "x", [short(value_label(level, effect.column), 12) for level in levels])
    else:
        inside = effect.rug[(effect.rug >= effect.grid[0]) & (effect.rug <= effect.grid[-1])]
        ticks = np.column_stack([inside, inside, np.full(len(inside), np.nan)]).ravel()  # one line with gaps
        heights = np.tile([0.0, 0.05, np.nan], len(inside))
        ax.plot(ticks, heights, color=QUIET, transform=ax.get_xaxis_transform(), linewidth=0.5, scalex=False)
    low, high = float(shown.min()), float(shown.max())
    reach = (high - low) or 1.0
    ax.set_ylim(low - 0.25 * reach, high + 0.2 * reach)
    plain([ax.set_xlabel(short(effect.column.name, 40)), ax.set_ylabel(short(_said(names, target), 26))])
    of_group = f" (of a group of {len(effect.group)})" if len(effect.group) > 1 else ""
    ax.set_title(f"{effect.size}{of_group}", fontsize="small", loc="left")
    if len(names) > 1:
        ax.legend(frameon=False, fontsize="x-small")
    tidy(ax)
    return ax


def _said(names: Sequence[str], target: str) -> str:
    """Name of the height of a curve."""
    if names == ("",):
        return f"mean of {target}"
    return f"share of {names[0]}" if len(names) == 1 else f"share of each {target}"


def effect_of(found: Sequence[Effect], name: str) -> Effect:
    """Effect of a feature by its name, or by that of a feature of its group."""
    for effect in found:
        if name in effect.group:
            return effect
    if not found:
        raise InputError("there is no discovery with an effect to draw.")
    raise unknown_option("feature", name, [member for effect in found for member in effect.group])
