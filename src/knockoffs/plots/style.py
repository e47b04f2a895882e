"""The look that the figures share: neutral on light and dark, told apart without colour, names that are only names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from knockoffs.errors import printable, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter

# Okabe and Ito's blue and vermilion tell apart for every eye, and a mid grey stands on white and on black
SELECTED, KNOCKOFF, QUIET = "#0072B2", "#D55E00", "#8c8c8c"
LINES = (  # colour and dash of the named paths: told apart in print too
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", ":"),
    ("#E69F00", (0, (5, 1, 1, 1))),
    ("#56B4E9", (0, (3, 1))),
    ("#7f7f7f", (0, (8, 2))),
    ("#a65628", (0, (1, 1))),
)
MOST_LETTERS = 28
NARROW = 5.0  # inches: what is drawn into a page can be read on a phone


class Look(TypedDict, total=False):
    """How a bar or a point is drawn, beside its place."""

    color: str
    facecolor: str
    edgecolor: str
    hatch: str
    linewidth: float


HATCHED: Look = {"facecolor": "none", "edgecolor": QUIET, "hatch": "////", "linewidth": 0.8}  # what is not selected


def check_matplotlib() -> None:
    """Refuse to draw without matplotlib, with the command that installs it."""
    require("matplotlib", "plots")


def new_axes(ax: Axes | Figure | None, width: float, height: float) -> Axes:
    """Axes to draw on: those given, those of an empty figure, or new ones of pyplot, of a size in inches."""
    check_matplotlib()
    from matplotlib.figure import Figure

    if isinstance(ax, Figure):
        ax.set_size_inches(min(width, NARROW), height)
        return ax.subplots()
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, made = plt.subplots(figsize=(width, height), layout="constrained")
    return made


def short(name: str, most: int = MOST_LETTERS) -> str:
    """Name of at most so many letters; control characters as escapes.

    >>> short("a name that is far too long for an axis")
    'a name that is far too lo...'
    """
    shown = printable(name[: 4 * most])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def plain(texts: Iterable[Text]) -> None:
    """Take texts for what they are: a dollar sign starts no formula."""
    for text in texts:
        text.set_parse_math(False)


def tidy(ax: Axes) -> None:
    """Take away the frame where it says nothing."""
    ax.spines[["top", "right"]].set_visible(False)


def entitled(ax: Axes, words: str) -> Axes:
    """Axes with a title that says what is shown; one that was set stays."""
    if not ax.get_title(loc="left"):
        ax.set_title(words, fontsize="medium", loc="left")
    return ax


def name_rows(ax: Axes, names: Iterable[str], bold: Iterable[bool] = ()) -> None:
    """Names at the left of horizontal bars, from the top down."""
    shown = [short(name) for name in names]
    ax.set_yticks(range(len(shown)))
    ax.yaxis.set_major_formatter(_fixed(shown))
    plain(ax.get_yticklabels())
    for tick, heavy in zip(ax.get_yticklabels(), bold, strict=False):
        tick.set_fontweight("bold" if heavy else "normal")
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _fixed(shown: list[str]) -> FixedFormatter:
    from matplotlib.ticker import FixedFormatter

    return FixedFormatter(shown)
