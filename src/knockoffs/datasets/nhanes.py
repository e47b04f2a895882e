"""NHANES 2017 - March 2020, adults: a public stand-in for the phenotypes of the UK Biobank."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from knockoffs.datasets.dataset import DataSet, fill_median, normal_scores
from knockoffs.datasets.files import as_arrays, as_numbers, read_table
from knockoffs.errors import unknown_option

SOURCE = "the P_*.xpt files of https://wwwn.cdc.gov/nchs/nhanes, joined by SEQN into one csv.gz table"
NOT_FEATURES = ("SEQN", "breast_cancer")
MOST_MISSING = 1 / 3  # share of a row's cells; a row with more belongs to someone who was not examined
MIN_DISTINCT = 11  # a column with fewer values is a code or a short scale, which no Gaussian describes


def nhanes_labels(data_folder: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Read what each column means from ``nhanes/nhanes_2017_2020_codebook.csv`` in the data folder; empty if absent."""
    folder = data_folder or os.environ.get("KNOCKOFFS_DATA")
    path = Path(folder or ".") / "nhanes" / "nhanes_2017_2020_codebook.csv"
    if not path.is_file():
        return {}
    with open(path, encoding="utf-8", newline="") as file:
        return {row["variable"]: row["label"] for row in csv.DictReader(file)}


def load_nhanes(
    *,
    continuous: bool = True,
    scale: str = "normal_scores",
    data_folder: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> DataSet:
    """Phenotypes of adults and whether they were ever told of a breast cancer (y = 1).

    Parameters
    ----------
    continuous : bool
        Keep only columns with more than ten distinct values: measurements, not codes.
    scale : {"normal_scores", "as_is"}
        Whether each column is replaced by its normal scores (laboratory values have long tails).
    data_folder : path, optional
        Folder that holds ``nhanes/``; None takes the environment variable KNOCKOFFS_DATA.
    download : bool
        The table is put together from some thirty files, which is not done here: it must be in the data folder.

    Notes
    -----
    Rows with over a third of their cells missing (people who were interviewed but not examined) are left out, and
    the remaining missing cells are set to the median of their column.
    """
    if scale not in ("normal_scores", "as_is"):
        raise unknown_option("scale", scale, ("normal_scores", "as_is"))
    columns = read_table(
        "nhanes/nhanes_2017_2020_adults.csv.gz", data_folder=data_folder, download=download, fetch=None, source=SOURCE
    )
    names = [name for name in columns if name not in NOT_FEATURES]
    X = as_numbers(columns, names)
    notes = []
    if continuous:
        kept = [j for j in range(len(names)) if len(np.unique(X[~np.isnan(X[:, j]), j])) >= MIN_DISTINCT]
        notes.append(f"{len(names) - len(kept)} columns with at most {MIN_DISTINCT - 1} distinct values were left out.")
        names, X = [names[j] for j in kept], X[:, kept]
    examined = np.isnan(X).mean(axis=1) <= MOST_MISSING
    X = X[examined]
    notes.append(f"{int((~examined).sum())} rows with over a third of their cells missing were left out.")
    notes.append(f"{int(np.isnan(X).sum())} missing cells were set to the median of their column.")
    if scale == "normal_scores":
        X = normal_scores(X)
        notes.append("Every column was replaced by its normal scores.")
    y = as_numbers(columns, ["breast_cancer"])[examined, 0].astype(np.intp)
    return DataSet("nhanes adults", fill_median(X), y, tuple(names), tuple(notes), as_arrays(columns))
