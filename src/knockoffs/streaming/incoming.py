"""What comes in for a selection in batches, checked before the work: the table, its names, its target and weights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.streaming.batch import Keep
from knockoffs.table.partitions import is_partitioned, open_partitions
from knockoffs.table.rows import Rows
from knockoffs.table.stream import open_rows
from knockoffs.table.table import Table
from knockoffs.table.target import Target, as_target, extend_target

if TYPE_CHECKING:
    import dask.dataframe as dd


def open_table(path: str | os.PathLike[str] | dd.DataFrame | Rows, leave_out: Sequence[str]) -> Rows:
    """Rows of a file, a folder or a dask DataFrame; or such as have been opened."""
    if isinstance(path, str | os.PathLike):
        return open_rows(Path(path), leave_out=leave_out)
    if is_partitioned(path):
        return open_partitions(path)
    if not hasattr(path, "frames"):
        raise InputError(f"path is {type(path).__name__}: name a file or a folder, or pass a dask DataFrame.")
    return path


def place_for_knockoffs(folder: str | Path | None, table: Table, resumed: bool) -> Keep | None:
    """Folder for the knockoffs, made, and a few rows of the table, by which they are written."""
    if folder is None:
        return None
    if Path(folder).is_file():
        raise InputError(f"keep_knockoffs={str(folder)!r} is a file: name a folder.")
    Path(folder).mkdir(parents=True, exist_ok=True)
    if any(Path(folder).iterdir()) and not resumed:
        raise InputError(f"keep_knockoffs={str(folder)!r} is not empty: name another folder.")
    return Keep.of(Path(folder), table)


def feature_names(rows: Rows, target: str, weights: str | None, drop: Sequence[str] | None) -> list[str]:
    """Columns that are left; a name that the table does not have is refused."""
    dropped = [drop] if isinstance(drop, str) else list(drop or [])
    for argument, names in (("target", [target]), ("weights", [weights] if weights else []), ("drop", dropped)):
        for name in names:
            if name not in rows.names:
                raise unknown_option(argument, name, rows.names)
    if weights == target:
        raise InputError(f"weights={weights!r} is the target: name another column, or leave the weights out.")
    kept = [name for name in rows.names if name not in {target, weights, *dropped}]
    if not kept:
        raise InputError(f"{rows.label}: no columns are left.")
    return kept


def target_and_weights(rows: Rows, target: str, weights: str | None) -> tuple[NDArray, NDArray | None]:
    """Target and weights of all rows, as they came."""
    if weights is None:
        return rows.column(target), None
    try:
        return rows.column(target), np.asarray(rows.column(weights), dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"weights {weights!r} holds labels, not numbers: weights are not negative.") from None


def target_of_rows(
    values: NDArray, weights: NDArray | None, sampled: NDArray[np.intp], table: Table, task: str | None
) -> Target:
    """Target of all rows; what it is is told by the sample."""
    known = np.flatnonzero([value is not None and value == value for value in values[sampled].tolist()])
    if not len(known):
        raise InputError(f"the target is missing in all {len(sampled)} rows of the sample.")
    told = as_target(values[sampled[known]], table.rows(known), task=task)
    return extend_target(told, values, weights)


def check_classes(y: Target, seen: Target) -> None:
    """Refuse a sample without some class: nothing could be learned of it there."""
    if y.task != "classification" or len(seen) == len(y):
        return
    lacking = set(y.values.tolist()) - set(seen.values.tolist())
    if lacking:
        raise InputError(
            f"no row of the sample has the class {name_some(sorted(map(str, lacking)))} of the target: join rare "
            "classes, leave their rows out, or take a larger sample_rows."
        )
