r"""FDR and power of every method on every design: one line of csv for each table, method and level.

    PYTHONPATH=src python -m benchmarks.arena.quality --designs "ar_linear;ar_products" --methods default,lasso \
        --repetitions 100 --minutes 10 --jobs 16 --out quality.csv

Repetitions go round the designs in turn, so that whatever the time allows is even. A file that is there already is
added to, and nothing in it is done again. ``--fewer boosting=25`` ends a method sooner.
``--show`` prints the means of a file, as a Markdown table with ``--markdown``.

``--suite columns`` takes the simulated columns of every kind in benchmarks/columns.py in place of the arena's designs,
``--suite tables`` the real tables of benchmarks/tables.py.
"""

from __future__ import annotations

import os

for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):  # before NumPy is imported: one thread each
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")

import argparse  # noqa: E402
import contextlib  # noqa: E402
import csv  # noqa: E402
import importlib  # noqa: E402
import io  # noqa: E402
import signal  # noqa: E402
import time  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Iterator, Mapping  # noqa: E402
from pathlib import Path  # noqa: E402
from types import MappingProxyType  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from benchmarks.arena.designs import DESIGNS  # noqa: E402
from benchmarks.arena.methods import able, call  # noqa: E402

LEVELS = (0.1, 0.2)
FIELDS = ("design", "repetition", "method", "level", "fdp", "power", "selected", "seconds", "error")
SUITES = {"arena": "benchmarks.arena.designs", "columns": "benchmarks.columns", "tables": "benchmarks.tables"}
Row = dict[str, Any]


def one(
    design: str, repetition: int, methods: tuple[str, ...], deadline: float, limit: float, suite: str = "arena"
) -> list[Row]:
    """Rows of one table, methods in turn, those after the deadline left out."""
    data = importlib.import_module(SUITES[suite]).draw(design, repetition)
    rows: list[Row] = []
    for method in (method for method in methods if able(method, data)):
        left = deadline - time.time()
        if left <= 0:
            break
        key = {"design": design, "repetition": repetition, "method": method}
        start = time.process_time()
        try:
            with alarm(min(limit, left + 20)), contextlib.redirect_stdout(io.StringIO()):
                found = call(method, data, LEVELS, repetition)
        except OutOfTime:
            if left >= limit:
                rows.append(key | {"seconds": round(time.process_time() - start, 3), "error": "too slow"})
            continue
        except Exception as problem:  # a peer's fault is a result too
            rows.append(key | {"error": f"{type(problem).__name__}: {problem}"[:200].replace("\n", " ")})
            continue
        seconds = round(time.process_time() - start, 3)
        for level, chosen in zip(LEVELS, found, strict=True):
            false, right = int(np.sum(chosen & ~data.non_nulls)), int(np.sum(chosen & data.non_nulls))
            fdp = false / max(false + right, 1)
            power = right / data.non_nulls.sum() if data.non_nulls.any() else float("nan")
            own = {"level": level, "fdp": round(fdp, 4), "power": round(power, 4), "selected": false + right}
            rows.append(key | own | {"seconds": seconds})
    return rows


class OutOfTime(BaseException):
    """The time of one call is over; no Exception, which a peer might take for a fault of its input."""


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise OutOfTime when the seconds of wall clock are over."""

    def ring(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def read(path: Path) -> list[Row]:
    """Lines of a file, numbers as numbers."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        row["repetition"] = int(row["repetition"])
        for name in ("level", "fdp", "power", "selected", "seconds"):
            row[name] = float(row[name]) if row[name] else float("nan")
    return rows


def run(
    designs: list[str],
    methods: list[str],
    out: Path,
    *,
    repetitions: int,
    minutes: float,
    jobs: int,
    limit: float,
    fewer: Mapping[str, int] = MappingProxyType({}),
    suite: str = "arena",
) -> None:
    """Do what is not in the file yet, until time is out; some methods on fewer tables."""
    from joblib import Parallel, delayed

    deadline = time.time() + 60 * minutes
    done = {(row["design"], row["repetition"], row["method"]) for row in read(out)}

    def work() -> Iterator[Any]:
        """Tables that are left, as long as there is time."""
        for repetition in range(repetitions):
            for design in designs:
                asked = [method for method in methods if repetition < fewer.get(method, repetitions)]
                todo = tuple(method for method in asked if (design, repetition, method) not in done)
                if todo and time.time() < deadline:
                    yield delayed(one)(design, repetition, todo, deadline, limit, suite)

    out.parent.mkdir(parents=True, exist_ok=True)
    new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if new:
            writer.writeheader()
        results = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(work())
        for rows in results:
            writer.writerows(rows)
            file.flush()


