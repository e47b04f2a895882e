"""The verdict by its consequence: words of trials beside true error rates, and words of real tables.

    PYTHONPATH=src python -m benchmarks.verdict_study [--parts laws,tables] [--minutes 45] [--jobs 1] [--quick]

``verdict_laws.csv``, a row for each data set: its law is known, and P^X is right, or wrong in a link that bends more
and more. Error is the share of null features with p <= 0.1 (tests) or the false discovery proportion (knockoffs).
``verdict_tables.csv``, a row for each table of ``benchmarks/new_user.py`` whose package is installed, and each seed:
word, rate, and CPU seconds with the verdict and, for the first seed, without. Both are in ``benchmarks/results``. Rows
that they have are not made again, so a study may be stopped by ``--minutes`` and taken up later. ``--summary`` prints
what they say.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.new_user import TABLES, folder_of, named_in, read
from knockoffs import InputError, KnockoffSelector, false_discovery_proportion
from knockoffs.diagnostics.verdict import Verdict
from knockoffs.selection import Selection

BENDS = (0.0, 0.3, 0.6)  # share of the sd of a null that is a square of its signal; 0 is a right P^X
LEVEL = 0.1
WORDS = ("good", "doubtful", "broken")
FOUND = ["word", "by_rows", "rate", "low", "high", "trials", "named"]
FIELDS = {
    "verdict_laws.csv": ["method", "feature_model", "n", "bend", "seed", "error", *FOUND],
    "verdict_tables.csv": [
        "package",
        "table",
        "target",
        "seed",
        "n",
        "columns",
        "method",
        "with_s",
        "without_s",
        *FOUND,
    ],
}
Row = dict[str, Any]


def simulate(n: int, d: int, bend: float, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Half of the columns are signals, linear and squared; the others are partly squares of them, and null."""
    k = d // 2
    X = rng.standard_normal((n, d))
    squares = (X[:, :k] ** 2 - 1) / np.sqrt(2)
    X[:, k:] = bend * squares + np.sqrt(1 - bend**2) * X[:, k:]
    return X, (squares + X[:, :k]).sum(axis=1) + np.sqrt(k) * rng.standard_normal(n)


