"""As many threads as the work is worth and the machine gives: on busy cores threads wait for one another, spinning.

The answer does not depend on it. Boosting is the same to the last bit with any number of threads. Linear algebra is
not, so it has one thread always, as in a worker of joblib: else the answer would depend on cores, load and ``n_jobs``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

SMALL = 2_000_000  # cells, below which one thread is as fast as several on quiet cores, and far cheaper on busy ones
LOOKS = 3  # at the load, of which the smallest counts: what runs for a moment is no load
BETWEEN = 0.002  # seconds between them
PROC, GROUPS = Path("/proc"), Path("/sys/fs/cgroup")

Table = TypeVar("Table")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@contextmanager
def worthwhile_threads(n_cells: int) -> Iterator[int]:
    """Limit threads to one for a table of few cells, to what the machine gives for others; never more than there were.

    So inside parallel work, and where a user has set a limit, theirs stays. The number is that of OpenMP (boosting);
    linear algebra gets one.

    >>> with worthwhile_threads(1000) as n_threads:
    ...     n_threads
    1
    """
    from threadpoolctl import ThreadpoolController

    controller = ThreadpoolController()
    wanted = {"blas": 1, "openmp": 1 if n_cells < SMALL else free_cores()}
    for library in controller.info():
        api = library["user_api"]
        wanted[api] = min(wanted.get(api, 1), library["num_threads"])
    with controller.limit(limits=wanted):
        yield wanted["openmp"]


def threads_by_table(
    function: Callable[Concatenate[Table, Arguments], Result],
) -> Callable[Concatenate[Table, Arguments], Result]:
    """Run a function whose first argument is a table with the threads that are worthwhile for it."""

    @wraps(function)
    def run(X: Table, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with worthwhile_threads(_n_cells(X)):
            return function(X, *arguments, **options)

    return run


def _n_cells(X: object) -> int:
    cells: Any = getattr(X, "X", X)  # of a table; else an array, or what becomes one
    return int(np.prod(np.shape(cells)))


def available_cores() -> int:
    """Cores that this process may use: its affinity, and the smallest quota of the control groups it is in."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *map(int, _quotas())]))


def free_cores() -> int:
    """Those of the available cores that nobody else uses just now, at least one; all of them where that is not known.

    The system counts what runs on all its cores; where only some may be used, that share of it is taken to be there.
    """
    cores = available_cores()
    others = cores * _running_elsewhere() / (os.cpu_count() or cores)
    return max(1, cores - round(others))


def _running_elsewhere() -> int:
    """Threads that run or want to run, without our own; none where the system does not tell."""
    looks = []
    with suppress(OSError, ValueError, IndexError):
        for look in range(LOOKS):
            time.sleep(BETWEEN if look else 0)
            running = int((PROC / "loadavg").read_text().split()[3].partition("/")[0])
            looks.append(running - _own_running())
    return max(0, min(looks, default=0))


def _own_running() -> int:
    count = 0
    for task in (PROC / "self" / "task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            count += (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return count


def _quotas() -> Iterator[float]:
    """Quotas, in cores, of the control groups that this process is in and of those around them; of both versions."""
    with suppress(OSError, ValueError):
        for line in (PROC / "self" / "cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = GROUPS / controllers  # version 2 names no controllers
            inner = root / place.strip("/")
            for folder in (inner, *inner.parents):
                if folder.is_relative_to(root):
                    yield from _quota_of(folder)


def _quota_of(folder: Path) -> Iterator[float]:
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (folder / "cpu.max").read_text().split()
        if quota != "max":
            yield int(quota) / int(period)
    with suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if int(quota) > 0:
            yield int(quota) / int(period)
