"""Progress: on a terminal a bar, after two seconds; elsewhere a line, every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds before a bar appears
BETWEEN = 30.0  # seconds from line to line, where there is no terminal


def track(items: Iterable[T], label: str, *, total: int | None = None, show: bool | None = None) -> Iterator[T]:
    """Yield items, with a progress bar on standard error, or with a line every half minute where it is no terminal.

    Parameters
    ----------
    items : iterable
        What is worked through; a joblib generator will do.
    label : str
        What the work is, in two or three words.
    total : int, optional
        Number of items, where ``len(items)`` does not tell.
    show : bool, optional
        None shows a bar on a terminal and lines elsewhere; False shows nothing, True always a bar.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    if show is None:
        show = sys.stderr is not None and sys.stderr.isatty()
        if not show:
            yield from _with_lines(items, label, total)
            return
    if not show:
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    start, task = time.monotonic(), None
    try:
        for done, item in enumerate(items, start=1):
            yield item
            if task is None and time.monotonic() - start > PATIENCE:
                bar.start()
                task = bar.add_task(label, total=total, completed=done)
            elif task is not None:
                bar.update(task, completed=done)
    finally:
        if task is not None:
            bar.stop()


def _with_lines(items: Iterable[T], label: str, total: int | None) -> Iterator[T]:
    start = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= BETWEEN and done != total:
            last = now
            of = "" if total is None else f" of {total}"
            left = "" if total is None else f", about {_clock((now - start) / done * (total - done))} to go"
            with suppress(OSError, ValueError, AttributeError):  # nobody listens: the work goes on
                print(f"{label}: {done}{of} after {_clock(now - start)}{left}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
