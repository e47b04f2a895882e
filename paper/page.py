"""Write the page "The paper, reproduced" from the stored tables, so that no number on it is typed by hand."""

# ruff: noqa: E501 - lines of the page are lines of the source

from __future__ import annotations

import json
import os
from pathlib import Path

from paper.page_sections import SECTIONS, Writer
from paper.runner import read_table


def write_page(results: Path, page: Path) -> None:
    """Write the page from the tables and records in a folder.

    Parameters
    ----------
    results : Path
        Folder with ``NAME.csv``, ``NAME.json`` and ``NAME.png``.
    page : Path
        Markdown file.
    """
    sections = [section(name, title, writer, results, page) for name, (title, writer) in SECTIONS.items()]
    lines = [*introduction(results), *(line for part in sections for line in part)]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def introduction(results: Path) -> list[str]:
    """Say how the page is made, on what machine and in how much time."""
    paths = [results / f"{name}.json" for name in SECTIONS]
    records = [json.loads(path.read_text()) for path in paths if path.is_file()]
    lines = [
        "# The paper, reproduced",
        "",
        "*Are the results of the paper reproduced?* Every figure and number of sections 4 and 5 and appendices B to E of",
        "*Knockoffs for the Mass* (Gimenez, Ghorbani and Zou, AISTATS 2019), beside those of this package. One command makes all:",
        "",
        "```sh",
        "make paper            # full size, into paper/results; uses a GPU if there is one",
        "make paper QUICK=1    # the smallest settings, into build/paper: minutes on two cores",
        "```",
        "",
        "`results/` has a csv file with standard errors over repetitions for each figure, and a json file with seed, settings,",
        'versions and time. The same command generates this page from them. "±" is one standard error.',
        "",
        "The same data with the default model of the features: [benchmarks/figures_default.md](../benchmarks/figures_default.md).",
        "",
    ]
    if records:
        wall = sum(record["seconds"]["wall"] for record in records)
        devices = sorted({record["versions"]["device"] for record in records})
        quick = [record["experiment"] for record in records if record["quick"]]
        lines += [f"The results here took {wall / 60:.1f} minutes on {', '.join(devices)}"]
        lines[-1] += f" with {records[0]['versions']['cpu_count']} CPU cores (seed {records[0]['seed']})."
        lines += sorted({record["note"] for record in records if "note" in record})
        if quick:
            lines += [f"**These are from the quick size, not the full one: {', '.join(quick)}.**"]
        lines += [""]
    return lines


def section(name: str, title: str, writer: Writer, results: Path, page: Path) -> list[str]:
    """Write one figure: picture, text and numbers, or that it has not been run."""
    lines = [f"## {title}", ""]
    if not (results / f"{name}.csv").is_file():
        return [*lines, f"Not run yet: `python -m paper {name}`.", ""]
    record = json.loads((results / f"{name}.json").read_text())
    picture = os.path.relpath(results / f"{name}.png", page.parent)
    lines += [f"![{title}]({Path(picture).as_posix()})", ""]
    return [*lines, *writer(read_table(results / f"{name}.csv"), record["settings"], results), ""]
