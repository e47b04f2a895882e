"""``knockoffs select`` and ``knockoffs test``: which features of a table matter for its target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from knockoffs.cli.checks import bad_call, split_names
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.program import Force, OutFolder, TableFile, TableFiles, command
from knockoffs.options import Options
from knockoffs.progress import stage

if TYPE_CHECKING:
    from knockoffs.record import DataFile, SelectionRecord
    from knockoffs.selector import KnockoffSelector


@command("select")
def select(tables: TableFiles, options: Options, out: OutFolder = None, force: Force = False) -> None:
    """Select the features of a table that matter for its target.

    \b
    knockoffs select table.csv --target y
    knockoffs select table.csv --target y --fdr 0.05 --out results --report report.html
    knockoffs select table.parquet --target y --drop id,date --kind grade=ordinal --groups auto
    knockoffs select table.csv --time days --event died
    knockoffs select table.csv --target y --draws 5 --level post-hoc --jobs -1
    knockoffs select chr*.bed --phenotype pheno.tab --target trait --covariates cov.tab --out results
    """
    if options.knockoffs is not None and (options.feature_model != "auto" or options.feature_model_options):
        raise bad_call("--knockoffs are used as they are: leave out --feature-model and its options.")
    from knockoffs.cli.files import check_out, deliver
    from knockoffs.cli.genotypes import is_bed, run_genotypes

    if not all(map(is_bed, tables)):
        if len(tables) > 1:
            raise bad_call(f"{len(tables)} tables: name one, or several .bed files of the same people.")
        if options.phenotype is not None:
            raise bad_call("--phenotype is for .bed files: a table holds its own target.")
        select_and_show(tables[0], options, out, force)
        return
    check_out(out, tables[0], options, force)
    deliver(run_genotypes(tables, options, out), out)


@command("test")
def test(table: TableFile, options: Options, out: OutFolder = None, force: Force = False) -> None:
    """Give every feature a p-value.

    Each feature is resampled given all the others, many times.

    \b
    knockoffs test table.csv --target y
    knockoffs test table.csv --target y --fdr 0.05 --out results
    """
    select_and_show(table, replace(options, method="conditional_test"), out, force)


def select_and_show(table: Path, options: Options, out: Path | None, force: bool) -> None:
    """Select, save and show."""
    from knockoffs.cli.files import check_out, check_report, deliver

    check_out(out, table, options, force)
    check_report(table, options, force, out)
    deliver(run_selection(table, options, out), out)


def run_selection(table: Path, options: Options, out: Path | None = None) -> SelectionRecord:
    """Record of a selection from a file; the report is written if it was asked for."""
    from knockoffs.cli.files import groups_of, other_files, read, read_knockoffs, take_apart
    from knockoffs.record import data_file
    from knockoffs.selector import KnockoffSelector
    from knockoffs.table.files import file_hash

    if table.suffix.lower() == ".bed":
        from knockoffs.cli.genotypes import run_genotypes

        return run_genotypes([table], options, out)
    why = why_streamed(table, options)
    if why is not None:
        say(f"reading {table} in batches, because {why}")
        return run_streamed(table, options, out)
    columns = (options.weights, *options.drop, *options.covariates, options.clusters, options.order)
    frame = read(table, *options.target_columns, *columns, options.environments)
    options = replace(options, stream="never")  # as decided here, so that another machine gives the same answer
    X, y, weights = take_apart(frame, options)
    files = other_files(options)
    data_arguments = {"groups": groups_of(options), "covariates": split_names(frame.columns, options.covariates)}
    arguments = options.selector_arguments() | data_arguments
    if options.knockoffs is not None:
        arguments["knockoffs"] = read_knockoffs(Path(options.knockoffs), X, frame)
    selector = KnockoffSelector(**arguments)
    n_features = len(X.columns) - len(arguments["covariates"])
    say(f"selecting from {n_features} features of {len(frame)} rows for {', '.join(map(repr, options.target_columns))}")
    with spoken_warnings() as said:
        selector.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    about = data_file(table.name, file_hash(table), frame.shape, files)
    return record_fitted(selector, options, about, said, out)


def record_fitted(
    selector: KnockoffSelector, options: Options, data: DataFile, said: list[str], out: Path | None
) -> SelectionRecord:
    """Record of a fitted selector; the report is written if it was asked for.

    If the report fails or is stopped, the answer is still saved in ``out`` and shown.
    """
    from knockoffs.cli.files import deliver
    from knockoffs.record import record_selection

    record = record_selection(selector.selection_, selector.table_, options.recorded("select"), data, said)
    if options.report is not None:
        try:
            _write_report(selector, record, options)
        except BaseException:
            deliver(record, out)
            raise
    return record


def _write_report(selector: KnockoffSelector, record: SelectionRecord, options: Options) -> None:
    from knockoffs.report.write import facts_of, write_report

    stage("writing the report")
    tested = selector.p_values_ is not None
    if options.report_paths and tested:
        say("the report has no lambda paths, because features were tested: use --method knockoffs")
    facts = replace(
        facts_of(selector),
        called=options.target_columns[0],
        parameters=record.parameters,
        data=record.data,
        versions=record.versions,
        warnings=record.warnings,
        path=selector.lambda_path() if options.report_paths and not tested else None,
    )
    write_report(facts, Path(str(options.report)), force=True)  # its place was checked before the work
    say(f"wrote {options.report}")


# ---- a table that is read in batches of rows ---------------------------------------------------------------------


def why_streamed(table: Path, options: Options) -> str | None:
    """Why a table is read in batches; None if it is not."""
    from knockoffs.table.files import parquet_shape
    from knockoffs.table.memory import OF_TEXT, must_stream, needed_memory

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
        return must_stream(float(OF_TEXT) * table.stat().st_size)  # decided before it is read
    return must_stream(needed_memory(*parquet_shape(table)))


def run_streamed(table: Path, options: Options, out: Path | None) -> SelectionRecord:
    """Record of a selection from a table in batches."""
    from knockoffs.cli.files import groups_of, other_files
    from knockoffs.errors import InputError
    from knockoffs.record import data_file
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
    data = data_file(table.name, rows.sha256(), (len(rows), len(rows.names)), files)
    return record_fitted(selector, options, data, said, out)
