"""Rows of files, a batch at a time: csv, tsv and parquet; of a folder, its parquet files in the order of their names.

A batch is a run of rows by their number in the whole, whatever files and row groups they lie in, so that the same batch
holds the same rows however often and from wherever it is read.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some
from knockoffs.table.files import TextFile, check_names, file_hash, open_text, parquet_errors, take_column
from knockoffs.table.rows import runs_of_rows

FIRST_ROWS = 1000  # in which an index that was written beside the table is looked for


@dataclass(frozen=True)
class RowStream:
    """Rows of one or several parquet files with the same columns.

    Parameters
    ----------
    path : Path
        The file, or the folder.
    files : tuple of Path
    n_rows_of : tuple of int
        Rows of each file.
    names : tuple of str
        Of the columns.
    schema : mapping of str to polars.DataType
        In which the columns of all files are read.
    """

    path: Path
    files: tuple[Path, ...]
    n_rows_of: tuple[int, ...]
    names: tuple[str, ...]
    schema: Mapping[str, pl.DataType]

    def __len__(self) -> int:
        return sum(self.n_rows_of)

    @property
    def label(self) -> str:
        """Name of the file or folder."""
        return self.path.name

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        return runs_of_rows(len(self), n_columns, batch_rows)

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Frames of some batches."""
        for batch in wanted:
            yield self._rows(names, int(starts[batch]), int(starts[batch + 1]))

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> pl.DataFrame:
        """Frame of some rows, given in ascending order."""
        starts = self.starts(len(names), None)
        bounds = np.searchsorted(rows, starts)
        batches = [k for k in range(len(starts) - 1) if bounds[k] < bounds[k + 1]]
        frames = zip(batches, self.frames(names, starts, batches), strict=True)
        return pl.concat([frame[rows[bounds[k] : bounds[k + 1]] - starts[k]] for k, frame in frames])

    def column(self, name: str) -> NDArray:
        """Values of a column in all rows."""
        return take_column(self._rows([name], 0, len(self)), name)

    def sha256(self) -> str:
        """SHA-256 of the file; of a folder that of its files' names and hashes."""
        if self.files == (self.path,):
            return file_hash(self.path)
        lines = "".join(f"{path.name} {file_hash(path)}\n" for path in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def _rows(self, names: Sequence[str], start: int, stop: int) -> pl.DataFrame:
        """Frame of the rows from ``start`` up to ``stop``."""
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


@dataclass(frozen=True)
class TextRows:
    """Rows of a csv or tsv file.

    Parameters
    ----------
    file : TextFile
    names : tuple of str
        Of the columns.
    """

    file: TextFile
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.file.n_rows

    @property
    def label(self) -> str:
        """Name of the file."""
        return self.file.layout.path.name

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        return runs_of_rows(len(self), n_columns, batch_rows)

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[pl.DataFrame]:
        """Frames of some batches; the file is read from its start again for one that comes before the last."""
        blocks, held, at = self.file.blocks(names), pl.DataFrame(), 0
        for batch in wanted:
            start, stop = int(starts[batch]), int(starts[batch + 1])
            if start < at:
                blocks, held, at = self.file.blocks(names), pl.DataFrame(), 0
            while at + len(held) < stop:
                passed = min(max(start - at, 0), len(held))  # rows before the batch
                held, at = held[passed:], at + passed
                block = next(blocks)
                held = block if held.is_empty() else held.vstack(block)
            yield held[start - at : stop - at]
            held, at = held[stop - at :], stop

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> pl.DataFrame:
        """Frame of some rows, given in ascending order."""
        parts, at = [], 0
        for block in self.file.blocks(names):
            first, last = np.searchsorted(rows, [at, at + len(block)])
            if last > first:
                parts.append(block[rows[first:last] - at])
            at += len(block)
        return pl.concat(parts)

    def column(self, name: str) -> NDArray:
        """Values of a column in all rows."""
        return take_column(pl.concat(list(self.file.blocks([name]))), name)

    def sha256(self) -> str:
        """SHA-256 of the file."""
        return file_hash(self.file.layout.path)


def open_rows(path: Path, *, leave_out: Collection[str] = ()) -> RowStream | TextRows:
    """Rows of a parquet file, or a folder of them, none of which is read; a csv or tsv file is read through once.

    Parameters
    ----------
    path : Path
    leave_out : collection of str
        Columns that the caller names, which must be there; another one that numbers or names the rows is left out.
    """
    text = path.is_file() and path.suffix.lower() != ".parquet" and path.stat().st_size > 0
    stream: TextRows | RowStream = _text_rows(path) if text else _open_parquet(path)
    if not len(stream):
        raise InputError(f"{path}: there are no rows.")
    first = next(stream.frames(stream.names, runs_of_rows(len(stream), 1, FIRST_ROWS), [0]))
    return replace(stream, names=tuple(check_names(first, path, leave_out).columns))


def _text_rows(path: Path) -> TextRows:
    file = open_text(path)
    return TextRows(file, file.layout.names)


def _open_parquet(path: Path) -> RowStream:
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
    return RowStream(path, files, tuple(counts), tuple(schema), schema)


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
            _warn(
                f"{path}: {name_some(aside)} left out: names with a dot or an underscore first are no part of a table."
            )
        if not files:
            raise InputError(f"{path}: this folder holds no parquet files.")
        columns = sorted({part.partition("=")[0] for own in found for part in own.parts[:-1] if "=" in part})
        if columns:
            _warn(f"{path}: {name_some(columns)} of the folders' names is not read: only what the files hold is.")
        return files
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    return (path,)


def _warn(message: str) -> None:
    warnings.warn(message, KnockoffWarning, stacklevel=4)
