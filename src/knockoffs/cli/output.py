"""What the command line prints: the selected features as a table, and lines about the progress."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from knockoffs.errors import printable

if TYPE_CHECKING:
    from knockoffs.record import SelectionRecord


class UnprintedError(Exception):
    """Standard output takes nothing more; everything else is done."""


def prepare_streams() -> None:
    """Make sure that printing fails neither at a character the terminal lacks nor at a closed stream."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            with suppress(ValueError, OSError):
                stream.reconfigure(errors="backslashreplace")


def put(text: str) -> None:
    """Print to standard output at once, so that an error is raised here and not when the program ends."""
    try:
        print(text, flush=True)
    except OSError as error:
        _abandon(sys.stdout)
        raise UnprintedError(error.strerror if not isinstance(error, BrokenPipeError) else "") from None


def say_lines(text: str) -> None:
    """Write lines to standard error."""
    for line in text.split("\n"):
        say(line)


def say(message: str) -> None:
    """Write a line about the progress to standard error."""
    try:
        print(printable(message), file=sys.stderr, flush=True)
    except (OSError, ValueError):  # nobody reads it; the work goes on
        _abandon(sys.stderr)


def _abandon(stream: object) -> None:
    """Redirect a stream that failed to the null device; else Python fails on it again when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[attr-defined]
        os.close(nowhere)


@contextmanager
def spoken_warnings() -> Iterator[list[str]]:
    """Yield the list that collects warnings about the data; each is also printed, even if the work ends in an error."""
    from knockoffs.errors import KnockoffWarning

    caught: list[warnings.WarningMessage] = []
    said: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", KnockoffWarning)
            yield said
    finally:
        said += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, KnockoffWarning))
        for message in said:
            say(f"warning: {message}")


def show(record: SelectionRecord) -> None:
    """Print the selected features, or the discoveries, as a table, and the explanation."""
    import io
    import shutil

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from knockoffs.conditional_tests.resolution import discovery_name
    from knockoffs.record import surest_first
    from knockoffs.report.summary import verdict_line

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 10_000
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=width, highlight=False)
    ordered = surest_first(record.features)
    selected = [feature for feature in ordered if feature["selected"]]
    # if nothing was selected, the nearest features
    shown = selected or [feature for feature in ordered[:10] if feature.get("W", 1.0) > 0]
    if record.discoveries:  # in the place of their features
        shown = [found | {"name": discovery_name(found["features"])} for found in record.discoveries]
    headings = {"W": "W", "p_value": "p-value", "level": "level", "e_value": "e-value", "frequency": "frequency"}
    headings["q_value"] = "q-value"
    if shown:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        what = "feature (not selected)" if not selected else "discovery" if record.discoveries else "feature"
        grid.add_column(what, overflow="fold")
        keys = [key for key in headings if key in shown[0]]
        for key in keys:
            grid.add_column(headings[key], justify="right", no_wrap=True)
        for feature in shown:
            # Text, not a string: brackets in a name are not markup
            grid.add_row(Text(printable(feature["name"])), *(f"{feature[key]:.4g}" for key in keys))
        console.print(grid)
        console.print()
    threshold = "" if record.threshold is None else f"threshold {record.threshold:.4g}, "
    found = "" if record.discoveries is None else f" in {len(record.discoveries)} discoveries"
    console.print(f"{threshold}{len(selected)} of {len(record.features)} features selected{found}")
    for note in record.notes.values():
        if note in record.explanation:
            continue
        console.print(Text(f"- {printable(note)}"))
    console.print()
    console.print(Text(record.explanation))
    if record.verdict is not None:
        console.print(Text(printable(verdict_line(record.verdict["word"], record.verdict.get("sentence", "")))))
        for remedy in record.verdict["remedies"] if record.verdict["word"] != "good" else ():
            console.print(Text(printable(f"- {remedy['sentence']}")))
    put(text.getvalue().removesuffix("\n"))
