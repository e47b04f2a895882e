"""Answers at the resolution the data allow: what discoveries cover, how large they are, and which skill they keep.

    PYTHONPATH=src:. python -m benchmarks.resolution --jobs 16              # 100 draws a table and kind of label
    PYTHONPATH=src:. python -m benchmarks.resolution --jobs 16 --part real  # skill, Jaccard; Boruta, SelectFromModel
    PYTHONPATH=src:. python -m benchmarks.resolution --quick

"drawn" draws labels from known columns of a table, among those that the selector keeps, linear or curved, numbers or
classes: coverage is the share of the columns that matter inside a discovery, alone the share found as single features,
and false whether any discovery holds none. "real" selects on the same 70 % of the rows of scikit-learn's tables by five
seeds: skill is what a forest of the selected columns explains of the other rows, over that of one of all columns;
Jaccard compares the columns of seeds pairwise. Rows go to ``benchmarks/results/resolution_PART.csv``. Tables come from
the data folder (KNOCKOFFS_DATA) and from scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import cache
from itertools import combinations
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
import pandas as pd  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from sklearn import datasets  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: E402
from sklearn.feature_selection import SelectFromModel  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402

from benchmarks.labels import LABELS, draw_truth  # noqa: E402
from benchmarks.tables import PACKAGED, load  # noqa: E402
from knockoffs import KnockoffSelector  # noqa: E402

RESULTS = Path(__file__).parent / "results"
LEVELS = {"Polish companies, year 1": 0.2, "Polish companies, year 3": 0.2}  # others at 0.1
TABLES = ("wine", "diabetes", "breast cancer", *PACKAGED, "bank, 10 numbers", "spectra", "factors", *LEVELS)
KINDS = ("linear", "linear class", "curved")
REAL = ("wine", "diabetes", "breast_cancer", "iris", "digits")


@cache
def kept_table(name: str) -> pd.DataFrame:
    """Columns that the selector keeps: it drops copies and functions of others without a look at y."""
    from knockoffs.defaults import source_of
    from knockoffs.features.source import read_features

    if name in ("spectra", "factors"):
        return simulated(name)
    frame = load(name)
    source = source_of(KnockoffSelector().get_params(deep=False))
    table, _ = read_features(source, frame, kinds=None, groups=None, covariates=(), dependent="auto", min_rows=10)
    return frame[list(table.names)]


def simulated(name: str) -> pd.DataFrame:
    """Smooth curves at 100 wavelengths, as of meat; or three factors that twelve columns each measure."""
    rng = np.random.default_rng(0)
    if name == "spectra":
        t = np.linspace(0, 1, 100)
        K = np.exp(-(((t[:, None] - t) / 0.1) ** 2) / 2) + 1e-3 * np.eye(100)
        X = rng.multivariate_normal(np.zeros(100), K, size=500)
    else:
        X = np.repeat(rng.standard_normal((400, 3)), 12, axis=1) + 0.25 * rng.standard_normal((400, 36))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def drawn(name: str, kind: str, seed: int, resolution: str) -> dict:
    """One table with labels that are drawn: a row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame, level = kept_table(name), LEVELS.get(name, 0.1)
        rng = np.random.default_rng([seed, len(name), len(kind)])
        few = 3 if name == "spectra" else max(2, frame.shape[1] // 4) if frame.shape[1] < 24 else None
        truth = draw_truth(frame, rng, few)
        y = LABELS[kind.split()[0]](frame, truth, rng)
        if kind == "linear class":
            y = (y > np.median(y)).astype(int)
        start = time.process_time()
        options = {"method": "conditional_test", "resolution": resolution, "random_state": seed, "verdict": False}
        selector = KnockoffSelector(level, **options).fit(frame, y)
    found = [one.features for one in selector.discoveries_ or ()]
    if resolution == "columns":
        found = [(name,) for name in selector.selection_.selected_names]
    true = set(frame.columns[truth])
    covered = {name for features in found for name in features}
    return {
        "table": name,
        "labels": kind,
        "seed": seed,
        "resolution": resolution,
        "coverage": len(true & covered) / len(true),
        "alone": sum(set(features) <= true for features in found if len(features) == 1) / len(true),
        "size": np.mean([len(features) for features in found]) if found else np.nan,
        "discoveries": len(found),
        "false": any(true.isdisjoint(features) for features in found),
        "seconds": time.process_time() - start,
    }


def forest(classes: bool, seed: int) -> RandomForestClassifier | RandomForestRegressor:
    """Forest of 200 trees."""
    return (RandomForestClassifier if classes else RandomForestRegressor)(200, random_state=seed)


def boruta(X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int, n_rounds: int = 20) -> list[str]:
    """Columns that beat the best of all shuffled columns in more rounds than a coin would, at 0.05 by Bonferroni."""
    from scipy.stats import binom

    rng, hits = np.random.default_rng(seed), np.zeros(X.shape[1])
    for turn in range(n_rounds):
        shadows = np.column_stack([rng.permutation(x) for x in X.to_numpy(float).T])
        scores = forest(classes, turn).fit(np.hstack([X, shadows]), y).feature_importances_
        hits += scores[: X.shape[1]] > scores[X.shape[1] :].max()
    return list(X.columns[binom.sf(hits - 1, n_rounds, 0.5) * X.shape[1] <= 0.05])


def columns_by(way: str, X: pd.DataFrame, y: np.ndarray, classes: bool, seed: int) -> tuple[list[str], str]:
    """Columns that a way of selecting names, and its answer in words."""
    if way == "boruta":
        return (found := boruta(X, y, classes, seed)), ", ".join(found)
    if way == "select_from_model":
        found = list(SelectFromModel(forest(classes, seed)).fit(X, y).get_feature_names_out())
        return found, ", ".join(found)
    options = {"method": "conditional_test", "resolution": way, "random_state": seed, "verdict": False}
    selector = KnockoffSelector(0.1, **options).fit(X, y)
    return list(selector.selection_.selected_names), "; ".join(map(str, selector.discoveries_ or ()))


def real(name: str, way: str, seed: int) -> dict:
    """One table of scikit-learn: columns, seconds and the share of the skill that is kept."""
    data = getattr(datasets, f"load_{name}")(as_frame=True)
    classes = name != "diabetes"
    X, y = data.data, data.target.to_numpy()
    X = X.loc[:, X.nunique() > 1]
    train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=0, stratify=y if classes else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        found, words = columns_by(way, X.iloc[train], y[train], classes, seed)
        seconds = time.process_time() - start

    def skill(columns: list[str]) -> float:
        if not columns:
            return 0.0
        score = forest(classes, 0).fit(X[columns].iloc[train], y[train]).score(X[columns].iloc[test], y[test])
        chance = np.bincount(y[test]).max() / len(test) if classes else 0.0
        return (score - chance) / (1 - chance)

    kept = skill(found) / skill(list(X.columns))
    return {"table": name, "way": way, "seed": seed, "kept": kept, "seconds": seconds, "columns": "|".join(found)} | {
        "n_columns": len(found),
        "answer": words,
    }


def jaccard(answers: pd.Series) -> float:
    """Mean over pairs of seeds of the columns that both name over those that either names; 1 where there are none."""
    sets = [set(answer.split("|")) - {""} for answer in answers]
    return float(np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)] or [1.0]))