def one_data_set(method: str, model: str, n: int, bend: float, seed: int) -> Row:
    """Error, word and rate of one data set."""
    d = 10 if method == "conditional_test" else 40
    X, y = simulate(n, d, bend, np.random.default_rng(seed))
    options = {"resolution": "columns"} if d == 10 else {"estimator": "lasso"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector = KnockoffSelector(method=method, feature_model=model, fdr=LEVEL, random_state=seed, **options)
        found = selector.fit(X, y).selection_
    matters = np.arange(d) < d // 2
    if found.p_values is None:
        error = false_discovery_proportion(found.selected, matters)
    else:
        error = float((found.p_values[~matters] <= LEVEL).mean())
    row: Row = {"method": method, "feature_model": model, "n": n, "bend": bend, "seed": seed, "error": error}
    return row | of_verdict(found.verdict)


def of_verdict(verdict: Verdict | None) -> Row:
    """Word, rate and interval of a verdict."""
    if verdict is None or verdict.trial is None:
        return {"word": "none"}
    trial = verdict.trial
    named = trial.worst[0].name if trial.worst else ""
    shown = {"rate": trial.rate, "low": trial.low, "high": trial.high, "trials": trial.n, "named": named}
    return {"word": verdict.word, "by_rows": int(verdict.rows_cost)} | shown


def one_table(package: str, name: str, target: str, seed: int) -> Row:
    """Word, rate and CPU seconds of a table; columns that an error names are left out, as it says."""
    frame = read(package, name)
    row: Row = {"package": package, "table": name, "target": target, "seed": seed}
    X, y = frame.drop(columns=target), frame[target]
    try:
        found, row["with_s"] = timed_fit(X, y, random_state=seed)
    except InputError as error:
        drop = named_in(str(error), list(X.columns))
        try:
            X = X.drop(columns=drop)
            found, row["with_s"] = timed_fit(X, y, random_state=seed)
        except InputError:
            return row | {"word": "refused"}
    if seed == 0:
        row["without_s"] = timed_fit(X, y, random_state=seed, verdict=False)[1]
    row |= {"n": len(X), "columns": X.shape[1], "method": found.method}
    return row | of_verdict(found.verdict)


def timed_fit(X: Any, y: Any, **options: Any) -> tuple[Selection, float]:
    """Selection, and CPU seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KnockoffSelector(**options).fit(X, y).selection_
    return found, time.process_time() - start


# ---- all of them -----------------------------------------------------------------------------------------------------
def laws(sizes: Sequence[int], repetitions: int) -> Iterator[tuple[object, ...]]:
    """Data sets, so that each number of repetitions is complete before the next."""
    methods, models = ("conditional_test", "knockoffs"), ("gaussian", "auto")
    for seed, n, method, model, bend in product(range(repetitions), sizes, methods, models, BENDS):
        yield method, model, n, bend, seed


def tables(repetitions: int) -> Iterator[tuple[object, ...]]:
    """Tables of installed packages, small ones first."""
    found = []
    for package, names in TABLES.items():
        try:
            folder_of("sklearn" if package == "scikit-learn" else package)
        except ModuleNotFoundError:
            continue
        found += [(read(package, name).size, package, name, target) for name, target in names.items()]
    for seed, (_, *table) in product(range(repetitions), sorted(found)):
        yield *table, seed


def extend(path: Path, one: Callable[..., Row], tasks: Iterator[tuple[object, ...]], minutes: float, jobs: int) -> None:
    """Append rows of the tasks that have none, until time is over; a row begins with its task."""
    lines = path.read_text().splitlines() if path.exists() else []
    old = [tuple(row.values()) for row in csv.DictReader(lines)]
    end = time.monotonic() + 60 * minutes
    left = [task for task in tasks if all(tuple(map(cell, task)) != row[: len(task)] for row in old)]
    in_time = (delayed(one)(*task) for task in left if time.monotonic() < end)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS[path.name], restval="")
        if not old:
            writer.writeheader()
        for row in Parallel(n_jobs=jobs, return_as="generator", pre_dispatch=jobs)(in_time):
            writer.writerow({k: cell(v) for k, v in row.items()})
            file.flush()


def cell(value: object) -> str:
    """Text of a value in a table.

    >>> cell(0.0), cell(2 / 3), cell(500)
    ('0', '0.6667', '500')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- what they say ---------------------------------------------------------------------------------------------------
def share(values: Sequence[float]) -> str:
    """Mean and its standard error.

    >>> share([0.0, 1.0, 1.0, 1.0])
    '0.750 +- 0.217'
    """
    found = np.asarray(values, dtype=float)
    return f"{found.mean():.3f} +- {found.std() / np.sqrt(len(found)):.3f}"


def summary_of_laws(rows: Sequence[Row]) -> list[str]:
    """A line for each law: its true error, and how often it was called doubtful or broken."""
    lines = ["| method | P^X | rows | bend | data sets | true error | trial | called | broken |", f"|{'---|' * 9}"]
    key = itemgetter("method", "feature_model", "n", "bend")
    for law, group in groupby(sorted(rows, key=key), key=key):
        some = list(group)
        error, rate = (share([float(row[name]) for row in some]) for name in ("error", "rate"))
        called, broken = (share([row["word"] in words for row in some]) for words in (WORDS[1:], WORDS[2:]))
        lines.append(f"| {' | '.join((*map(str, law), str(len(some)), error, rate, called, broken))} |")
    return lines


def summary_of_tables(rows: Sequence[Row]) -> list[str]:
    """A line for each table: its words, rates and seconds; and how many of each word there are."""
    lines = ["| table | rows | columns | words | rates | named | with, s | without, s |", f"|{'---|' * 8}"]
    words: list[str] = []
    for (_, name), group in groupby(sorted(rows, key=itemgetter("package", "table")), itemgetter("package", "table")):
        some = sorted(group, key=itemgetter("seed"))
        words.append("/".join(dict.fromkeys(str(row["word"]) for row in some)))
        rates = "/".join(dict.fromkeys(str(row["rate"]) for row in some))
        first = some[0]
        cells = (first[part] for part in ("n", "columns"))
        seconds = (first[part] for part in ("with_s", "without_s"))
        lines.append(f"| {' | '.join(map(str, (name, *cells, words[-1], rates, first['named'], *seconds)))} |")
    both = [(float(row["with_s"]), float(row["without_s"])) for row in rows if row["without_s"] and row["rate"]]
    ratios = [with_s / without_s - 1 for with_s, without_s in both]
    together = sum(a for a, _ in both) / sum(b for _, b in both) - 1
    above = share([ratio > 0.5 for ratio in ratios])
    cost = f"median {np.median(ratios):.2f}, above half in {above}, of all together {together:.2f}"
    counts = f"{Counter(words)}; seeds: {Counter(row['seed'] for row in rows)}"
    return [*lines, "", counts, f"Cost of a verdict in units of the selection: {cost}"]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The verdict by its consequence")
    parser.add_argument("--parts", default="laws,tables")
    parser.add_argument("--minutes", type=float, default=45.0, help="of each part")
    parser.add_argument("--quick", action="store_true", help="a few data sets, into build/verdict")
    parser.add_argument("--summary", action="store_true", help="make nothing, and print what was found")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    out = Path("build/verdict") if given.quick else Path(__file__).parent / "results"
    out.mkdir(parents=True, exist_ok=True)
    todo = {
        "laws": (one_data_set, laws((200,) if given.quick else (500,), 1 if given.quick else 40), summary_of_laws),
        "tables": (one_table, islice(tables(3), 1 if given.quick else None), summary_of_tables),
    }
    for part in given.parts.split(","):
        one, tasks, summary = todo[part]
        path = out / f"verdict_{part}.csv"
        if not given.summary:
            extend(path, one, tasks, given.minutes, given.jobs)
        with path.open() as file:
            print("\n".join(summary(list(csv.DictReader(file)))))


if __name__ == "__main__":
    main()
