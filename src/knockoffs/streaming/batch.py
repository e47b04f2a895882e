"""One batch of rows: its knockoffs, from a stream of its own, and what it adds to the sums.

What all batches share is a value that can be sent to another process; a batch is its number, its rows of the sample,
which are left out, and its target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.draws import check_swaps
from knockoffs.errors import InputError
from knockoffs.machine.threads import worthwhile_threads
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.seeds import stream_at
from knockoffs.streaming.state import Reader
from knockoffs.streaming.statistic import LassoSum, ModelSum, SampleScores
from knockoffs.streaming.tower import Part, RowSum
from knockoffs.table.columns import Column, design
from knockoffs.table.files import column_names, write_table_file
from knockoffs.table.moments import MOMENTS, UNITS, broken
from knockoffs.table.stream import code_like
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.table.types import Frame


@dataclass(frozen=True)
class StreamedDraw:
    """One draw of knockoffs: its streams, the swapped features and the statistic."""

    batches: Generator
    S: NDArray[np.bool_]
    statistic: LassoSum | ModelSum | SampleScores

    def knockoffs_and_rest(self, batch: int) -> tuple[Generator, Generator]:
        """Streams of a batch, for its knockoffs and for its summand; stream 0 is the sample's."""
        knockoffs, rest = stream_at(self.batches, batch + 1).spawn(2)
        return knockoffs, rest


@dataclass(frozen=True)
class Batch:
    """A run of rows.

    Attributes
    ----------
    number : int
    start : int
        Its first row, in the whole table.
    sampled : array of int
        Rows of the sample, counted in the batch.
    target : Target
        Of its other rows.
    kept : array, shape (n_sampled, n_columns), optional
        Knockoffs of its rows of the sample, where knockoffs are kept.
    """

    number: int
    start: int
    sampled: NDArray[np.intp]
    target: Target
    kept: NDArray | None = None


@dataclass(frozen=True)
class Work:
    """What all batches share.

    Attributes
    ----------
    where : str
        What to call the table in errors.
    columns : tuple of Column
    feature_of : array of int, shape (n_columns,)
    sampler : KnockoffSampler
    fills : bool
        Whether P^X draws missing cells.
    draws : tuple of StreamedDraw
    keep : Keep, optional
        Where knockoffs are kept.
    """

    where: str
    columns: tuple[Column, ...]
    feature_of: NDArray[np.intp]
    sampler: KnockoffSampler
    fills: bool
    draws: tuple[StreamedDraw, ...] = ()
    keep: Keep | None = None

    @property
    def readers(self) -> tuple[Reader | None, ...]:
        """How the sum of each draw is read from a file."""
        statistics = (draw.statistic for draw in self.draws)
        return tuple(None if isinstance(one, SampleScores) else one.read for one in statistics)

    def draw(self, X: NDArray, rng: Generator) -> Pair:
        """Knockoffs of some rows."""
        drawn = self.sampler.sample(X, rng)
        return Pair(drawn.X, drawn.X_tilde, check_swaps(drawn.feature_of, self.feature_of))

    def seen(self, pair: Pair, target: Target) -> Pair:
        """Rows whose target is known, as the model of y sees them."""
        return pair.rows(target.known_rows).map(design(self.columns, self.feature_of))

    def part(self, frame: Frame, batch: Batch, *, scored: bool = True) -> Part:
        """Read a batch, draw its knockoffs, and say what it adds; those of the first draw are kept if asked for."""
        coded = code_like(frame, self.columns, f"{self.where}, rows from {batch.start} on,")
        if not self.fills and np.isnan(coded.X).any():
            i, j = np.argwhere(np.isnan(coded.X))[0]
            raise InputError(
                f"{self.where}: column {self.columns[j].name!r} has no value, or a label that the sample does not "
                f"have, in row {batch.start + i}, and this feature model takes no missing cells: use 'auto'."
            )
        rest = np.ones(len(coded.X), dtype=bool)
        rest[batch.sampled] = False
        X = coded.X if rest.all() else coded.X[rest]
        totals: list[RowSum | None] = []
        moved = []
        for k, draw in enumerate(self.draws):
            summed = scored and len(batch.target) and not isinstance(draw.statistic, SampleScores)
            pair = None
            if len(X) and (summed or (k == 0 and self.keep is not None)):
                knockoffs, stream = draw.knockoffs_and_rest(batch.number)
                pair = self.draw(X, knockoffs)
            if k == 0 and self.keep is not None:
                self.keep.write(batch, rest, None if pair is None else pair.X_tilde)
            if not summed or pair is None or isinstance(draw.statistic, SampleScores):
                totals.append(None)
                moved.append(np.zeros(len(draw.S), dtype=bool))
                continue
            known = self.seen(pair, batch.target)
            totals.append(draw.statistic.of(known.swap(draw.S), batch.target, stream))
            moved.append(~known.copied)
        return Part(tuple(totals), tuple(moved), coded.n_unknown)


@dataclass(frozen=True)
class Keep:
    """Folder of parquet files with knockoffs of all rows, one file a batch, in the order of their names.

    Attributes
    ----------
    folder : Path
    like : Table
        A few rows, whose format the knockoffs have.
    """

    folder: Path
    like: Table

    @classmethod
    def of(cls, folder: Path, table: Table) -> Keep:
        """Take few rows of a table: its first, and such as say in which units dates and durations came."""
        some = set(range(min(len(table), 5)))
        for j, column in enumerate(table.columns):
            if column.dtype in MOMENTS and column.levels is None:
                some |= {int(np.argmax(broken(table.X[:, j], unit))) for unit in UNITS}  # row 0 where none is
        rows = np.array(sorted(some))
        return cls(folder, replace(table, X=table.X[rows], native=table.native[: len(rows)]))

    def write(self, batch: Batch, rest: NDArray[np.bool_], X_tilde: NDArray | None) -> None:
        """Write those of a batch, the rows of the sample in their places."""
        whole = np.empty((len(rest), len(self.like.columns)))
        if X_tilde is not None:
            whole[rest] = X_tilde
        if batch.kept is not None:
            whole[~rest] = batch.kept
        write_table_file(self.like.decode(whole), self.folder / f"rows-{batch.start:012d}.parquet")


class BatchWork(Protocol):
    """What all batches share, and what it makes of one."""

    def part(self, frame: Frame, batch: Batch, *, scored: bool = True) -> Part:
        """Return what a batch adds to the sums."""
        ...


def part_of(work: BatchWork, frame: Frame, batch: Batch, scored: bool = True) -> Part:
    """Summand of a batch whose rows are there, as a worker computes it: with one thread for linear algebra."""
    with worthwhile_threads(len(frame) * len(column_names(frame))):
        return work.part(frame, batch, scored=scored)
