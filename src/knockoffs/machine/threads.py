"""As many OpenMP threads as the work is worth: on small tables threads of boosting wait for one another, spinning."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SMALL = 2_000_000  # cells, below which one thread is as fast as several on quiet cores, and far cheaper on busy ones


def available_cores() -> int:
    """Cores that this process may use: its affinity, and the quota of its control group, where it has one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        allowed = cores if quota == "max" else max(1, int(int(quota) / int(period)))
    except (OSError, ValueError):
        return cores
    return min(cores, allowed)


@contextmanager
def worthwhile_threads(n_cells: int) -> Iterator[int]:
    """Limit OpenMP to one thread for a table of few cells, to the cores that may be used for others.

    >>> with worthwhile_threads(1000) as n_threads:
    ...     n_threads
    1
    """
    from threadpoolctl import threadpool_limits

    n_threads = 1 if n_cells < SMALL else available_cores()
    with threadpool_limits(limits=n_threads, user_api="openmp"):
        yield n_threads
