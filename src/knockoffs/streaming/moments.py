"""Moments of P^X over all rows of a table in batches, for a sample that is too small to tell them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from knockoffs.features.moments import ByMoments
from knockoffs.response.gram import FoldGrams
from knockoffs.streaming.batch import Batch
from knockoffs.streaming.state import Reader
from knockoffs.streaming.tower import Part
from knockoffs.table.columns import Column
from knockoffs.table.stream import code_like
from knockoffs.table.types import Frame


@dataclass(frozen=True)
class MomentWork:
    """What all batches share while the moments are summed.

    Attributes
    ----------
    where : str
        What to call the table in errors.
    columns : tuple of Column
    model : ByMoments
        P^X as the sample has it, by which cells are read.
    n_folds : int
    """

    where: str
    columns: tuple[Column, ...]
    model: ByMoments
    n_folds: int

    @property
    def readers(self) -> tuple[Reader, ...]:
        """How the sums are read from a file."""
        return (FoldGrams.from_arrays,)

    def part(self, frame: Frame, batch: Batch, *, scored: bool = True) -> Part:
        """Moments of all rows of a batch whose coordinates are known, those of the sample too, dealt to folds."""
        coded = code_like(frame, self.columns, f"{self.where}, rows from {batch.start} on,")
        L = self.model.coordinates(coded.X)
        fold_of = np.arange(len(L)) % self.n_folds
        # a Gram has a response, which is its last column: here the last coordinate stands in its place
        grams = FoldGrams.of_numbers(L[:, :-1], L[:, -1], fold_of, self.n_folds, None)
        return Part((grams,), (np.zeros(0, dtype=bool),), coded.n_unknown)
