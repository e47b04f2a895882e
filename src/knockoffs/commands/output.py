"""What the command line shows: the selected features as a table, and lines about the progress."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knockoffs.record import SelectionRecord


def say(message: str) -> None:
    """Write a line about the progress to standard error; bars are drawn by the loops themselves, on a terminal."""
    print(printable(message), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    r"""Text whose control characters are written as escapes, so that a name cannot break a line.

    >>> printable("a\nb")
    'a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Say warnings about the data as lines of progress, also where the work ends in an error."""
    from knockoffs.errors import KnockoffWarning

    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", KnockoffWarning)
            yield
    finally:
        for message in dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, KnockoffWarning)):
            say(f"warning: {message}")


def show(record: SelectionRecord) -> None:
    """Print the selected features as a table, and the sentence that says what it means."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else 10_000, highlight=False)
    by_W = sorted(record.features, key=lambda feature: -feature["W"])
    selected = [feature for feature in by_W if feature["selected"]]
    # where nothing was selected, the nearest ones, and that they were not
    shown = selected or [feature for feature in by_W[:10] if feature["W"] > 0]
    if shown:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        grid.add_column("feature" if selected else "feature (not selected)", overflow="fold")
        for heading in ("W", "q-value"):
            grid.add_column(heading, justify="right", no_wrap=True)
        for feature in shown:
            # Text, not a string: brackets in a name are not markup
            grid.add_row(Text(printable(feature["name"])), f"{feature['W']:.4g}", f"{feature['q_value']:.3g}")
        console.print(grid)
        console.print()
    console.print(f"threshold {record.threshold:.4g}, {len(selected)} of {len(record.features)} features selected")
    for note in record.notes.values():
        console.print(Text(f"- {printable(note)}"))
    console.print()
    console.print(Text(record.explanation))
