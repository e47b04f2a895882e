"""Small pictures as svg: no colour but by class, so that the page's style serves light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from knockoffs.report.formatting import number, short, text


def drawing(width: float, height: float, parts: Sequence[str], title: str, kind: str = "") -> str:
    """Return a picture with its title for those who do not see it."""
    return (
        f'<svg class="picture {kind}" viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{text(title)}">'
        f"{''.join(parts)}</svg>"
    )


def rect(x: float, y: float, width: float, height: float, kind: str, more: str = "", title: str = "") -> str:
    """Rectangle of a class."""
    inner = f"<title>{text(title)}</title>" if title else ""
    place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"'
    return f'<rect class="{kind}" {place}{more}>{inner}</rect>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Line of a class."""
    return f'<line class="{kind}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>'


def polyline(points: Sequence[tuple[float, float]], kind: str, title: str = "") -> str:
    """Line through points."""
    inner = f"<title>{text(title)}</title>" if title else ""
    return f'<polyline class="{kind}" points="{" ".join(f"{_n(x)},{_n(y)}" for x, y in points)}">{inner}</polyline>'


def dot(x: float, y: float, kind: str, radius: float = 3) -> str:
    """Dot of a class."""
    return f'<circle class="{kind}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'


def label(x: float, y: float, words: str, kind: str = "", anchor: str = "start", most: int | None = None) -> str:
    """Words at a place; long ones are shortened, and whole in their title."""
    shown = short(words, most) if most else words
    title = f"<title>{text(words)}</title>" if shown != words else ""
    classes = f' class="{kind}"' if kind else ""
    return f'<text{classes} x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{title}{escape(shown)}</text>'


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two.

    >>> ticks(-0.3, 1.1)
    [0.0, 0.5, 1.0]
    """
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        return []
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(times for times in (1, 2, 5, 10) if (high - low) / (step * times) <= most)
    first = math.ceil(low / step - 1e-9)
    return [round(step * k, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def written_ticks(low: float, high: float, most: int = 5) -> dict[float, str]:
    """Ticks, and what is written at them: with digits enough to tell one from the next.

    >>> written_ticks(8138, 8161, 4)
    {8140.0: '8140', 8150.0: '8150', 8160.0: '8160'}
    """
    found = ticks(low, high, most)
    largest = max(map(abs, found), default=0.0)
    digits = 3
    if len(found) > 1:
        digits = max(digits, math.floor(math.log10(largest / (found[1] - found[0])) + 1e-9) + 2)
    if 1 <= largest < 1e6:  # whole numbers of a usual size are written as such
        digits = max(digits, math.floor(math.log10(largest)) + 1)
    return {tick: number(tick, digits) for tick in found}


def bottom_axis(low: float, high: float, left: float, right: float, y: float, words: str) -> list[str]:
    """Axis below a picture, with its ticks and what it shows."""
    parts = [line(left, y, right, y, "axis")]
    for tick, written in written_ticks(low, high).items():
        x = left + (tick - low) / (high - low) * (right - left)
        parts += [line(x, y, x, y + 4, "axis"), label(x, y + 15, written, "small", "middle")]
    return [*parts, label((left + right) / 2, y + 30, words, "small", "middle")]


def left_axis(
    low: float, high: float, top: float, bottom: float, x: float, *, marks: Mapping[float, str] | None = None
) -> list[str]:
    """Axis left of a picture, with its ticks; ``marks`` are ticks of one's own, and what is written at them."""
    parts = [line(x, top, x, bottom, "axis")]
    written = written_ticks(low, high, 4) if marks is None else marks
    for tick, words in written.items():
        y = bottom - (tick - low) / (high - low) * (bottom - top)
        parts += [line(x - 4, y, x, y, "axis"), label(x - 6, y + 4, words, "small", "end")]
    return parts


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if math.isfinite(value) else "0"
