"""What every runner shares: a task comes in as JSON on standard input, its best CPU time goes out as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def answer(tasks: dict[str, Callable[[dict[str, Any]], Callable[[], Any]]]) -> None:
    """Run the task asked for and print its seconds.

    A task is a function of its options that loads and prepares, and returns the function that is timed. What that one
    returns, an array, is written next to the data for the driver to judge.
    """
    options = json.load(sys.stdin)
    timed = tasks[options["task"]](options)
    seconds: list[float] = []
    for _ in range(options["repeats"]):
        start = time.process_time()  # the peers print too: only the last line of standard output is read
        result = timed()
        seconds.append(time.process_time() - start)
    np.save(options["result"], np.asarray(result))
    print()
    print(json.dumps({"seconds": min(seconds), "all": seconds}))


def load(options: dict[str, Any], name: str) -> np.ndarray:
    """Read an array that the driver has written."""
    return np.load(Path(options["data"]) / f"{name}.npy")
