"""Rows of files, a batch at a time: parquet, one file or a folder of them in the order of their names; or text.

A batch is a run of rows by their number in the whole, whatever files and row groups they lie in, so that the same batch
holds the same rows however often and from wherever it is read.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.table.columns import Column
from knockoffs.table.delimited import index_column, tell
from knockoffs.table.files import file_hash, plain_numbers, take_column
from knockoffs.table.reading import read_columns
from knockoffs.table.rows import runs_of_rows
from knockoffs.table.table import refuse
from knockoffs.table.text import TextRows, open_text
from knockoffs.table.text_columns import values_from_text
from knockoffs.table.types import Frame

if TYPE_CHECKING:
    import pyarrow as pa

DECODED = 2**14  # rows that pyarrow decodes at a time


@dataclass(frozen=True)
class RowStream:
    """Rows of one or several parquet files with the same columns.

    Attributes
    ----------
    path : Path
        The file, or the folder.
    files : tuple of Path
    n_rows_of : tuple of int
        Rows of each file.
    names : tuple of str
        Of the columns.
    types : mapping
        Arrow's types of columns that the files hold as several: those in which they are read.
    """

    path: Path
    files: tuple[Path, ...]
    n_rows_of: tuple[int, ...]
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(self.n_rows_of)

    @property
    def label(self) -> str:
        """Name of the file or folder."""
        return self.path.name

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        return runs_of_rows(len(self), n_columns, batch_rows)

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[Frame]:
        """Frames of some batches; those that follow one another are read in one go."""
        frames, at = None, -1
        for batch in wanted:
            if frames is None or batch != at:
                frames = self._batches(names, starts, batch)
            yield next(frames)
            at = batch + 1

    def _batches(self, names: Sequence[str], starts: NDArray[np.intp], first: int) -> Iterator[Frame]:
        """Frames of a batch and those after it."""
        import pyarrow as pa

        pieces, held = self._pieces(names, int(starts[first])), None
        for size in np.diff(starts[first:]).tolist():
            parts: list[pa.RecordBatch] = []
            while size:
                piece = next(pieces) if held is None else held
                parts.append(piece[:size])
                held = piece[size:] if len(piece) > size else None
                size -= len(parts[-1])
            yield _frame(pa.Table.from_batches(parts))

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> Frame:
        """Frame of some rows, given in ascending order."""
        import pyarrow as pa

        parts, at = [], 0
        for piece in self._pieces(names, 0, rows):
            first, last = np.searchsorted(rows, [at, at + len(piece)])
            if last > first:
                parts.append(piece.take(pa.array(rows[first:last] - at)))
            at += len(piece)
        return _frame(pa.Table.from_batches(parts))

    def column(self, name: str) -> NDArray:
        """Return the values of a column in all rows."""
        import pyarrow as pa

        table = pa.Table.from_batches(list(self._pieces([name], 0)))
        column = table.column(0)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = column.dictionary_encode().unify_dictionaries().combine_chunks()
        elif pa.types.is_dictionary(column.type):  # files number their own labels, those of all may need larger numbers
            column = column.cast(pa.dictionary(pa.int64(), column.type.value_type)).unify_dictionaries()
        if pa.types.is_dictionary(column.type):  # the labels once, not once a row
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            labels = np.array([*whole.dictionary.to_pylist(), None], dtype=object)
            return labels[np.asarray(whole.indices.fill_null(-1), dtype=np.intp)]
        return take_column(_frame(table), name)

    def sha256(self) -> str:
        """Return that of the file; of a folder that of its files' names and hashes."""
        if self.files == (self.path,):
            return file_hash(self.path)
        lines = "".join(f"{path.name} {file_hash(path)}\n" for path in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def _pieces(
        self, names: Sequence[str], start: int, wanted: NDArray[np.intp] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Record batches of the rows from ``start`` on; of row groups without wanted rows only their length."""
        import pyarrow as pa
        import pyarrow.parquet

        at = 0
        for path, n_rows in zip(self.files, self.n_rows_of, strict=True):
            if at + n_rows <= start:
                at += n_rows
                continue
            with pyarrow.parquet.ParquetFile(path) as file:
                for group in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    before, at = at, at + rows
                    if at <= start:
                        continue
                    if wanted is not None and np.diff(np.searchsorted(wanted, [before, at]))[0] == 0:
                        yield _Skipped(rows)
                        continue
                    skip = max(start - before, 0)
                    try:
                        for piece in file.iter_batches(DECODED, row_groups=[group], columns=list(names)):
                            if len(piece) > skip:
                                yield _in_types(piece[skip:] if skip else piece, names, self.types)
                            skip = max(skip - len(piece), 0)
                    except (OSError, pa.ArrowException) as error:
                        raise InputError(f"{path}: row group {group} cannot be read: {error}") from error


def _in_types(piece: pa.RecordBatch, names: Sequence[str], types: Mapping[str, pa.DataType]) -> pa.RecordBatch:
    """Take columns of a piece; those that other files hold as another type in the type of all."""
    import pyarrow as pa

    if types.keys().isdisjoint(names):
        return piece.select(list(names))
    columns = [piece.column(name).cast(types.get(name, piece.column(name).type)) for name in names]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


class _Skipped:
    """In the place of rows that nobody wants."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n


def open_rows(path: Path, *, leave_out: Collection[str] = ()) -> RowStream | TextRows:
    """Open a parquet file, or a folder of them, without reading any rows; a csv or tsv file is read through once.

    Parameters
    ----------
    path : Path
    leave_out : collection of str
        Columns that the caller speaks of, which must be there; one that numbers or names the rows is left out.
    """
    text = path.is_file() and path.suffix.lower() != ".parquet" and path.stat().st_size > 0
    stream: TextRows | RowStream = open_text(path) if text else _open_parquet(path)
    if not len(stream):
        raise InputError(f"{path}: there are no rows.")
    first = next(stream.frames(stream.names, runs_of_rows(len(stream), 1, 1000), [0]))
    rest = [name for name in stream.names if name not in leave_out]
    index = index_column(rest, lambda name: take_column(first, name))
    if index is not None and len(rest) > 1:
        column, does = index
        tell(f"{path}: the column {column!r} {does} the rows: left out, because it is no feature.")
        stream = replace(stream, names=tuple(name for name in stream.names if name != column))
    if "" in stream.names:
        raise InputError(f"{path}: a column has no name. Name it in the header, or drop it.")
    return stream


def _open_parquet(path: Path) -> RowStream:
    files = parquet_files(path)
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise InputError("tables are read in batches by pyarrow: pip install 'knockoffs[tables]'.") from None
    counts, names, schemas = [], None, dict[Path, pa.Schema]()
    for file in files:
        try:
            with pyarrow.parquet.ParquetFile(file) as opened:
                schema = opened.schema_arrow
                own = tuple(schema.names)
                counts.append(opened.metadata.num_rows)
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"{file}: cannot be read as parquet: {str(error).splitlines()[0]}") from error
        twice = [name for name, count in Counter(own).items() if count > 1]
        if twice:
            raise InputError(f"{file}: two columns of the same name: {name_some(twice)}. Rename or drop one of each.")
        if names is not None and set(own) != set(names):
            differ = sorted(set(own) ^ set(names))
            raise InputError(
                f"{file.name} and {files[0].name} have other columns: {name_some(differ)}. Make them the same."
            )
        names = names or own
        if not any(map(schema.equals, schemas.values())):
            schemas[file] = schema
    return RowStream(path, files, tuple(counts), names or (), _common_types(schemas))


def _common_types(schemas: Mapping[Path, pa.Schema]) -> dict[str, pa.DataType]:
    """Types that hold the values of all files, of the columns that these hold as several.

    Whole numbers and fractions are fractions, what is missing in all rows of a file is of the type of the others.
    """
    import pyarrow as pa

    (first, known), *others = schemas.items()
    types: dict[str, pa.DataType] = {}
    for file, schema in others:
        for name, wanted in zip(known.names, known.types, strict=True):
            one, other = types.get(name, wanted), schema.field(name).type
            if one == other:
                continue
            if pa.types.is_dictionary(one) != pa.types.is_dictionary(other):  # categories, and their labels as text
                one, other = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (one, other))
            both = [pa.schema([(name, kind)]) for kind in (one, other)]
            try:
                types[name] = pa.unify_schemas(both, promote_options="permissive").field(name).type
            except pa.ArrowException:
                raise InputError(
                    f"column {name!r} is {other} in {file.name} and {one} in {first.name}: make it the same in all "
                    "files, or leave it out of them."
                ) from None
    return types


