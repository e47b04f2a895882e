"""A table on a dask cluster of processes on this machine, one of which is killed on the way; and by one process.

    python benchmarks/cluster.py FOLDER --files 2 --workers 1 3

makes FOLDER as ``benchmarks/large_table.py`` does, unless it is there, selects from it in one process, then on clusters
of so many workers, and ends a worker of the last one by SIGKILL when a quarter of the sums has come. It prints what
happened when, and whether W is the same to the last bit.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path

import joblib
import numpy as np
from distributed import Client, LocalCluster
from large_table import make

from knockoffs import KnockoffSelector, fit_streamed
from knockoffs.streaming.rest import Part

START = time.monotonic()


def log(text: str) -> None:
    print(f"{time.monotonic() - START:7.1f} s  {text}", flush=True)


def peak() -> float:
    """GiB that this process has held at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def select(folder: Path, sample_rows: int) -> np.ndarray:
    selector = KnockoffSelector(random_state=0, estimator="lasso")
    wall, cpu = time.monotonic(), time.process_time()
    W = fit_streamed(selector, folder, "y", sample_rows=sample_rows).W_
    here = time.process_time() - cpu
    log(f"done in {time.monotonic() - wall:.0f} s, {here:.0f} s of this process's processor time")
    return W


def with_a_death(client: Client, n_batches: int) -> None:
    """End the busiest worker when a quarter of the sums has come."""
    add, seen, pids = Part.__add__, [0], client.run(os.getpid)

    def watched(first, second):
        seen[0] += 1
        if seen[0] == max(1, n_batches // 4):
            busy = max(client.processing().items(), key=lambda one: len(one[1]))
            log(
                f"SIGKILL to worker {pids[busy[0]]}, with {len(busy[1])} tasks; {seen[0]} of {n_batches} sums are added"
            )
            os.kill(pids[busy[0]], signal.SIGKILL)
        return add(first, second)

    Part.__add__ = watched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--sample-rows", type=int, default=20_000)
    given = parser.parse_args()
    make(given.folder, given.files, "numbers")
    log(f"{given.files} million rows of 50 columns; one process")
    expected = select(given.folder, given.sample_rows)
    n_batches = -(-given.files * 1_000_000 // (2**22 // 50))
    for n_workers in given.workers:
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            log(f"{n_workers} workers: processes {sorted(client.run(os.getpid).values())}")
            if n_workers == given.workers[-1]:
                with_a_death(client, n_batches)
            with joblib.parallel_config("dask"):
                W = select(given.folder, given.sample_rows)
            pids, peaks = sorted(client.run(os.getpid).values()), client.run(peak).values()
            log(f"workers at the end: processes {pids}, the largest peak {max(peaks):.2f} GiB")
        same = "the same to the last bit" if np.array_equal(W, expected) else f"off by {np.abs(W - expected).max():.1e}"
        log(f"{len(W)} statistics W: {same}")


if __name__ == "__main__":
    main()
