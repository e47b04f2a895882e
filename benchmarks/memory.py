"""The most memory that this process has held; NumPy is not needed, so that every runner can use it."""

from __future__ import annotations

import resource
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_kib() -> float:
    """KiB resident at most, of this program alone.

    ``ru_maxrss`` begins with what the process held that started this one, however much that was.
    """
    if not STATUS.exists():
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1])