def parquet_files(path: Path) -> tuple[Path, ...]:
    """List the files of a folder by name, or the file itself.

    What begins with a dot or an underscore is no part of the table: copies that notebooks and file systems keep, and
    files that were not finished.
    """
    if path.is_dir():
        found = {file.relative_to(path): file for file in path.rglob("*.parquet") if file.is_file()}
        aside = sorted(str(own) for own in found if any(part.startswith((".", "_")) for part in own.parts))
        files = tuple(sorted(file for own, file in found.items() if str(own) not in aside))
        if aside:
            tell(
                f"{path}: {name_some(aside)} left out: names with a dot or an underscore first are no part of a table."
            )
        if not files:
            raise InputError(f"{path}: this folder holds no parquet files.")
        columns = sorted({part.partition("=")[0] for own in found for part in own.parts[:-1] if "=" in part})
        if columns:
            tell(f"{path}: {name_some(columns)} of the folders' names is not read: only what the files hold is.")
        return files
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    return (path,)


def _frame(table: pa.Table) -> Frame:
    """Frame of an Arrow table, as ``read_table_file`` would give it."""
    from importlib.util import find_spec

    table = table.replace_schema_metadata(None)
    if find_spec("polars") is not None:
        import polars as pl

        table = pl.from_arrow(table)
    return plain_numbers(table)


