"""Rows in the order of time: AR(1) columns and random walks, with the order declared, ignored, and differences.

``python -m benchmarks.ordered_rows`` writes benchmarks/results/ordered_rows.csv and prints the table of
docs/ordered_rows.md; ``--quick`` makes 10 repetitions in place of 100. All columns, and the noise of y, are AR(1) with
the same coefficient; 1 is a random walk. A table that is refused has no discoveries.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.signal import lfilter

from knockoffs import KnockoffSelector
from knockoffs.errors import InputError

STUDIES = {"knockoffs": (40, 12), "conditional_test": (15, 3)}  # features, those that matter
COEFFICIENTS = (0.5, 0.9, 1.0)
WAYS = ("ignored", "order", "order, n_draws=5", "differences, order")
FIELDS = ("method", "coefficient", "way", "repetitions", "fdr", "fdr_error", "power", "power_error", "refused")


def walk(coefficient: float, n: int, d: int, rng: np.random.Generator) -> NDArray:
    """Independent AR(1) columns of variance 1, or random walks."""
    noise = rng.normal(size=(n, d))
    noise[1:] *= np.sqrt(1 - coefficient**2) if coefficient < 1 else 1.0
    return lfilter([1.0], [1.0, -coefficient], noise, axis=0)


def once(method: str, coefficient: float, way: str, seed: int, n: int = 1000, q: float = 0.1) -> tuple[float, ...]:
    """Share of false discoveries, power, and whether the table was refused."""
    rng = np.random.default_rng(seed)
    d, n_true = STUDIES[method]
    X, true = walk(coefficient, n, d, rng), rng.choice(d, n_true, replace=False)
    y = 0.5 * X[:, true] @ rng.choice([-1, 1], n_true) + walk(coefficient, n, 1, rng)[:, 0]
    if way.startswith("differences"):
        X, y = np.diff(X, axis=0), np.diff(y)
    given = {} if way == "ignored" else {"order": np.arange(len(y)), "n_draws": 5 if way.endswith("5") else 1}
    options = {"feature_model": "gaussian", "estimator": "lasso", "resolution": "columns", "verdict": False}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = KnockoffSelector(q, method=method, random_state=seed, **options, **given).fit(X, y)
    except InputError as error:
        assert str(error).startswith("order: rows depend on one another"), error
        return 0.0, 0.0, 1.0
    found, right = set(np.flatnonzero(fitted.selection_.selected).tolist()), set(true.tolist())
    return len(found - right) / max(len(found), 1), len(found & right) / n_true, 0.0


def study(repetitions: int, jobs: int) -> list[dict[str, object]]:
    """Means and standard errors of every method, coefficient and way."""
    rows = []
    for method in STUDIES:
        for coefficient in COEFFICIENTS:
            for way in WAYS:
                tasks = (delayed(once)(method, coefficient, way, seed) for seed in range(repetitions))
                found = np.array(Parallel(jobs)(tasks))
                (fdr, power, refused), errors = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(repetitions)
                values = (method, coefficient, way, repetitions, fdr, errors[0], power, errors[1], refused)
                rows.append(dict(zip(FIELDS, values, strict=True)))
                said = f"{fdr:.3f} ± {errors[0]:.3f} | {power:.2f} ± {errors[1]:.2f} | {refused:.2f}"
                print(f"| {method} | {coefficient} | {way} | {said} |", flush=True)
    return rows


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    rows = study(10 if given.quick else 100, given.jobs)
    place = Path(__file__).parent / "results" / "ordered_rows.csv"
    if given.quick:
        print(f"not written: {place}", file=sys.stderr)
        return
    with place.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
