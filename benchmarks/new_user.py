"""The trial of a new user: real tables that ship with packages go in as they come, with fdr=0.1 and nothing else.

    PYTHONPATH=src python -m benchmarks.new_user [--packages scikit-learn,statsmodels]

A table is read as its package reads it, its target is left out of the features, and
``KnockoffSelector(fdr=0.1, random_state=0)`` is fitted. Where that is refused, the columns that the error names are
left out, as it says, and the table is tried again. Packages that are not installed are left out. Writes
``benchmarks/results/new_user.csv`` and ``benchmarks/new_user.md``.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import multiprocessing
import re
import tarfile
import time
import traceback
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from paper.runner import Row, Table, read_table, write_table

from knockoffs import InputError, KnockoffSelector

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

HERE = Path(__file__).parent
SECONDS = 120.0  # that a table may take
AT_A_TIME = 2  # tables
FDR = 0.1
OUT_OF_TIME = "not done within"
HEADER = "package, table, target, rows, missing cells, columns, left out, method, selected, verdict, seconds".split(
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
        "survival/colon.csv": "status",
        "survival/lung.csv": "status",
        "survival/pbc.csv": "status",
        "survival/veteran.csv": "time",
    },
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
    path = folder / {"statsmodels": "datasets", "vega_datasets": "_data", "palmerpenguins": "data"}[package] / name
    if path.suffix == ".json":
        return pd.read_json(path)
    return pd.read_csv(path, sep=None, engine="python").rename(columns=lambda column: column.strip("'"))


def folder_of(package: str) -> Path:
    """Folder of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


# One table


def try_table(frame: pd.DataFrame, target: str, drop: Sequence[str] = ()) -> Row:
    """Give a table to the selector: what was recognised, selected and said, or the error."""
    X, y = frame.drop(columns=[target, *drop]), frame[target]
    start = time.perf_counter()
    row: Row = {"rows": len(X), "columns": X.shape[1], "missing": int(X.isna().to_numpy().sum())}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            selector = KnockoffSelector(fdr=FDR, random_state=0).fit(X, y)
        except InputError as error:
            return row | {"error": str(error), "seconds": time.perf_counter() - start}
        except Exception:
            return row | {"error": "BUG " + traceback.format_exc(limit=-3), "seconds": time.perf_counter() - start}
    kinds = selector.table_.kinds
    chosen = selector.selection_
    return row | {
        "kinds": ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds)),
        "target": chosen.notes.get("task", ""),
        "method": chosen.method,
        "selected": ", ".join(name for name, is_in in zip(chosen.feature_names, chosen.selected, strict=True) if is_in),
        "n_selected": int(chosen.selected.sum()),
        "verdict": "" if selector.verdict_ is None else selector.verdict_.word,
        "warnings": len({str(warning.message) for warning in heard}),
        "seconds": time.perf_counter() - start,
    }


def named_in(message: str, columns: Sequence[str]) -> list[str]:
    """Columns that an error names in quotation marks.

    >>> named_in("columns 'id' and 'b' of X: drop them, for instance 'x'", ["id", "a", "b"])
    ['id', 'b']
    """
    quoted = set(re.findall(r"'([^']*)'", message))
    return [column for column in columns if str(column) in quoted]


def attempt(package: str, name: str, target: str, answer: Connection) -> None:
    """Try a table, and once more without the columns that an error names; the answer goes into a pipe."""
    frame = read(package, name)
    row = try_table(frame, target)
    if "error" in row and not row["error"].startswith("BUG"):
        drop = named_in(row["error"], [column for column in frame.columns if column != target])
        if drop:
            again = try_table(frame, target, drop)
            row = again | {"first": row["error"], "left_out": ", ".join(map(str, drop))}
    answer.send(row)
    answer.close()


def within(seconds: float, package: str, name: str, target: str) -> Row:
    """Row of a table, from a process that is ended when its time is out."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=attempt, args=(package, name, target, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        row = ours.recv() if ours.poll(seconds) else {"error": f"{OUT_OF_TIME} {seconds:g} s", "seconds": seconds}
    except EOFError:
        row = {"error": "BUG the process ended without an answer"}
    process.terminate()
    process.join()
    return {"package": package, "table": name.removesuffix(".csv").removesuffix(".json"), "target_name": target} | row


# All of them


def run(packages: Sequence[str], seconds: float = SECONDS) -> Table:
    """Rows: one for each table of the packages that are installed."""
    work = []
    for package in packages:
        try:
            folder_of("sklearn" if package == "scikit-learn" else package)
        except ModuleNotFoundError as error:
            print(f"left out: {error}")
            continue
        work += [(seconds, package, name, target) for name, target in TABLES[package].items()]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(lambda job: within(*job), work))


def write_page(table: Table, page: Path) -> None:
    """Write what each table was taken for, and what came of it, as Markdown."""
    done = [row for row in table if not row.get("error")]
    found = [row for row in done if row["n_selected"]]
    lines = [
        "# The trial of a new user",
        "",
        f"{len(table)} real tables that ship with packages go in as they come, with",
        f"`KnockoffSelector(fdr={FDR:g}, random_state=0)` and nothing else: {len(done)} of them run, and",
        f"{len(found)} select something. Where a table was refused first, it was tried again without the columns that",
        "the error names, as it advises; those are listed. `python -m benchmarks.new_user` makes this page again;",
        "seconds are of one core that other work shares, with the start of the process.",
        "",
        f"| {' | '.join(HEADER)} |",
        f"|{'---|' * len(HEADER)}",
        *(f"| {' | '.join(cells_of(row))} |" for row in table),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cells_of(row: Row) -> list[str]:
    """Cells of a table's row in the page."""
    first = [row["package"], row["table"], f"`{row['target_name']}`"]
    size = [str(row.get("rows", "")), str(row.get("missing", "")), row.get("kinds", str(row.get("columns", "")))]
    left_out = str(row.get("left_out", ""))
    if row.get("error"):
        said = " ".join(str(row["error"]).split())[:200].replace("|", "/")
        said = said if said.startswith(OUT_OF_TIME) else f"refused: {said}"
        return [*first, *size, left_out, said, "", "", f"{row.get('seconds', 0):.0f}"]
    chosen = f"{row['n_selected']}: {row['selected']}".rstrip(": ") if row["n_selected"] else "none"
    return [*first, *size, left_out, row["method"], chosen[:120], row["verdict"], f"{row['seconds']:.0f}"]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="The trial of a new user")
    parser.add_argument("--packages", default=",".join(TABLES))
    parser.add_argument("--out", type=Path, default=HERE, help="folder of new_user.md and results/new_user.csv")
    given = parser.parse_args()
    path = given.out / "results" / "new_user.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, run(given.packages.split(",")))
    write_page(read_table(path), given.out / "new_user.md")


if __name__ == "__main__":
    main()
