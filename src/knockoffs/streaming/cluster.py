"""Batches on the workers of a dask cluster, which also add them up, in the order of ``tower.py``.

A worker that dies takes its results along; dask computes them again, from the same streams, so the answer is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, MissingPackageError, installs
from knockoffs.streaming.batch import Batch, BatchWork, part_of
from knockoffs.streaming.tower import Part, add_up, runs
from knockoffs.table.partitions import Partitions
from knockoffs.table.rows import Rows
from knockoffs.table.stream import RowStream

if TYPE_CHECKING:
    from distributed import Client, Future

AHEAD = 2  # runs of batches that are handed out for each thread of the cluster: one at work and one to come
LARGE = "1 GiB"  # of what is sent in one go, beyond which dask warns; the targets of a run are some megabytes


def check_dask() -> None:
    """Refuse a cluster where dask is not installed."""
    if find_spec("distributed") is None:
        raise MissingPackageError(f"a cluster needs dask: {installs('distributed')}.")


@contextmanager
def connect(client: Client | str | None, rows: Rows) -> Iterator[Client | None]:
    """Client of a cluster, or of the one at an address, whose workers can do the work; None stays None.

    Parameters
    ----------
    client : distributed.Client, str or None
    rows : Rows
        What the workers must be able to read.
    """
    if client is None:
        yield None
        return
    check_dask()
    import distributed

    if not isinstance(rows, RowStream | Partitions):
        raise InputError(f"{rows.label}: workers read parquet files, or a dask DataFrame. Write it as parquet.")
    if not isinstance(client, str):
        _check_workers(client, rows)
        yield client
        return
    try:
        opened = distributed.Client(client, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{client}: there is no dask scheduler at this address ({error}).") from None
    with opened:
        _check_workers(opened, rows)
        yield opened


def _check_workers(client: Client, rows: Rows) -> None:
    """Refuse a cluster whose workers have no, or another, version of this package, or do not see the files."""
    from knockoffs import __version__

    if getattr(client, "asynchronous", False):
        raise InputError("the client is asynchronous: make one with asynchronous=False.")
    files = [str(path) for path in rows.files[:1]] if isinstance(rows, RowStream) else []
    try:
        found = client.run(_look, files)
    except Exception as error:  # whatever a worker raises that cannot import what is sent to it
        raise InputError(f"a worker cannot run knockoffs {__version__}: install it there ({error}).") from error
    for worker, (version, there) in found.items():
        if version != __version__:
            raise InputError(f"worker {worker} has knockoffs {version}, and here is {__version__}: install the same.")
        if not there:
            raise InputError(f"worker {worker} does not see {files[0]}: use a folder that all machines share.")


def _look(files: Sequence[str]) -> tuple[str, bool]:
    from pathlib import Path

    from knockoffs import __version__

    return __version__, all(Path(file).is_file() for file in files)


def on_cluster(
    client: Client,
    rows: Rows,
    features: Sequence[str],
    work: BatchWork,
    numbers: Sequence[int],
    batches: Iterator[Batch],
    done: int,
    n: int,
    starts: NDArray[np.intp],
) -> tuple[Iterator[tuple[Part, int, int]], int]:
    """Work on batches by a cluster: sums of runs of them, in their order, with their sizes and levels; and how many.

    Parameters
    ----------
    client : distributed.Client
    rows : Rows
    features : sequence of str
        Columns that are read.
    work : BatchWork
    numbers : sequence of int
        Batches that are left, in their order.
    batches : iterator of Batch
        The same, made when they are asked for.
    done, n : int
        Batches that have been added, and from which on they are drawn and not scored.
    starts : array of int
        First rows of all batches.
    """
    planned = list(runs(done, done + len(numbers), 1))

    def found() -> Iterator[tuple[Part, int, int]]:
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            send = _Send(client, rows, tuple(features), work, starts)
            waiting: deque[tuple[Future, int, int]] = deque()
            try:
                for first, last, level in planned:
                    own = list(islice(batches, last - first))
                    waiting.append((send(own, first, n), last - first, level))
                    while len(waiting) > AHEAD * max(1, sum(client.nthreads().values())):
                        yield _result(*waiting.popleft())
                while waiting:
                    yield _result(*waiting.popleft())
            finally:
                client.cancel([future for future, *_ in waiting], force=True)

    return found(), len(planned)


class _Send:
    """Hands runs of batches to a cluster.

    What they share is the result of a task, not data that were put there: where its worker dies it is made again.
    """

    def __init__(
        self, client: Client, rows: Rows, features: tuple[str, ...], work: BatchWork, starts: NDArray[np.intp]
    ) -> None:
        self.client, self.rows, self.features, self.starts = client, rows, features, starts
        self.name = f"knockoffs-{uuid4().hex}"
        self.work = client.submit(_same, work, key=f"{self.name}-work", pure=False)
        self.parts = rows.delayed(features) if isinstance(rows, Partitions) else None

    def __call__(self, batches: Sequence[Batch], first: int, n: int) -> Future:
        key = f"{self.name}-{first}"
        if self.parts is None:
            call = (_run, self.work, self.rows, self.features, self.starts, batches, first, n)
            return self.client.submit(*call, key=key, pure=False)
        frames = self.client.compute([self.parts[batch.number] for batch in batches])
        parts = [
            self.client.submit(part_of, self.work, frame, batch, k < n, key=f"{key}-{k}", pure=False)
            for k, (frame, batch) in enumerate(zip(frames, batches, strict=True), start=first)
        ]
        return self.client.submit(add_up, parts, key=key, pure=False)


def _same(work: BatchWork) -> BatchWork:
    return work


def _run(
    work: BatchWork,
    rows: Rows,
    features: Sequence[str],
    starts: NDArray[np.intp],
    batches: Sequence[Batch],
    first: int,
    n: int,
) -> Part:
    """Sum of batches that a worker reads itself, in their order; it reads on where they follow one another."""
    frames = rows.frames(features, starts, [batch.number for batch in batches])
    parts = (
        part_of(work, frame, batch, k < n)
        for k, (frame, batch) in enumerate(zip(frames, batches, strict=True), start=first)
    )
    return add_up(parts)


def _result(future: Future, n: int, level: int) -> tuple[Part, int, int]:
    from distributed import KilledWorker

    try:
        return future.result(), n, level
    except KilledWorker as error:
        raise InputError(
            f"the same batches ended several workers, most likely for want of memory: take smaller ones. {error}"
        ) from error
