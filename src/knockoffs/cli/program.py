"""The program ``knockoffs``: its commands are added here, with flags made from the list of options."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from knockoffs.cli.checks import parse_pairs, prepare_call
from knockoffs.cli.output import put, say_lines
from knockoffs.options import Option, Options, options_of

app = typer.Typer(name="knockoffs", add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

TableFile = Annotated[
    Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; or a folder of parquet.")
]
TableFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header; a folder of parquet; .bed files."
    ),
]
OneFile = Annotated[Path, typer.Argument(metavar="TABLE", help="csv, csv.gz, tsv or parquet, with a header.")]
Jobs = Annotated[int | None, typer.Option(metavar="N", help=options_of("select")["jobs"].help)]
Seed = Annotated[int, typer.Option(metavar="N", help=options_of("select")["seed"].help, min=0)]
OutFolder = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Folder for selection.json and selection.csv.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Command = Callable[..., object]
VALUES = {str: "NAME", int: "N", float: "NUMBER"}  # what the help calls a value


def command(face: str) -> Callable[[Command], Command]:
    """Add a command: typer sees a flag for each of its options, the function gets them as one checked ``Options``."""

    def decorate(function: Command) -> Command:
        hints = get_type_hints(function, include_extras=True)
        listed = options_of(face)

        def run(**given: object) -> object:
            options = Options(**{name: _read(option, given.pop(name)) for name, option in listed.items()})
            prepare_call(options, face)
            return function(**given, options=options)

        own = [p for p in signature(function).parameters.values() if p.name != "options"]
        mine = [p.replace(annotation=hints[p.name], kind=Parameter.KEYWORD_ONLY) for p in own]
        made = [_parameter(option) for option in listed.values()]
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = Signature([*mine, *made])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in (*mine, *made)}
        app.command(face)(run)
        return function

    return decorate


def _parameter(option: Option) -> Parameter:
    """Parameter that describes an option to typer."""
    several = option.kind in (list, dict)
    kind: Any = list[str] if several else option.kind
    flags = (f"{option.written}/--no-{option.written[2:]}",) if option.kind is bool else (option.written,)
    info = typer.Option(*flags, help=option.help, min=option.least, metavar=option.metavar or VALUES.get(option.kind))
    default = Parameter.empty if option.required else None if several else option.default
    annotated = kind | None if default is None else kind
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[annotated, info])


def _read(option: Option, value: Any) -> Any:
    """Value of an option: NAME=VALUE pairs become a dictionary, lists a tuple."""
    if option.kind is dict:
        return parse_pairs(option.written, value)
    return tuple(value or ()) if option.kind is list else value


def print_version(asked: bool) -> None:
    """Print the version and end, if it was asked for."""
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
    """Select the features that matter given all the others, and control the false discovery rate.

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
    \b
    For more, type knockoffs COMMAND --help.
    """
    if context.invoked_subcommand is None:
        say_lines(context.get_help())
        raise typer.Exit(2)
