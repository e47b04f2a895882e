"""P^X that is told by a mean and a covariance: they may come from more rows than it was fitted to.

Rows that are too few for their columns have their correlations shrunk, and the knockoffs are drawn with links that are
weaker than the columns' own. W of a table in batches sees all rows, so all rows should tell the correlations.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.covariance import PLENTY, Estimate, intensity_of_moments, join_moments
from knockoffs.features.source import Fitted, FittedSampler, KnockoffSource, settled
from knockoffs.sampling.diagonal import DEFAULT_DIAGONAL
from knockoffs.table.table import Table


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
