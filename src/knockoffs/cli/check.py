"""The command check: what the columns of a table hold, and a verdict on knockoffs of it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from knockoffs.cli.calls import split_names
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.work import read, read_knockoffs, reading
from knockoffs.diagnostics.verdict import verdict
from knockoffs.errors import printable
from knockoffs.features.source import GivenKnockoffs, KnockoffSource, knockoff_source, read_features
from knockoffs.machine.threads import worthwhile_threads
from knockoffs.options import Parameters
from knockoffs.sampling.pair import Pair
from knockoffs.seeds import as_generator
from knockoffs.table.columns import Column, describe
from knockoffs.table.files import drop_columns


def run_check(table: Path, parameters: Parameters) -> str:
    """Lines about the columns of a file, about P^X, and the verdict on its knockoffs."""
    frame = read(table, parameters)
    dropped = split_names(frame, parameters["drop"], "--drop")
    X = drop_columns(frame, dropped) if dropped else frame
    if parameters["knockoffs"] is not None:
        source: KnockoffSource = GivenKnockoffs(read_knockoffs(Path(parameters["knockoffs"]), X, frame))
    else:
        source = knockoff_source(parameters["feature_model"], parameters["feature_model_options"])
    with spoken_warnings():
        checked, _ = read_features(source, X, argument=table.name, min_rows=6, **reading(parameters))
    with spoken_warnings(), worthwhile_threads(checked.X.size):
        fit_stream, draw_stream, verdict_stream = as_generator(parameters["seed"]).spawn(3)
        say(f"drawing knockoffs of {len(checked)} rows of {len(checked.columns)} columns")
        settled = source(checked, rng=fit_stream, n_jobs=parameters["jobs"])
        drawn = settled.sampler.sample(checked.X, draw_stream)
        pair = Pair(drawn.X, drawn.X_tilde, checked.feature_of)
        found = verdict(pair, names=checked.names, kinds=checked.kinds, rng=verdict_stream)
    columns = [printable(told(column)) for column in checked.columns]
    return "\n".join([*columns, "", *map(printable, settled.notes.values()), "", *found.say().splitlines()])


def told(column: Column) -> str:
    """Say what a column was taken for, with advice that can be typed.

    >>> told(Column("a grade", "integer", None, "ordinal", "1 to 5; if they are codes, say kinds={{name}: 'nominal'}"))
    "'a grade' is ordinal: 1 to 5; if they are codes, say --kind 'a grade=nominal'."
    """
    asked = f"kinds={{{column.name!r}: 'nominal'}}"
    return describe(column).replace(asked, f"--kind {quote(column.name + '=nominal')}")
