"""Progress, where it was asked for: on a terminal a bar, after two seconds; elsewhere a line every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int | None, int | None], None]  # what is being done, how many of it are done, of how many
PATIENCE = 2.0  # seconds before a bar appears
BETWEEN = 30.0  # seconds from line to line, where there is no terminal


class Progress:
    """What is being done, since when, and whether a bar shows it already."""

    compiled = False  # whether it was said, in this process, that loops are compiled

    def __init__(self, listener: Listener | None = None) -> None:
        self.start = time.monotonic()
        self.doing = "at work"
        self.listener = listener
        self.terminal = listener is None and sys.stderr is not None and sys.stderr.isatty()
        self.bar = False

    def at(self, label: str, done: int | None = None, total: int | None = None, left: float | None = None) -> None:
        """Note what is being done, and how many seconds it will take yet."""
        of = "" if total is None else f" of {total}"
        more = "" if left is None else f", about {_clock(left)} to go"
        self.doing = label if done is None else f"{label}: {done}{of} done{more}"
        if self.listener is not None:
            self.listener(label, done, total)

    def say(self) -> None:
        """Write one line to standard error, if there is something to say; where nobody listens the work goes on."""
        if not self.doing:
            return
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
    shown = _SHOWN.get()
    with announced(asked or shown is not None):
        if not asked or shown is not None:
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


@contextmanager
def announced(asked: bool) -> Iterator[None]:
    """Say "compiling, once" when the work inside compiles its loops, as a first call does; once in a process.

    It is said where progress is shown and on a terminal. Before numba is imported nothing is installed: work inside
    that imports it enters again.
    """
    with suppress(AttributeError):
        asked = asked or sys.stderr.isatty()
    if not asked or "numba" not in sys.modules or Progress.compiled:
        yield
        return
    from numba.core import event

    class Compiling(event.Listener):
        def on_start(self, event: object) -> None:
            announce()

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Compiling()):
        yield


def announce() -> None:
    """Say that loops are compiled, if it was not said before."""
    if Progress.compiled:
        return
    Progress.compiled = True
    progress = _SHOWN.get()
    if progress is not None and progress.listener is not None:
        progress.at("compiling, once")
        return
    with suppress(OSError, ValueError, AttributeError):
        print("compiling, once: later calls start at once", file=sys.stderr, flush=True)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Hand the progress of the work inside to a listener, and show nothing.

    >>> with heard(print):
    ...     found = list(track([1, 2], "counting"))
    counting 0 2
    counting 1 2
    counting 2 2
    counting None None
    """
    token = _SHOWN.set(Progress(listener))
    try:
        yield
    finally:
        _SHOWN.reset(token)


@contextmanager
def quietly() -> Iterator[None]:
    """Show nothing of the steps of the work inside."""
    token = _SHOWN.set(None)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def stage(label: str) -> None:
    """Say what is being done from now on, "" for nothing; a listener is told of the outermost loop alone."""
    progress = _SHOWN.get()
    if progress is not None and not (progress.listener and progress.bar):
        progress.at(label)


def track(items: Iterable[T], label: str, *, total: int | None = None) -> Iterator[T]:
    """Yield items, and show how many are done, inside of ``showing``; elsewhere nothing is shown.

    The label says what the work is in two or three words; ``total`` is the number of items if they have no length.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    progress = _SHOWN.get()
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    if progress is None or progress.bar or total == 0:  # a loop inside of one with a bar, or nothing to do
        return iter(items)
    return (_with_bar if progress.terminal else _with_lines)(items, label, total, progress)


def _with_lines(items: Iterable[T], label: str, total: int | None, progress: Progress) -> Iterator[T]:
    done, progress.bar, start = 0, progress.listener is not None, time.monotonic()
    try:
        for item in items:
            left = (time.monotonic() - start) / done * (total - done) if done and total is not None else None
            progress.at(label, done, total, left)
            yield item
            done += 1
        progress.at(label, done, total)
    finally:  # also where whoever asks for the items has had enough of them
        progress.bar = False
        if progress.listener is not None:
            progress.at(label)


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
