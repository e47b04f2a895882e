"""What the command line prints: the first screen, and lines about the progress."""

from __future__ import annotations

import os
import re
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
    """Write a line about the progress to standard error; in a terminal, lines that break between words."""
    try:
        lines = wrap(printable(message)) if sys.stderr.isatty() else [printable(message)]
        print("\n".join(lines), file=sys.stderr, flush=True)
    except (OSError, ValueError):  # nobody reads it; the work goes on
        _abandon(sys.stderr)


def wrap(words: str) -> list[str]:
    """Lines of the width of the terminal; options such as --no-verdict stay whole."""
    import shutil
    import textwrap

    width = max(shutil.get_terminal_size().columns, 60)
    return textwrap.wrap(words, width, subsequent_indent="  ", break_on_hyphens=False) or [""]


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


def show(record: SelectionRecord, *, details: bool = True) -> None:
    """Print the first screen; below it, with details, what it means, and what was chosen."""
    import shutil

    from knockoffs.report.summary import as_text, recorded_screen

    assert record.first_screen is not None  # of a record that was made now
    terminal = sys.stdout.isatty()
    width = max(shutil.get_terminal_size().columns, 60) if terminal else 100
    screen = recorded_screen(record.first_screen)
    target = record.parameters["target"] or record.parameters.get("time")
    said = [as_text(screen, str(target), width=min(width, 100))]
    if not details:
        put(writable(said[0]))
        return
    said.append("")
    below = [record.explanation, *(note for note in record.notes.values() if note not in record.explanation)]
    for words in (f"- {printable(words)}" for words in below):
        said += wrap(words) if terminal else [words]
    put(writable("\n".join(said)))


def writable(text: str) -> str:
    """Text whose bars standard output can write; where it lacks blocks they are number signs."""
    try:
        "█▏".encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return re.sub("[▏▎▍▌▋▊▉█]", "#", text)
    return text
