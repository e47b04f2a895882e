"""Files that the commands read and write: tables, weights, knockoffs, groups, answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from knockoffs.cli.checks import bad_call, check_columns, split_names
from knockoffs.cli.output import say, show, spoken_warnings
from knockoffs.errors import InputError, name_some
from knockoffs.features.source import KnockoffSource, is_network_file, read_features, refuse_fixed
from knockoffs.options import Options
from knockoffs.progress import stage
from knockoffs.record import SelectionRecord, check_selection_place, write_selection
from knockoffs.table.cells import is_number
from knockoffs.table.files import file_hash, read_table_file
from knockoffs.table.table import Table
from knockoffs.table.writer import is_same_file


def read(table: Path, *named: str | None) -> pl.DataFrame:
    """Frame of a file; columns that are ``named`` are read even if they look unusable."""
    say(f"reading {table}")
    stage("reading the table")
    with spoken_warnings():
        parts = [part for name in named if name is not None for part in (name, *name.split(","))]
        return read_table_file(table, asked=parts)


def read_features_of(table: Path, options: Options) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frame of a file, and the same without the dropped columns."""
    frame = read(table, *options.drop)
    dropped = split_names(frame.columns, options.drop)
    check_columns(frame, dropped, "--drop")
    return frame, frame.drop(dropped)


def check_features(source: KnockoffSource, X: pl.DataFrame, options: Options, argument: str, **more: Any) -> Table:
    """Features of a table, checked for a source of knockoffs; warnings are printed."""
    refuse_fixed(source)
    how: dict[str, Any] = {"kinds": options.kinds, "groups": groups_of(options), "dependent": options.dependent}
    with spoken_warnings():
        return read_features(source, X, argument=argument, **how, **more)[0]


def take_apart(
    frame: pl.DataFrame, options: Options
) -> tuple[pl.DataFrame, pl.Series | tuple[pl.Series, ...], NDArray | None]:
    """Features, target (of a survival time a tuple) and weights (or None) of a frame."""
    target, weights = options.target_columns, options.weights
    dropped, covariates = (split_names(frame.columns, names) for names in (options.drop, options.covariates))
    for flag in ("target", "time", "entry"):
        check_columns(frame, [name] if (name := getattr(options, flag)) else [], f"--{flag}")
    event = observed_event(frame, options.event)
    check_columns(frame, dropped, "--drop")
    check_columns(frame, covariates, "--covariates")
    check_columns(frame, [weights] if weights else [], "--weights")
    if weights in target:
        raise bad_call(f"--weights {weights!r} is the target: name another column, or leave out the weights.")
    for name in covariates:
        if name in (*target, weights, *dropped):
            raise bad_call(f"--covariates {name!r} is the target, the weights or dropped: name it once.")
    parts = tuple(event if event is not None and name == event.name else frame[name] for name in target)
    X = frame.drop({*target, *dropped, *([weights] if weights else [])})
    return X, parts[0] if options.target else parts, frame[weights].to_numpy() if weights else None


def observed_event(frame: pl.DataFrame, given: str | None) -> pl.Series | None:
    """Column of an event, or for COLUMN=VALUE whether it has this value; None if there is no event.

    >>> observed_event(pl.DataFrame({"status": [0, 2, 1]}), "status=2").to_list()
    [False, True, False]
    """
    if given is None:
        return None
    name, _, value = given.partition("=")
    check_columns(frame, [name], "--event")
    column, value = frame[name], value.removeprefix("=")
    if not value:
        return column
    found = (
        column == float(value) if column.dtype.is_numeric() and is_number(value) else column.cast(pl.String) == value
    )
    if not found.any():
        raise bad_call(
            f"--event {given}: no row has {value!r} in {name!r}. It has {name_some(column.unique().sort())}."
        )
    return found


def read_knockoffs(path: Path, X: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """Knockoffs of a file, without the table's other columns (the target, for instance)."""
    knockoffs = read(path)
    return knockoffs.drop(set(frame.columns) - set(X.columns), strict=False)


def groups_of(options: Options) -> str | list[tuple[str, str]] | None:
    """Columns that form one feature: "auto", or the pairs of a csv file."""
    groups = options.groups
    if groups is None or groups == "auto":
        return groups
    from knockoffs.table.groups import read_groups

    if not Path(groups).is_file():
        raise InputError(f"--groups {groups!r}: there is no such file. Use a file, or auto.")
    return read_groups(Path(groups))


def other_files(options: Options) -> dict[str, str]:
    """SHA-256 of every file besides the table on which the answer depends."""
    paths = other_paths(options)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.")
    return {path.name: file_hash(path) for path in paths}


def other_paths(options: Options) -> list[Path]:
    """Files besides the table on which the answer depends: a network, fastPHASE's files, knockoffs, groups."""
    groups = None if options.groups == "auto" else options.groups
    network = options.feature_model if is_network_file(options.feature_model) else None
    paths = [Path(name) for name in (options.correlation, options.knockoffs, groups, network) if name is not None]
    prefix = (options.feature_model_options or {}).get("prefix")
    if options.feature_model == "fastphase" and isinstance(prefix, str):
        from knockoffs.features.fastphase import fastphase_files

        paths += fastphase_files(prefix)
    return paths


def check_out(out: Path | None, table: Path, options: Options, force: bool, *others: Path) -> None:
    """Refuse, before the work, a folder where the selection cannot be saved or would replace another file."""
    if out is not None:
        check_selection_place(out, (table, *other_paths(options), *others), force=force)


def check_report(table: Path, options: Options, force: bool, out: Path | None) -> None:
    """Refuse, before the work, a place where the report cannot be written or would replace another file."""
    if options.report is None:
        return
    from knockoffs.report.write import check_report_place

    report = Path(options.report)
    if out is not None and is_same_file(report, out):
        raise bad_call(f"--report {options.report!r} is --out too: one is a file, the other a folder. Name another.")
    if out is not None and is_same_file(report.parent, out):
        out.mkdir(parents=True, exist_ok=True)
    check_report_place(report, (table, *other_paths(options)), force=force)


def deliver(record: SelectionRecord, out: Path | None, *, details: bool = True) -> None:
    """Save the answer if a folder was named, and show it even if it cannot be saved."""
    try:
        if out is not None:
            json_path, csv_path = write_selection(record, out)
            say(f"wrote {json_path} and {csv_path}")
    finally:
        show(record, details=details)
