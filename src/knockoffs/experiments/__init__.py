"""One file for each figure or table of the paper, and the one function that runs them."""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from knockoffs.errors import require, unknown_option

if TYPE_CHECKING:
    from knockoffs.experiments.runner import Table

# name -> module with CONFIG, QUICK, run(config, rng, context) -> table, plot(table) -> figure; PACKAGES that it needs
EXPERIMENTS = {
    "fig1": "knockoffs.experiments.importance_scores",
    "fig2": "knockoffs.experiments.need_for_mixtures",
    "fig3": "knockoffs.experiments.power",
    "fdr": "knockoffs.experiments.empirical_fdr",
    "robustness": "knockoffs.experiments.robustness",
    "discovery": "knockoffs.experiments.discovery",
    "schematic": "knockoffs.experiments.schematic",
}
# not in the paper, so not among "all"
STUDIES = {
    "scores": "knockoffs.experiments.score_study",
    "tables": "knockoffs.experiments.real_tables",
    "designs": "knockoffs.experiments.column_designs",
    "new_user": "knockoffs.experiments.new_user",
    "verdict": "knockoffs.experiments.verdict_study",
    "verdict_excess": "knockoffs.experiments.verdict_excess",
}
SEED = 2019  # the year of the paper


def describe(name: str) -> str:
    """Say in one line what an experiment shows: the first line of its module.

    >>> describe("scores")
    'Which score, loss, rows and model of y find most: every combination on the same repetitions.'
    """
    return (importlib.import_module((EXPERIMENTS | STUDIES)[name]).__doc__ or name).splitlines()[0]  # -OO takes them


def run_experiment(
    name: str,
    *,
    quick: bool = False,
    device: str = "auto",
    out: str | os.PathLike[str] = "results",
    seed: int = SEED,
    n_jobs: int | None = -1,
    data_folder: str | os.PathLike[str] | None = None,
    archive: str | os.PathLike[str] | None = None,
    log: Callable[[str], None] | None = None,
    force: bool = False,
) -> list[Path]:
    """Run one experiment of the paper, or all of them, and write table, figure and record of each.

    Finished work is kept under ``out/chunks`` and found again, so a run that was stopped goes on where it was.

    Parameters
    ----------
    name : str
        A key of ``EXPERIMENTS`` or ``STUDIES``, or "all": every one of ``EXPERIMENTS``.
    quick : bool
        Minutes on two cores instead of the full size.
    device : str
        For neural networks: "auto", "cpu" or "cuda".
    out : path
        Folder for ``NAME.csv``, ``NAME.png``, ``NAME.svg`` and ``NAME.json`` (and ``scores.md``).
    seed : int
    n_jobs : int, optional
        Jobs at a time; -1 is all cores, None leaves it to ``joblib.parallel_config``.
    data_folder : path, optional
        Of the real data sets; None takes the environment variable KNOCKOFFS_DATA.
    archive : path, optional
        A zip file for all tables, figures and records in ``out``.
    log : callable, optional
        Gets a line at each step; by default they are printed to standard error with the time of day.
    force : bool
        Overwrite files that no earlier run wrote.

    Returns
    -------
    list of Path
        The tables that were written.
    """
    from knockoffs.experiments.results import check_results, write_results
    from knockoffs.experiments.runner import Context, archive_results, csv_content, stamped, versions

    known = EXPERIMENTS | STUDIES
    if name != "all" and name not in known:
        raise unknown_option("experiment", name, [*known, "all"])
    log = log or stamped()
    folder = Path(out)
    modules = {key: importlib.import_module(known[key]) for key in (EXPERIMENTS if name == "all" else [name])}
    for key, module in modules.items():  # before any work
        for package in getattr(module, "PACKAGES", ()):
            require(package, f"{key}: its numbers")
        check_results(folder, key, force=force)
    found = versions(device)  # a device that is not there is an error now
    if find_spec("matplotlib") is None:
        log("there will be tables and no figures, which need matplotlib: pip install 'knockoffs[plots]'")
    folder.mkdir(parents=True, exist_ok=True)
    context = Context(device, n_jobs, folder / "chunks", data_folder, log)
    tables = []
    for key, module in modules.items():
        config = module.QUICK if quick else module.CONFIG
        log(f"{key}: started{' (quick)' if quick else ''} on {found['device']}")
        start, cpu = time.perf_counter(), time.process_time()
        table = module.run(config, np.random.default_rng(seed), context)
        contents = {".csv": csv_content(table), **_figure(module, table, key, log), **_page(module, table)}
        seconds = {"wall": round(time.perf_counter() - start, 1), "cpu": round(time.process_time() - cpu, 1)}
        record = {
            "experiment": key,
            "quick": quick,
            "seed": seed,
            "settings": config,
            "seconds": seconds,
            "finished": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
            "versions": found,
        }
        write_results(folder, key, record, contents)
        log(f"{key}: done in {seconds['wall']:.0f} s")
        tables.append(folder / f"{key}.csv")
    if archive is not None:
        log(f"all results are in {archive_results(folder, Path(archive))}")
    return tables


def _figure(module: ModuleType, table: Table, key: str, log: Callable[[str], None]) -> dict[str, bytes]:
    from knockoffs.experiments.runner import figure_contents

    try:
        return figure_contents(module.plot(table))
    except ModuleNotFoundError as error:  # a long run is not lost for want of a figure
        log(f"{key}: no figure, {error}")
        return {}


def _page(module: ModuleType, table: Table) -> dict[str, bytes]:
    if not hasattr(module, "write_page"):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        module.write_page(table, page := Path(folder) / "page.md")
        return {".md": page.read_bytes()}
