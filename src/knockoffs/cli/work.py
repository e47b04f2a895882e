"""The work behind the commands: files come in, a selection or knockoffs come out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import NDArray

from knockoffs.cli.calls import bad_call, check_columns, is_network_file, prepare_jobs, split_names
from knockoffs.cli.output import say, show, spoken_warnings
from knockoffs.options import Parameters, selector_arguments
from knockoffs.progress import stage
from knockoffs.record import DataFile, SelectionRecord, check_selection_place, record_selection, write_selection
from knockoffs.table.files import (
    column_names,
    drop_columns,
    file_format,
    file_hash,
    read_table_file,
    take_column,
    write_table_file,
)
from knockoffs.table.table import Kinds
from knockoffs.table.types import Frame
from knockoffs.table.writer import check_output, is_same_file

if TYPE_CHECKING:
    from knockoffs.selector import KnockoffSelector


class Batches(TypedDict, total=False):
    """Arguments of ``fit_streamed`` for a table that is read in batches: who does the work, and what is kept."""

    client: str
    keep_knockoffs: str


class Reading(TypedDict):
    """Options by which the features of a table are read."""

    kinds: Kinds
    groups: object
    representatives: bool
    dependent: str


def run_selection(
    table: Path,
    parameters: Parameters,
    jobs: int | None,
    *,
    out: Path | None = None,
    report: Path | None = None,
    paths: bool = False,
    batches: Batches | None = None,
) -> SelectionRecord:
    """Read a file, select, record what was found, and write a report where a place for it is named.

    ``batches`` are arguments of ``fit_streamed`` for a table that is read in batches: how, and what is kept.
    """
    from knockoffs.cli.streamed import run_streamed, why_streamed

    prepare_jobs(jobs)
    asked = batches or {}
    why = why_streamed(table, parameters, asked)
    if why is not None:
        say(f"reading {table} in batches, because {why}")
        return run_streamed(table, parameters, jobs, out=out, report=report, paths=paths, batches=asked)
    frame = read(table, parameters)
    data: DataFile = {"file": table.name, "sha256": file_hash(table)}
    if "stream" in parameters:  # as it was decided here: another machine gives the same answer
        parameters = {**parameters, "stream": "never"}
    return run_on_frame(frame, parameters, data, jobs, out=out, report=report, paths=paths)


def run_on_frame(
    frame: Frame,
    parameters: Parameters,
    data: DataFile,
    jobs: int | None,
    *,
    out: Path | None = None,
    report: Path | None = None,
    paths: bool = False,
) -> SelectionRecord:
    """Select from a frame, record what was found, and write a report where a place for it is named."""
    from knockoffs.selector import KnockoffSelector

    X, y, weights = take_apart(frame, parameters)
    files = other_files(parameters)
    options = selector_arguments(parameters)
    knockoffs = parameters.get("knockoffs")
    if knockoffs is not None:
        options["knockoffs"] = read_knockoffs(Path(knockoffs), X, frame)
    options["groups"] = groups_of(parameters)
    selector = KnockoffSelector(**{**options, "n_jobs": jobs})
    say(f"selecting from {len(column_names(X))} features of {len(y)} rows for {parameters['target']!r}")
    with spoken_warnings() as said:
        selector.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    about: DataFile = {**data, "n_rows": len(y), "n_columns": len(column_names(frame))}
    if files:
        about["files"] = files
    return record_fitted(selector, parameters, about, said, out=out, report=report, paths=paths)


def record_fitted(
    selector: KnockoffSelector,
    parameters: Parameters,
    about: DataFile,
    said: list[str],
    *,
    out: Path | None,
    report: Path | None,
    paths: bool,
) -> SelectionRecord:
    """Record of a fitted selector, and its report where a place for it is named.

    Where the report fails, or is stopped, the answer is saved in ``out`` and shown all the same.
    """
    record = record_selection(selector.selection_, selector.table_, parameters, about, said)
    if report is not None:
        try:
            _write_report(selector, record, about, said, report, paths)
        except BaseException:
            deliver(record, out)
            raise
    return record


def _write_report(
    selector: KnockoffSelector, record: SelectionRecord, about: DataFile, said: list[str], report: Path, paths: bool
) -> None:
    from knockoffs.report.write import facts_of, write_report

    stage("writing the report")
    tested = selector.p_values_ is not None
    if paths and tested:
        say("the report has no lambda paths, because features were tested: --method knockoffs has them")
    facts = replace(
        facts_of(selector),
        called=record.parameters["target"],
        parameters=record.parameters,
        data=about,
        versions=record.versions,
        warnings=said,
        path=selector.lambda_path() if paths and not tested else None,
    )
    write_report(facts, report, force=True)  # its place was checked before the work
    say(f"wrote {report}")


def read(table: Path, parameters: Parameters, *also: str) -> Frame:
    """Read a file, and say so, and what is odd about it; also columns that would be left out but for the caller."""
    say(f"reading {table}")
    stage("reading the table")
    named = [parameters.get("target"), parameters.get("weights"), *parameters["drop"]]
    with spoken_warnings():
        parts = [part for name in named if name for part in (name, *name.split(","))]
        return read_table_file(table, asked=[*parts, *also])


def take_apart(frame: Frame, parameters: Parameters) -> tuple[Frame, NDArray, NDArray[np.float64] | None]:
    """Features, target and weights (or None) of a frame."""
    target, weights = parameters["target"], parameters.get("weights")
    check_columns(frame, [target], "--target")
    dropped = split_names(frame, parameters["drop"], "--drop")
    if weights is None:
        return drop_columns(frame, list({target, *dropped})), take_column(frame, target), None
    check_columns(frame, [weights], "--weights")
    if weights == target:
        raise bad_call(f"--weights {weights!r} is the target: name another column, or leave the weights out.")
    X = drop_columns(frame, list({target, weights, *dropped}))
    return X, take_column(frame, target), numbers_of(frame, weights)


def numbers_of(frame: Frame, name: str) -> NDArray[np.float64]:
    """Column of weights as numbers, each of which is one."""
    from knockoffs.errors import InputError

    try:
        weights = np.asarray(take_column(frame, name), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"--weights {name!r} holds labels, not numbers: weights are numbers, not negative.") from None
    bad = np.flatnonzero(~(weights >= 0))
    if bad.size:
        what = "has no weight" if np.isnan(weights[bad[0]]) else f"has a weight of {weights[bad[0]]:g}"
        raise InputError(
            f"--weights {name!r}: row {bad[0]} {what} (and so it is in {bad.size} of {len(weights)} rows). Weights are "
            "numbers, not negative, and 0 for a row that is not to count."
        )
    return weights


def read_knockoffs(path: Path, X: Frame, frame: Frame) -> Frame:
    """Knockoffs of a file; of the table's other columns (the target, say) their copies are left out."""
    knockoffs = read(path, {"drop": []})
    others = (set(column_names(frame)) - set(column_names(X))) & set(column_names(knockoffs))
    return drop_columns(knockoffs, others) if others else knockoffs


