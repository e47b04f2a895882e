"""``knockoffs select`` on a table that is read in batches of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from knockoffs.cli.checks import bad_call, split_names
from knockoffs.cli.files import groups_of, other_files
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.select import record_fitted
from knockoffs.errors import InputError
from knockoffs.options import Options
from knockoffs.record import DataFile, SelectionRecord
from knockoffs.table.memory import must_stream, must_stream_text


def why_streamed(table: Path, options: Options) -> str | None:
    """Why a table is read in batches; None if it is not."""
    asked = options.stream
    if options.keep_knockoffs is not None:
        if asked == "never":
            raise bad_call("--keep-knockoffs is for a table in batches: leave out --stream never.")
        return "--keep-knockoffs was given"
    if table.is_dir():
        if asked == "never":
            raise bad_call(f"--stream never: {table} is a folder, which is read in batches.")
        return "it is a folder"
    if asked == "always":
        return "--stream always was given"
    if asked == "never" or not table.is_file() or options.knockoffs is not None:
        return None
    if table.suffix.lower() != ".parquet":
        return must_stream_text(table)
    from knockoffs.table.files import parquet_shape

    return must_stream(*parquet_shape(table))


def run_streamed(table: Path, options: Options, out: Path | None) -> SelectionRecord:
    """Record of a selection from a table in batches."""
    from knockoffs.selector import KnockoffSelector
    from knockoffs.streaming.stream import default_sample, fit_streamed
    from knockoffs.table.stream import open_rows

    if options.report_paths:
        raise bad_call(
            "--report-paths: lambda paths are not supported in batches. Leave it out, or use --stream never."
        )
    if options.time is not None:
        raise InputError("--time: survival times are not supported in batches. Use --stream never.")
    if options.knockoffs is not None:
        raise InputError("--knockoffs are not supported in batches. Use --stream never.")
    target, weights = options.target, options.weights
    named = [name for name in (target, weights, *options.drop, *options.covariates) if name]
    with spoken_warnings():
        rows = open_rows(table, leave_out=[part for name in named for part in (name, *name.split(","))])
    dropped = split_names(list(rows.names), options.drop)
    covariates = split_names(list(rows.names), options.covariates)
    n_features = len(rows.names) - 1 - (weights is not None) - len(dropped) - len(covariates)
    size = options.sample_rows or default_sample(len(rows), n_features + len(covariates))
    options = replace(options, stream="always", sample_rows=int(size))
    data_arguments = {"drop": dropped, "covariates": covariates, "groups": groups_of(options)}
    selector = KnockoffSelector(**options.selector_arguments() | data_arguments)
    files = other_files(options)
    say(f"selecting from {n_features} features of {len(rows):,} rows for {target!r}")
    with spoken_warnings() as said:
        fit_streamed(selector, rows, target, weights=weights, sample_rows=size, keep_knockoffs=options.keep_knockoffs)
    data: DataFile = {"file": table.name, "sha256": rows.sha256(), "n_rows": len(rows), "n_columns": len(rows.names)}
    if files:
        data["files"] = files
    return record_fitted(selector, options, data, said, out)
