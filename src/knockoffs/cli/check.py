"""``knockoffs check``: what the columns of a table hold, and a verdict on knockoffs of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from knockoffs.cli.output import put, say, spoken_warnings
from knockoffs.cli.program import OneFile, command
from knockoffs.options import Options

if TYPE_CHECKING:
    from knockoffs.table.columns import Column
    from knockoffs.table.table import Table


@command("check")
def check(table: OneFile, options: Options) -> None:
    """Describe the columns of a table and give a verdict.

    With a target: how often columns that do not matter are called on this table, and what remedies that were tried
    reach. Without one, knockoffs (drawn here, or given by --knockoffs) are compared with the columns.

    \b
    knockoffs check table.csv --target y
    knockoffs check table.csv --drop y
    knockoffs check table.csv --drop y --knockoffs mine.csv
    """
    put((try_selection if options.target else compare_knockoffs)(table, options))


def try_selection(table: Path, options: Options) -> str:
    """Lines about the columns of a file, and a verdict with many trials and with the remedies that were tried."""
    from knockoffs.cli.files import groups_of, read, read_knockoffs, take_apart
    from knockoffs.selector import KnockoffSelector

    frame = read(table, options.target, *options.drop)
    X, y, _ = take_apart(frame, options)
    arguments = options.selector_arguments() | {"groups": groups_of(options), "verdict": "full"}
    if options.knockoffs is not None:
        arguments["knockoffs"] = read_knockoffs(Path(options.knockoffs), X, frame)
    with spoken_warnings():
        say(f"trials with labels for which columns do not matter, drawn from models of {options.target!r}")
        selector = KnockoffSelector(**arguments).fit(X, y)
    found = selector.verdict_
    said = "No verdict: with fewer than 50 rows a trial shows nothing." if found is None else found.say()
    return _lines(selector.table_, selector.selection_.notes, said)


def compare_knockoffs(table: Path, options: Options) -> str:
    """Lines about the columns of a file and about P^X, and a verdict on the knockoffs without a target."""
    from knockoffs.cli.files import check_features, read_features_of, read_knockoffs
    from knockoffs.diagnostics.comparison import verdict
    from knockoffs.features.given import GivenKnockoffs
    from knockoffs.features.source import KnockoffSource, knockoff_source
    from knockoffs.machine.parallel import worthwhile_threads
    from knockoffs.sampling.pair import Pair
    from knockoffs.seeds import as_generator

    frame, X = read_features_of(table, options)
    if options.knockoffs is None:
        source: KnockoffSource = knockoff_source(options.feature_model, options.feature_model_options)
    else:
        source = GivenKnockoffs(read_knockoffs(Path(options.knockoffs), X, frame))
    checked = check_features(source, X, options, table.name, min_rows=6)
    with spoken_warnings(), worthwhile_threads(checked.X.size):
        fit_stream, draw_stream, verdict_stream = as_generator(options.seed).spawn(3)
        say(f"drawing knockoffs of {len(checked)} rows of {len(checked.columns)} columns")
        settled = source(checked, rng=fit_stream, n_jobs=options.jobs)
        drawn = settled.sampler.sample(checked.X, draw_stream)
        pair = Pair(drawn.X, drawn.X_tilde, checked.feature_of)
        found = verdict(pair, names=checked.names, kinds=checked.kinds, rng=verdict_stream)
    return _lines(checked, settled.notes, found.say())


def _lines(table: Table, notes: Mapping[str, str], said: str) -> str:
    """Columns, notes and the verdict, as text that a terminal can show."""
    from knockoffs.errors import printable

    columns = [printable(described(column)) for column in table.columns]
    return "\n".join([*columns, "", *map(printable, notes.values()), "", *map(printable, said.splitlines())])


def described(column: Column) -> str:
    """Kind of a column and why, with advice that can be typed on the command line.

    >>> from knockoffs.table.columns import Column
    >>> why = "1 to 5; if they are codes, say kinds={{name}: 'nominal'}"
    >>> described(Column("a grade", "integer", None, "ordinal", why))
    "'a grade' is ordinal: 1 to 5; if they are codes, say --kind 'a grade=nominal'."
    """
    from knockoffs.table.columns import describe

    asked = f"kinds={{{column.name!r}: 'nominal'}}"
    return describe(column).replace(asked, f"--kind {quote(column.name + '=nominal')}")