def means(rows: list[Row]) -> list[Row]:
    """Mean FDP and power with standard errors, for every design, method and level."""
    groups: dict[tuple[str, str, float], list[Row]] = defaultdict(list)
    errors: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row["error"]:
            errors[row["design"], row["method"]].append(row["error"])
        else:
            groups[row["design"], row["method"], row["level"]].append(row)
    table = []
    for (design, method, level), group in groups.items():
        line: Row = {"design": design, "method": method, "level": level, "runs": len(group)}
        for name, field in (("fdr", "fdp"), ("power", "power")):
            values = np.array([row[field] for row in group])
            line[name] = values.mean()
            line[f"{name}_error"] = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        line["seconds"] = float(np.median([row["seconds"] for row in group]))
        line["errors"] = len(errors.pop((design, method), ()) if level == LEVELS[0] else ())
        table.append(line)
    for (design, method), messages in errors.items():
        table.append({"design": design, "method": method, "level": float("nan"), "runs": 0, "message": messages[0]})
    return table


def show(path: Path) -> None:
    """Print the means of a file."""
    lines = means(read(path))
    order = {name: k for k, name in enumerate(DESIGNS)}
    for line in sorted(lines, key=lambda line: (line["level"], order.get(line["design"], 99), line["method"])):
        if not line["runs"]:
            print(f"{line['design']:24s} {line['method']:24s} {line['message']}")
            continue
        print(
            f"{line['design']:24s} {line['method']:24s} q {line['level']:.1f}  FDR {line['fdr']:.3f} +- "
            f"{line['fdr_error']:.3f}  power {line['power']:.3f} +- {line['power_error']:.3f}  "
            f"{line['seconds']:.2f} s  {line['runs']} runs, {line['errors']} errors"
        )


def markdown(path: Path) -> str:
    """Means of a file as Markdown tables, one for each level: FDR and power of every method on every design.

    In bold an FDR more than two standard errors above its target.
    """
    lines = [line for line in means(read(path)) if line["runs"]]
    cells = {}
    for line in lines:
        fdr = f"{line['fdr']:.3f} ± {line['fdr_error']:.3f}"
        shown = f"**{fdr}**" if line["fdr"] > line["level"] + 2 * line["fdr_error"] else fdr
        cells[line["level"], line["design"], line["method"]] = f"{shown} / {line['power']:.2f} ({line['runs']})"
    designs, methods = (list(dict.fromkeys(line[key] for line in lines)) for key in ("design", "method"))
    text = []
    for level in LEVELS:
        text += [
            "",
            f"## Target {level:g}",
            "",
            f"| design | {' | '.join(methods)} |",
            f"|{'---|' * (len(methods) + 1)}",
        ]
        rows = ([cells.get((level, design, method), "") for method in methods] for design in designs)
        text += [f"| {design} | {' | '.join(row)} |" for design, row in zip(designs, rows, strict=True)]
    return "\n".join(text)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="FDR and power on the designs of the arena")
    parser.add_argument("--suite", default="arena", choices=SUITES)
    parser.add_argument("--designs", default="all", help="names, separated by semicolons; all of them by default")
    parser.add_argument("--methods", default="default", help="names of methods.METHODS or selector:option=value+...")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--fewer", default="", help="methods with fewer repetitions: boosting=25,hidimstat=30")
    parser.add_argument("--minutes", type=float, default=10.0, help="of wall clock, for everything")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of wall clock for one table and method")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/arena/quality.csv"))
    parser.add_argument("--show", action="store_true", help="print the means of --out and do nothing")
    parser.add_argument("--markdown", action="store_true", help="print the means of --out as Markdown and do nothing")
    given = parser.parse_args()
    if given.show or given.markdown:
        print(markdown(given.out)) if given.markdown else show(given.out)
        return
    every = list(importlib.import_module(SUITES[given.suite]).DESIGNS)
    designs = every if given.designs == "all" else given.designs.split(";")
    if unknown := set(designs) - set(every):
        parser.error(f"no such designs: {'; '.join(sorted(unknown))}")
    methods = [name.replace("+", ",") for name in given.methods.split(",")]
    run(
        designs,
        methods,
        given.out,
        repetitions=given.repetitions,
        minutes=given.minutes,
        jobs=given.jobs,
        limit=given.limit,
        suite=given.suite,
        fewer={name: int(count) for name, count in (part.split("=") for part in given.fewer.split(",") if part)},
    )
    show(given.out)


if __name__ == "__main__":
    main()
