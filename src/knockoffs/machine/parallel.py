"""Parallel work on the backend of joblib that the user chose: processes, threads, a cluster.

``with joblib.parallel_config("dask"):`` and the like decide where the work is done.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from multiprocessing import current_process
from threading import Thread
from typing import Any, TypeVar

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

from knockoffs.machine.threads import one_blas_thread

Result = TypeVar("Result")
Task = tuple[Callable[..., Result], tuple[object, ...], dict[str, object]]  # as ``joblib.delayed`` makes them


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
