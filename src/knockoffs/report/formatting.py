"""Words and numbers to be read: names of a length that fits, counts, few digits."""

from __future__ import annotations

import math
from collections.abc import Iterable

from knockoffs.errors import count as count
from knockoffs.errors import printable

LONGEST = 60  # characters of a name that are shown at all


def short(name: str, most: int = LONGEST) -> str:
    """Printable name of at most so many characters: its beginning and its end.

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


def shorten_names(words: str, names: Iterable[str], most: int = LONGEST) -> str:
    """Words in which long names, as they are or as Python writes them, are short."""
    for name in names:
        for written in (name, repr(name)[1:-1]) if len(name) <= len(words) else ():
            if written in words:
                words = words.replace(written, short(name, most))
    return words


def number(value: float | None, digits: int = 3) -> str:
    """Write a number to be read; a dash where there is none.

    >>> number(0.12345), number(float("inf")), number(float("nan")), number(-0.5)
    ('0.123', '∞', '–', '−0.5')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}".replace("-", "−")
