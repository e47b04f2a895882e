"""Polish companies bankruptcy (Zieba, Tomczak and Tomczak, 2016): 64 financial ratios of a company."""

from __future__ import annotations

import io
import os
import zipfile

import numpy as np

from knockoffs.datasets.dataset import DataSet, fill_median, normal_scores
from knockoffs.datasets.files import Columns, as_arrays, as_numbers, content_sha256, fetch_bytes, read_table
from knockoffs.errors import InputError, unknown_option

URL = "https://archive.ics.uci.edu/static/public/365/polish+companies+bankruptcy+data.zip"
ATTRIBUTES = tuple(f"Attr{j}" for j in range(1, 65))
CONTENT = {  # content_sha256 of the tables: the source publishes no checksum
    1: "9d53b08990f28f921efc63ffd2b8f6329976c7fd91e09e77f4eaadc48828a2cc",
    3: "b49017a67fd91ce3a1d77876921809ff91d2a14e381265963912418978a33c3b",
}
# what the attributes in the paper's list mean, from the source's own description
LABELS = {
    "Attr6": "Retained earnings / total assets",
    "Attr12": "Gross profit / short-term liabilities",
    "Attr24": "Gross profit (in 3 years) / total assets",
    "Attr35": "Profit on sales / total assets",
}


def load_bankruptcy(
    year: int = 3,
    *,
    scale: str = "normal_scores",
    data_folder: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> DataSet:
    """64 financial ratios and whether the company went bankrupt (y = 1).

    Missing cells are set to the median of their column (the paper speaks of "no missing attribute", but fewer than
    half of the rows are complete), and each ratio is replaced by its normal scores, because tails reach a million
    standard deviations and no mixture of Gaussians can hold them. A third of the columns are near copies of others.

    Parameters
    ----------
    year : {3, 1}
        3 has the 10,503 rows of the paper, 1 has 7,027.
    scale : {"normal_scores", "as_is"}
        Whether each column is replaced by its normal scores.
    data_folder : path, optional
        Folder that holds ``polish_bankruptcy/``; None takes the environment variable KNOCKOFFS_DATA.
    download : bool
        Whether the table may be fetched from the UCI repository (about 9 MB) when it is not there.
    """
    if year not in CONTENT:
        raise InputError(f"year={year!r} is not there: use 3 (10,503 companies, as in the paper) or 1 (7,027).")
    if scale not in ("normal_scores", "as_is"):
        raise unknown_option("scale", scale, ("normal_scores", "as_is"))
    columns = read_table(
        f"polish_bankruptcy/{year}year.csv.gz",
        data_folder=data_folder,
        download=download,
        fetch=lambda: _fetch(year),
        source=URL,
    )
    X = as_numbers(columns, ATTRIBUTES)
    notes = [f"{int(np.isnan(X).sum())} missing cells were set to the median of their column."]
    if scale == "normal_scores":
        X = normal_scores(X)
        notes.append("Every ratio was replaced by its normal scores: the tails are extreme.")
    y = as_numbers(columns, ["class"])[:, 0].astype(np.intp)
    return DataSet(f"bankruptcy (year {year})", fill_median(X), y, ATTRIBUTES, tuple(notes), as_arrays(columns))


def _fetch(year: int) -> Columns:
    archive = zipfile.ZipFile(io.BytesIO(fetch_bytes(URL)))
    columns = parse_arff(archive.read(f"{year}year.arff").decode("utf-8"))
    got = content_sha256(columns)
    if got != CONTENT[year]:
        raise InputError(f"{year}year.arff has content sha256 {got}, expected {CONTENT[year]}: the source changed.")
    return columns


def parse_arff(text: str) -> Columns:
    r"""Columns of the source's arff files: numbers and "?" for missing, which becomes an empty cell.

    >>> parse_arff("@relation r\n@attribute Attr1 numeric\n@attribute class {0,1}\n@data\n0.5,0\n?,1\n")
    {'Attr1': ['0.5', ''], 'class': ['0', '1']}
    """
    names, rows, in_data = [], [], False
    for line in (line.strip() for line in text.splitlines()):
        if line.lower().startswith("@attribute"):
            names.append(line.split()[1])
        elif line.lower().startswith("@data"):
            in_data = True
        elif in_data and line and not line.startswith("%"):
            rows.append(["" if cell.strip() == "?" else cell.strip() for cell in line.split(",")])
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
