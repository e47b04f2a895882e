"""The rows of a table that are not in memory: P^X, scores and knockoffs are completed from batches of them.

P^X is fitted on a random sample of the rows, which is in memory. Batches are runs of rows of the file, without those of
the sample, so that every row has one knockoff. The knockoffs of a batch are drawn from a stream of its own, by its
number, and batches are added in their order: the answer does not depend on the number of workers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.draws import check_swaps
from knockoffs.errors import InputError, name_some
from knockoffs.features.covariance import N_FOLDS, PLENTY, Estimate, intensity_of_moments, join_moments
from knockoffs.features.source import Fitted, FittedSampler, KnockoffSource, fills_cells, settled
from knockoffs.importance.statistic import Scored, Statistic
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import stage, track
from knockoffs.response.gram import FoldGrams
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler
from knockoffs.seeds import stream_at
from knockoffs.streaming.statistic import LassoSum, ModelSum, ScoreSum, settle_statistic
from knockoffs.table.coding import code_like
from knockoffs.table.columns import Column, design
from knockoffs.table.files import write_table_file
from knockoffs.table.stream import Rows
from knockoffs.table.table import Table
from knockoffs.table.target import Target
from knockoffs.table.types import Frame


@dataclass(frozen=True)
class Batch:
    """A run of rows."""

    number: int
    start: int  # its first row, in the whole table
    frame: Frame
    sampled: NDArray[np.intp]  # rows of the sample, counted in the batch
    target: Target  # of its other rows

    @property
    def others(self) -> NDArray[np.bool_]:
        """Which rows are not of the sample."""
        others = np.ones(len(self.frame), dtype=bool)
        others[self.sampled] = False
        return others


@dataclass(frozen=True)
class Part:
    """What some batches add."""

    total: Any  # sum of the statistic; None if these batches have none
    moved: NDArray[np.bool_]  # shape (n_features,): features that differ from their knockoffs in some row
    n_unknown: NDArray[np.intp]  # shape (n_columns,): cells with labels that the sample does not have

    def __add__(self, other: Part) -> Part:
        """Both together."""
        a, b = self.total, other.total
        total = b if a is None else a if b is None else a + b
        return Part(total, self.moved | other.moved, self.n_unknown + other.n_unknown)


@dataclass(frozen=True)
class Reader:
    """How a batch is read, and its knockoffs are drawn: as those of the sample."""

    label: str  # name of the table in errors
    columns: tuple[Column, ...]
    feature_of: NDArray[np.intp]  # shape (n_columns,)
    covariates: NDArray[np.intp]  # columns that are covariates
    sampler: KnockoffSampler
    fills: bool  # whether P^X draws missing cells

    def read(self, batch: Batch) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Cells of a batch in the codes of the sample, and how many of each column have another label."""
        X, n_unknown = code_like(batch.frame, self.columns, f"{self.label}, rows from {batch.start} on,")
        if not self.fills and np.isnan(X).any():
            i, j = np.argwhere(np.isnan(X))[0]
            raise InputError(
                f"{self.label}: column {self.columns[j].name!r} has no value, or a label that the sample does not "
                f"have, in row {batch.start + i}, and this feature model takes no missing cells: use 'auto'."
            )
        return X, n_unknown

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

    def score(self, batch: Batch, statistic: LassoSum | ModelSum, place: NDArray[np.intp], stream: Generator) -> Part:
        """Sum of the statistic over the rows that are not of the sample; ``place`` is the random swap of the draw."""
        X, n_unknown = self.read(batch)
        if not len(batch.target):
            return Part(None, np.zeros(place.shape[1], dtype=bool), n_unknown)
        pair, rest = self.draw(X, batch, stream)
        known = self.seen(pair, batch.target)
        total = statistic.of(known.permute(place), batch.target, rest)
        return Part(total, ~known.copied, n_unknown)

    def knockoffs(self, batch: Batch, stream: Generator) -> NDArray | None:
        """X_tilde of the rows that are not of the sample; None if there are none."""
        if len(batch.sampled) == len(batch.frame):
            return None
        return self.draw(self.read(batch)[0], batch, stream)[0].X_tilde

    def moments(self, batch: Batch, model: ByMoments, n_folds: int) -> FoldGrams:
        """Grams of the coordinates of P^X where they are known, of all rows of the batch, dealt to folds."""
        L = model.coordinates(self.read(batch)[0])
        # a Gram has a response, which is its last column: here the last coordinate stands in its place
        return FoldGrams.of_numbers(L[:, :-1], L[:, -1], np.arange(len(L)) % n_folds, n_folds, None)


# P^X by the moments of all rows: rows that are too few for their columns have their correlations shrunk, and the
# knockoffs are drawn with links that are weaker than the columns' own


