"""The data sets of the paper, read from a folder: Bank Marketing, Polish companies, and NHANES for the UK Biobank.

The folder is the environment variable KNOCKOFFS_DATA, or that of ``--data``. Each table is a csv.gz file with a header:

- ``bank/bank-additional-full.csv.gz``: Moro, Cortez and Rita (2014), https://archive.ics.uci.edu/dataset/222
- ``polish_bankruptcy/3year.csv.gz``: Zieba, Tomczak and Tomczak (2016), https://archive.ics.uci.edu/dataset/365
- ``nhanes/nhanes_2017_2020_adults.csv.gz``: adults of the P_*.xpt files of https://wwwn.cdc.gov/nchs/nhanes, joined by
  SEQN; beside it ``nhanes_2017_2020_codebook.csv`` with ``variable`` and ``label``
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

Folder = str | os.PathLike[str] | None
BANK = ["age", "duration", "campaign", "pdays", "previous"]
BANK += ["emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"]
MOST_MISSING = 1 / 3  # share of a row's cells; a row with more belongs to someone who was not examined
MIN_DISTINCT = 11  # a column with fewer values is a code or a short scale, which no Gaussian describes


@dataclass(frozen=True)
class DataSet:
    """Features (n, d) without missing cells, classes 0 and 1, and the names of the features with their meaning."""

    X: NDArray
    y: NDArray[np.intp]
    names: tuple[str, ...]
    meanings: dict[str, str] = field(default_factory=dict)


def read_csv(path: str, folder: Folder = None) -> pd.DataFrame:
    """Table in the data folder."""
    place = Path(folder or os.environ.get("KNOCKOFFS_DATA") or ".") / path
    if not place.is_file():
        raise FileNotFoundError(f"{place} is not there: set KNOCKOFFS_DATA to the folder that paper/data.py describes.")
    return pd.read_csv(place)


def load_bank(folder: Folder = None) -> DataSet:
    """41,188 calls, the ten numeric features that the paper names, and whether the client subscribed."""
    table = read_csv("bank/bank-additional-full.csv.gz", folder)
    return DataSet(table[BANK].to_numpy(float), (table["y"] == "yes").to_numpy(np.intp), tuple(BANK))


def load_bankruptcy(folder: Folder = None) -> DataSet:
    """64 financial ratios of 10,503 companies, and whether the company went bankrupt.

    Missing cells are set to the median of their column (the paper speaks of "no missing attribute", but fewer than
    half of the rows are complete), and each ratio is replaced by its normal scores, because tails reach a million
    standard deviations and no mixture of Gaussians can hold them. A third of the columns are near copies of others.
    """
    table = read_csv("polish_bankruptcy/3year.csv.gz", folder)
    y, X = table.pop("class").to_numpy(np.intp), table.to_numpy(float)
    meanings = {  # of the features in the paper's list
        "Attr6": "Retained earnings / total assets",
        "Attr12": "Gross profit / short-term liabilities",
        "Attr24": "Gross profit (in 3 years) / total assets",
        "Attr35": "Profit on sales / total assets",
    }
    return DataSet(fill_median(normal_scores(X)), y, tuple(table.columns), meanings)


def load_nhanes(folder: Folder = None) -> DataSet:
    """Measurements of adults, and whether they were ever told of a breast cancer.

    Codes (at most ten values) are left out, and rows with over a third of their cells missing: people who were
    interviewed and not examined. Columns become normal scores, and other missing cells medians.
    """
    table = read_csv("nhanes/nhanes_2017_2020_adults.csv.gz", folder)
    y = table["breast_cancer"].to_numpy(np.intp)
    table = table.drop(columns=["SEQN", "breast_cancer"])
    table = table.loc[:, table.nunique() >= MIN_DISTINCT]
    X = table.to_numpy(float)
    examined = np.isnan(X).mean(axis=1) <= MOST_MISSING
    codes = read_csv("nhanes/nhanes_2017_2020_codebook.csv", folder)
    meanings = dict(zip(codes["variable"], codes["label"], strict=True))
    return DataSet(fill_median(normal_scores(X[examined])), y[examined], tuple(table.columns), meanings)


LOADERS = {"bank": load_bank, "bankruptcy": load_bankruptcy, "nhanes": load_nhanes}


def fill_median(X: NDArray) -> NDArray:
    """X with the missing cells of each column set to its median.

    >>> fill_median(np.array([[1.0], [np.nan], [3.0], [2.0]])).ravel()
    array([1., 2., 3., 2.])
    """
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X)


def normal_scores(X: NDArray) -> NDArray:
    """Each column by its ranks on the scale of a standard normal; ties share their mean rank, missing stays missing.

    Monotone in each column, so which features are null does not change; extreme tails are gone.

    >>> normal_scores(np.array([[-1e9], [0.0], [1e12]])).ravel().round(3)
    array([-0.967,  0.   ,  0.967])
    """
    counts = np.maximum((~np.isnan(X)).sum(axis=0), 1)
    return ndtri((rankdata(X, axis=0, nan_policy="omit") - 0.5) / counts)
