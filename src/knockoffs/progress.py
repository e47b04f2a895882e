"""Progress bars: on a terminal and after two seconds, otherwise silent."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # seconds before a bar appears


def track(items: Iterable[T], label: str, *, total: int | None = None, show: bool | None = None) -> Iterator[T]:
    """Yield items, with a progress bar on standard error once the work has taken two seconds.

    Parameters
    ----------
    items : iterable
        What is worked through; a joblib generator will do.
    label : str
        What the work is, in two or three words.
    total : int, optional
        Number of items, where ``len(items)`` does not tell.
    show : bool, optional
        None shows the bar on a terminal only; False never, True always.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    if show is None:
        show = sys.stderr.isatty()
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
