"""Work that can be done at the same time, by whatever backend of joblib the user chose: processes, threads, a cluster.

``with joblib.parallel_config("dask"):`` and its like decide where; what is written here is only what the work needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from joblib import Parallel
from joblib.parallel import get_active_backend

Result = TypeVar("Result")
Task = tuple[Callable[..., Result], tuple[object, ...], dict[str, object]]  # as ``joblib.delayed`` makes them


def parallel_map(
    tasks: Iterable[Task[Result]], n_jobs: int | None, *, threads: bool = False, in_order: bool = True
) -> Iterator[Result]:
    """Results of tasks, each when it is there.

    Parameters
    ----------
    tasks : iterable
        As ``joblib.delayed`` makes them.
    n_jobs : int, optional
        Tasks at a time; by default one, or as many as the user's ``parallel_config`` says.
    threads : bool
        Whether threads are the better choice where the user has made none: linear algebra and compiled loops, which
        let go of the interpreter.
    in_order : bool
        Whether the results come in the order of the tasks.

    >>> from joblib import delayed
    >>> list(at_once((delayed(pow)(2, k) for k in range(4)), None))
    [1, 2, 4, 8]
    """
    hint = {"prefer": "threads"} if threads else {}
    backend, _ = get_active_backend(**hint)
    if getattr(backend, "supports_return_generator", False):
        hint["return_as"] = "generator" if in_order else "generator_unordered"
    return iter(Parallel(n_jobs=n_jobs, **hint)(tasks))


def in_place(tasks: Iterable[Task[object]], n_jobs: int | None) -> None:
    """Do tasks that write into arrays of this process: in threads, whatever was chosen, since others write copies."""
    Parallel(n_jobs=n_jobs, require="sharedmem")(tasks)
