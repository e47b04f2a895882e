"""A table whose rows are read a batch at a time: what every such table can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.table.types import Frame

BATCH_CELLS = 2**22  # of a batch: 32 MiB as floats


class Rows(Protocol):
    """A table whose rows are read a batch at a time."""

    @property
    def label(self) -> str:
        """What to call it in errors."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        ...

    def __len__(self) -> int: ...

    def starts(self, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
        """First row of every batch, and the number of rows."""
        ...

    def frames(self, names: Sequence[str], starts: NDArray[np.intp], wanted: Sequence[int]) -> Iterator[Frame]:
        """Frames of some batches, with some of the columns."""
        ...

    def take(self, names: Sequence[str], rows: NDArray[np.intp]) -> Frame:
        """Frame of some rows, given in ascending order."""
        ...

    def column(self, name: str) -> NDArray:
        """Return the values of a column in all rows."""
        ...


def runs_of_rows(n_rows: int, n_columns: int, batch_rows: int | None) -> NDArray[np.intp]:
    """First rows of batches of one size; by default it depends on the columns alone, the same on every machine.

    >>> runs_of_rows(10, 3, 4).tolist()
    [0, 4, 8, 10]
    """
    size = max(1, BATCH_CELLS // max(n_columns, 1)) if batch_rows is None else int(batch_rows)
    if size < 1:
        raise InputError(f"batch_rows={batch_rows}: a batch has one row or more.")
    return np.append(np.arange(0, n_rows, size), n_rows)


def refuse_dask(table: object) -> None:
    """Refuse what dask holds, and say how its rows can be read; dask is not imported for it."""
    if type(table).__module__.startswith("dask.array"):
        raise InputError("X is a dask array: pass X.compute(), if it fits into memory.")
    if type(table).__module__.partition(".")[0] == "dask":
        raise InputError(
            "a dask DataFrame is not read here: write it, frame.to_parquet(folder), and use "
            "knockoffs.fit_streamed(selector, folder, target)."
        )
