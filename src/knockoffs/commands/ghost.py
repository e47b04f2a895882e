"""The command ghost: a selection from a file of z-scores and a file of correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knockoffs.commands.calls import bad_call, check_columns
from knockoffs.commands.output import say, spoken_warnings
from knockoffs.commands.work import groups_of, read
from knockoffs.defaults import DEFAULT_FDR
from knockoffs.errors import InputError, name_some
from knockoffs.filter import RULES
from knockoffs.record import SelectionRecord, record_selection
from knockoffs.registry import find, key_of
from knockoffs.seeds import as_generator
from knockoffs.sums.ghost import select_ghost
from knockoffs.table.auto_groups import auto_groups
from knockoffs.table.files import column_names, file_hash, take_column
from knockoffs.table.groups import as_groups
from knockoffs.table.table import Table


def run_ghost(z: Path, parameters: Mapping[str, Any]) -> SelectionRecord:
    """Read z-scores and correlations, select, and record what was found."""
    for needed in ("correlation", "n"):
        if parameters.get(needed) is None:
            raise bad_call(f"--{needed} is needed: {WHY[needed]}")
    place = Path(parameters["correlation"])
    frame = read(z, {**parameters, "drop": []})
    names, scores = _scores(frame, parameters)
    R = read_correlation(place, names)
    groups = groups_of(parameters)
    if groups == "auto":
        groups = auto_groups(np.array(R, dtype=float), names)
    elif groups is not None:
        groups = as_groups(groups, names)
    say(f"selecting from {len(names)} features by the z-scores of {parameters['n']:g} rows")
    with spoken_warnings() as said:
        selection = select_ghost(
            scores,
            R,
            parameters["n"],
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
    data = {"file": z.name, "sha256": file_hash(z), "n_rows": len(names), "n_columns": len(column_names(frame))}
    files = [place] if parameters.get("groups") in (None, "auto") else [place, Path(parameters["groups"])]
    data["files"] = {path.name: file_hash(path) for path in files}
    return record_selection(selection, Table(np.empty((0, 0)), ()), parameters, data, said)


WHY = {
    "correlation": "the correlations of the features, of the study or of a reference panel.",
    "n": "the number of rows of the study behind the z-scores.",
}


def _scores(frame: object, parameters: Mapping[str, Any]) -> tuple[list[str], NDArray]:
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
    frame = read(path, {"drop": [], "target": None})
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
