"""Memory that was freed goes back to the system between the steps of a selection.

The C library keeps arrays of up to 32 MB that were freed for later ones, in pieces that rarely fit: at 20,000 x 60 that
was as much as the table itself at the peak.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache


def trim_memory() -> None:
    """Give freed memory back, where the C library knows how (glibc); elsewhere nothing is done."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    with suppress(OSError, AttributeError, TypeError):  # no such function, or no such library
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return trim
    return None
