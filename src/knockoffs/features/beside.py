"""Columns beside P^X, which are their own knockoffs: constants, and covariates where the others are sites or words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from knockoffs.features.source import FittedSampler

COVARIATES = "Covariates are in the model of y alone, and no part of P^X."


@dataclass(frozen=True)
class BesideOthers:
    """Law of some columns, beside others that are their own knockoffs.

    Where these are covariates, the guarantee takes the features to be independent of them, or the model of y to need
    them not.
    """

    law: Any  # of the columns that have knockoffs, in their order
    sampler: KnockoffSampler  # of the same columns
    columns: NDArray[np.intp]  # their places in the table
    feature_of: NDArray[np.intp]  # shape (n_columns,): feature of each column of the table
    note: str  # what the others are
    draws_several: ClassVar[bool] = True

    def as_sampler(self) -> BesideOthers:
        """Return itself."""
        return self

    def sample(self, X: NDArray, rng: Generator, m: int = 1) -> Pair:
        """X, completed where the law can, beside m knockoffs."""
        parts = [X.astype(float) for _ in range(m + 1)]
        for whole, part in zip(parts, draw_pair(self.sampler, X[:, self.columns], rng, m).parts, strict=True):
            whole[:, self.columns] = part
        return Pair.of(parts, self.feature_of)

    @property
    def conditional(self) -> Callable[[int, NDArray, Generator, int], NDArray]:
        """Draw a column given the other columns of the law, shape (n_draws, n); there is none if the law has none."""
        of_law = self.law.conditional

        def draw(j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
            if j not in self.columns:
                return np.tile(X[:, j], (n_draws, 1))  # it is its own knockoff
            return of_law(int(np.searchsorted(self.columns, j)), X[:, self.columns], rng, n_draws)

        return draw

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentences of the law, and one on the other columns."""
        own = None if names is None else [names[j] for j in self.columns]
        said = self.law.say(own) if hasattr(self.law, "say") else ""
        return f"{said} {self.note}".strip()


def by_sites(source: object) -> bool:
    """Whether the columns of a source of knockoffs are sites or words, so that no covariate can be one of them."""
    takes = getattr(getattr(source, "family", None), "takes", ())
    return "same" in takes or bool(getattr(getattr(source, "model", None), "groups_of_neighbours", False))


def fit_beside(
    fit: Callable[[Table], FittedSampler], table: Table, others: NDArray[np.intp], note: str
) -> BesideOthers:
    """P^X as ``fit`` settles it for the other columns of a table, beside those that are their own knockoffs."""
    gaps = [table.names[j] for j in others if np.isnan(table.X[:, j]).any()]
    if gaps:
        raise InputError(f"covariates: missing cells in {name_some(gaps)}. Fill them, or leave their rows out.")
    kept = np.ones(len(table.columns), dtype=bool)
    kept[others] = False
    inner = fit(table.keep(kept))
    return BesideOthers(inner.model, inner.sampler, np.flatnonzero(kept), table.feature_of, note)
