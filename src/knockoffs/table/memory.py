"""How much memory there is, and how much a table needs: asked before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from knockoffs.errors import InputError

GIB = 2**30
STREAM = ("auto", "always", "never")
IN_MEMORY = 8  # times the table as floats: the frame of a file, its floats, and what a selection takes at its peak
LEAST = 4  # times the table as floats, which the leanest selection takes beside it
OF_TEXT = 10  # times a csv file: what it takes as a table of floats and the selection on it


def available_memory() -> float:
    """Bytes that this process may still take: of the machine, its control group or its own limit, whichever is least.

    Infinity where none of these can be read.
    """
    limits = [_of_machine(), _of_group(), _of_process()]
    return min(limit for limit in (*limits, float("inf")) if limit is not None)


def _of_machine() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        try:
            return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        except (ValueError, OSError, AttributeError):
            return None


def _of_group() -> float | None:
    """Room left in the control group, version 2 or 1."""
    pairs = (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    )
    for limit, used in pairs:
        try:
            most = Path(limit).read_text().strip()
            if most != "max" and int(most) < 2**60:
                return float(max(int(most) - int(Path(used).read_text()), 0))
        except (OSError, ValueError):
            continue
    return None


def _of_process() -> float | None:
    """Room below the limit of the address space (``ulimit -v``)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return float(max(limit - pages * os.sysconf("SC_PAGE_SIZE"), 0))
    except (ImportError, OSError, ValueError):
        return None


def needed_memory(n_rows: int, n_columns: int) -> float:
    """Bytes that a selection from a table takes at its peak, about.

    >>> needed_memory(1_000_000, 50) / GIB
    2.9802322387695312
    """
    return float(IN_MEMORY) * 8 * n_rows * n_columns


def format_bytes(n: float) -> str:
    """Bytes in words.

    >>> format_bytes(3e9), format_bytes(2e6)
    ('2.8 GiB', '1.9 MiB')
    """
    return f"{n / GIB:.1f} GiB" if n >= GIB / 10 else f"{n / 2**20:.1f} MiB"


def refuse_without_room(needed: float, what: str, remedy: str) -> None:
    """Refuse, before the work, what certainly needs more memory than is free; ``remedy`` ends the sentence."""
    free = available_memory()
    if needed > free:
        raise InputError(f"{what} needs {format_bytes(needed)} or more, and {format_bytes(free)} are free: {remedy}")


def check_memory(n_rows: int, n_columns: int, remedy: str) -> None:
    """Refuse a table for whose selection there is no room."""
    what = f"a selection from {n_rows:,} rows of {n_columns:,} columns"
    refuse_without_room(8.0 * LEAST * n_rows * n_columns, what, remedy)


def check_covariance_memory(n_columns: int, matrices: int = 8) -> None:
    """Refuse a P^X for whose ``matrices`` of (n_columns, n_columns) there is no room."""
    remedy = "drop columns, chosen without y, or use a feature_model without a covariance, 'naive_bayes' or 'hmm'."
    refuse_without_room(8.0 * matrices * n_columns**2, f"a P^X with a covariance of {n_columns:,} columns", remedy)


def must_stream(needed: float) -> str | None:
    """Why a table that takes so many bytes should be read in batches, if it should."""
    free = available_memory()
    if needed <= free:
        return None
    return f"it would take about {format_bytes(needed)} in memory, and {format_bytes(free)} are free"
