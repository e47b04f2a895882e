"""The command reproduce."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.checks import bad_call
from knockoffs.cli.interrupt import shield_children
from knockoffs.cli.output import put, say
from knockoffs.cli.program import Force, app


@app.command()
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Figure or table of the paper, or all of them: all.")
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names, and do nothing.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes on two cores instead of the full size.")] = False,
    device: Annotated[str, typer.Option(metavar="NAME", help="For neural networks: auto, cpu or cuda.")] = "auto",
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for tables, figures, records and finished work.")
    ] = Path("results"),
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of everything random.", min=0)] = 2019,
    jobs: Annotated[int, typer.Option(metavar="N", help="Jobs at a time; -1 is all cores.")] = -1,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the real data sets (else KNOCKOFFS_DATA).")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Zip file for all tables, figures and records.")
    ] = None,
    force: Force = False,
) -> None:
    """Reproduce the paper's figures and tables.

    \b
    knockoffs reproduce --list
    knockoffs reproduce fig2 --quick
    knockoffs reproduce all --jobs -1 --data folder --archive results.zip
    """
    from knockoffs.errors import unknown_option
    from knockoffs.experiments import EXPERIMENTS, STUDIES, describe, run_experiment

    if list_names:
        for key in (*EXPERIMENTS, *STUDIES):
            put(f"{key:<14} {describe(key)}")
        put(f"{'all':<14} {', '.join(EXPERIMENTS)}")
        return
    if name is None:
        raise bad_call("name a figure or table, or all; --list lists them.")
    if name not in (known := (*EXPERIMENTS, *STUDIES, "all")):
        raise bad_call(str(unknown_option("NAME", name, known)))
    if data is not None and not data.is_dir():
        raise bad_call(f"--data {str(data)!r}: there is no such folder.")
    shield_children()
    from knockoffs.table.writer import check_output, check_place

    check_place(out, make=True)
    if archive is not None and archive.parent.resolve() != out.resolve():  # else its folder may have to be made
        check_place(archive.parent)
    if archive is not None and archive.exists():
        check_output(archive, force=force)
    for written in run_experiment(
        name,
        quick=quick,
        device=device,
        out=out,
        seed=seed,
        n_jobs=jobs,
        data_folder=data,
        archive=archive,
        force=force,
    ):
        say(f"wrote {written}")
