"""Words and numbers to be read: sentences with short names, few digits."""

from __future__ import annotations

import math
from collections.abc import Iterable

from knockoffs.plots.style import LONGEST, short


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