@runtime_checkable
class ByMoments(Protocol):
    """P^X whose columns are maps of coordinates that one Gaussian has."""

    def coordinates(self, X: NDArray) -> NDArray:
        """Coordinates of the rows in which they are known, shape (n_known, D)."""
        ...

    def with_moments(self, found: Estimate, rows: float, diagonal: str) -> Self:
        """P^X with other moments of its coordinates, which are those of so many rows."""
        ...


def wants_more_rows(source: KnockoffSource, found: FittedSampler, table: Table) -> bool:
    """Whether P^X was fitted to fewer than 50 rows a coordinate, and more rows could tell its covariance."""
    if not isinstance(source, Fitted) or not isinstance(found.model, ByMoments):
        return False
    known = found.model.coordinates(table.X)
    return len(known) == len(table.X) < PLENTY * known.shape[1]


def warn_again(told: Iterable[warnings.WarningMessage], *, more_rows: bool) -> None:
    """Pass on what a fit warned of, but for few rows where more will tell the covariance."""
    for one in told:
        if not (more_rows and "rests on" in str(one.message)):
            warnings.warn(one.message, one.category, stacklevel=3)


def settle_by_moments(
    source: Fitted,
    found: FittedSampler,
    table: Table,
    rows: NDArray,
    means: NDArray,
    scatters: NDArray,
    *,
    n_jobs: int | None = None,
) -> FittedSampler:
    """P^X with the mean and covariance of many rows, shrunk as far as their folds ask for it.

    It was settled on fewer rows before (``source``, ``found``, ``table``). ``means`` and ``scatters``, shape (n_folds,
    D) and (n_folds, D, D), are those of the coordinates in each fold: their mean, and the sum of (l - mean)(l -
    mean)^T.
    """
    assert isinstance(found.model, ByMoments)
    total = rows.sum()
    mean, covariance = join_moments(rows, means, scatters)
    intensity = intensity_of_moments(rows, means, scatters) if total < PLENTY * len(mean) else 0.0
    covariance[~np.eye(len(mean), dtype=bool)] *= 1 - intensity
    diagonal = source.handed(table).get("diagonal", DEFAULT_DIAGONAL)
    model = found.model.with_moments(Estimate(mean, covariance, intensity), float(total), diagonal)
    return settled(model, source.how(n_jobs), table)


Result = TypeVar("Result")


