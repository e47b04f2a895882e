"""One batch of rows, and what is computed from it: values that can be sent to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.draws import check_swaps
from knockoffs.errors import InputError
from knockoffs.features.moments import ByMoments
from knockoffs.response.gram import FoldGrams
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.seeds import stream_at
from knockoffs.streaming.statistic import LassoSum, ModelSum
from knockoffs.table.coding import Coded, code_like
from knockoffs.table.columns import Column, design
from knockoffs.table.target import Target
from knockoffs.table.types import Frame


@dataclass(frozen=True)
class Batch:
    """A run of rows.

    Attributes
    ----------
    number : int
    start : int
        Its first row, in the whole table.
    frame : data frame
    sampled : array of int
        Rows of the sample, counted in the batch.
    target : Target
        Of its other rows.
    """

    number: int
    start: int
    frame: Frame
    sampled: NDArray[np.intp]
    target: Target

    @property
    def others(self) -> NDArray[np.bool_]:
        """Which rows are not of the sample."""
        others = np.ones(len(self.frame), dtype=bool)
        others[self.sampled] = False
        return others


@dataclass(frozen=True)
class Reader:
    """How a batch is read, and its knockoffs are drawn: as those of the sample.

    Attributes
    ----------
    label : str
        Name of the table in errors.
    columns : tuple of Column
    feature_of : array of int, shape (n_columns,)
    covariates : array of int
        Columns that are covariates.
    sampler : KnockoffSampler
    fills : bool
        Whether P^X draws missing cells.
    """

    label: str
    columns: tuple[Column, ...]
    feature_of: NDArray[np.intp]
    covariates: NDArray[np.intp]
    sampler: KnockoffSampler
    fills: bool

    def read(self, batch: Batch) -> Coded:
        """Cells of a batch in the codes of the sample."""
        coded = code_like(batch.frame, self.columns, f"{self.label}, rows from {batch.start} on,")
        if not self.fills and np.isnan(coded.X).any():
            i, j = np.argwhere(np.isnan(coded.X))[0]
            raise InputError(
                f"{self.label}: column {self.columns[j].name!r} has no value, or a label that the sample does not "
                f"have, in row {batch.start + i}, and this feature model takes no missing cells: use 'auto'."
            )
        return coded

    def draw(self, X: NDArray, batch: Batch, stream: Generator) -> tuple[Pair, Generator]:
        """Knockoffs of the rows that are not of the sample, from the batch's own stream; and another such stream."""
        knockoffs, rest = stream_at(stream, batch.number).spawn(2)
        others = batch.others
        drawn = self.sampler.sample(X if others.all() else X[others], knockoffs)
        return Pair(drawn.X, drawn.X_tilde, check_swaps(drawn.feature_of, self.feature_of)), rest

    def seen(self, pair: Pair, target: Target) -> Pair:
        """Rows whose target is known, as the model of y sees them."""
        known = pair.rows(target.known_rows).without_knockoffs(self.covariates)
        return known.map(design(self.columns, self.feature_of))


@dataclass(frozen=True)
class Part:
    """What some batches add.

    Attributes
    ----------
    total : object
        Sum of the statistic; None if these batches have none.
    moved : array of bool, shape (n_features,)
        Features that differ from their knockoffs in some row.
    n_unknown : array of int, shape (n_columns,)
        Cells with labels that the sample does not have.
    """

    total: Any
    moved: NDArray[np.bool_]
    n_unknown: NDArray[np.intp]

    def __add__(self, other: Part) -> Part:
        """Both together."""
        a, b = self.total, other.total
        total = b if a is None else a if b is None else a + b
        return Part(total, self.moved | other.moved, self.n_unknown + other.n_unknown)


@dataclass(frozen=True)
class Scoring:
    """What a batch adds to the scores of one draw.

    Attributes
    ----------
    reader : Reader
    statistic : LassoSum or ModelSum
        As it was decided on the sample.
    place : array of int, shape (2, n_features)
        The random swap of the draw.
    stream : Generator
        Parent of the streams of the batches.
    """

    reader: Reader
    statistic: LassoSum | ModelSum
    place: NDArray[np.intp]
    stream: Generator

    def __call__(self, batch: Batch) -> Part:
        """Sum over the rows that are not of the sample."""
        coded = self.reader.read(batch)
        if not len(batch.target):
            return Part(None, np.zeros(self.place.shape[1], dtype=bool), coded.n_unknown)
        pair, rest = self.reader.draw(coded.X, batch, self.stream)
        known = self.reader.seen(pair, batch.target)
        total = self.statistic.of(known.permute(self.place), batch.target, rest)
        return Part(total, ~known.copied, coded.n_unknown)


@dataclass(frozen=True)
class Drawing:
    """The knockoffs of a batch."""

    reader: Reader
    stream: Generator

    def __call__(self, batch: Batch) -> NDArray | None:
        """X_tilde of the rows that are not of the sample; None if there are none."""
        if len(batch.sampled) == len(batch.frame):
            return None
        return self.reader.draw(self.reader.read(batch).X, batch, self.stream)[0].X_tilde


@dataclass(frozen=True)
class Moments:
    """Moments of the coordinates of P^X over the rows of a batch, those of the sample too, dealt to folds."""

    reader: Reader
    model: ByMoments
    n_folds: int

    def __call__(self, batch: Batch) -> FoldGrams:
        """Grams of the rows whose coordinates are known."""
        L = self.model.coordinates(self.reader.read(batch).X)
        # a Gram has a response, which is its last column: here the last coordinate stands in its place
        return FoldGrams.of_numbers(L[:, :-1], L[:, -1], np.arange(len(L)) % self.n_folds, self.n_folds, None)
