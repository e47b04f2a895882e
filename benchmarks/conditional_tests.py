"""Power and FDR on small tables: knockoffs, conditional tests, and tests by permuted columns, all as a user gets them.

    PYTHONPATH=src python benchmarks/conditional_tests.py results --minutes 6 --jobs 16
    PYTHONPATH=src python benchmarks/conditional_tests.py results --table               # the table again, seconds

X is AR(1) with correlation 0.5, n rows, d columns, k of them non-null at random places; P^X is fitted (the default).
"linear" is a sum of features; "shapes" a sum of features that are squared (a hump), cut at 1, or multiplied in pairs.
Effects are 5 / sqrt(n) standard deviations each. "permutation" permutes one column at a time in held-out rows, in three
folds, under the better of lasso and boosting, and compares losses by a paired t-test, with Benjamini and Hochberg: the
usual permutation importance with p-values, which tests another hypothesis (a null feature that is correlated with
others is not exempt). "cfi" (``--methods cfi``) is hidimstat's conditional feature importance over ten folds with the
same models, where that package is installed. One line of ``rows.jsonl`` a table and method.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
from joblib import Parallel, delayed  # noqa: E402
from scipy.linalg import toeplitz  # noqa: E402
from scipy.stats import ttest_1samp  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import KFold  # noqa: E402

from knockoffs import KnockoffSelector  # noqa: E402
from knockoffs.conditional_tests.p_values import adjust_p_values  # noqa: E402
from knockoffs.filter import false_discovery_proportion, power  # noqa: E402
from knockoffs.response import make_boosting  # noqa: E402
from knockoffs.response.linear import make_lasso  # noqa: E402

DESIGNS = [(8, 3), (15, 3), (15, 6), (30, 3), (30, 10), (60, 10)]
SHAPES, ROWS, FDR = ("linear", "shapes"), (500, 2000), 0.1


def make_table(d, k, shape, n, seed):
    """X, y and which features matter."""
    rng = np.random.default_rng([d, k, len(shape), n, seed])
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(toeplitz(0.5 ** np.arange(d))).T
    truth = rng.choice(d, size=k, replace=False)
    terms = X[:, truth]
    if shape == "shapes":
        kinds = [(x**2 - 1) / np.sqrt(2) if i % 3 == 0 else 2.5 * ((x > 1) - 0.16) for i, x in enumerate(terms.T)]
        for i in range(2, k, 3):  # every third in a product with the one before it
            kinds[i] = terms[:, i] * terms[:, i - 1]
        terms = np.column_stack(kinds)
    y = 5 / np.sqrt(n) * terms.sum(axis=1) + rng.normal(size=n)
    return X, y, np.isin(np.arange(d), truth)


def better_model(X, y, folds, seed):
    """Lasso or boosting, whichever has the smaller squared error in held-out rows; and its fits."""
    fits = {}
    for maker in (make_lasso, make_boosting):
        models = [clone(maker("regression", random_state=seed)).fit(X[train], y[train]) for train, _ in folds]
        loss = sum(
            ((y[test] - model.predict(X[test])) ** 2).sum() for model, (_, test) in zip(models, folds, strict=True)
        )
        fits[loss] = models
    return fits[min(fits)]


def permutation_test(X, y, seed, n_permutations=20):
    """p-value of each column, by a paired t-test of how held-out losses grow where it is permuted."""
    rng = np.random.default_rng(seed)
    folds = list(KFold(3, shuffle=True, random_state=seed).split(X))
    growth = np.zeros(X.shape)
    for model, (_, test) in zip(better_model(X, y, folds, seed), folds, strict=True):
        base = (y[test] - model.predict(X[test])) ** 2
        for j in range(X.shape[1]):
            many = np.tile(X[test], (n_permutations, 1))
            many[:, j] = np.concatenate([rng.permutation(X[test, j]) for _ in range(n_permutations)])
            loss = (np.tile(y[test], n_permutations) - model.predict(many)) ** 2
            growth[test, j] = loss.reshape(n_permutations, -1).mean(axis=0) - base
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column that the model does not use: no growth at all
        return np.nan_to_num(ttest_1samp(growth, 0.0, alternative="greater").pvalue, nan=1.0)


def peer_test(X, y, seed):
    """p-values of hidimstat's cross-validated conditional feature importance, ten folds, with the better model."""
    from hidimstat import CFICV

    cv = KFold(10, shuffle=True, random_state=seed)
    fits = better_model(X, y, list(cv.split(X)), seed)
    peer = CFICV(estimators=fits, cv=cv, n_permutations=20, feature_types="continuous", random_state=seed)
    peer.fit_importance(X, y)
    return np.nan_to_num(peer.pvalues_, nan=1.0)  # NaN where a model does not use the column


