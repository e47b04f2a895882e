r"""Words and numbers for a page: whatever comes from data is hostile, and leaves here as text and nothing else.

Control characters, marks that turn the direction of writing, and halves of characters are written as escapes, as the
command line writes them; then `html.escape`. JSON goes into the page with ``<``, ``>`` and ``&`` as ``\u003c`` ..., so
that no text can end the element it stands in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from html import escape

from knockoffs.errors import count as count
from knockoffs.errors import printable
from knockoffs.table.types import Json

LONGEST = 60  # characters of a name that are shown at all
FULL = 10_000  # characters of a name that stand in a title


def text(words: object) -> str:
    """Text of a page.

    >>> text('<b> & "x"')
    '&lt;b&gt; &amp; &quot;x&quot;'
    """
    return escape(printable(str(words)), quote=True)


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


def named(name: str, most: int = LONGEST) -> str:
    """Name as an element of its own: shortened, whole in its title, and apart from the direction of the text around."""
    shown = short(name, most)
    title = "" if shown == name else f' title="{escape(printable(name[:FULL]), quote=True)}"'
    return f"<bdi{title}>{escape(shown)}</bdi>"


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


def json_block(name: str, content: Mapping[str, Json]) -> str:
    """Content as data of the page, which nothing in it can leave."""
    written = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="{name}">{written}</script>'
