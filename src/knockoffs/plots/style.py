"""The look that the figures share: neutral on light and dark, told apart without colour, names that are only names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, TypedDict

from knockoffs.errors import printable, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Okabe and Ito's blue and vermilion tell apart for every eye, and a mid grey stands on white and on black
SELECTED, KNOCKOFF, QUIET = "#0072B2", "#D55E00", "#8c8c8c"
LINES = (  # colour and dash of named lines: told apart in print too, each with a contrast of 3 on white and on black
    (SELECTED, "-"),
    (KNOCKOFF, "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
    ("#B07D00", (0, (5, 1, 1, 1))),
    ("#8F6BD9", (0, (3, 1))),
    ("#7f7f7f", (0, (8, 2))),
    ("#a65628", (0, (1, 1))),
)
LONGEST = 60  # characters of a name that are shown at all
ON_AXIS = 28  # those at a row of a figure
NARROW = 5.0  # inches: what is drawn into a page can be read on a phone


class Look(TypedDict, total=False):
    """How a bar or a point is drawn, beside its place."""

    color: str
    facecolor: str
    edgecolor: str
    hatch: str
    linewidth: float


HATCHED: Look = {"facecolor": "none", "edgecolor": QUIET, "hatch": "////", "linewidth": 0.8}  # what is not selected


def new_axes(ax: Axes | Figure | None, width: float, height: float) -> Axes:
    """Axes to draw on: those given, those of an empty figure, or new ones of pyplot, of a size in inches."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    if isinstance(ax, Figure):
        ax.set_size_inches(min(width, NARROW), height)
        return ax.subplots()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, made = plt.subplots(figsize=(width, height), layout="constrained")
    return made


def short(name: str, most: int = LONGEST) -> str:
    """Printable name of at most so many characters: its beginning and its end, where units stand.

    >>> short("blood pressure (systolic)", 15)
    'blood pr…tolic)'
    """
    if not name.strip():
        return f"“{printable(name[:most])}”"  # nothing is not a name that can be seen
    whole = len(name) <= most
    shown = printable(name if whole else name[:most])  # a character is written as one or more: never as fewer
    if whole and len(shown) <= most:
        return shown
    tail = (most - 1) * 3 // 7
    return f"{shown[: most - 1 - tail]}…{printable(name[-tail:])[-tail:]}"


def plain(*texts: Text) -> None:
    """Take texts for what they are: a dollar sign starts no formula."""
    for text in texts:
        text.set_parse_math(False)


def finish(ax: Axes, title: str) -> Axes:
    """Axes without the frame that says nothing, and with a title no wider than they are; one that was set stays."""
    ax.spines[["top", "right"]].set_visible(False)
    if not ax.get_title(loc="left"):
        inches = ax.get_window_extent().width / ax.figure.dpi
        plain(ax.set_title(fill(title, max(int(12 * inches), 20)), fontsize="medium", loc="left"))
    return ax


def legend_below(ax: Axes, names: Sequence[str] = (), *, letters: float = 4.5, columns: int = 1) -> None:
    """Legend under the axes, where it covers nothing: so many heights of a letter below them, the first by name."""
    made = ax.legend(
        loc="upper left", bbox_to_anchor=(0, 0), borderaxespad=letters, ncols=columns, frameon=False, fontsize="small"
    )
    plain(*made.get_texts())
    for text, name in zip(made.get_texts(), names, strict=False):  # as a label, _name would be left out
        text.set_text(name)


def name_rows(ax: Axes, names: Iterable[str], bold: Iterable[bool] = ()) -> None:
    """Names at the left of horizontal bars, from the top down."""
    shown = [short(name, ON_AXIS) for name in names]
    name_places(ax, "y", shown)
    for tick, heavy in zip(ax.get_yticklabels(), bold, strict=False):
        tick.set_fontweight("bold" if heavy else "normal")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def draw_bars(
    ax: Axes, names: Sequence[str], lengths: Sequence[float], found: Sequence[bool], words: tuple[str, str]
) -> None:
    """Horizontal bars from the top down: full ones were found, hatched ones were not, and the legend counts both."""
    looks: tuple[Look, Look] = ({"color": SELECTED}, HATCHED)
    for kind, word, look in zip((True, False), words, looks, strict=True):
        at = [i for i, one in enumerate(found) if bool(one) == kind]
        if at:
            ax.barh(at, [lengths[i] for i in at], height=0.7, label=f"{word} ({len(at)})", **look)
    name_rows(ax, names, found)


def name_places(ax: Axes, axis: str, words: Sequence[str]) -> None:
    """Words at 0, 1, 2, ... of an axis; along x slanted where they are long."""
    from matplotlib.ticker import FixedFormatter, FixedLocator

    which = ax.xaxis if axis == "x" else ax.yaxis
    which.set_major_locator(FixedLocator(range(len(words))))
    which.set_major_formatter(FixedFormatter(words))
    labels = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    plain(*labels)
    if axis == "x" and sum(map(len, words)) > 20:
        for label in labels:
            label.set(rotation=40, ha="right", rotation_mode="anchor")
