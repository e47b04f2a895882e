"""Columns of real tables as they come: mixed, skewed, missing. Read from the data folder and from scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.datasets.bank import VERSIONS
from knockoffs.datasets.hiv import DRUGS
from knockoffs.errors import InputError
from knockoffs.table.auto_groups import SHRUNK, score_correlation
from knockoffs.table.files import read_table_file
from knockoffs.table.table import Table, read_table

COPIES = 0.99  # correlation of normal scores from which a column says what an earlier one says
FEWEST = 10  # rows in which a column differs from its most frequent value; with fewer there is nothing to find
Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Source:
    """A real table.

    Parameters
    ----------
    load : callable
        Data folder -> columns, without the table's own target.
    place : int
        Which of the seed's streams it draws from: a table keeps its numbers when others come and go.
    """

    load: Callable[[Folder], pl.DataFrame]
    place: int


def from_file(path: str, leave_out: tuple[str, ...], only: tuple[str, ...], folder: Folder) -> pl.DataFrame:
    """Columns of a file in the data folder."""
    folder = folder or os.environ.get("KNOCKOFFS_DATA")
    if folder is None:
        raise InputError(f"{path}: name its folder by data_folder= or KNOCKOFFS_DATA.")
    frame = read_table_file(Path(folder) / path, asked=(*leave_out, *only))
    return frame.select(name for name in frame.columns if name not in leave_out and (not only or name in only))


def from_scikit_learn(name: str, folder: Folder) -> pl.DataFrame:
    """Columns of a table that scikit-learn ships."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(**({"scaled": False} if name == "diabetes" else {}))
    return named_columns(bunch.data, bunch.feature_names)


def newswire(folder: Folder) -> pl.DataFrame:
    """How often the hundred words in most stories of R8 occur."""
    from knockoffs.datasets.newswire import load_newswire

    data = load_newswire(n_words=100, data_folder=folder)
    return named_columns(data.X, data.feature_names)


def named_columns(X: NDArray, names: Iterable[object]) -> pl.DataFrame:
    """Table of an array and names."""
    return pl.DataFrame({str(name): X[:, j] for j, name in enumerate(names)})


def _file(path: str, *leave_out: str, only: tuple[str, ...] = ()) -> Callable[[Folder], pl.DataFrame]:
    return partial(from_file, path, leave_out, only)


SOURCES = {
    "wine": Source(partial(from_scikit_learn, "wine"), 0),
    "diabetes": Source(partial(from_scikit_learn, "diabetes"), 1),
    "breast cancer": Source(partial(from_scikit_learn, "breast_cancer"), 2),
    "digits": Source(partial(from_scikit_learn, "digits"), 3),
    "bank, 10 numbers": Source(_file("bank/bank-additional-full.csv.gz", only=VERSIONS["additional"].features), 4),
    "bank, 20 columns": Source(_file("bank/bank-additional-full.csv.gz", "y"), 5),
    "bank, older, 16 columns": Source(_file("bank/bank-full.csv.gz", "y"), 6),
    "Polish companies, year 1": Source(_file("polish_bankruptcy/1year.csv.gz", "class"), 7),
    "Polish companies, year 3": Source(_file("polish_bankruptcy/3year.csv.gz", "class"), 8),
    "HIV, PI": Source(_file("hiv/PI.csv.gz", *DRUGS["PI"]), 9),
    "HIV, NRTI": Source(_file("hiv/NRTI.csv.gz", *DRUGS["NRTI"]), 10),
    "newswire, 100 words": Source(newswire, 11),
    "NHANES": Source(_file("nhanes/nhanes_2017_2020_adults.csv.gz", "SEQN", "breast_cancer"), 12),
}


def load_columns(name: str, n_rows: int, rng: Generator, folder: Folder = None) -> Table:
    """Table of some of the rows, without columns that are nearly constant in them or say what an earlier one says.

    Of two columns of which one is nearly a function of the other neither is null given the other, so the truth about
    labels drawn from one of them would not be known.
    """
    frame = SOURCES[name].load(folder)
    n = len(frame)
    rows = np.sort(rng.choice(n, n_rows, replace=False)) if n > n_rows else np.arange(n)
    table = read_table(frame[rows])
    table = take_columns(table, np.flatnonzero([varies(x) for x in table.X.T]))
    return take_columns(table, first_of_copies(np.abs(score_correlation(table.X)) / (1 - SHRUNK)))


def varies(x: NDArray) -> bool:
    """Whether enough rows differ from the most frequent value."""
    _, counts = np.unique(x[~np.isnan(x)], return_counts=True)
    return bool(counts.size) and int(counts.sum() - counts.max()) >= FEWEST


def first_of_copies(alike: NDArray) -> NDArray[np.intp]:
    """Columns kept one after the other where none that is kept already says the same.

    >>> first_of_copies(np.array([[1, 0.999, 0.1], [0.999, 1, 0.1], [0.1, 0.1, 1]])).tolist()
    [0, 2]
    """
    kept: list[int] = []
    for j, row in enumerate(alike):
        if not (row[kept] > COPIES).any():
            kept.append(j)
    return np.array(kept, dtype=np.intp)


def take_columns(table: Table, kept: NDArray[np.intp]) -> Table:
    """Table of some columns."""
    return replace(table, X=table.X[:, kept], columns=tuple(table.columns[j] for j in kept), native=None)
