"""The defaults on tables that are long, large or wide: wall-clock and CPU seconds, and memory in tables.

    python benchmarks/shapes.py --cores 2

selects by ``KnockoffSelector(random_state=0)`` from 100,000 x 300, 1,000,000 x 10 and 200 x 5000 numbers, each in a
process of its own that may use so many cores; compiled code is loaded first. Memory is what the process holds at most
beside what it held before the fit. ``--profile FILE`` keeps the profile of the last one. A row is printed when it is
there, and written to results/shapes.csv at the end.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results" / "shapes.csv"
SHAPES = ("100000x300", "1000000x10", "200x5000")
RUN = """
import cProfile, json, sys, time, warnings
import numpy as np
from knockoffs import KnockoffSelector
warnings.simplefilter("ignore")
n, d, signal, profile = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
def table(n, d, rng):
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]  # neighbours are correlated
    k = min(20, d // 2)
    seen = X[:, :k] if signal == "sum" else X[:, : k // 2] * X[:, k // 2 : k // 2 * 2]
    return X, (1.0 if n < 1000 else 0.3) * seen.sum(axis=1) + rng.standard_normal(n)
KnockoffSelector(random_state=0, method="knockoffs", fdr=0.3).fit(*table(300, 6, np.random.default_rng(1)))
X, y = table(n, d, np.random.default_rng(0))
def held(what):
    return next(1024 * int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(what))
open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew at what is held now
before = held("VmRSS")
profiler = cProfile.Profile()
if profile:
    profiler.enable()
wall, cpu = time.perf_counter(), time.process_time()
selector = KnockoffSelector(random_state=0).fit(X, y)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
if profile:
    profiler.disable()
    profiler.dump_stats(profile)
taken = (held("VmHWM") - before) / X.nbytes
found = selector.get_support()[: min(20, d // 2)].sum()
print(json.dumps({"seconds": round(wall, 1), "cpu_seconds": round(cpu, 1), "tables": round(taken, 1),
                  "found": int(found), "selected": int(selector.get_support().sum())}))
"""


def measure(shape: str, cores: int, signal: str = "sum", profile: str = "") -> dict[str, object]:
    """One row of the results, measured in a process of its own."""
    n, d = shape.split("x")
    limits = {f"{library}_NUM_THREADS": str(cores) for library in ("OMP", "OPENBLAS", "MKL")}
    own = sorted(os.sched_getaffinity(0))[:cores]
    call = [sys.executable, "-c", RUN, n, d, signal, profile]
    run = subprocess.run(
        call,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | limits,
        preexec_fn=lambda: os.sched_setaffinity(0, own),
        check=True,
    )
    return {
        "rows": int(n),
        "columns": int(d),
        "signal": signal,
        "cores": len(own),
        **json.loads(run.stdout.splitlines()[-1]),
    }


def main() -> None:
    """Measure every shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", default=SHAPES, help="rows x columns, for instance 20000x60")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--signal", choices=("sum", "products"), default="sum", help="products go to boosting")
    parser.add_argument("--profile", default="")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    rows = []
    for shape in given.shapes:
        rows.append(measure(shape, given.cores, given.signal, given.profile))
        print(rows[-1], flush=True)
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
