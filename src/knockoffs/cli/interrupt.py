"""Ctrl-C: it reaches this process alone, which ends its children; they would each print a traceback of their own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 0.2  # seconds between two looks whether the work has ended


@contextmanager
def interrupt_once() -> Iterator[None]:
    """Within it, Ctrl-C raises KeyboardInterrupt in this process's main thread and nothing in the processes it starts.

    The terminal sends the signal to all of them. Processes inherit which signals are blocked, so it is blocked, and a
    thread waits for it and wakes the main one by another signal, which the others never get.
    """
    main = threading.main_thread()
    if os.name == "nt" or threading.current_thread() is not main:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if signal.sigtimedwait([signal.SIGINT], PATIENCE) is not None and not ended.is_set():
                signal.pthread_kill(main.ident, signal.SIGUSR1)  # type: ignore[arg-type]

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    before = signal.signal(signal.SIGUSR1, stop)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def shield_children() -> None:
    """Make sure that the workers that joblib will start do not get Ctrl-C; call it before the first of them.

    Its tracker of resources, and that of the semaphores it uses, allow the signal again when they start, so they are
    started now.
    """
    if os.name != "nt":
        from multiprocessing import resource_tracker as of_semaphores

        from joblib.externals.loky.backend import resource_tracker

        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        resource_tracker.ensure_running()
        of_semaphores.ensure_running()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
