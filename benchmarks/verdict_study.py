"""The verdict by its consequence: words of trials beside true error rates, and words of real tables.

    PYTHONPATH=src python -m benchmarks.verdict_study --jobs -1 [--quick]

``verdict_laws.csv``: data sets with a known law, whose P^X is right, or wrong in a link that bends more and more. Error
is the true share of null features with p <= 0.1 (tests) or the mean false discovery proportion (knockoffs).
``verdict_tables.csv``: tables of scikit-learn and statsmodels with three seeds: word, rate, seconds without and with
the verdict. Both are written to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from knockoffs import KnockoffSelector, false_discovery_proportion

BENDS = (0.0, 0.2, 0.4, 0.6, 0.8)  # share of the sd of a null that is a square of its signal; 0 is a right P^X
STATSMODELS = ("anes96", "ccard", "fair", "heart", "longley", "modechoice", "randhie", "spector", "stackloss", "star98")
Row = dict[str, object]


def simulate(n: int, d: int, bend: float, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Half of the columns are signals, linear and squared; the others are partly squares of them, and null."""
    k = d // 2
    X = rng.standard_normal((n, d))
    squares = (X[:, :k] ** 2 - 1) / np.sqrt(2)
    X[:, k:] = bend * squares + np.sqrt(1 - bend**2) * X[:, k:]
    return X, (squares + X[:, :k]).sum(axis=1) + np.sqrt(k) * rng.standard_normal(n)


def one_data_set(method: str, model: str, n: int, bend: float, judged: bool, seed: int) -> tuple[float, str, float]:
    """Error, word and rate of one data set."""
    d = 10 if method == "conditional_test" else 40
    X, y = simulate(n, d, bend, np.random.default_rng(seed))
    options = {"method": method, "resolution": "columns"} if d == 10 else {"method": method, "estimator": "lasso"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = KnockoffSelector(feature_model=model, verdict=judged, random_state=seed, **options).fit(X, y).selection_
    matters = np.arange(d) < d // 2
    if found.p_values is None:
        error = false_discovery_proportion(found.selected, matters)
    else:
        error = float((found.p_values[~matters] <= 0.1).mean())
    trial = None if found.verdict is None else found.verdict.trial
    return error, "" if trial is None else trial.word, np.nan if trial is None else trial.rate


def run_laws(sizes: Sequence[int], repetitions: int, judged: int, jobs: int) -> Iterator[Row]:
    """Rows: true error, and how often each word came."""
    for method in ("conditional_test", "knockoffs"):
        for model in ("gaussian", "auto"):
            for n in sizes:
                for bend in BENDS:
                    tasks = (delayed(one_data_set)(method, model, n, bend, i < judged, i) for i in range(repetitions))
                    found = Parallel(n_jobs=jobs)(tasks)
                    error = np.array([one[0] for one in found])
                    words = [one[1] for one in found if one[1]]
                    yield {
                        "method": method,
                        "feature_model": model,
                        "n": n,
                        "bend": bend,
                        "error": error.mean(),
                        "error_se": error.std() / np.sqrt(len(error)),
                        "trial_rate": np.nanmean([one[2] for one in found]),
                        "called": np.mean([word != "good" for word in words]),
                        "broken": np.mean([word == "broken" for word in words]),
                        "repetitions": repetitions,
                        "judged": len(words),
                    }


def tables() -> Iterator[tuple[str, object, object]]:
    """Names, features and targets of tables that come with scikit-learn and statsmodels."""
    from sklearn import datasets

    for name in ("iris", "wine", "diabetes", "breast_cancer"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    try:
        import statsmodels.api as sm
    except ImportError:
        return
    for name in STATSMODELS:
        loaded = getattr(sm.datasets, name).load_pandas()
        yield name, loaded.exog, loaded.endog


def one_table(name: str, X: object, y: object, seed: int) -> Row:
    """Word, rate and CPU seconds of a table."""
    row: Row = {"table": name, "seed": seed}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.process_time()
            KnockoffSelector(verdict=False, random_state=seed).fit(X, y)
            between = time.process_time()
            found = KnockoffSelector(random_state=seed).fit(X, y).selection_
            row |= {"selection_s": between - start, "with_verdict_s": time.process_time() - between}
    except ValueError as error:
        return row | {"word": f"refused: {error}"[:80]}
    verdict = found.verdict
    if verdict is None or verdict.trial is None:
        return row | {"word": "none"}
    return row | {"word": verdict.word, "rate": verdict.trial.rate, "trials": verdict.trial.n, "method": found.method}


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as csv."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    print(path.read_text())


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The verdict by its consequence")
    parser.add_argument("--quick", action="store_true", help="a few data sets, into build/verdict")
    parser.add_argument("--jobs", type=int, default=-1)
    given = parser.parse_args()
    out = Path("build/verdict") if given.quick else Path(__file__).parent / "results"
    out.mkdir(parents=True, exist_ok=True)
    seeds = (0,) if given.quick else (0, 1, 2)
    some = list(tables())[: 2 if given.quick else None]
    found = Parallel(n_jobs=given.jobs)(delayed(one_table)(*table, seed) for table in some for seed in seeds)
    write(out / "verdict_tables.csv", found)
    sizes, repetitions, judged = ((200,), 3, 1) if given.quick else ((200, 500, 1000), 200, 40)
    write(out / "verdict_laws.csv", list(run_laws(sizes, repetitions, judged, given.jobs)))


if __name__ == "__main__":
    main()
