"""What every runner shares: a task comes in as JSON on standard input, its best CPU time goes out as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.memory import peak_kib

Task = Callable[[dict[str, Any]], Callable[[], Any]]


def answer(tasks: dict[str, Task]) -> None:
    """Run the task asked for and print its seconds and the MiB it took.

    A task is a function of its options that loads and prepares, and returns the function that is timed. What that one
    returns, an array, is written next to the data for the driver to judge.
    """
    options = json.load(sys.stdin)
    timed = (tasks | {"default": default})[options["task"]](options)
    before = peak_kib()
    seconds: list[float] = []
    for _ in range(options["repeats"]):
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):  # the peers print too
            result = timed()
        seconds.append(time.process_time() - start)
    memory = (peak_kib() - before) / 1024
    np.save(options["result"], np.asarray(result))
    print()
    print(json.dumps({"seconds": min(seconds), "memory": memory, "all": seconds}))


def load(options: dict[str, Any], name: str) -> np.ndarray:
    """Read an array that the driver has written."""
    return np.load(Path(options["data"]) / f"{name}.npy")


def default(options: dict[str, Any]) -> Callable[[], Any]:
    """Call the method of the arena by its name, at FDR 0.1."""
    from benchmarks.arena.designs import Data
    from benchmarks.arena.methods import call

    X, y = load(options, f"{options['table']}_X"), load(options, f"{options['table']}_y")
    data = Data(X, y, np.zeros(X.shape[1], dtype=bool))
    return lambda: call(options["method"], data, (0.1,), 0)[0]


def importing(statement: str) -> Task:
    """Time an import, which only the first call does."""

    def task(options: dict[str, Any]) -> Callable[[], Any]:
        return lambda: exec(statement) or np.zeros(1)

    return task
