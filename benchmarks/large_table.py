"""A table larger than memory: parquet files are made batch by batch, and selected from with the address space limited.

    python benchmarks/large_table.py FOLDER --files 20 --limit 4

makes FOLDER with 20 files of a million rows, fifty columns of 4-byte numbers and a target (6 GB), unless they are
there, and runs ``knockoffs select FOLDER --target y`` in a process that may map 4 GiB (``RLIMIT_AS``: what is mapped
counts, also what is never used). It prints the answer, and last a line with peak memory and times. What follows
``--`` are more options of ``knockoffs select``. With ``--kind mixed`` two columns are counts, two booleans and one
holds labels.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from joblib import Parallel, delayed
from numpy.typing import NDArray

D, ROWS, GROUP, SIGNALS = 50, 1_000_000, 100_000, 20


def make(folder: Path, n_files: int, kind: str, n_jobs: int = 1) -> None:
    """Write the files that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    Parallel(n_jobs=n_jobs)(delayed(make_file)(folder / f"part{f:02d}.parquet", f, kind) for f in range(n_files))


def effects() -> NDArray:
    """Coefficients of the columns, the same in every file, shape (D,)."""
    rng, beta = np.random.default_rng(0), np.zeros(D, np.float32)
    signs = rng.choice([-1, 1], SIGNALS)
    beta[rng.choice(D, SIGNALS, replace=False)] = signs * 0.004
    return beta


def make_file(path: Path, f: int, kind: str) -> None:
    """Write one file unless it is there: correlations 0.6^|i-j|, twenty small effects."""
    if path.exists():
        return
    L = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))).astype(np.float32)
    rng, beta, writer = np.random.default_rng([1, f]), effects(), None
    for _ in range(ROWS // GROUP):
        Z = rng.standard_normal((GROUP, D), dtype=np.float32) @ L.T
        y = Z @ beta + rng.standard_normal(GROUP, dtype=np.float32)
        columns = {f"x{j:02d}": Z[:, j] for j in range(D)}
        if kind == "mixed":
            columns |= {f"x{j:02d}": rng.poisson(np.exp(0.5 * Z[:, j])).astype(np.int16) for j in (5, 15)}
            columns |= {f"x{j:02d}": Z[:, j] > 0.3 for j in (25, 35)}
            columns["x45"] = np.array(["red", "green", "blue"])[np.digitize(Z[:, 45], [-0.5, 0.5])]
        table = pa.table({**columns, "y": y})
        writer = writer or pq.ParquetWriter(path.with_suffix(".part"), table.schema)
        writer.write_table(table)
    writer.close()
    path.with_suffix(".part").rename(path)


RUN = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (int(float(sys.argv[1]) * 2**30),) * 2)
start = time.time()
from knockoffs.cli.app import main
try:
    main(sys.argv[2:])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"peak {used.ru_maxrss / 2**20:.2f} GiB resident within {sys.argv[1]} GiB mapped; "
          f"{time.time() - start:.0f} s, of which {used.ru_utime + used.ru_stime:.0f} s on the processor",
          file=sys.stderr)
"""


def main() -> None:
    """Make the table and run the selection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--limit", type=float, default=4.0, help="GiB of address space")
    parser.add_argument("--kind", choices=("numbers", "mixed"), default="numbers")
    parser.add_argument("--make-jobs", type=int, default=1, help="files that are made at a time")
    own, rest = parser.parse_known_args()
    make(own.folder, own.files, own.kind, own.make_jobs)
    select = ["select", str(own.folder), "--target", "y", *[word for word in rest if word != "--"]]
    sys.exit(subprocess.run([sys.executable, "-c", RUN, str(own.limit), *select]).returncode)


if __name__ == "__main__":
    main()