def one(method, d, k, shape, n, seed):
    """One table, one method: a row."""
    X, y, non_nulls = make_table(d, k, shape, n, seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stated = FDR
        if method == "permutation":
            selected = adjust_p_values(permutation_test(X, y, seed)) <= FDR
        elif method == "cfi":
            selected = adjust_p_values(peer_test(X, y, seed)) <= FDR
        else:
            options = {
                "tests": {"method": "conditional_test"},
                "knockoffs": {"method": "knockoffs"},
                "post_hoc": {"method": "knockoffs", "n_draws": 5, "level": "post_hoc"},
            }[method]
            if method == "knockoffs" and 1 / d > FDR:
                selected = np.zeros(d, dtype=bool)  # refused: it can never select
            else:
                selector = KnockoffSelector(FDR, random_state=seed, verdict=False, **options).fit(X, y)
                selected = np.asarray(selector.selection_.selected)
                stated = getattr(selector.selection_.evidence, "stated", FDR)
    fdp = false_discovery_proportion(selected, non_nulls)
    row = {"method": method, "d": d, "k": k, "shape": shape, "n": n, "seed": seed}
    row |= {"power": float(power(selected, non_nulls)), "fdp": float(fdp), "selected": int(selected.sum())}
    row |= {"over_level": float(fdp / stated) if fdp else 0.0, "seconds": round(time.process_time() - start, 2)}
    return row


def table(folder):
    """Print means and standard errors, one line a design."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    methods = [
        m for m in ("tests", "knockoffs", "post_hoc", "permutation", "cfi") if any(r["method"] == m for r in rows)
    ]
    print("n d k shape | for each method: power, FDR +- s.e., (FDP over level,) seconds, tables")
    for n in ROWS:
        for d, k in DESIGNS:
            for shape in SHAPES:
                cells = []
                for method in methods:
                    here = [
                        r for r in rows if (r["n"], r["d"], r["k"], r["shape"], r["method"]) == (n, d, k, shape, method)
                    ]
                    if not here:
                        continue
                    mean = {key: np.mean([r[key] for r in here]) for key in ("power", "fdp", "over_level", "seconds")}
                    error = np.std([r["fdp"] for r in here]) / np.sqrt(len(here))
                    cells.append(
                        f"{method} {mean['power']:.2f} {mean['fdp']:.3f}+-{error:.3f} {mean['over_level']:.2f} "
                        f"{mean['seconds']:.1f}s x{len(here)}"
                    )
                if cells:
                    print(f"{n:5d} {d:3d} {k:3d} {shape:7s} | " + " | ".join(cells))


def main() -> None:
    """All designs in turn until time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--methods", nargs="*", default=["tests", "knockoffs", "post_hoc", "permutation"])
    parser.add_argument("--largest", type=int, default=60, help="most columns")
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "rows.jsonl"
    if not options.table:
        for method in options.methods:
            one(method, 15, 3, "shapes", 500, 10**6)  # compiled here once, not in every process
        end = time.time() + 60 * options.minutes

        def in_time(*case):
            return one(*case) if time.time() < end else None

        done = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        there = {(r["method"], r["d"], r["k"], r["shape"], r["n"], r["seed"]) for r in done}
        cases = [
            (method, d, k, shape, n, seed)
            for n in options.rows
            for seed in range(options.repeats)
            for d, k in reversed(DESIGNS)  # the long ones first
            for shape in options.shapes
            for method in options.methods
            if d <= options.largest and (method, d, k, shape, n, seed) not in there
        ]
        work = Parallel(n_jobs=options.jobs, return_as="generator_unordered")(delayed(in_time)(*case) for case in cases)
        for row in work:
            if row is not None:
                with open(path, "a") as file:
                    file.write(json.dumps(row) + "\n")
    table(options.folder)


if __name__ == "__main__":
    main()