@dataclass(frozen=True)
class Coded:
    """A batch in the codes of a table that was read before.

    Attributes
    ----------
    X : array, shape (n, n_columns)
    n_unknown : array of int, shape (n_columns,)
        Cells whose label that table does not have; they are missing in X.
    """

    X: NDArray[np.float64]
    n_unknown: NDArray[np.intp]


def code_like(frame: Frame, columns: Sequence[Column], argument: str) -> Coded:
    """Read a frame with the columns, dtypes and labels of a table that was read before.

    Parameters
    ----------
    frame : data frame
        With the same columns.
    columns : sequence of Column
    argument : str
        What to call the frame in errors.
    """
    raw = values_from_text(read_columns(frame, argument), columns)
    refuse(raw.problems, argument)
    X, unknown = raw.X, np.zeros(len(columns), dtype=np.intp)
    for j, (mine, column) in enumerate(zip(raw.columns, columns, strict=True)):
        if mine.levels is None and column.levels is None:
            continue
        present = ~np.isnan(X[:, j])
        if not present.any():
            continue
        if column.levels is None:
            labels = mine.levels or ()
            raise InputError(
                f"column {column.name!r} of {argument} holds labels, {name_some(labels, 3)}, where the rows that were "
                "read first held numbers or dates: make the column one kind, or drop it."
            )
        place = {str(level): k for k, level in enumerate(column.levels)}
        if mine.levels is not None:
            codes = np.array([place.get(str(level), np.nan) for level in mine.levels])
            X[present, j] = codes[X[present, j].astype(np.intp)]
        else:  # numbers that are labels there
            known = {float(v): k for k, v in enumerate(column.levels) if isinstance(v, str | SupportsFloat)}
            values, which = np.unique(X[present, j], return_inverse=True)
            X[present, j] = np.array([known.get(float(value), np.nan) for value in values])[which]
        unknown[j] = int((present & np.isnan(X[:, j])).sum())
    infinite = np.isinf(X)
    if infinite.any():
        i, j = np.argwhere(infinite)[0]
        raise InputError(f"column {columns[j].name!r} of {argument} is {X[i, j]} in its row {i}: numbers are finite.")
    return Coded(X, unknown)
