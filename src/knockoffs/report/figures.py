"""The figures of the report: those of ``plots``, as elements of the page that follow its colours, light and dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from knockoffs.errors import InputError, printable
from knockoffs.plots.effects import Effect, effects, plot_effect
from knockoffs.plots.features import plot_features
from knockoffs.plots.knockoffs import plot_margin
from knockoffs.plots.paths import plot_paths
from knockoffs.plots.stability import plot_stability
from knockoffs.plots.style import KNOCKOFF, QUIET, SELECTED
from knockoffs.plots.survival import plot_survival
from knockoffs.plots.tree import plot_tree
from knockoffs.plots.verdict import plot_verdict
from knockoffs.report.facts import Facts

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

COLOURS = {SELECTED: "blue", KNOCKOFF: "orange", QUIET: "soft", "#000000": "ink", "#ffffff": "paper"}
VARIABLES = {colour.lower(): f"var(--{name})" for colour, name in COLOURS.items()}
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its svg element, and its title, which stands above it as text."""

    svg: Markup
    title: str


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # what was put in its place has no place of its own
        return False


def draw_all(facts: Facts, *, most_margins: int = 12) -> dict[str, list[Picture]]:
    """Figures of the page by their section; a section with nothing to draw is empty.

    At most ``most_margins`` columns are drawn beside their knockoffs: of the selected features, or of the surest six.
    """
    selection, table, target = facts.selection, facts.table, facts.target
    screen, pair = selection.first_screen, selection.pair
    listed = "; ".join(f"{row.name[:60]}, {screen.value} {row.value:.3g}" for row in screen.rows[:12])
    answer = [drawn(plot_features, selection, more=f"{screen.what}: {listed}" if listed else "")]
    found: list[Effect] = []
    if table is not None and selection.discoveries and selection.p_values is not None:
        answer.append(drawn(plot_tree, selection, table, more="Thick lines are discoveries"))
    if table is not None and target is not None:
        answer.append(drawn(plot_survival, selection, table, target))
        found = effects(selection, table, target) if len(pair) else []
    answer.append(drawn(plot_stability, selection))
    chosen = [int(j) for j in facts.order if selection.selected[j]] or facts.order[:6].tolist()
    places = [k for j in chosen for k in facts.columns_of(j)[:3]][:most_margins] if len(pair) else []
    sections = {
        "answer": answer,
        "effects": [drawn(plot_effect, one) for one in found],
        "paths": [] if facts.path is None else [drawn(plot_paths, facts.path, selection)],
        "margins": [drawn(plot_margin, pair.X[:, k], pair.X_tilde[:, k], facts.column(k)) for k in places],
        "verdict": [drawn(plot_verdict, selection)],
    }
    return {name: [one for one in some if one is not None] for name, some in sections.items()}


def drawn(plot: Callable[..., Axes], *what: object, more: str = "") -> Picture | None:
    """Figure as an element of the page, with more words for those who do not see it; None if nothing can be drawn."""
    import matplotlib.style
    from matplotlib.figure import Figure

    text = io.BytesIO()
    look = {"svg.fonttype": "none", "svg.hashsalt": "knockoffs"}  # words as text, and the same bytes every time
    with matplotlib.style.context(["default", look]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's font lacks, and the browser's has
        figure = Figure(layout="constrained")
        try:
            ax = plot(*what, ax=figure)
        except InputError:
            return None
        title, along, height = ax.get_title(loc="left").replace("\n", " "), ax.get_xlabel(), ax.get_ylabel()
        ax.set_title("", loc="left")
        figure.savefig(text, format="svg", transparent=True)
    words = ". ".join(part for part in (title, along and f"Along x: {along}", height and f"up: {height}", more) if part)
    return Picture(as_element(text.getvalue(), words), title)


def as_element(svg: bytes, words: str) -> Markup:
    """Svg of matplotlib as an element of the page: colours by its variables, no style attributes, which it forbids."""
    from markupsafe import Markup

    root = ElementTree.fromstring(svg)
    used = set(re.findall(r'(?:url\(|xlink:href=")#([^)"]+)', svg.decode()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
        parent.tag = parent.tag.removeprefix(SVG)
        if parent.get("id") not in used:
            parent.attrib.pop("id", None)
        if LINK in parent.attrib:
            parent.set("href", parent.attrib.pop(LINK))
        for part in filter(None, parent.attrib.pop("style", "").split(";")):
            key, _, value = (word.strip() for word in part.partition(":"))
            size = re.match(r"(?:(\d+) )?([\d.]+)px", value) if key == "font" else None
            if size is not None:
                parent.set("font-size", size[2])
                parent.set("font-weight", size[1] or "400")
            else:
                parent.set(key, VARIABLES.get(value.lower(), value))
        if parent.tag == "text":
            parent.attrib.setdefault("fill", VARIABLES["#000000"])
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {"class": "picture", "role": "img", "aria-label": printable(words)}
    return Markup(ElementTree.tostring(root, encoding="unicode"))