def other_files(parameters: Parameters) -> dict[str, str]:
    """SHA-256 of each file besides the table on which the answer rests."""
    from knockoffs.errors import InputError

    paths = other_paths(parameters)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.")
    return {path.name: file_hash(path) for path in paths}


def groups_of(parameters: Parameters) -> str | list[tuple[str, str]] | None:
    """Read the groups of columns: "auto", or the pairs of a csv file."""
    groups = parameters.get("groups")
    if groups is None or groups == "auto":
        return groups
    from knockoffs.errors import InputError
    from knockoffs.table.groups import read_groups

    if not Path(groups).is_file():
        raise InputError(f"--groups {groups!r}: there is no such file; or say auto.")
    return read_groups(Path(groups))


def reading(parameters: Parameters) -> Reading:
    """Options by which the features of a table are read."""
    return {
        "kinds": parameters["kinds"],
        "groups": groups_of(parameters),
        "representatives": bool(parameters.get("representatives", False)),
        "dependent": parameters.get("dependent", "refuse"),
    }


def other_paths(parameters: Parameters) -> list[Path]:
    """Files besides the table on which the answer rests: a network, fastPHASE's files, knockoffs."""
    paths = []
    groups = parameters.get("groups")
    for name in (parameters.get("correlation"), parameters.get("knockoffs"), None if groups == "auto" else groups):
        if name is not None:
            paths.append(Path(name))
    feature_model = parameters.get("feature_model")
    if feature_model is not None and is_network_file(feature_model):
        paths.append(Path(feature_model))
    prefix = (parameters.get("feature_model_options") or {}).get("prefix")
    if feature_model == "fastphase" and isinstance(prefix, str):
        from knockoffs.features.fastphase import fastphase_files

        paths += fastphase_files(prefix)
    return paths


def check_out(out: Path | None, table: Path, parameters: Parameters, force: bool, *others: Path) -> None:
    """Refuse, before the work, a folder where the selection cannot be saved or would cost a file."""
    if out is not None:
        check_selection_place(out, (table, *other_paths(parameters), *others), force=force)


