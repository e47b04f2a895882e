"""Rows of a dask DataFrame: its partitions are the batches, and its own scheduler reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.files import take_column
from knockoffs.table.types import Frame, Json

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    from dask.delayed import Delayed


@dataclass(frozen=True)
class Partitions:
    """Rows of a dask DataFrame.

    Attributes
    ----------
    frame : dask DataFrame
        Its rows, and their order, must be the same however often a partition is computed.
    n_rows_of : tuple of int
        Rows of each partition.
    names : tuple of str
        Of the columns.
    label : str
        What to call it in errors.
    """

    frame: dd.DataFrame
    n_rows_of: tuple[int, ...]
    names: tuple[str, ...]
    label: str = "the dask DataFrame"

    def __len__(self) -> int:
        return sum(self.n_rows_of)

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every partition that has rows, and the number of rows."""
        if batch_rows is not None:
            raise InputError(f"batch_rows={batch_rows}: partitions are the batches. Use frame.repartition(...).")
        return np.unique(np.cumsum([0, *self.n_rows_of]))

    def delayed(self, names: Sequence[str]) -> list[Delayed]:
        """Frames of the partitions that have rows, not computed yet."""
        parts = self.frame[list(names)].to_delayed()
        return [part for part, n in zip(parts, self.n_rows_of, strict=True) if n]

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[Frame]:
        """Frames of some partitions, computed one after another."""
        parts = self.delayed(names)
        for number in wanted:
            yield parts[number].compute()

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> Frame:
        """Frame of some rows, given in ascending order."""
        import dask
        import pandas as pd

        bounds = np.searchsorted(rows, self.starts(len(names), None))
        taken = dask.delayed(_take, pure=True)
        parts, starts = self.delayed(names), self.starts(len(names), None)
        wanted = [
            taken(part, rows[first:last] - start)
            for part, first, last, start in zip(parts, bounds, bounds[1:], starts, strict=False)
            if last > first
        ]
        return pd.concat(dask.compute(*wanted), ignore_index=True)

    def column(self, name: str) -> NDArray:
        """Return the values of a column in all rows."""
        return take_column(self.frame[[name]].compute(), name)

    def fingerprint(self) -> list[list[Json]]:
        """Rows of the partitions, and dask's own name for the frame, which tells where its rows come from."""
        return [[str(getattr(self.frame, "_name", "")), list(self.n_rows_of)]]


def _take(frame: pd.DataFrame, rows: NDArray[np.intp]) -> Frame:
    return frame.iloc[rows]


def is_partitioned(table: object) -> bool:
    """Whether something is a dask DataFrame; dask is not imported for it."""
    return type(table).__module__.partition(".")[0] == "dask" and hasattr(table, "to_delayed")


def open_partitions(frame: dd.DataFrame) -> Partitions:
    """Count the rows of the partitions of a dask DataFrame."""
    columns = getattr(frame, "columns", None)
    if columns is None or not hasattr(frame, "map_partitions"):
        raise InputError(f"a dask {type(frame).__name__} has no named columns: make it a dask DataFrame.")
    names = tuple(columns)
    if not all(isinstance(name, str) for name in names):
        raise InputError("the dask DataFrame has columns whose names are no texts: rename them.")
    counts = tuple(int(n) for n in frame.map_partitions(len).compute())
    if not sum(counts):
        raise InputError("the dask DataFrame has no rows.")
    return Partitions(frame, counts, names)
