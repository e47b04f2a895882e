"""Bank Marketing (Moro, Cortez and Rita, 2014), whether a client subscribes after a telephone call."""

from __future__ import annotations

import io
import os
import zipfile
from typing import NamedTuple

import numpy as np

from knockoffs.datasets.dataset import DataSet
from knockoffs.datasets.files import Columns, as_arrays, as_numbers, check_sha256, fetch_bytes, parse_csv, read_table
from knockoffs.errors import unknown_option

URL = "https://archive.ics.uci.edu/static/public/222/bank+marketing.zip"


class _Version(NamedTuple):
    archive: str
    member: str
    sha256: str
    features: tuple[str, ...]


VERSIONS = {
    # the ten features that the paper lists are the numeric ones of this version
    "additional": _Version(
        "bank-additional.zip",
        "bank-additional/bank-additional-full.csv",
        "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
        (
            "age",
            "duration",
            "campaign",
            "pdays",
            "previous",
            "emp.var.rate",
            "cons.price.idx",
            "cons.conf.idx",
            "euribor3m",
            "nr.employed",
        ),
    ),
    # the 45,211 rows that the paper cites are those of this one
    "full": _Version(
        "bank.zip",
        "bank-full.csv",
        "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
        ("age", "balance", "day", "duration", "campaign", "pdays", "previous"),
    ),
}


def load_bank(
    version: str = "additional",
    *,
    data_folder: str | os.PathLike[str] | None = None,
    download: bool = False,
) -> DataSet:
    """Numeric features of the Bank Marketing data and whether the client subscribed (y = 1).

    Parameters
    ----------
    version : {"additional", "full"}
        41,188 calls with ten numeric features (those the paper names), or 45,211 calls with seven.
    data_folder : path, optional
        Folder that holds ``bank/``; None takes the environment variable KNOCKOFFS_DATA.
    download : bool
        Whether the table may be fetched from the UCI repository (about 1 MB) when it is not there.
    """
    if version not in VERSIONS:
        raise unknown_option("version", version, VERSIONS)
    chosen = VERSIONS[version]
    name = chosen.member.split("/")[-1]
    columns = read_table(
        f"bank/{name}.gz", data_folder=data_folder, download=download, fetch=lambda: _fetch(chosen), source=URL
    )
    notes = (
        "pdays is 999 (additional) or -1 (full) for clients who were never contacted before: left as it is.",
        "duration is known only after the call.",
        "The five economic columns take few values and are nearly collinear.",
    )
    y = np.array([cell == "yes" for cell in columns["y"]], dtype=np.intp)
    X = as_numbers(columns, chosen.features)
    return DataSet(f"bank ({version})", X, y, chosen.features, notes, as_arrays(columns))


def _fetch(version: _Version) -> Columns:
    outer = zipfile.ZipFile(io.BytesIO(fetch_bytes(URL)))
    inner = zipfile.ZipFile(io.BytesIO(outer.read(version.archive)))
    content = check_sha256(inner.read(version.member), version.sha256, version.member)
    return parse_csv(content.decode("utf-8"), delimiter=";")
