"""Rows of files, a batch at a time: csv, tsv and parquet; of a folder, its parquet files in the order of their names.

A batch is a run of rows by their number in the whole, whatever files and row groups they lie in, so that the same batch
holds the same rows however often and from wherever it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, warn
from knockoffs.table.files import TextFile, check_names, file_hash, open_text, parquet_errors

FIRST_ROWS = 1000  # in which an index that was written beside the table is looked for
BATCH_CELLS = 2**22  # of a batch: 32 MiB as floats


def runs_of_rows(n_rows: int, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
    """First rows of batches of one size; by default it depends on the columns alone, the same on every machine.

    >>> runs_of_rows(10, 3, 4).tolist()
    [0, 4, 8, 10]
    """
    size = max(1, BATCH_CELLS // max(n_columns, 1)) if batch_rows is None else int(batch_rows)
    if size < 1:
        raise InputError(f"batch_rows={batch_rows}: a batch has one row or more.")
    return np.append(np.arange(0, n_rows, size), n_rows)


@dataclass(frozen=True)
class Rows:
    """Rows of a csv or tsv file, or of parquet files with the same columns, read a batch at a time."""

    path: Path  # the file, or the folder
    names: tuple[str, ...]  # of the columns
    files: tuple[Path, ...]  # of a folder, its files; otherwise the file itself
    n_rows_of: tuple[int, ...]  # rows of each file
    schema: Mapping[str, pl.DataType] = field(default_factory=dict)  # in which columns of parquet files are read
    text: TextFile | None = None  # of a csv or tsv file

    def __len__(self) -> int:
        return sum(self.n_rows_of)

    @property
    def label(self) -> str:
        """What to call it in errors: the name of the file or folder."""
        return self.path.name

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        return runs_of_rows(len(self), n_columns, batch_rows)

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Frames of some batches; a csv file is read from its start again for one that comes before the last."""
        if self.text is None:
            yield from (self._parquet(names, int(starts[batch]), int(starts[batch + 1])) for batch in wanted)
            return
        blocks, held, at = self.text.blocks(names), pl.DataFrame(), 0
        for batch in wanted:
            start, stop = int(starts[batch]), int(starts[batch + 1])
            if start < at:
                blocks, held, at = self.text.blocks(names), pl.DataFrame(), 0
            while at + len(held) < stop:
                passed = min(max(start - at, 0), len(held))  # rows before the batch
                held, at = held[passed:], at + passed
                block = next(blocks)
                held = block if held.is_empty() else held.vstack(block)
            yield held[start - at : stop - at]
            held, at = held[stop - at :], stop

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> pl.DataFrame:
        """Frame of some rows, given in ascending order."""
        starts = self.starts(len(names), None)
        bounds = np.searchsorted(rows, starts)
        batches = [k for k in range(len(starts) - 1) if bounds[k] < bounds[k + 1]]
        frames = zip(batches, self.frames(names, starts, batches), strict=True)
        return pl.concat([frame[rows[bounds[k] : bounds[k + 1]] - starts[k]] for k, frame in frames])

    def column(self, name: str) -> pl.Series:
        """Cells of a column in all rows."""
        whole = self._parquet([name], 0, len(self)) if self.text is None else pl.concat(self.text.blocks([name]))
        return whole[name]

    def sha256(self) -> str:
        """SHA-256 of the file; of a folder that of its files' names and hashes."""
        if self.files == (self.path,):
            return file_hash(self.path)
        lines = "".join(f"{path.name} {file_hash(path)}\n" for path in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def _parquet(self, names: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        """Frame of the rows from ``start`` up to ``stop`` of parquet files."""
        parts, at = [], 0
        schema = {name: self.schema[name] for name in names}
        for path, n_rows in zip(self.files, self.n_rows_of, strict=True):
            first, last = max(start, at) - at, min(stop, at + n_rows) - at
            at += n_rows
            if first < last:
                with parquet_errors(path):
                    scan = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(names)
                    parts.append(scan.slice(first, last - first).cast(schema).collect())  # type: ignore[arg-type]
        return pl.concat(parts)


def open_rows(path: Path, *, leave_out: Collection[str] = ()) -> Rows:
    """Rows of a parquet file, or a folder of them, none of which is read; a csv or tsv file is read through once.

    A column that numbers or names the rows is left out, unless the caller names it in ``leave_out``.
    """
    if path.is_file() and path.suffix.lower() != ".parquet" and path.stat().st_size > 0:
        text = open_text(path)
        rows = Rows(path, text.layout.names, (path,), (text.n_rows,), text=text)
    else:
        rows = _open_parquet(path)
    if not len(rows):
        raise InputError(f"{path}: there are no rows.")
    first = next(rows.frames(rows.names, runs_of_rows(len(rows), 1, FIRST_ROWS), [0]))
    return replace(rows, names=tuple(check_names(first, path, leave_out).columns))


def _open_parquet(path: Path) -> Rows:
    files = parquet_files(path)
    counts, schema = [], dict[str, pl.DataType]()
    for file in files:
        with parquet_errors(file):
            scan = pl.scan_parquet(file, glob=False, hive_partitioning=False)
            own = dict(scan.collect_schema())
            counts.append(int(scan.select(pl.len()).collect().item()))
        if schema and own.keys() != schema.keys():
            differ = sorted(own.keys() ^ schema.keys())
            raise InputError(
                f"{file.name} and {files[0].name} have other columns: {name_some(differ)}. Make them the same."
            )
        schema = {
            name: dtype if name not in schema else _common_type(name, schema[name], dtype, file, files[0])
            for name, dtype in (own if not schema else {name: own[name] for name in schema}).items()
        }
    return Rows(path, tuple(schema), files, tuple(counts), schema)


def _common_type(name: str, one: pl.DataType, other: pl.DataType, file: Path, first: Path) -> pl.DataType:
    """Type of a column in all files: fractions for whole numbers and fractions, text for categories and text."""
    labels = (pl.String, pl.Categorical, pl.Enum)
    if one == other or other == pl.Null:
        return one
    if one == pl.Null:
        return other
    if one in labels and other in labels:
        return pl.String()
    if one.is_numeric() and other.is_numeric():
        both = [pl.Series([], dtype=dtype).to_frame() for dtype in (one, other)]
        return pl.concat(both, how="vertical_relaxed").dtypes[0]
    raise InputError(
        f"column {name!r} is {other} in {file.name} and {one} in {first.name}: make it the same in all files, or leave "
        "it out of them."
    )


def parquet_files(path: Path) -> tuple[Path, ...]:
    """Files of a folder by name, or the file itself.

    What begins with a dot or an underscore is no part of the table: copies that notebooks and file systems keep, and
    files that were not finished.
    """
    if path.is_dir():
        found = {file.relative_to(path): file for file in path.rglob("*.parquet") if file.is_file()}
        aside = sorted(str(own) for own in found if any(part.startswith((".", "_")) for part in own.parts))
        files = tuple(sorted(file for own, file in found.items() if str(own) not in aside))
        if aside:
            warn(
                f"{path}: {name_some(aside)} left out: names with a dot or an underscore first are no part of a table."
            )
        if not files:
            raise InputError(f"{path}: this folder holds no parquet files.")
        columns = sorted({part.partition("=")[0] for own in found for part in own.parts[:-1] if "=" in part})
        if columns:
            warn(f"{path}: {name_some(columns)} of the folders' names is not read: only what the files hold is.")
        return files
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    return (path,)
