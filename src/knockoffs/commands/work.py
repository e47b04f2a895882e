"""The work behind the commands: files come in, a selection or knockoffs come out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knockoffs.commands.calls import bad_call, check_columns, is_network_file
from knockoffs.commands.output import say, spoken_warnings
from knockoffs.record import SelectionRecord, record_selection, write_selection
from knockoffs.table.files import drop_columns, file_format, file_hash, read_table_file, take_column, write_table_file


def run_selection(table: Path, parameters: Mapping[str, Any], jobs: int | None) -> SelectionRecord:
    """Read a file, select, and record what was found."""
    frame = read(table)
    data = {"file": table.name, "sha256": file_hash(table)}
    return run_on_frame(frame, parameters, data, jobs)


def run_on_frame(
    frame: Any, parameters: Mapping[str, Any], data: Mapping[str, Any], jobs: int | None
) -> SelectionRecord:
    """Select from a frame, and record what was found."""
    from knockoffs.estimator import KnockoffSelector

    X, y, weights = take_apart(frame, parameters)
    files = other_files(parameters)
    used_here = ("target", "drop", "seed", "weights", "knockoffs")
    options = {key: value for key, value in parameters.items() if key not in used_here}
    if parameters.get("knockoffs") is not None:
        options["knockoffs"] = read_knockoffs(Path(parameters["knockoffs"]), X, frame)
    selector = KnockoffSelector(**options, random_state=parameters["seed"], n_jobs=jobs)
    say(f"selecting from {len(X.columns)} features of {len(y)} rows for {parameters['target']!r}")
    with spoken_warnings():
        selector.fit(X, y, **({} if weights is None else {"sample_weight": weights}))
    shape = {"n_rows": len(y), "n_columns": len(frame.columns)}
    return record_selection(selector.selection_, parameters, {**data, **shape, **({"files": files} if files else {})})


def read(table: Path) -> Any:
    """Read a file, and say so."""
    say(f"reading {table}")
    return read_table_file(table)


def take_apart(frame: Any, parameters: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Features, target and weights (or None) of a frame."""
    target, weights, dropped = parameters["target"], parameters.get("weights"), parameters["drop"]
    check_columns(frame, [target], "--target")
    check_columns(frame, dropped, "--drop")
    if weights is None:
        return drop_columns(frame, list({target, *dropped})), take_column(frame, target), None
    check_columns(frame, [weights], "--weights")
    if weights == target:
        raise bad_call(f"--weights {weights!r} is the target: name another column, or leave the weights out.")
    X = drop_columns(frame, list({target, weights, *dropped}))
    return X, take_column(frame, target), numbers_of(frame, weights)


def numbers_of(frame: Any, name: str) -> Any:
    """Column of weights as numbers."""
    import numpy as np

    from knockoffs.errors import InputError

    values = take_column(frame, name)
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"--weights {name!r} holds labels, not numbers: weights are numbers, not negative.") from None


def read_knockoffs(path: Path, X: Any, frame: Any) -> Any:
    """Knockoffs of a file; of the table's other columns (the target, say) their copies are left out."""
    knockoffs = read(path)
    others = [name for name in frame.columns if name not in X.columns and name in knockoffs.columns]
    return drop_columns(knockoffs, others) if others else knockoffs


def other_files(parameters: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of each file besides the table on which the answer rests: a network, fastPHASE's files, knockoffs."""
    from knockoffs.errors import InputError

    paths = []
    if parameters.get("knockoffs") is not None:
        paths.append(Path(parameters["knockoffs"]))
    feature_model = parameters.get("feature_model")
    if feature_model is not None and is_network_file(feature_model):
        paths.append(Path(feature_model))
    prefix = (parameters.get("feature_model_options") or {}).get("prefix")
    if feature_model == "fastphase" and prefix is not None:
        from knockoffs.features.fastphase import fastphase_files

        paths += fastphase_files(prefix)
    for path in paths:
        if not path.is_file():
            raise InputError(f"{path}: there is no such file.")
    return {path.name: file_hash(path) for path in paths}


def save(record: SelectionRecord, out: Path | None) -> None:
    """Write the record where a folder was named."""
    if out is not None:
        json_path, csv_path = write_selection(record, out)
        say(f"wrote {json_path} and {csv_path}")


# ---- knockoffs alone -------------------------------------------------------------------------------------------------


def sample_table(
    table: Path,
    out: Path,
    *,
    feature_model: str,
    options: Mapping[str, Any] | None,
    seed: int,
    drop: list[str],
    jobs: int | None,
) -> None:
    """Write knockoffs of a table, in the format that came in."""
    from knockoffs.features.source import knockoff_source
    from knockoffs.seeds import as_generator

    if out.is_dir():
        ending = file_format(table)
        out = out / f"{table.name[: -len(ending)]}.knockoffs{ending}"
    file_format(out)
    frame = read(table)
    check_columns(frame, drop, "--drop")
    source = knockoff_source(feature_model, options)
    checked = source.read(drop_columns(frame, drop) if drop else frame, argument=table.name, min_rows=2)
    fit_stream, draw_stream = as_generator(seed).spawn(2)
    say(f"fitting {feature_model} to {checked.X.shape[0]} rows of {checked.X.shape[1]} columns")
    with spoken_warnings():
        settled = source(checked, rng=fit_stream, n_jobs=jobs)
        say("drawing knockoffs")
        X_tilde = settled.sampler.sample(checked.X, draw_stream).X_tilde
    write_table_file(checked.decode(X_tilde), out)
    say(f"wrote {out}: {X_tilde.shape[0]} rows, {X_tilde.shape[1]} columns")


def sample_genotypes(
    bed: Path,
    out: Path,
    *,
    options: Mapping[str, Any] | None,
    seed: int,
    rows_at_once: int,
    fresh: bool,
    jobs: int | None,
) -> None:
    """Write knockoffs of a .bed file as another .bed file, by fastPHASE's model of the genotypes."""
    from knockoffs.registry import check_options
    from knockoffs.seeds import as_generator
    from knockoffs.table.plink import fastphase_models, sample_knockoffs_bed

    if out.is_dir():
        out = out / f"{bed.stem}.knockoffs.bed"
    bound = check_options(options, ("prefix", "start", "hidden_knockoff"), "feature_model_options")
    with spoken_warnings():
        models = fastphase_models(bed, n_jobs=jobs, **bound)
    say(f"drawing knockoffs of {bed}")
    written = sample_knockoffs_bed(
        bed, out, models, rng=as_generator(seed), rows_at_once=rows_at_once, resume=not fresh
    )
    say(f"wrote {written}, with .bim and .fam beside it")
