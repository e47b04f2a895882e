"""Rows of a csv or tsv file, a batch at a time, read as the whole file would be.

The file is read through once for the kinds of its columns, which are those of all rows, and again from its start
whenever rows are asked for.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.cells import PlainFrame
from knockoffs.table.delimited import Layout, lay_out, parse_cells, read_runs, tell
from knockoffs.table.files import file_format, file_hash
from knockoffs.table.rows import runs_of_rows
from knockoffs.table.types import Frame


@dataclass(frozen=True)
class TextRows:
    """Rows of a file of delimited text.

    Attributes
    ----------
    layout : Layout
    names : tuple of str
        Of the columns.
    """

    layout: Layout
    names: tuple[str, ...]

    def __len__(self) -> int:
        return self.layout.n_rows

    @property
    def label(self) -> str:
        """Name of the file."""
        return self.layout.path.name

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        return runs_of_rows(len(self), n_columns, batch_rows)

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[Frame]:
        """Frames of some batches; rows between them are passed over."""
        sizes = np.diff(starts)
        first = wanted[0] if len(wanted) else 0
        runs = read_runs(self.layout, names, int(starts[first]), sizes[first:].tolist())
        at = first
        with closing(runs):
            for k, number in enumerate(wanted):
                if number < at:  # it and those after it are read from the start again
                    yield from self.frames(names, starts, wanted[k:])
                    return
                while at < number:
                    next(runs)
                    at += 1
                yield PlainFrame(next(runs))
                at += 1

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> Frame:
        """Frame of some rows, given in ascending order."""
        places = [self.layout.names.index(name) for name in names]
        parts: list[list[NDArray]] = [[] for _ in places]
        at = 0
        with closing(self.layout.records()) as records:
            while block := list(islice(records, self.layout.parallel_map)):
                first, last = np.searchsorted(rows, [at, at + len(block)])
                some = [block[i] for i in rows[first:last] - at]
                at += len(block)
                if some:
                    for part, values in zip(parts, parse_cells(self.layout, places, some), strict=True):
                        part.append(values)
        return PlainFrame({name: np.concatenate(part) for name, part in zip(names, parts, strict=True)})

    def column(self, name: str) -> NDArray:
        """Return the values of a column in all rows; a label is there once, not once a row."""
        same: dict[object, object] = {}
        parts = []
        for start in read_runs(self.layout, [name], 0, np.diff(runs_of_rows(len(self), 1, 100_000)).tolist()):
            values = start[name]
            if values.dtype == object:
                values[:] = [same.setdefault(value, value) for value in values.tolist()]
            parts.append(values)
        return np.concatenate(parts)

    def sha256(self) -> str:
        """Return that of the file."""
        return file_hash(self.layout.path)


def open_text(path: Path) -> TextRows:
    """Read a csv or tsv file through, for what its columns hold.

    A column without a name and without a value is left out, as where the file is read whole.
    """
    ending = file_format(path)
    try:
        layout = lay_out(path, "\t" if ending.startswith(".tsv") else ",")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as {ending[1:]}: {error}.") from error
    names = list(layout.names)
    if "" in names and layout.blank[names.index("")]:
        tell(f"{path}: a column without a name and without a value is left out.")
        names.remove("")
    return TextRows(layout, tuple(names))
