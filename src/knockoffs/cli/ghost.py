"""The command ghost: a selection from a file of z-scores and a file of correlations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knockoffs.cli.calls import bad_call, check_columns
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.work import groups_of, other_files, read
from knockoffs.defaults import DEFAULT_FDR
from knockoffs.errors import InputError, name_some
from knockoffs.filter import RULES
from knockoffs.options import Parameters
from knockoffs.record import DataFile, SelectionRecord, record_selection
from knockoffs.registry import find, key_of
from knockoffs.seeds import as_generator
from knockoffs.streaming.ghost import select_ghost
from knockoffs.table.auto_groups import auto_groups
from knockoffs.table.files import column_names, file_hash, take_column
from knockoffs.table.groups import as_groups
from knockoffs.table.table import Table
from knockoffs.table.types import Frame


def run_ghost(z: Path, parameters: Parameters) -> SelectionRecord:
    """Read z-scores and correlations, select, and record what was found."""
    correlation, n = parameters.get("correlation"), parameters.get("n")
    if correlation is None:
        raise bad_call(
            "--correlation is needed: the correlations of the features, of the study or of a reference panel."
        )
    if n is None:
        raise bad_call("--n is needed: the number of rows of the study behind the z-scores.")
    place = Path(correlation)
    frame = read(z, {**parameters, "drop": []}, "")  # a column without a name may hold those of the features
    names, scores = _scores(frame, parameters)
    R = read_correlation(place, names)
    asked, groups = groups_of(parameters), None
    if asked == "auto":
        groups = auto_groups(np.array(R, dtype=float), names)
    elif asked is not None:
        groups = as_groups(asked, names)
    say(f"selecting from {len(names)} features by the z-scores of {n:g} rows")
    with spoken_warnings() as said:
        selection = select_ghost(
            scores,
            R,
            n,
            names=names if groups is None else groups.names,
            feature_of=None if groups is None else groups.feature_of,
            fdr=DEFAULT_FDR if parameters["fdr"] is None else parameters["fdr"],
            offset=parameters["offset"],
            n_draws=parameters["n_draws"],
            level=key_of(parameters["level"]),
            rule=find(RULES, "rule", parameters["rule"]),
            shrink=parameters["shrink"],
            penalty=parameters["penalty"],
            rng=as_generator(parameters["seed"]),
        )
    data: DataFile = {
        "file": z.name,
        "sha256": file_hash(z),
        "n_rows": len(names),
        "n_columns": len(column_names(frame)),
        "files": other_files(parameters),
    }
    return record_selection(selection, Table(np.empty((0, 0)), ()), parameters, data, said)


def _scores(frame: Frame, parameters: Parameters) -> tuple[list[str], NDArray]:
    """Names of the features, and their z-scores."""
    column, named = parameters["scores"], parameters.get("names")
    check_columns(frame, [column], "--scores")
    values = take_column(frame, column)
    try:
        z = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"column {column!r} holds labels, not z-scores: name another with --scores.") from None
    if named is None:
        texts = [name for name in column_names(frame) if name != column]
        named = next((name for name in texts if take_column(frame, name).dtype.kind in "OUS"), None)
    else:
        check_columns(frame, [named], "--names")
    listed = [f"x{j}" for j in range(len(z))] if named is None else [str(name) for name in take_column(frame, named)]
    twice = sorted({name for name in listed if listed.count(name) > 1}) if len(set(listed)) < len(listed) else []
    if twice:
        raise InputError(f"column {named!r} names features twice: {name_some(twice)}. Leave one row of each.")
    bad = np.flatnonzero(~np.isfinite(z))
    if bad.size:
        raise InputError(
            f"{column} of {listed[bad[0]]!r} is {z[bad[0]]}: leave the row out, here and in --correlation."
        )
    return listed, z


def read_correlation(path: Path, names: Sequence[str]) -> NDArray:
    """Correlations in the order of the names: an .npy as it is, a table by the names in its header."""
    if not path.is_file():
        raise InputError(f"--correlation {str(path)!r}: there is no such file.")
    if path.suffix.lower() == ".npy":
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: cannot be read as .npy: {error}.") from error
    frame = read(path, {"drop": []})
    columns = [str(name) for name in column_names(frame)]
    numbers = [name for name in columns if take_column(frame, name).dtype.kind in "iuf"]
    missing = [name for name in names if name not in set(numbers)]
    if len(missing) == len(names) and len(numbers) == len(names):  # a header of numbers, or of other names
        raise InputError(
            f"{path}: its header names none of the features, {name_some(names)}. Name the columns as the rows of --z, "
            "or give an .npy in their order."
        )
    if missing:
        raise InputError(f"{path}: no correlations of {name_some(missing)}: leave these rows out of --z, or add them.")
    whole = np.column_stack([np.asarray(take_column(frame, name), dtype=float) for name in numbers])
    if whole.shape[0] != whole.shape[1]:
        raise InputError(f"{path}: {whole.shape[0]} rows and {whole.shape[1]} columns of numbers: expected a square.")
    place = {name: j for j, name in enumerate(numbers)}
    order = np.array([place[name] for name in names])
    return whole[np.ix_(order, order)]