def check_report(report: str | None, table: Path, parameters: Parameters, force: bool, out: Path | None) -> Path | None:
    """Refuse, before the work, a place where the report cannot be written or would cost a file.

    A report that lies in the folder of the selection makes that folder.
    """
    if report is None:
        return None
    from knockoffs.report.write import check_report_place

    if out is not None and is_same_file(Path(report), out):
        raise bad_call(f"--report {report!r} is --out too: one is a file, the other a folder. Name another.")
    if out is not None and is_same_file(Path(report).parent, out):
        out.mkdir(parents=True, exist_ok=True)

    return check_report_place(report, (table, *other_paths(parameters)), force=force)


def save(record: SelectionRecord, out: Path | None) -> None:
    """Write the record where a folder was named."""
    if out is not None:
        json_path, csv_path = write_selection(record, out)
        say(f"wrote {json_path} and {csv_path}")


def deliver(record: SelectionRecord, out: Path | None) -> None:
    """Save the answer, and show it also where it cannot be saved."""
    try:
        save(record, out)
    finally:
        show(record)


# ---- knockoffs alone -------------------------------------------------------------------------------------------------


def sample_table(table: Path, out: Path, parameters: Parameters, *, force: bool) -> None:
    """Write knockoffs of a table, in the format that came in; and the completed table, where cells are missing."""
    from knockoffs.features.source import knockoff_source, read_features
    from knockoffs.machine.threads import worthwhile_threads
    from knockoffs.seeds import as_generator

    jobs, drop = parameters["jobs"], parameters["drop"]
    prepare_jobs(jobs)
    if out.is_dir():
        ending = file_format(table)
        out = out / f"{table.name[: -len(ending)]}.knockoffs{ending}"
    check_output(out, [table, *other_paths(parameters)], force=force)
    frame = read(table, {"drop": drop})
    dropped = split_names(frame, drop, "--drop")
    source = knockoff_source(parameters["feature_model"], parameters["feature_model_options"])
    kept = drop_columns(frame, dropped) if drop else frame
    with spoken_warnings():
        how = reading(parameters)
        if how["dependent"] == "auto":  # knockoffs of all columns are wanted
            how["dependent"] = "refuse"
        checked, _ = read_features(source, kept, argument=table.name, min_rows=2, **how)
    ending = file_format(out)
    completed = out.with_name(f"{out.name[: -len(ending)]}.completed{ending}")
    if checked.missing:
        check_output(completed, [table, *other_paths(parameters)], force=force)
    fit_stream, draw_stream = as_generator(parameters["seed"]).spawn(2)
    say(f"fitting {parameters['feature_model']} to {checked.X.shape[0]} rows of {checked.X.shape[1]} columns")
    with spoken_warnings(), worthwhile_threads(checked.X.size):
        settled = source(checked, rng=fit_stream, n_jobs=jobs)
        say("drawing knockoffs")
        pair = settled.sampler.sample(checked.X, draw_stream)
    write_table_file(checked.decode(pair.X_tilde), out)
    say(f"wrote {out}: {pair.X.shape[0]} rows, {pair.X.shape[1]} columns")
    if checked.missing:  # beside gaps, or cells filled in another way, knockoffs can be told from their features
        write_table_file(checked.decode(pair.X), completed)
        say(f"wrote {completed}: the table, its missing cells drawn. The knockoffs are of this one: use it with them.")


def sample_genotypes(
    bed: Path, out: Path, parameters: Parameters, *, rows_at_once: int, fresh: bool, force: bool
) -> None:
    """Write knockoffs of a .bed file as another .bed file, by fastPHASE's model of the genotypes."""
    from knockoffs.features.genotypes import check_bed_output, fastphase_models, sample_knockoffs_bed
    from knockoffs.registry import check_options
    from knockoffs.seeds import as_generator

    jobs, seed, options = parameters["jobs"], parameters["seed"], parameters["feature_model_options"]
    prepare_jobs(jobs)
    if out.is_dir():
        out = out / f"{bed.stem}.knockoffs.bed"
    check_bed_output(bed, out, force=force)
    bound = check_options(options, ("prefix", "start", "hidden_knockoff"), "feature_model_options")
    if parameters["groups"] == "auto":
        raise bad_call("--groups auto is for tables: of a .bed file, name a csv file with the header column,group.")
    groups = groups_of(parameters)
    with spoken_warnings():
        models = fastphase_models(bed, **bound)
    say(f"drawing knockoffs of {bed}")
    written = sample_knockoffs_bed(
        bed,
        out,
        models,
        rng=as_generator(seed),
        groups=groups,
        rows_at_once=rows_at_once,
        n_jobs=jobs,
        resume=not fresh,
        force=force,
    )
    say(f"wrote {written}, with .bim and .fam beside it")
