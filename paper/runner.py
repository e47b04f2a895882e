"""What every figure needs: repetitions on all cores that are kept, tables with standard errors, and the files."""

from __future__ import annotations

import csv
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory, Parallel, delayed
from numpy.typing import NDArray

Row = dict[str, Any]
Table = list[Row]
Arrays = dict[str, NDArray]


@dataclass(frozen=True)
class Context:
    """How a figure is made; none of it changes the numbers, up to rounding.

    Parameters
    ----------
    device : str
        Of neural networks: "auto", "cpu" or "cuda".
    n_jobs : int, optional
        Repetitions at a time, for joblib.
    kept : Path, optional
        Folder where finished repetitions are kept and found again; None keeps nothing.
    data_folder : path, optional
        Of the real data sets; None is the environment variable KNOCKOFFS_DATA.
    verbose : int
        0 prints nothing.
    """

    device: str = "auto"
    n_jobs: int | None = None
    kept: Path | None = None
    data_folder: str | os.PathLike[str] | None = None
    verbose: int = 0

    def repeat(
        self, function: Callable[..., Any], work: Iterable[Sequence[object]], ignore: Sequence[str] = ()
    ) -> list[Any]:
        """Results of ``function(*arguments)`` for each of the work, on all cores.

        A result is found again where all arguments but those named in ``ignore`` are the same.
        """
        cached = Memory(self.kept, verbose=0).cache(function, ignore=list(ignore))
        return Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(delayed(cached)(*arguments) for arguments in work)

    def log(self, line: str) -> None:
        """Print a line with the time of day."""
        if self.verbose:
            print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def run_figure(name: str, context: Context, out: Path, *, quick: bool, seed: int) -> None:
    """Make one figure: ``NAME.csv``, ``NAME.png``, and ``NAME.json`` with settings, seed, versions and time."""
    module = importlib.import_module(f"paper.{name}")
    config = module.QUICK if quick else module.CONFIG
    found = versions(context.device)
    context.log(f"{name}: started{' (quick)' if quick else ''} on {found['device']}")
    start = time.perf_counter()
    table = module.run(config, np.random.default_rng(seed), context)
    out.mkdir(parents=True, exist_ok=True)
    write_table(out / f"{name}.csv", table)
    module.plot(table).savefig(out / f"{name}.png", dpi=150)
    record = {"experiment": name, "quick": quick, "seed": seed, "settings": asdict(config)}
    record |= {"seconds": {"wall": round(time.perf_counter() - start, 1)}, "versions": found}
    (out / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    context.log(f"{name}: done in {record['seconds']['wall']:.0f} s")


def versions(device: str) -> dict[str, str]:
    """Versions of what the numbers rest on, and the machine."""
    import torch

    from knockoffs.response.torch_model import choose_device

    found = {"python": platform.python_version()}
    packages = ("knockoffs", "numpy", "scipy", "scikit-learn", "torch", "joblib", "matplotlib")
    chosen = choose_device(device)
    found |= {package: version(package) for package in packages}
    found["device"] = torch.cuda.get_device_name(chosen) if chosen.type == "cuda" else chosen.type
    return found | {"cpu_count": str(os.cpu_count())}


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Mean and its standard error; the error of a single value is nan.

    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    array = np.asarray(list(values), dtype=float)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else np.nan
    return float(array.mean()), float(error)


def fdr_and_power(found: Sequence[NDArray[np.bool_]], truth: Sequence[NDArray[np.bool_]]) -> Row:
    """Mean false discovery proportion and power with standard errors, from selections and non-nulls of each run."""
    found, truth = np.asarray(found), np.asarray(truth)
    fdr = mean_and_error((found & ~truth).sum(axis=1) / np.maximum(found.sum(axis=1), 1))
    power = mean_and_error((found & truth).sum(axis=1) / truth.sum(axis=1))
    row = {"fdr": fdr[0], "fdr_se": fdr[1], "power": power[0], "power_se": power[1]}
    return row | {"repetitions": len(found)}


def write_table(path: Path, table: Table) -> None:
    """Write rows as csv; a column that a row lacks stays empty."""
    names = list(dict.fromkeys(name for row in table for name in row))
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in table)


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