def main() -> None:
    """Run one part, write its rows and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["drawn", "real"], default="drawn")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two small tables, one draw, no file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.part == "drawn":
        names = options.tables or (TABLES[:2] if options.quick else TABLES)
        cases = [
            (drawn, name, kind, seed, resolution)
            for seed in range(1 if options.quick else options.draws)
            for name in reversed(names)  # the long ones first
            for kind in KINDS
            for resolution in ("auto", "columns")
        ]
    else:
        ways = ("auto", "columns", "boruta", "select_from_model")
        names = options.tables or (REAL[:1] if options.quick else REAL)
        seeds = range(2 if options.quick else 5)
        cases = [(real, name, way, seed) for name in reversed(names) for way in ways for seed in seeds]
    rows = pd.DataFrame(Parallel(n_jobs=options.jobs, verbose=1)(delayed(case[0])(*case[1:]) for case in cases))
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        rows.to_csv(RESULTS / f"resolution_{options.part}.csv", index=False)
    if options.part == "drawn":
        table = rows.groupby(["table", "labels", "resolution"], sort=False).mean(numeric_only=True).drop(columns="seed")
    else:
        by = rows.groupby(["table", "way"], sort=False)
        table = by[["kept", "n_columns", "seconds"]].mean().assign(jaccard=by["columns"].agg(jaccard))
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
