"""Progress, where it was asked for: on a terminal a bar, after two seconds; elsewhere a line every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds before a bar appears
BETWEEN = 30.0  # seconds from line to line, where there is no terminal


class Progress:
    """What is being done, since when, and whether a bar shows it already."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.doing = "at work"
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self.bar = False

    def say(self) -> None:
        """Write one line to standard error; where nobody listens the work goes on."""
        with suppress(OSError, ValueError, AttributeError):
            print(f"{self.doing}, after {_clock(time.monotonic() - self.start)}", file=sys.stderr, flush=True)

    def say_until(self, done: Event) -> None:
        """Write a line every half minute until it is done."""
        while not done.wait(BETWEEN):
            self.say()


_SHOWN: ContextVar[Progress | None] = ContextVar("shown", default=None)  # jobs of other threads show nothing


@contextmanager
def showing(asked: bool = True) -> Iterator[None]:
    """Show the progress of the work inside, if it is asked for here or further out.

    >>> with showing():
    ...     print(sum(track([1, 2, 3], "counting")))
    6
    """
    if not asked or _SHOWN.get() is not None:
        yield
        return
    progress, done = Progress(), Event()
    token = _SHOWN.set(progress)
    clock = Thread(target=progress.say_until, args=(done,), daemon=True)
    if not progress.terminal:
        clock.start()
    try:
        yield
    finally:
        done.set()
        _SHOWN.reset(token)


def stage(label: str) -> None:
    """Say what is being done from now on."""
    progress = _SHOWN.get()
    if progress is not None:
        progress.doing = label


def track(items: Iterable[T], label: str, *, total: int | None = None) -> Iterator[T]:
    """Yield items, and show how many are done, inside of ``showing``; elsewhere nothing is shown.

    Parameters
    ----------
    items : iterable
        What is worked through; a joblib generator will do.
    label : str
        What the work is, in two or three words.
    total : int, optional
        Number of items, where ``len(items)`` does not tell.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    progress = _SHOWN.get()
    if progress is None or progress.bar:  # a loop inside of one with a bar
        yield from items
        return
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    if progress.terminal:
        yield from _with_bar(items, label, total, progress)
        return
    of, start = "" if total is None else f" of {total}", time.monotonic()
    for done, item in enumerate(items):
        pace = (time.monotonic() - start) / max(done, 1)
        left = f", about {_clock(pace * (total - done))} to go" if total is not None and done else ""
        progress.doing = f"{label}: {done}{of} done{left}"
        yield item
    progress.doing = f"{label}: done"


def _with_bar(items: Iterable[T], label: str, total: int | None, progress: Progress) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    start, task = time.monotonic(), None
    progress.bar = True
    try:
        for done, item in enumerate(items, start=1):
            yield item
            if task is None and time.monotonic() - start > PATIENCE:
                bar.start()
                task = bar.add_task(label, total=total, completed=done)
            elif task is not None:
                bar.update(task, completed=done)
    finally:
        progress.bar = False
        if task is not None:
            bar.stop()


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
