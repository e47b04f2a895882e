"""The three slowest paths of a fit with the defaults: what each takes, what bounds it, and how far from that it is.

    PYTHONPATH=src python -m benchmarks.arena.profiles --out profiles.csv

A bound is work that the path cannot do without, done alone on the same numbers in the same process: the matrix products
of the EM steps that were taken, the fits of trees, one sort of every column. CPU seconds of one thread,
the best of three, path and bound in turn.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")

import numpy as np  # noqa: E402

from benchmarks.arena.growth import rows_and_y  # noqa: E402

N, D = 2000, 100
FIELDS = ("path", "seconds", "bound", "bound_seconds", "times")
Call = Callable[[], Any]


@dataclass(frozen=True)
class Slow:
    """A path, and named parts of it that bound it; the bound is their sum."""

    name: str
    call: Call
    bounds: dict[str, Call]


def recorded(module: Any, name: str, call: Call) -> list[tuple[Any, ...]]:
    """Arguments of every call of a function while something else is called."""
    real, seen = getattr(module, name), []

    def listening(*arguments: Any, **options: Any) -> Any:
        seen.append(arguments)
        return real(*arguments, **options)

    setattr(module, name, listening)
    try:
        call()
    finally:
        setattr(module, name, real)
    return seen


def fit_of_features(X: np.ndarray) -> Slow:
    """Fit the default P^X: bound by the products of the EM steps it took."""
    from scipy.linalg import get_blas_funcs

    from knockoffs.features import em
    from knockoffs.features.latent.fit import fit_latent

    def call() -> Any:
        return fit_latent(X, rng=np.random.default_rng(0))

    steps = [(Z, mixture.n_components) for Z, mixture in recorded(em, "em_step", call)]

    def products() -> None:  # of a step: L^-1 times every row, and a Gram matrix, for every component
        for Z, k in steps:
            trmm = get_blas_funcs("trmm", dtype=Z.dtype)
            factor = np.asfortranarray(np.eye(Z.shape[1], dtype=Z.dtype))
            for _ in range(k):
                trmm(1.0, factor, Z.T, lower=True)
            np.matmul(Z.T, Z)  # the rows of all components together are the rows of the table

    return Slow("fit of the default P^X", call, {f"matrix products (BLAS) of {len(steps)} EM steps": products})


def scores(X: np.ndarray, y: np.ndarray) -> Slow:
    """Choose lasso or boosting and score the better: bound by the fits of trees."""
    from knockoffs.defaults import choose
    from knockoffs.importance import model_choice
    from knockoffs.importance import statistic as scoring
    from knockoffs.response import make_boosting
    from knockoffs.sampling.pair import Pair
    from knockoffs.table.table import read_table
    from knockoffs.table.target import as_target

    rng = np.random.default_rng(1)
    pair = Pair(X, rng.standard_normal(X.shape), np.arange(X.shape[1]))
    target = as_target(y, read_table(X))
    statistic = choose(target).statistic

    def call() -> Any:
        return statistic(pair, target, rng=np.random.default_rng(0), n_jobs=None)

    boosting = type(make_boosting("regression")), type(make_boosting("binary"))
    fits = [fit for module in (model_choice, scoring) for fit in recorded(module, "fitted_copy", call)]
    fits = [fit for fit in fits if isinstance(fit[0], boosting)]

    def trees() -> None:
        for fit in fits:
            scoring.fitted_copy(*fit)

    return Slow("model of y, chosen and scored", call, {f"{len(fits)} fits of trees (scikit-learn)": trees})


def checked(X: np.ndarray) -> Slow:
    """Give the verdict: bound by its fits of trees, and by one sort of every column of [X, X_tilde]."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from knockoffs.diagnostics.comparison import verdict
    from knockoffs.sampling.pair import Pair

    names = [f"x{j}" for j in range(X.shape[1])]
    rng = np.random.default_rng(1)
    pair = Pair(X, rng.permuted(X, axis=0), np.arange(X.shape[1]))

    def call() -> Any:
        return verdict(pair, names=names, rng=np.random.default_rng(0))

    fits = recorded(HistGradientBoostingClassifier, "fit", call)
    columns = np.ascontiguousarray(np.vstack([pair.X, pair.X_tilde]).T)

    def trees() -> None:
        for model, V, labels in fits:
            model.fit(V, labels)

    bounds: dict[str, Call] = {f"{len(fits)} fits of trees (scikit-learn)": trees}
    return Slow("verdict", call, bounds | {"one sort of every column (memory)": lambda: np.argsort(columns, axis=1)})


def best(calls: list[Call], rounds: int = 3) -> list[float]:
    """Least CPU seconds of each call, in turn."""
    least = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.process_time()
            call()
            least[k] = min(least[k], time.process_time() - start)
    return least


def measure() -> list[dict[str, Any]]:
    """Measure every path and its bounds."""
    from threadpoolctl import threadpool_limits

    X, y = rows_and_y(N, D)
    rows = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for path in (fit_of_features(X), scores(X, y), checked(X)):
            seconds, *parts = best([path.call, *path.bounds.values()])
            for name, part in zip(path.bounds, parts, strict=True):
                row = {"path": path.name, "seconds": round(seconds, 3), "bound": name, "bound_seconds": round(part, 3)}
                rows.append(row | {"times": round(seconds / sum(parts), 2)})
                print(rows[-1], flush=True)
    return rows


def section(path: Path) -> str:
    """Write what benchmarks/arena.md says of profiles."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "## The three slowest paths",
        "",
        f"Of a fit with the defaults on {N} x {D} numbers. A bound is work that a path cannot do without, done",
        "alone on the same numbers in the same run (`benchmarks/arena/profiles.py`); the last column is the path over",
        "the sum of its bounds. Random numbers bound none of the three. A draw of the knockoffs themselves is bound by",
        "them and by two products: the row *Gaussian draw* above.",
        "",
        "| path | CPU s | bound | CPU s | times the bound |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {r['path']} | {r['seconds']} | {r['bound']} | {r['bound_seconds']} | {r['times']} |" for r in rows]
    return "\n".join([*lines, ""])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The slowest paths and what bounds them")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with given.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(measure())


if __name__ == "__main__":
    main()
