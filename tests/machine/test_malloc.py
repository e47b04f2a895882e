"""Freed memory goes back, and where the system cannot nothing happens."""

import sys
from pathlib import Path

import numpy as np
import pytest

from knockoffs.machine import malloc


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux" or malloc._trim() is None, reason="glibc")
def test_what_was_freed_goes_back():
    """Of 2000 blocks of 100 kB in the heap every other one is kept: the holes go back, though the top is in use."""
    blocks = [np.ones(12_500) for _ in range(2000)]
    kept = blocks[1::2]
    before = resident()
    del blocks
    malloc.trim_memory()
    assert before - resident() > 50e6
    assert len(kept) == 1000


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(malloc, "_trim", lambda: None)
    malloc.trim_memory()
