"""The command app: what a job of the page runs, which is what the command select runs."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from knockoffs.cli.calls import check_call
from knockoffs.cli.work import run_selection
from knockoffs.errors import InputError
from knockoffs.options import Parameters
from knockoffs.record import write_selection
from knockoffs.table.types import Json


def select_for_page(folder: Path, table: str, parameters: Parameters) -> dict[str, Json]:
    """Select from a file, write report.html, selection.json and selection.csv, and say in short what was found.

    It goes into the file's folder, as who runs the command there, so that what is recorded is the same.
    """
    os.chdir(Path(table).parent)
    click_exception = typer.BadParameter.__mro__[2]
    try:
        check_call(parameters)
        record = run_selection(Path(Path(table).name), parameters, None, report=folder / "report.html")
    except click_exception as error:  # type: ignore[misc]
        raise InputError(error.message) from None
    write_selection(record, folder)
    return {
        "selected": len(record.selected),
        "of": len(record.features),
        "explanation": record.explanation,
        "verdict": None if record.verdict is None else record.verdict["word"],
    }
