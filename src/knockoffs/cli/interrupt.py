"""Ctrl-C: only this process receives it and ends its children, so that none of them prints a traceback."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_once() -> Iterator[None]:
    """Within it, Ctrl-C raises KeyboardInterrupt in this process's main thread and does nothing in child processes.

    The terminal sends the signal to all of them. Child processes inherit blocked signals, so the signal is blocked, and
    a thread waits for it and wakes the main thread by another signal, which the children never get. ``sigwait`` is
    used because ``sigtimedwait`` returns a made-up signal after the process was suspended and continued.
    """
    main = threading.main_thread()
    if os.name == "nt" or threading.current_thread() is not main:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while signal.sigwait([signal.SIGINT]) == signal.SIGINT and not ended.is_set():
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
        signal.pthread_kill(watcher.ident, signal.SIGINT)  # type: ignore[arg-type]
        watcher.join()
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def shield_children() -> None:
    """Make sure that the workers of joblib do not get Ctrl-C; call it before the first of them starts.

    Its resource tracker, and that of the semaphores it uses, unblock the signal when they start, so they start now.
    """
    if os.name != "nt":
        from multiprocessing import resource_tracker as of_semaphores

        from joblib.externals.loky.backend import resource_tracker

        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        resource_tracker.ensure_running()
        of_semaphores.ensure_running()
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
