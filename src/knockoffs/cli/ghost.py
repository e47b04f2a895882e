"""``knockoffs ghost``: a selection from the z-scores of a study and the correlations of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knockoffs.cli.checks import bad_call, check_columns
from knockoffs.cli.output import say, spoken_warnings
from knockoffs.cli.program import Force, OutFolder, command
from knockoffs.errors import InputError, name_some
from knockoffs.options import Options, importance_options

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from polars import DataFrame

    from knockoffs.record import SelectionRecord


@command("ghost")
def ghost(
    z: Annotated[Path, typer.Option(metavar="FILE", help="Table of the z-scores, one row per feature.")],
    options: Options,
    out: OutFolder = None,
    force: Force = False,
) -> None:
    """Select from z-scores and correlations, without rows.

    \b
    knockoffs ghost --z z.csv --correlation R.npy --n 50000
    knockoffs ghost --z z.csv --scores Z --correlation R.npy --n 50000 --shrink 0.1 --out found
    """
    from knockoffs.cli.files import check_out, deliver

    check_out(out, z, options, force)
    deliver(run_ghost(z, options), out)


def run_ghost(z: Path, options: Options) -> SelectionRecord:
    """Record of a selection from z-scores and correlations."""
    import numpy as np

    from knockoffs.cli.files import groups_of, other_files, read
    from knockoffs.defaults import DEFAULT_FDR
    from knockoffs.filter import RULES
    from knockoffs.record import data_file, record_selection
    from knockoffs.registry import find, key_of
    from knockoffs.seeds import as_generator
    from knockoffs.streaming.ghost import select_ghost
    from knockoffs.table.auto_groups import auto_groups
    from knockoffs.table.files import file_hash
    from knockoffs.table.groups import as_groups
    from knockoffs.table.table import Table

    if options.correlation is None:
        raise bad_call("--correlation is needed: the correlations in the study or in a reference panel.")
    if options.n is None:
        raise bad_call("--n is needed: the number of rows of the study behind the z-scores.")
    frame = read(z, options.scores, "")  # a column without a name may hold those of the features
    names, scores = _scores(frame, options)
    R = read_correlation(Path(options.correlation), names)
    asked, groups = groups_of(options), None
    if asked == "auto":
        groups = auto_groups(np.array(R, dtype=float), names)
    elif asked is not None:
        groups = as_groups(asked, names)
    say(f"selecting from {len(names)} features by the z-scores of {options.n:g} rows")
    with spoken_warnings() as said:
        selection = select_ghost(
            scores,
            R,
            options.n,
            names=names if groups is None else groups.names,
            feature_of=None if groups is None else groups.feature_of,
            fdr=DEFAULT_FDR if options.fdr is None else options.fdr,
            offset=options.offset,
            n_draws=options.n_draws,
            level=key_of(options.level),
            rule=find(RULES, "rule", str(importance_options(options.importance_options, "ghost").rule)),
            shrink=options.shrink,
            penalty=options.penalty,
            rng=as_generator(options.seed),
        )
    data = data_file(z.name, file_hash(z), frame.shape, other_files(options))
    parameters = {"target": options.scores, "drop": [], **options.recorded("ghost")}
    return record_selection(selection, Table(np.empty((0, 0)), ()), parameters, data, said)


def _scores(frame: DataFrame, options: Options) -> tuple[list[str], NDArray]:
    """Names of the features, and their z-scores."""
    import numpy as np
    from polars import Categorical, Enum, String

    texts = (String, Categorical, Enum)
    column, named = options.scores, options.names
    check_columns(frame, [column], "--scores")
    if not frame[column].dtype.is_numeric():
        raise InputError(f"column {column!r} holds labels, not z-scores: name another with --scores.")
    z = np.asarray(frame[column].to_numpy(), dtype=float)
    if named is None:
        named = next((name for name in frame.columns if frame[name].dtype in texts), None)
    else:
        check_columns(frame, [named], "--names")
    listed = [f"x{j}" for j in range(len(z))] if named is None else [str(name) for name in frame[named].to_list()]
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
    import numpy as np

    from knockoffs.cli.files import read

    if not path.is_file():
        raise InputError(f"--correlation {str(path)!r}: there is no such file.")
    if path.suffix.lower() == ".npy":
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path}: cannot be read as .npy: {error}.") from error
    frame = read(path)
    numbers = [name for name in frame.columns if frame[name].dtype.is_numeric()]
    missing = [name for name in names if name not in set(numbers)]
    if len(missing) == len(names) and len(numbers) == len(names):  # a header of numbers, or of other names
        raise InputError(
            f"{path}: its header names none of the features, {name_some(names)}. Name the columns as the rows of --z, "
            "or give an .npy in their order."
        )
    if missing:
        raise InputError(f"{path}: no correlations of {name_some(missing)}: leave these rows out of --z, or add them.")
    whole = frame.select(numbers).to_numpy().astype(float)
    if whole.shape[0] != whole.shape[1]:
        raise InputError(f"{path}: {whole.shape[0]} rows and {whole.shape[1]} columns of numbers: expected a square.")
    place = {name: j for j, name in enumerate(numbers)}
    order = np.array([place[name] for name in names])
    return whole[np.ix_(order, order)]
