"""What runs in the process of a job: one function, whose progress, result or refusal is told through a pipe."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import connection as connections
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path

from knockoffs.errors import InputError
from knockoffs.progress import heard

BETWEEN = 0.2  # seconds between two messages about the same step


def work(pipe: Connection, folder: str, function: Callable[..., object], *arguments: object) -> None:
    """Call a function with a folder and its arguments, and tell what comes of it."""
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own: what it starts is ended with it
    _end_with_parent()
    _be_quiet()
    os.environ["TMPDIR"] = tempfile.tempdir = folder  # what is left of a process that was ended goes with the folder
    try:
        with heard(_teller(pipe)):
            message = json.dumps({"result": function(Path(folder), *arguments)})
    except InputError as error:
        message = _error(str(error))
    except MemoryError:
        message = _error("this does not fit into memory: use fewer rows or columns.")
    except OSError as error:
        message = _error(f"{error.strerror or error}.")
    except Exception as error:
        message = _error(f"this is a fault of the program, not of the table: {type(error).__name__}: {error}")
    pipe.send_bytes(message.encode())
    pipe.close()


def _error(words: str) -> str:
    return json.dumps({"error": words})


def _teller(pipe: Connection) -> Callable[[str, int | None, int | None], None]:
    """Tell the other side of each step, but not too often."""
    last, at = "", 0.0

    def tell(step: str, done: int | None, total: int | None) -> None:
        nonlocal last, at
        now = time.monotonic()
        if step == last and now - at < BETWEEN and done != total:
            return
        last, at = step, now
        pipe.send_bytes(json.dumps({"step": step, "done": done, "total": total}).encode())

    return tell


def _be_quiet() -> None:
    """Lead standard output and error to nowhere: what there is to say goes through the pipe."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for number in (1, 2):
        os.dup2(sys.stdout.fileno(), number)


def _end_with_parent() -> None:
    """End this process, and those it has started, when the one that started it is gone, however that ended."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connections.wait([parent.sentinel])
        if hasattr(os, "killpg"):
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
