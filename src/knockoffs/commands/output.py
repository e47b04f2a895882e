"""What the command line shows: the selected features as a table, and lines about the progress."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knockoffs.record import SelectionRecord


class UnprintedError(Exception):
    """Standard output takes nothing more; everything else has been done."""


def prepare_streams() -> None:
    """Make sure that printing fails neither for a letter that the terminal lacks nor for a stream that is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            with suppress(ValueError, OSError):
                stream.reconfigure(errors="backslashreplace")


def put(text: str) -> None:
    """Print to standard output, at once, so that an error comes here and not when the program ends."""
    try:
        print(text, flush=True)
    except OSError as error:
        _abandon(sys.stdout)
        raise UnprintedError(error.strerror if not isinstance(error, BrokenPipeError) else "") from None


def say(message: str) -> None:
    """Write a line about the progress to standard error; bars are drawn by the loops themselves, on a terminal."""
    try:
        print(printable(message), file=sys.stderr, flush=True)
    except (OSError, ValueError):  # whoever listened has gone; the work goes on
        _abandon(sys.stderr)


def _abandon(stream: object) -> None:
    """Lead a stream that failed to nowhere, or Python would fail on it again at its end."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[attr-defined]
        os.close(nowhere)


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
    import io
    import shutil

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 10_000
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=width, highlight=False)
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
    put(text.getvalue().removesuffix("\n"))
