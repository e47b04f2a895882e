"""The figures of the report: those of ``plots``, as elements of the page that follow its colours, light and dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from knockoffs.errors import InputError
from knockoffs.plots.effects import Effect, effects, plot_effect
from knockoffs.plots.features import plot_features
from knockoffs.plots.knockoffs import draw_margin
from knockoffs.plots.margins import margin
from knockoffs.plots.paths import plot_paths
from knockoffs.plots.stability import plot_stability
from knockoffs.plots.style import KNOCKOFF, QUIET, SELECTED
from knockoffs.plots.survival import plot_survival
from knockoffs.plots.tree import plot_tree
from knockoffs.plots.verdict import plot_verdict
from knockoffs.report.facts import Facts

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

MOST_MARGINS = 12  # columns that are drawn beside their knockoffs
COLOURS = {SELECTED: "blue", KNOCKOFF: "orange", QUIET: "soft", "#000000": "ink", "#ffffff": "paper"}
VARIABLES = {colour.lower(): f"var(--{name})" for colour, name in COLOURS.items()}
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    try:
        return find_spec("matplotlib") is not None
    except ValueError:  # what was put in its place has no place of its own
        return False


def draw_features(facts: Facts) -> Markup | None:
    """Figure of the answer: W with its threshold, or tests with their p-values."""
    screen = facts.selection.first_screen
    listed = "; ".join(f"{row.name[:60]}, {screen.value} {row.value:.3g}" for row in screen.rows[:12])
    title = f"{screen.found}. Bars of {screen.what}: {listed}" if listed else screen.found
    return drawn(title, lambda figure: plot_features(facts.selection, ax=figure))


def draw_tree(facts: Facts) -> Markup | None:
    """Figure of the tree of groups; None where groups were not tested, or for too many features."""
    table, found = facts.table, facts.selection.discoveries
    if table is None or not found or facts.selection.p_values is None:
        return None
    title = f"Tree of groups; discoveries: {'; '.join(str(one)[:60] for one in found[:12])}"
    return drawn(title, lambda figure: plot_tree(facts.selection, table, ax=figure))


def draw_effects(facts: Facts) -> list[Markup]:
    """Figures of the first discoveries: the mean prediction of the target along each."""
    if facts.table is None or facts.target is None or not len(facts.selection.pair):
        return []
    called = facts.called or "the target"
    found = []
    for effect in effects(facts.selection, facts.table, facts.target):
        name, of = effect.column.name[:40], f" of {effect.lines[-1][:20]}" if effect.lines[-1] else ""
        found.append(drawn(f"Along {name}, {called[:40]}{of} {effect.size}", partial(_draw_effect, effect, called)))
    return [svg for svg in found if svg is not None]


def _draw_effect(effect: Effect, called: str, figure: Figure) -> None:
    plot_effect(effect, called, ax=figure)


def draw_stability(facts: Facts) -> Markup | None:
    """Figure of the selection frequencies over the draws; None for one draw."""
    return drawn("Selection frequencies", lambda figure: plot_stability(facts.selection, ax=figure))


def draw_paths(facts: Facts) -> Markup | None:
    """Figure of W along lambda; None where the paths were not followed."""
    path = facts.path
    return None if path is None else drawn("Lambda paths", lambda figure: plot_paths(path, facts.selection, ax=figure))


def draw_verdict(facts: Facts) -> Markup | None:
    """Figure of the rates of the trial; None where there was none."""
    if facts.selection.verdict is None or facts.selection.verdict.trial is None:
        return None
    return drawn("Rates of false calls in trials", lambda figure: plot_verdict(facts.selection, ax=figure))


def draw_survival(facts: Facts) -> Markup | None:
    """Figure of Kaplan-Meier curves by the surest discovery; None for other targets."""
    table, target = facts.table, facts.target
    if table is None or target is None:
        return None
    return drawn("Kaplan-Meier curves", lambda figure: plot_survival(facts.selection, table, target, ax=figure))


def draw_margins(facts: Facts) -> list[Markup]:
    """Figures of the first features, each column beside its knockoff."""
    pair, order = facts.selection.pair, facts.order
    if len(pair) == 0:
        return []
    chosen = [int(j) for j in order if facts.selection.selected[j]] or order[:6].tolist()
    columns = [k for j in chosen[:MOST_MARGINS] for k in facts.columns_of(j)[:3]][:MOST_MARGINS]
    found = []
    for k in columns:
        column = facts.column(k)

        def draw(figure: Figure, k: int = k) -> None:
            figure.set_size_inches(3.2, 2.5)
            draw_margin(
                figure.subplots(), margin(pair.X[:, k], pair.X_tilde[:, k], facts.column(k)), facts.column(k).name
            )

        svg = drawn(f"{column.name[:40]} beside its knockoff", draw)
        found += [] if svg is None else [svg]
    return found


def drawn(title: str, draw: Callable[[Figure], object]) -> Markup | None:
    """Figure as an svg element; None where there is nothing to draw."""
    import matplotlib.style
    from matplotlib.figure import Figure

    text = io.BytesIO()
    look = {"svg.fonttype": "none", "svg.hashsalt": "knockoffs"}  # words as text, and the same bytes every time
    with matplotlib.style.context(["default", look]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's font lacks, and the browser's has
        figure = Figure(layout="constrained")
        try:
            draw(figure)
        except InputError:
            return None
        figure.savefig(text, format="svg", transparent=True)
    return as_element(text.getvalue(), title)


def as_element(svg: bytes, title: str) -> Markup:
    """Svg of matplotlib as an element of the page: colours by its variables, no style attributes, which it forbids."""
    from markupsafe import Markup

    from knockoffs.errors import printable

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
    root.attrib |= {"class": "picture", "role": "img", "aria-label": printable(title)}
    return Markup(ElementTree.tostring(root, encoding="unicode"))