@dataclass(frozen=True)
class RestOfTable:
    """The rows of a table that are not in memory."""

    rows: Rows  # all rows, which are read in batches
    table: Table  # the sample
    target: Target  # of all rows
    sampled: NDArray[np.intp]  # rows of the sample, ascending
    starts: NDArray[np.intp]  # first row of every batch, and the number of rows
    folder: Path | None = None  # where the knockoffs of all rows are written
    # rows outside of the sample on which a model that is no lasso is scored: a minute of trees, with 50 columns
    most_scored: int = 1_000_000
    model: FittedSampler | None = None  # P^X, once it is fitted

    @property
    def fitted(self) -> FittedSampler:
        """P^X, after ``fit``."""
        assert self.model is not None
        return self.model

    @property
    def n_batches(self) -> int:
        """Number of batches."""
        return len(self.starts) - 1

    # ---- P^X

    def fit(self, source: KnockoffSource, *, rng: Generator, n_jobs: int | None = None) -> RestOfTable:
        """Fit P^X on the sample, with the covariance of all rows if the sample is small for its columns."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fitted = source(self.table, rng=rng, n_jobs=n_jobs)
        more = wants_more_rows(source, fitted, self.table)
        warn_again(said, more_rows=more)
        found = replace(self, model=fitted)
        return found._with_covariance_of_all_rows(source, n_jobs) if more else found

    def _with_covariance_of_all_rows(self, source: KnockoffSource, n_jobs: int | None) -> RestOfTable:
        model = self.fitted.model
        assert isinstance(source, Fitted) and isinstance(model, ByMoments)
        stage("moments of all rows")
        plenty = PLENTY * model.coordinates(self.table.X[:1]).shape[1]
        folds = 1 if len(self.rows) >= plenty else N_FOLDS  # one where so many rows need no shrinkage
        grams = reduce(
            add, self._results(partial(self._reader.moments, model=model, n_folds=folds), range(self.n_batches), n_jobs)
        )
        rows, means, scatters = map(np.array, zip(*((g.rows, g.mean, g.scatter) for g in grams.plain), strict=True))
        fitted = settle_by_moments(source, self.fitted, self.table, rows, means, scatters, n_jobs=n_jobs)
        return replace(self, model=fitted)

    # ---- scores

    def score(
        self,
        statistic: Statistic,
        swapped: Pair,
        target: Target,
        place: NDArray[np.intp],
        *,
        rng: Generator,
        batches: Generator,
        n_jobs: int | None = None,
    ) -> tuple[Scored, NDArray[np.bool_]]:
        """Scores of all rows after the swap, and which features equal their knockoffs in every row.

        The model of y is chosen on the sample, ``swapped``. The lasso is a sum over all rows; other models are fitted
        on the sample, and scored on other rows if their score looks at rows.
        """
        decided = settle_statistic(statistic, swapped, target, rng=rng, n_jobs=n_jobs)
        if isinstance(decided, Scored):
            return decided, swapped.copied
        own, which = rng.spawn(2)
        rows = slice(None) if decided.every_row else slice(0)  # a model is not scored on the rows it was fitted on
        start = decided.of(swapped.rows(rows), target.rows(rows), own)
        first = Part(start, ~swapped.copied, np.zeros(len(self.table.columns), dtype=np.intp))
        numbers: Sequence[int] = range(self.n_batches)
        needed = -(-self.most_scored * self.n_batches // len(self.rows))
        if not decided.every_row and needed < self.n_batches:
            numbers = sorted(which.choice(self.n_batches, needed, replace=False).tolist())
        work = partial(self._reader.score, statistic=decided, place=place, stream=batches)
        whole = reduce(add, self._results(work, numbers, n_jobs), first)
        notes = {**decided.notes, **self._unknown_labels(whole.n_unknown)}
        if isinstance(whole.total, ScoreSum):
            scored = f"{whole.total.weight:,.0f} rows outside of the sample"
            notes["rows"] = f"the model of the target is scored on {scored}"
        return Scored(decided.scores(whole.total), notes), ~whole.moved

    def _unknown_labels(self, unknown: NDArray[np.intp]) -> dict[str, str]:
        if not unknown.any():
            return {}
        names = [f"{self.table.names[j]!r} ({int(unknown[j]):,})" for j in np.flatnonzero(unknown)]
        said = f"labels that the sample does not have are taken as missing cells, in columns {name_some(names)}"
        return {"labels": said}

    # ---- knockoffs

    def keep_knockoffs(self, pair: Pair, *, batches: Generator, n_jobs: int | None = None) -> None:
        """Write the knockoffs of all rows, one parquet file a batch, in the order of their names."""
        if self.folder is None:
            return
        work = partial(self._reader.knockoffs, stream=batches)
        for number, X_tilde in enumerate(self._results(work, range(self.n_batches), n_jobs)):
            start, stop = self.starts[number : number + 2]
            first, last = np.searchsorted(self.sampled, [start, stop])
            whole, own = np.empty((stop - start, pair.n_columns)), self.sampled[first:last] - start
            whole[own] = pair.X_tilde[first:last]
            if X_tilde is not None:
                whole[np.setdiff1d(np.arange(len(whole)), own, assume_unique=True)] = X_tilde
            write_table_file(self.table.decode(whole), knockoff_file(self.folder, int(start)))

    # ---- batches

    @property
    def _reader(self) -> Reader:
        fills = fills_cells(self.fitted.model)
        table = self.table
        covariates = table.covariate_columns
        return Reader(self.rows.label, table.columns, table.feature_of, covariates, self.fitted.sampler, fills)

    def _results(self, work: Callable[[Batch], Result], numbers: Sequence[int], n_jobs: int | None) -> Iterator[Result]:
        """Results of some batches in their order; rows are read here, one batch after another."""
        frames = self.rows.frames(self.table.names, self.starts, numbers)
        tasks = (delayed(work)(self._batch(number, frame)) for number, frame in zip(numbers, frames, strict=True))
        results = parallel_map(tasks, n_jobs, threads=True, large=True)
        return iter(track(results, "batches of rows", total=len(numbers)))

    def _batch(self, number: int, frame: Frame) -> Batch:
        start, stop = self.starts[number : number + 2]
        first, last = np.searchsorted(self.sampled, [start, stop])
        sampled = self.sampled[first:last]
        others = np.setdiff1d(np.arange(start, stop), sampled, assume_unique=True)
        return Batch(number, int(start), frame, sampled - start, self.target.at(others))


def folder_for_knockoffs(folder: str | Path | None) -> Path | None:
    """Folder for the knockoffs, made here; one with files in it is refused."""
    if folder is None:
        return None
    place = Path(folder)
    if place.is_file():
        raise InputError(f"keep_knockoffs={str(folder)!r} is a file: name a folder.")
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise InputError(f"keep_knockoffs={str(folder)!r} is not empty: name another folder.")
    return place


def knockoff_file(folder: Path, start: int) -> Path:
    """File of the knockoffs of a batch, by its first row."""
    return folder / f"rows-{start:012d}.parquet"
