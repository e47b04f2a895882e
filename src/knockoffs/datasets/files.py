"""Where a table is: data folder, cache, or (only when asked) its public source, checked before it is kept."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.writer import atomic_file

Columns = dict[str, list[str]]
TIMEOUT = 60.0  # seconds a source may stay silent
LARGEST = 200_000_000  # bytes; no source is near it


def read_table(
    path: str,
    *,
    data_folder: str | os.PathLike[str] | None,
    download: bool,
    fetch: Callable[[], Columns] | None,
    source: str,
) -> Columns:
    """Read the csv.gz table at ``path`` inside the data folder or the cache, or fetch it and cache it.

    Parameters
    ----------
    path : str
        For instance "bank/bank-full.csv.gz".
    data_folder : path, optional
        None takes the environment variable KNOCKOFFS_DATA, if there is one.
    download : bool
        Whether the source may be asked when neither folder holds the table.
    fetch : callable, optional
        Gives the columns from the source, already checked. None if the source cannot be read by a program.
    source : str
        Where a person finds the data.
    """
    folders = [Path(folder) for folder in (data_folder or os.environ.get("KNOCKOFFS_DATA"), cache_folder()) if folder]
    for folder in folders:
        if (folder / path).is_file():
            return read_csv(folder / path)
    looked = " and ".join(str(folder) for folder in folders)
    if not download or fetch is None:
        hint = "pass download=True, or " if fetch is not None else ""
        raise InputError(
            f"{path} is not in {looked}: {hint}name the folder that holds it by data_folder= or "
            f"KNOCKOFFS_DATA (source: {source})."
        )
    try:
        columns = fetch()
    except (URLError, TimeoutError, ConnectionError) as error:
        raise InputError(f"{path} could not be fetched from {source}: {error}.") from error
    write_csv(cache_folder() / path, columns)
    return columns


def cache_folder() -> Path:
    """Folder for what was fetched: ``$XDG_CACHE_HOME/knockoffs``, by default ``~/.cache/knockoffs``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "knockoffs"


def fetch_bytes(url: str) -> bytes:
    """Read a file over https, and only over https."""
    if not url.startswith("https://"):
        raise InputError(f"{url} is not an https address.")
    with urlopen(url, timeout=TIMEOUT) as response:
        if not response.geturl().startswith("https://"):
            raise InputError(f"{url} leads away from https, to {response.geturl()}.")
        content: bytes = response.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise InputError(f"{url} is larger than {LARGEST} bytes: not what was expected.")
    return content


def check_sha256(content: bytes, sha256: str, what: str) -> bytes:
    """Return the content if it has the checksum."""
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise InputError(f"{what} has sha256 {got}, expected {sha256}: the source changed or the transfer failed.")
    return content


def content_sha256(columns: Columns) -> str:
    """Checksum of a table that does not depend on the order of its rows and columns or on how a number is written.

    For sources whose own files have no published checksum, and for tables that are made from several files.

    >>> a = content_sha256({"a": ["1.0", "2"], "b": ["x", ""]})
    >>> a == content_sha256({"b": ["", "x"], "a": ["2.00", "1"]})
    True
    """
    names = sorted(columns)
    rows = sorted(zip(*([_canonical(cell) for cell in columns[name]] for name in names), strict=True))
    digest = hashlib.sha256(",".join(names).encode())
    for row in rows:
        digest.update(("\n" + ",".join(row)).encode())
    return digest.hexdigest()


def _canonical(cell: str) -> str:
    try:
        return f"{float(cell):.6g}"
    except ValueError:
        return cell


def parse_csv(text: str, *, delimiter: str = ",") -> Columns:
    r"""Columns of a delimited text with a header.

    >>> parse_csv("a;b\n1;2\n", delimiter=";")
    {'a': ['1'], 'b': ['2']}
    """
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    header = next(rows)
    return {name: list(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def read_csv(path: Path) -> Columns:
    """Columns of a csv.gz file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return parse_csv(file.read())


def write_csv(path: Path, columns: Columns) -> None:
    """Write a csv.gz file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as raw, gzip.open(raw, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def as_numbers(columns: Columns, names: list[str] | tuple[str, ...]) -> NDArray:
    """Columns as an (n, d) array; an empty cell, "?" or "NA" is NaN."""
    cells = [[np.nan if cell in ("", "?", "NA") else float(cell) for cell in columns[name]] for name in names]
    return np.array(cells, dtype=float).T.copy()


def as_arrays(columns: Columns) -> dict[str, NDArray]:
    """Every column as an array: of floats where all its cells are numbers or empty, else of strings."""
    arrays: dict[str, NDArray] = {}
    for name in columns:
        try:
            arrays[name] = as_numbers(columns, [name])[:, 0]
        except ValueError:
            arrays[name] = np.array(columns[name])
    return arrays
