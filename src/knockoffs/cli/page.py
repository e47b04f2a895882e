"""``knockoffs app``: the page in the browser, and the selection that it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knockoffs.cli.checks import prepare_call
from knockoffs.cli.output import say
from knockoffs.cli.program import app
from knockoffs.options import Options
from knockoffs.progress import stage

if TYPE_CHECKING:
    from knockoffs.table.types import Json


@app.command("app")
def open_page(
    port: Annotated[
        int, typer.Option(metavar="N", help="Port of this machine; 0 takes a free one.", min=0, max=65535)
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
    max_size: Annotated[
        float, typer.Option(metavar="MB", help="Largest table that is taken, in MB.", min=0.001)
    ] = 200.0,
    parallel_map: Annotated[
        int | None, typer.Option(metavar="N", help="Selections at a time; half of the cores.", min=1)
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder in which the files of every selection are kept; else nothing is."),
    ] = None,
) -> None:
    """Open a page in the browser, on this machine alone.

    Ctrl-C ends it, and nothing is left on disk.

    \b
    knockoffs app
    knockoffs app --no-browser --port 8000 --keep answers
    """
    from knockoffs.app.serve import check_extra, serve

    check_extra()
    from knockoffs.table.writer import check_place

    if keep is not None:
        check_place(keep, make=True)
    stage("")  # to wait for the user is no work
    serve(
        select_for_page,
        port=port,
        most_bytes=int(max_size * 1e6),
        parallel_map=parallel_map,
        keep=keep,
        browser=browser,
        say=say,
    )


def select_for_page(folder: Path, table: str, parameters: Mapping[str, Json]) -> dict[str, Json]:
    """Summary of a selection from a file; report.html, selection.json and selection.csv are written to the folder.

    It works in the file's folder, as the command would, so that the record is the same.
    """
    from knockoffs.cli.select import run_selection
    from knockoffs.errors import InputError
    from knockoffs.record import write_selection

    os.chdir(Path(table).parent)
    click_exception = typer.BadParameter.__mro__[2]
    options = replace(Options.of(parameters), report=str(folder / "report.html"))
    try:
        prepare_call(options, "select")
        record = run_selection(Path(Path(table).name), options)
    except click_exception as error:  # type: ignore[misc]
        raise InputError(error.message) from None
    write_selection(record, folder)
    return {
        "selected": len(record.selected),
        "of": len(record.features),
        "explanation": record.explanation,
        "verdict": None if record.verdict is None else record.verdict["word"],
    }
