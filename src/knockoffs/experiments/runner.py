"""What every experiment needs: finished work that is kept, tables with standard errors, figures and a record."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import platform
import sys
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.table.batches import Blocks
from knockoffs.table.types import Json
from knockoffs.table.writer import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
Table = list[Row]
Arrays = dict[str, NDArray]


@dataclass(frozen=True)
class Context:
    """How an experiment is run; none of it changes the result, up to rounding.

    Parameters
    ----------
    device : str
        For neural networks: "auto", "cpu" or "cuda".
    n_jobs : int, optional
        Jobs at a time for joblib; None leaves it to ``joblib.parallel_config``.
    chunks : Path, optional
        Folder where finished work is kept and found again; None keeps nothing.
    data_folder : path, optional
        Of the real data sets; None takes the environment variable KNOCKOFFS_DATA.
    log : callable
        Gets one line of text at each step.
    """

    device: str = "auto"
    n_jobs: int | None = None
    chunks: Path | None = None
    data_folder: str | os.PathLike[str] | None = None
    log: Callable[[str], None] = lambda line: None

    def find(self, key: str) -> Arrays | None:
        """Read a finished piece of work, or None."""
        return None if self.chunks is None else Blocks(self.chunks, ".npz").find(key, _read_arrays)

    def keep(self, key: str, arrays: Arrays) -> Arrays:
        """Store a finished piece of work at once and whole, and return it."""
        if self.chunks is not None:
            self.chunks.mkdir(parents=True, exist_ok=True)
            Blocks(self.chunks, ".npz").keep(key, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]
        return arrays

    def once(self, key: str, compute: Callable[[], Arrays]) -> Arrays:
        """Work that is done once and then found again."""
        found = self.find(key)
        return self.keep(key, compute()) if found is None else found


def _read_arrays(path: Path) -> Arrays:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def fingerprint(*settings: object) -> str:
    """Ten hexadecimal digits that change with any of the settings; a Generator counts by its seed and place.

    >>> fingerprint(1, "a") == fingerprint(1, "a") != fingerprint(2, "a")
    True
    """
    return hashlib.sha256(json.dumps([_plain(s) for s in settings], sort_keys=True).encode()).hexdigest()[:10]


def _plain(value: object) -> Json:
    if isinstance(value, Generator):
        seeds: Any = value.bit_generator.seed_seq
        return [str(seeds.entropy), list(seeds.spawn_key), str(value.bit_generator.state)]
    if is_dataclass(value) and not isinstance(value, type):
        return {"": type(value).__name__} | {name: _plain(item) for name, item in asdict(value).items()}
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | range):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [list(value.shape), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)  # json has no infinity
    if isinstance(value, partial):
        return [_plain(value.func), _plain(value.args), _plain(value.keywords)]
    name = getattr(value, "__name__", None)
    if isinstance(name, str):  # of a function or a class
        return name
    assert value is None or isinstance(value, str | int | float)
    return value


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a binary file, whole or not at all, into a folder that is made where it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        write(file)


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single value is nan.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    array = np.asarray(list(values), dtype=float)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return float(array.mean()), float(error)


def write_table(path: Path, table: Table) -> None:
    """Write rows as csv; a column that a row lacks stays empty."""
    content = csv_content(table)
    write_whole(path, lambda file: file.write(content))


def csv_content(table: Table) -> bytes:
    """Write rows as csv; a column that a row lacks stays empty."""
    names = list(dict.fromkeys(name for row in table for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in table)
    return text.getvalue().encode()


def read_table(path: Path) -> Table:
    """Read rows back from csv: numbers become numbers, empty cells are left out."""
    with open(path, encoding="utf-8", newline="") as file:
        return [{name: _value(cell) for name, cell in row.items() if cell != ""} for row in csv.DictReader(file)]


def _cell(value: object) -> object:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float | np.floating) else value


def _value(cell: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell


def figure_contents(figure: Figure) -> dict[str, bytes]:
    """Figure as ".png" and ".svg"; the svg has no date, so that the same figure is the same file."""
    import matplotlib

    png, svg = io.BytesIO(), io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "knockoffs", "svg.fonttype": "none"}):
        figure.savefig(png, format="png", dpi=150)
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return {".png": png.getvalue(), ".svg": svg.getvalue()}


def record_content(record: Mapping[str, object]) -> bytes:
    """Write settings, seed, versions and time as json."""
    return (json.dumps(_plain(record), indent=1) + "\n").encode()


def versions(device: str) -> dict[str, str]:
    """Versions of what the numbers rest on, and the machine."""
    found = {"python": platform.python_version()}
    for name in ("knockoffs", "numpy", "scipy", "scikit-learn", "torch", "joblib", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["device"] = device_name(device)
    found["cpu_count"] = str(os.cpu_count())
    return found


def device_name(device: str) -> str:
    """Name of the device that networks are trained on."""
    try:
        import torch

        from knockoffs.response.networks import choose_device
    except ModuleNotFoundError:
        return "none (PyTorch is not installed)"
    chosen = choose_device(device)
    return torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else chosen.type


def stamped(stream: TextIO | None = None) -> Callable[[str], None]:
    """Return a log that prints each line with the time of day, at once."""

    def log(line: str) -> None:
        print(time.strftime("%H:%M:%S"), line, file=stream or sys.stderr, flush=True)

    return log


def archive_results(out: Path, archive: Path) -> Path:
    """Put tables, figures and records (not the chunks) into one zip file."""
    with atomic_file(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(out.iterdir()):
            if path.suffix in (".csv", ".json", ".png", ".svg"):
                file.write(path, path.name)
    return archive
