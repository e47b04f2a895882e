"""The program ``knockoffs``, to which the commands are added, and what several of them take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from knockoffs.cli.output import put, say

app = typer.Typer(
    name="knockoffs",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or a folder of parquet.")
]
OneFile = Annotated[Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Jobs at a time; the answer does not depend on it.")]
OutFolder = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for selection.json and selection.csv.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there already.")]


def say_lines(text: str) -> None:
    """Write lines to standard error."""
    for line in text.split("\n"):
        say(line)


def print_version(asked: bool) -> None:
    """Print the version and end, where it was asked for."""
    if asked:
        from knockoffs import __version__

        put(f"knockoffs {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def every_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=print_version, is_eager=True)
    ] = False,
) -> None:
    """Select the features that matter given all the others, with the false discovery rate held at a level.

    \b
    What do you want?
      See how it works                knockoffs demo
      All of it in the browser        knockoffs app
      What does my table hold?        knockoffs check table.csv --drop y
      Which features matter for y?    knockoffs select table.csv --target y --report report.html
      A p-value for every feature     knockoffs test table.csv --target y
      I have z-scores, and no rows    knockoffs ghost --z z.csv --correlation R.npy --n 50000
      The same answer again           knockoffs rerun results/selection.json table.csv
      Knockoffs, to use elsewhere     knockoffs sample table.csv --drop y --out knockoffs.csv
      What a feature does to W        knockoffs path table.csv --target y --column age
      The figures of the paper        knockoffs reproduce fig2 --quick
    \b
    knockoffs COMMAND --help says more of each.
    """
    if context.invoked_subcommand is None:
        say_lines(context.get_help())
        raise typer.Exit(2)
