"""A selection from a table larger than memory: a sample of its rows is in memory, the others come in batches."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np

from knockoffs.defaults import count_of, plan_of, source_of, task_for
from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features.source import read_features
from knockoffs.options import check_arguments
from knockoffs.procedure import Data, run
from knockoffs.progress import showing
from knockoffs.seeds import as_generator
from knockoffs.selector import KnockoffSelector
from knockoffs.streaming.rest import RestOfTable, folder_for_knockoffs, knockoff_file
from knockoffs.table.files import write_table_file
from knockoffs.table.frames import refuse_dask
from knockoffs.table.stream import Rows, open_rows
from knockoffs.table.table import MIN_ROWS
from knockoffs.table.target import Target, as_target


def fit_streamed(
    selector: KnockoffSelector,
    path: str | os.PathLike[str] | Rows,
    target: str,
    *,
    weights: str | None = None,
    sample_rows: int | None = None,
    batch_rows: int | None = None,
    keep_knockoffs: str | Path | None = None,
) -> KnockoffSelector:
    """Fit a selector to a table of any number of rows.

    Batches run in parallel, ``n_jobs`` of the selector at a time, on the active backend of joblib: with
    ``joblib.parallel_config("dask")`` on a cluster. Rows are read here, and P^X and the model of y are fitted here. The
    answer does not depend on the workers.

    Parameters
    ----------
    selector : KnockoffSelector
        Its options are used as by ``fit``, and it becomes fitted; ``table_`` and ``knockoffs_`` are of the sample. The
        target and the weights stay in memory, 8 bytes a row each.
    path : path
        A parquet file, a folder of them, or a csv or tsv file.
    target : str
        Column to be explained.
    weights : str, optional
        Column of sample weights.
    sample_rows : int, optional
        Rows, drawn at random, on which P^X is fitted, the verdict is given and a model of y is chosen; by default
        100,000, or fewer if there are many columns. With fewer than 50 rows a column, P^X takes its covariance from
        all rows, if it has one. If the sample is all rows, the answer is that of ``fit``.
    batch_rows : int, optional
        Rows of a batch; by default some four million cells. The draw depends on it.
    keep_knockoffs : path, optional
        Folder for the knockoffs of all rows (of the first draw), one parquet file a batch. It is made here.

    Returns
    -------
    KnockoffSelector
        The selector itself.
    """
    options = selector.options()
    with selector.fitting():
        check_arguments(options)
        for name, value in (("sample_rows", sample_rows), ("batch_rows", batch_rows)):
            if value is not None:
                count_of({name: value}, name)
        _refuse_in_batches(selector)
        rows = open_table(path, [target, *([weights] if weights else []), *(selector.drop or [])])
        features = feature_names(rows, target, weights, selector.drop, selector.covariates or ())

        size = default_sample(len(rows), len(features)) if sample_rows is None else min(int(sample_rows), len(rows))
        if size < MIN_ROWS:
            raise InputError(f"sample_rows={sample_rows}: P^X needs {MIN_ROWS} rows or more.")
        rng = as_generator(selector.random_state)
        whole, sampled = size == len(rows), np.arange(len(rows))
        if not whole:
            sampled = np.sort(rng.spawn(1)[0].choice(len(rows), size, replace=False))
        source = source_of(options)
        table, notes = read_features(
            source,
            rows.take(features, sampled),
            kinds=selector.kinds,
            groups=selector.groups,
            covariates=selector.covariates,
            min_rows=MIN_ROWS,
        )
        task = task_for(selector.task, selector.estimator)
        if task == "survival":
            raise InputError("survival times are not supported in batches: read a table that fits into memory.")
        row_weights = rows.column(weights).to_numpy() if weights else None
        y = as_target(rows.column(target), table, task=task, weights=row_weights, sample=sampled)
        seen = y.at(sampled)
        check_classes(y, seen)
        plan = plan_of(options, source, table, seen, notes, n_rows=None)
        plan = replace(plan, notes={**plan.notes, "stream": _describe(len(rows), size, plan.method)})
        folder = folder_for_knockoffs(keep_knockoffs)
        rest = None
        if not whole and plan.method == "knockoffs":
            rest = RestOfTable(rows, table, y.centred, sampled, rows.starts(len(features), batch_rows), folder)
        selector.generator_ = deepcopy(rng)
        with showing(bool(selector.verbose)):
            selection = run(plan, Data(table, y.centred.at(sampled), rest), rng=rng, n_jobs=selector.n_jobs)
        if folder is not None and whole:
            write_table_file(table.decode(selection.X_tilde), knockoff_file(folder, 0))
        selector.n_features_in_ = len(features)
        selector.feature_names_in_ = np.array(features, dtype=object)
        return selector.set_answer(selection, table, seen, features)


def default_sample(
    n_rows: int, n_columns: int, *, most: int = 100_000, most_cells: int = 2**24, fewest: int = 2_000
) -> int:
    """Rows of the sample if nothing was asked for: at most ``most``, or fewer with many columns.

    >>> default_sample(20_000_000, 50), default_sample(1_000_000, 5000), default_sample(1000, 10)
    (100000, 3355, 1000)
    """
    return min(n_rows, most, max(most_cells // max(n_columns, 1), fewest))


def _describe(n: int, size: int, method: str) -> str:
    if method == "conditional_test":
        return f"{size:,} of {n:,} rows, drawn at random, are used"
    fitted = "all of them" if size == n else f"{size:,} of them, drawn at random"
    return f"{n:,} rows are read in batches; P^X is fitted on {fitted}, and the verdict is on these"


# ---- what comes in, checked before the work ----------------------------------------------------------------------


def _refuse_in_batches(selector: KnockoffSelector) -> None:
    """Refuse options that need all rows in memory."""
    for name, verb in (("order", "is"), ("environments", "are"), ("clusters", "are"), ("knockoffs", "are")):
        if getattr(selector, name) is not None:
            raise InputError(f"{name} {verb} not supported in batches: leave {name} out, or use fit (--stream never).")
    if selector.n_knockoffs != 1:
        raise InputError(f"n_knockoffs={selector.n_knockoffs}: a table in batches takes one knockoff of each feature.")
    if selector.dependent == "drop":
        raise InputError("dependent='drop' is not supported when streaming; list the columns in drop=.")


def open_table(path: str | os.PathLike[str] | Rows, leave_out: Sequence[str]) -> Rows:
    """Rows of a file or a folder; or rows that are open already."""
    if isinstance(path, str | os.PathLike):
        return open_rows(Path(path), leave_out=leave_out)
    refuse_dask(path)
    if not hasattr(path, "frames"):
        raise InputError(f"path is {type(path).__name__}: name a file or a folder.")
    return path


def feature_names(
    rows: Rows, target: str, weights: str | None, drop: Sequence[str] | None, covariates: Sequence[str] = ()
) -> list[str]:
    """Columns that are left; a name that the table does not have is refused."""
    dropped = [drop] if isinstance(drop, str) else list(drop or [])
    for argument, names in (("target", [target]), ("weights", [weights] if weights else []), ("drop", dropped)):
        for name in names:
            if name not in rows.names:
                raise unknown_option(argument, name, rows.names)
    if weights == target:
        raise InputError(f"weights={weights!r} is the target: name another column, or leave the weights out.")
    if target in covariates:
        raise InputError(f"covariates: {target!r} is the target. Leave it out.")
    kept = [name for name in rows.names if name not in {target, weights, *dropped}]
    if not kept:
        raise InputError(f"{rows.label}: no columns are left.")
    return kept


def check_classes(y: Target, seen: Target) -> None:
    """Refuse a sample that lacks a class: nothing could be learned about it."""
    if y.task != "classification" or len(seen) == len(y):
        return
    lacking = set(y.values.tolist()) - set(seen.values.tolist())
    if lacking:
        raise InputError(
            f"no row of the sample has the class {name_some(sorted(map(str, lacking)))} of the target: join rare "
            "classes, leave their rows out, or take a larger sample_rows."
        )
