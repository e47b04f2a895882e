"""The answer: W, feature by feature, with the threshold; or tests, with their p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from knockoffs.errors import InputError
from knockoffs.plots.style import KNOCKOFF, QUIET, draw_bars, finish, legend_below, new_axes
from knockoffs.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Bar(NamedTuple):
    """A bar of the figure: its name, its length, whether it was found, and what stands beside it."""

    name: str
    length: float
    found: bool
    beside: str = ""


def plot_features(selection: Selection, *, ax: Axes | Figure | None = None, most: int = 40) -> Axes:
    """Draw W of the features with the largest |W|: full bars are selected, hatched ones are not.

    Where features were tested without knockoffs, the statistics of the tests are drawn with their p-values: full bars
    are discoveries, and the features of a group follow it. At most ``most`` bars are drawn, the others are counted.
    """
    tested = selection.p_values is not None
    bars = bars_of_tests(selection) if tested else bars_of_W(selection, most)
    if not bars:
        raise InputError("W is 0 for every feature: there is nothing to draw.")
    shown = bars[:most]
    ax = new_axes(ax, 6.4, 1.8 + 0.2 * len(shown))
    words = ("selected", "not selected")
    if selection.discoveries is not None:  # the features of a group are hatched too: alone they are none
        groups = any(len(one.features) > 1 for one in selection.discoveries)
        words = ("discovery", "not a discovery alone" if groups else "not a discovery")
    draw_bars(ax, [bar.name for bar in shown], [bar.length for bar in shown], [bar.found for bar in shown], words)
    for y, bar in enumerate(shown):
        ax.annotate(bar.beside, (bar.length, y), (3, 0), textcoords="offset points", va="center", fontsize="small")
    if tested:
        ax.set_xlim(0, 1.25 * (max(bar.length for bar in shown) or 1.0))
        scored = selection.test_scores is not None
        ax.set_xlabel("test statistic, standard deviations" if scored else "−log10 of the p-value")
        rest, which = len(bars) - len(shown), "with weaker evidence"
    else:
        ax.axvline(0.0, color=QUIET, linewidth=0.8)
        if np.isfinite(selection.threshold):
            word = f"threshold {selection.threshold:.3g} (level {selection.fdr:g})"
            ax.axvline(selection.threshold, color=KNOCKOFF, linestyle="--", linewidth=1.4, label=word)
        n_draws = 1 if selection.draws is None else len(selection.draws)
        ax.set_xlabel("W, feature minus knockoff" + (f" (mean of {n_draws} draws)" if n_draws > 1 else ""))
        rest, which = int((selection.W != 0).sum()) - len(shown), "of a smaller |W|"
    if rest:
        ax.plot([], [], linestyle="none", label=f"{rest} {which} not shown")
    legend_below(ax)
    return finish(ax, selection.first_screen.found)


def bars_of_W(selection: Selection, most: int) -> list[Bar]:
    """Bars of the largest |W|, at most so many, from the largest W down; W = 0 has none."""
    W = selection.W
    size = np.abs(np.nan_to_num(W))
    largest = np.argsort(-size, kind="stable")[:most]
    largest = largest[size[largest] > 0]
    order = largest[np.argsort(-W[largest], kind="stable")]
    return [Bar(selection.feature_names[j], float(W[j]), bool(selection.selected[j])) for j in order]


def bars_of_tests(selection: Selection) -> list[Bar]:
    """Bars of the discoveries, a group before its features, then of all other features."""
    names, scores = selection.feature_names, selection.test_scores
    p = dict(zip(names, np.asarray(selection.p_values).tolist(), strict=True))
    score = dict.fromkeys(names, 0.0) if scores is None else dict(zip(names, scores.tolist(), strict=True))

    def bar(name: str, p_value: float, score: float, found: bool) -> Bar:
        length = -np.log10(max(p_value, 1e-300)) if scores is None else max(score, 0.0)
        return Bar(name, float(length), found, f"p = {p_value:.2g}")

    bars: list[Bar] = []
    for one in sorted(selection.discoveries or (), key=lambda one: -one.score):
        group = len(one.features) > 1
        bars.append(bar(f"one of {len(one.features)}:" if group else str(one), one.p_value, one.score, True))
        members = sorted(one.features, key=p.__getitem__) if group else ()
        bars += [bar(f"– {name}", p[name], score[name], False) for name in members]
    others = [j for j in selection.surest_first if selection.discoveries is None or not selection.selected[j]]
    return bars + [bar(names[j], p[names[j]], score[names[j]], bool(selection.selected[j])) for j in others]
