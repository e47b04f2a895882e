"""Threads and parallel work: as many threads as the work is worth, and the backend of joblib that the user chose.

``with joblib.parallel_config("dask"):`` and the like decide where parallel work is done. On busy cores threads wait for
one another, spinning. The answer does not depend on their number: boosting is the same to the last bit with any number
of threads. Linear algebra is not, so it always has one thread, here and in workers: else the answer would depend on
cores, load and ``n_jobs``.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from threading import Lock, Thread
from typing import Any, TypeVar

from joblib import Parallel, cpu_count, delayed
from joblib.parallel import get_active_backend

Result = TypeVar("Result")
Task = tuple[Callable[..., Result], tuple[object, ...], dict[str, object]]  # as ``joblib.delayed`` makes them
SMALL = 2_000_000  # cells, below which one thread is as fast as several on quiet cores, and far cheaper on busy ones
LOOKS = 3  # at the load, of which the smallest counts: what runs for a moment is no load
BETWEEN = 0.002  # seconds between them
PROC = Path("/proc")
_LOCK = Lock()
_USERS: list[object] = []  # one for each `one_blas_thread` that is open in any thread
_LIMITS: list[Any] = []  # theirs, to be restored last first


@contextmanager
def worthwhile_threads(n_cells: int) -> Iterator[int]:
    """Limit threads to one for a table of few cells, to what the machine gives for others; never more than there were.

    So inside parallel work, and where a user has set a limit, theirs stays. The number is that of OpenMP (boosting);
    linear algebra gets one.

    >>> with worthwhile_threads(1000) as n_threads:
    ...     n_threads
    1
    """
    from threadpoolctl import ThreadpoolController

    openmp = ThreadpoolController().select(user_api="openmp")
    allowed = [library["num_threads"] for library in openmp.info()]
    wanted = min([1 if n_cells < SMALL else free_cores(), *allowed])
    with one_blas_thread(), openmp.limit(limits=wanted):  # OpenMP keeps a limit for each thread
        yield wanted


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit linear algebra to one thread, and restore the limit afterwards.

    The limit belongs to the process. So of fits that overlap in several threads, the last to end restores it.
    """
    from threadpoolctl import threadpool_limits

    with _LOCK:
        _LIMITS.append(threadpool_limits(limits=1, user_api="blas"))  # again, for libraries that were loaded meanwhile
        _USERS.append(object())
    try:
        yield
    finally:
        with _LOCK:
            _USERS.pop()
            while _LIMITS and not _USERS:
                _LIMITS.pop().restore_original_limits()


def free_cores() -> int:
    """Cores that this process may use and nobody else uses just now, at least one; all of them if that is not known.

    The system counts what runs on all its cores; if only some may be used, that share of it is taken to be there.
    """
    cores = cpu_count()  # by affinity, and by the quota of a container
    others = cores * _running_elsewhere() / (os.cpu_count() or cores)
    return max(1, cores - round(others))


def _running_elsewhere() -> int:
    """Threads that run or want to run, without our own; none where the system does not tell."""
    looks = []
    with suppress(OSError, ValueError, IndexError):
        for look in range(LOOKS):
            time.sleep(BETWEEN if look else 0)
            running = int((PROC / "loadavg").read_text().split()[3].partition("/")[0])
            looks.append(running - _own_running())
    return max(0, min(looks, default=0))


def _own_running() -> int:
    count = 0
    for task in (PROC / "self" / "task").iterdir():
        with suppress(OSError):  # a thread that has ended meanwhile
            count += (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    return count


def trim_memory() -> None:
    """Give freed memory back, where the C library knows how (glibc); elsewhere nothing is done.

    The C library keeps arrays of up to 32 MB that were freed for later ones, in pieces that rarely fit: at 20,000 x 60
    that was as much as the table itself at the peak.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    with suppress(OSError, AttributeError, TypeError):  # no such function, or no such library
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
        return trim
    return None


def parallel_map(
    tasks: Iterable[Task[Result]],
    n_jobs: int | None,
    *,
    threads: bool = False,
    in_order: bool = True,
    large: bool = False,
) -> Iterator[Result]:
    """Results of tasks, each as soon as it is there.

    Linear algebra has one thread in every worker, as it has here: its last bits depend on the number.

    Parameters
    ----------
    n_jobs : int, optional
        Tasks at a time; by default one, or as many as the user's ``parallel_config`` says.
    threads : bool
        Whether threads are the better choice if the user has made none: linear algebra and compiled loops, which
        release the interpreter.
    large : bool
        Whether a task holds much memory: then only two for each worker are made ahead.

    >>> from joblib import delayed
    >>> list(parallel_map((delayed(pow)(2, k) for k in range(4)), None))
    [1, 2, 4, 8]
    """
    how: dict[str, Any] = {"prefer": "threads"} if threads else {}
    backend, default = get_active_backend(**how)
    if getattr(backend, "supports_return_generator", False):
        how["return_as"] = "generator" if in_order else "generator_unordered"
    if large:
        how["batch_size"] = 1
    n_workers = backend.effective_n_jobs(default if n_jobs is None else n_jobs)
    if n_workers > 1 and not getattr(backend, "supports_sharedmem", False):
        tasks = (delayed(_elsewhere)(os.getpid(), *task) for task in tasks)
    call = partial(Parallel(n_jobs=n_jobs, **how), tasks)
    return _on_dask(call) if large and type(backend).__name__ == "DaskDistributedBackend" else iter(call())


def _on_dask(call: Callable[[], Iterable[Result]]) -> Iterator[Result]:
    """Results of tasks that hold data, of which dask would warn: its advice is for data that are used again."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        yield from call()


def _elsewhere(
    caller: int, function: Callable[..., Result], arguments: tuple[object, ...], options: dict[str, object]
) -> Result:
    """Do a task in another process, for the process with the id ``caller``."""
    if os.getppid() == caller:
        _end_with(caller)
    elif current_process().name.startswith("LokyProcess"):  # the caller was ended before this first task began
        os._exit(1)
    with one_blas_thread():
        return function(*arguments, **options)


@cache
def _end_with(parent: int, seconds: float = 1.0) -> None:
    """End this process when its parent has ended: a worker of joblib would wait for more work for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def in_place(tasks: Iterable[Task[object]], n_jobs: int | None) -> None:
    """Do tasks that write into arrays of this process: in threads, whatever was chosen, since others write copies."""
    Parallel(n_jobs=n_jobs, require="sharedmem")(tasks)
