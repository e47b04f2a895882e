"""The command select on a table that is read in batches."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from knockoffs.cli.calls import bad_call
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.work import Batches, groups_of, other_files, record_fitted
from knockoffs.errors import InputError
from knockoffs.options import Parameters, selector_arguments
from knockoffs.record import DataFile, SelectionRecord
from knockoffs.table.memory import must_stream, must_stream_text


def why_streamed(table: Path, parameters: Parameters, batches: Batches | None = None) -> str | None:
    """Why a table is read in batches, if it is; whatever cannot fit is refused here, before it is read."""
    asked = parameters.get("stream") or "never"  # records of earlier versions
    for name, flag in (("client", "--scheduler"), ("keep_knockoffs", "--keep-knockoffs")):
        if name in (batches or {}):
            if asked == "never":
                raise bad_call(f"{flag} is for a table in batches: leave out --stream never.")
            if name == "client":
                from knockoffs.streaming.cluster import check_dask

                check_dask()
            return f"{flag} says so"
    parquet = table.suffix.lower() == ".parquet" and table.is_file()
    if table.is_dir():
        if asked == "never":
            raise bad_call(f"--stream never: {table} is a folder, which is read in batches.")
        return "it is a folder"
    if asked == "always":
        return "--stream says so"
    if asked == "never" or not table.is_file():
        return None
    if parameters.get("knockoffs") is not None:
        return None
    if not parquet:
        return must_stream_text(table)
    from knockoffs.table.files import parquet_shape

    return must_stream(*parquet_shape(table))


def run_streamed(
    table: Path,
    parameters: Parameters,
    jobs: int | None,
    *,
    out: Path | None,
    report: Path | None,
    paths: bool,
    batches: Batches,
) -> SelectionRecord:
    """Select from a table in batches; where a folder for the answer is named, a stopped run goes on."""
    from knockoffs.selector import KnockoffSelector
    from knockoffs.streaming.stream import default_sample, fit_streamed
    from knockoffs.table.stream import open_rows

    if paths:
        raise bad_call("--report-paths: lambda paths are not followed on a table in batches.")
    if parameters.get("knockoffs") is not None:
        raise InputError("--knockoffs: knockoffs that were brought along are not read in batches.")
    target, weights = parameters["target"], parameters.get("weights")
    with spoken_warnings():
        named = [name for name in (target, weights, *parameters["drop"]) if name]
        rows = open_rows(table, leave_out=[part for name in named for part in (name, *name.split(","))])
    dropped = _split(parameters["drop"], rows.names)
    n_features = len(rows.names) - 1 - (weights is not None) - len(dropped)
    size = parameters.get("sample_rows") or default_sample(len(rows), n_features)
    parameters = {**parameters, "stream": "always", "sample_rows": int(size)}
    options = {**selector_arguments(parameters), "drop": dropped, "groups": groups_of(parameters), "n_jobs": jobs}
    selector = KnockoffSelector(**options)
    files = other_files(parameters)
    work = None if out is None else out / f"selection.{_key(table, parameters)}.parts"
    if work is not None and work.is_dir():
        say(f"going on with the work in {work}")
    say(f"selecting from {n_features} features of {len(rows):,} rows for {target!r}")
    with spoken_warnings() as said:
        fit_streamed(selector, rows, target, weights=weights, sample_rows=size, work=work, **batches)
    about: DataFile = {
        "file": table.name,
        "sha256": rows.sha256(),
        "n_rows": len(rows),
        "n_columns": len(rows.names),
    }
    if files:
        about["files"] = files
    return record_fitted(selector, parameters, about, said, out=out, report=report, paths=False)


def _split(drop: list[str], known: tuple[str, ...]) -> list[str]:
    """Names of columns, also where several were given as one, with commas between them."""
    names: list[str] = []
    for name in drop:
        names += [name] if name in known or "," not in name else [part.strip() for part in name.split(",")]
    return names


def _key(table: Path, parameters: Parameters) -> str:
    """Short name of a call: another call has another folder for its work."""
    content = json.dumps([str(table.resolve()), dict(parameters)], sort_keys=True, default=str)
    return hashlib.sha256(content.encode()).hexdigest()[:8]
