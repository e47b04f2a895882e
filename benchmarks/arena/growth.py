"""Time and memory against rows, columns, classes and draws: log-log plots with fitted exponents.

    PYTHONPATH=src python -m benchmarks.arena.growth --out growth.csv      # measure, one process for each point
    PYTHONPATH=src python -m benchmarks.arena.growth --out growth.csv --plot benchmarks/arena_growth.svg

CPU seconds of one thread, the best of two calls, and the growth of the process in the second call's peak over what it
held before the first. An exponent is the slope of a straight line through the upper half of the sizes, where constant
costs matter less.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import toeplitz

from benchmarks.memory import peak_kib

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ("work", "against", "size", "n", "d", "seconds", "memory")
Row = dict[str, Any]


def rows_and_y(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian table and a y that is linear in at most 20 columns, however many there are."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ np.linalg.cholesky(toeplitz(0.5 ** np.arange(d))).T
    k = min(d // 3, 20)
    return X, X[:, :k] @ rng.choice([-0.3, 0.3], k) + rng.standard_normal(n)


def defaults(n: int, d: int, size: int) -> Callable[[], Any]:
    """Select with every option left out."""
    from knockoffs import KnockoffSelector

    X, y = rows_and_y(n, d)
    return lambda: KnockoffSelector(random_state=0, fdr=0.2, method="knockoffs").fit(X, y)


def lasso(n: int, d: int, size: int) -> Callable[[], Any]:
    """Select with one Gaussian and a lasso."""
    from knockoffs import KnockoffSelector

    X, y = rows_and_y(n, d)
    call = KnockoffSelector(random_state=0, fdr=0.2, method="knockoffs", feature_model="gaussian", estimator="lasso")
    return lambda: call.fit(X, y)


def classes(n: int, d: int, size: int) -> Callable[[], Any]:
    """Select with a lasso; y has as many classes as the size says."""
    from knockoffs import KnockoffSelector

    X, y = rows_and_y(n, d)
    labels = np.searchsorted(np.quantile(y, np.arange(1, size) / size), y).astype(str)
    call = KnockoffSelector(random_state=0, fdr=0.2, method="knockoffs", feature_model="gaussian", estimator="lasso")
    return lambda: call.fit(X, labels)


def draws(n: int, d: int, size: int) -> Callable[[], Any]:
    """Select with several draws of knockoffs."""
    from knockoffs import KnockoffSelector

    X, y = rows_and_y(n, d)
    call = KnockoffSelector(
        random_state=0, fdr=0.2, method="knockoffs", feature_model="gaussian", estimator="lasso", n_draws=size
    )
    return lambda: call.fit(X, y)


WORK = {"defaults": defaults, "gaussian and lasso": lasso, "lasso, classes": classes, "lasso, draws": draws}
SERIES: tuple[tuple[str, str, tuple[int, ...], Callable[[int], tuple[int, int]]], ...] = (
    ("defaults", "n", (500, 1000, 2000, 4000, 8000, 16_000), lambda size: (size, 40)),
    ("gaussian and lasso", "n", (1000, 4000, 16_000, 64_000, 256_000), lambda size: (size, 40)),
    ("defaults", "d", (20, 40, 80, 160, 320), lambda size: (1000, size)),
    ("gaussian and lasso", "d", (50, 100, 200, 400, 800, 1600), lambda size: (2000, size)),
    ("lasso, classes", "classes", (2, 4, 8, 16), lambda size: (2000, 40)),
    ("lasso, draws", "draws", (1, 2, 4, 8, 16, 32), lambda size: (2000, 100)),
)


def one(work: str, n: int, d: int, size: int) -> Row:
    """Measure one point in this process."""
    import warnings

    warnings.simplefilter("ignore")
    WORK[work](200, 20, 2)()  # compiled code is loaded, and imports are done
    timed = WORK[work](n, d, size)
    before = peak_kib()
    seconds = []
    for _ in range(2):
        start = time.process_time()
        timed()
        seconds.append(time.process_time() - start)
        if seconds[-1] > 20:
            break
    memory = (peak_kib() - before) / 1024
    return {"seconds": round(min(seconds), 4), "memory": round(memory, 2)}


def measure(out: Path, minutes: float, chosen: str | None = None) -> None:
    """Go through every series, or those named, a fresh process for each point."""
    deadline = time.time() + 60 * minutes
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for work, against, sizes, shape in SERIES:
            if chosen is not None and f"{work}:{against}" not in chosen.split(";"):
                continue
            for size in sizes:
                if time.time() > deadline:
                    return
                n, d = shape(size)
                command = [sys.executable, "-m", "benchmarks.arena.growth", "--one", json.dumps([work, n, d, size])]
                done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=True)
                found = json.loads(done.stdout.splitlines()[-1])
                writer.writerow({"work": work, "against": against, "size": size, "n": n, "d": d, **found})
                file.flush()
                print(work, against, size, found, flush=True)


def read(path: Path) -> dict[tuple[str, str], np.ndarray]:
    """Series of a file: size, seconds and MiB."""
    series: dict[tuple[str, str], list[list[float]]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            point = [float(row[name]) for name in ("size", "seconds", "memory")]
            series.setdefault((row["work"], row["against"]), []).append(point)
    return {key: np.array(points) for key, points in series.items()}


def exponent(sizes: np.ndarray, values: np.ndarray) -> float:
    """Slope of log values on log sizes over the upper half of the sizes.

    >>> sizes = np.array([1.0, 2.0, 4.0, 8.0])
    >>> round(exponent(sizes, 3 * sizes**2), 6)
    2.0
    """
    return _line(sizes, values)[0]


def _line(sizes: np.ndarray, values: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Slope, and the two ends of the straight line through the upper half: sizes and values."""
    upper = slice(len(sizes) // 2 - (len(sizes) < 4), None)
    good = values[upper] > 0
    if good.sum() < 2:
        return float("nan"), np.empty(0), np.empty(0)
    x = sizes[upper][good]
    slope, start = np.polyfit(np.log(x), np.log(values[upper][good]), 1)
    ends = x[[0, -1]]
    return float(slope), ends, np.exp(start + slope * np.log(ends))


TITLES = {"n": "rows", "d": "columns", "classes": "classes of y", "draws": "draws of knockoffs"}
COLOURS = {"defaults": "tab:blue", "gaussian and lasso": "tab:orange"}  # the other two are Gaussian and lasso as well


def plot(series: dict[tuple[str, str], np.ndarray], path: Path) -> None:
    """Draw a panel for each of what it grows against, seconds above, MiB below; a dashed line has the exponent."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "arena"  # the same picture from the same numbers
    against = list(dict.fromkeys(key[1] for key in series))
    figure, axes = plt.subplots(2, len(against), figsize=(3.2 * len(against), 5.4), squeeze=False)
    for k, what in enumerate(against):
        axes[0, k].set_title(f"against {TITLES.get(what, what)}", fontsize=10)
        axes[1, k].set_xlabel(TITLES.get(what, what))
        for row, unit in enumerate(("CPU s", "MiB")):
            own = [(work, points[:, [0, row + 1]]) for (work, this), points in series.items() if this == what]
            _panel(axes[row, k], own)
            if k == 0:
                axes[row, k].set_ylabel(unit)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _panel(axis: Any, series: list[tuple[str, np.ndarray]]) -> None:
    """Draw points of several works, and the line through the upper half of each."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axis.set_xscale("log")
    axis.set_yscale("log")
    for work, points in series:
        x, y = points[points[:, 1] > 0].T
        slope, ends, fitted = _line(x, y)
        colour = COLOURS.get(work, "tab:orange")
        said = f"{work}: exponent {slope:.2f}" if np.isfinite(slope) else f"{work}: no growth"
        axis.plot(x, y, "o", color=colour, markersize=4, label=said)
        axis.plot(ends, fitted, "--", color=colour, linewidth=1.2)
    for one, values in (
        (axis.xaxis, [points[:, 0] for _, points in series]),
        (axis.yaxis, [p[:, 1] for _, p in series]),
    ):
        shown = np.concatenate(values)
        shown = shown[shown > 0]
        few = shown.max() / shown.min() < 100
        one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        one.set_minor_locator(NullLocator())
        one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    sizes = series[0][1][:, 0]
    if sizes.max() <= 100:  # a few small numbers: each has its tick
        axis.xaxis.set_major_locator(FixedLocator(sizes))
    low, high = axis.get_ylim()
    axis.set_ylim(low / 1.3, high * (high / low) ** 0.35)  # room for the legend
    axis.grid(color="0.9", linewidth=0.8)
    axis.legend(fontsize=7, loc="upper left", frameon=False)


def section(path: Path) -> str:
    """Write what benchmarks/arena.md says of growth."""
    lines = [
        "## Growth",
        "",
        "CPU seconds of one thread and growth of the process, one process a point; exponents are fitted over the upper",
        "half of the sizes (`benchmarks/arena/growth.py`). *defaults*: latent P^X, lasso or boosting, verdict, at 40",
        "columns and at 1000 rows; *gaussian and lasso* at 40 columns and 2000 rows; classes at 2000 x 40, draws at",
        "2000 x 100.",
        "",
        "![Time and memory against rows, columns, classes and draws](arena_growth.svg)",
        "",
        "| work | against | from | to | CPU s | MiB | exponent of time | of memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (work, against), points in read(path).items():
        slopes = [exponent(points[:, 0], points[:, column]) for column in (1, 2)]
        shown = " | ".join(f"{slope:.2f}" if np.isfinite(slope) else "-" for slope in slopes)
        ends = f"{points[0, 0]:,.0f} | {points[-1, 0]:,.0f} | {points[0, 1]:.2f} to {points[-1, 1]:.2f}"
        lines.append(f"| {work} | {against} | {ends} | {points[0, 2]:.0f} to {points[-1, 2]:.0f} | {shown} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Growth of time and memory")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "arena" / "growth.csv")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--series", help="work:against, several with ; between, for instance 'defaults:n;defaults:d'")
    parser.add_argument("--one", help="[work, n, d, size] as JSON: one point, in this process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*json.loads(given.one))))
    elif given.plot:
        plot(read(given.out), given.plot)
    else:
        measure(given.out, given.minutes, given.series)


if __name__ == "__main__":
    main()
