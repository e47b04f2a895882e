"""Covariates beside a P^X whose columns are sites or words: they take part in the model of y, and in P^X not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.pair import Pair
from knockoffs.sampling.sampler import KnockoffSampler, draw_pair
from knockoffs.table.table import Table


@dataclass(frozen=True)
class BesideCovariates:
    """Law of some columns, beside covariates that are their own knockoffs.

    The guarantee takes the features to be independent of the covariates, or the model of y to need them not.
    """

    law: Any  # of the columns that are no covariates, in their order
    sampler: KnockoffSampler  # of the same columns
    columns: NDArray[np.intp]  # their places in the table
    feature_of: NDArray[np.intp]  # shape (n_columns,): feature of each column of the table, covariates included

    def as_sampler(self) -> BesideCovariates:
        """Return itself."""
        return self

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X, completed where the law can, beside knockoffs."""
        return self.sample_several(X, 1, rng)

    def sample_several(self, X: NDArray, m: int, rng: Generator) -> Pair:
        """X, completed where the law can, beside m knockoffs."""
        parts = [X.astype(float) for _ in range(m + 1)]
        for whole, part in zip(parts, draw_pair(self.sampler, X[:, self.columns], rng, m).parts, strict=True):
            whole[:, self.columns] = part
        return Pair.of(parts, self.feature_of)

    def conditional(self, j: int, X: NDArray, rng: Generator, n_draws: int) -> NDArray:
        """Draws of column j given the other columns of the law, shape (n_draws, n)."""
        return self.law.conditional(int(np.searchsorted(self.columns, j)), X[:, self.columns], rng, n_draws)

    def say(self, names: Sequence[str] | None = None) -> str:
        """Sentences of the law, and one on the covariates."""
        own = None if names is None else [names[j] for j in self.columns]
        said = self.law.say(own) if hasattr(self.law, "say") else ""
        return f"{said} Covariates are in the model of y alone, and no part of P^X.".strip()


def by_sites(source: object) -> bool:
    """Whether the columns of a source of knockoffs are sites or words, so that no covariate can be one of them."""
    takes = getattr(getattr(source, "family", None), "takes", ())
    return "same" in takes or bool(getattr(getattr(source, "model", None), "groups_of_neighbours", False))


def beside_covariates(law: object, sampler: KnockoffSampler, table: Table) -> BesideCovariates:
    """Law of the columns that are no covariates, with the covariates of the table beside it."""
    gaps = [table.names[j] for j in table.covariate_columns if np.isnan(table.X[:, j]).any()]
    if gaps:
        raise InputError(f"covariates: {name_some(gaps)} have missing cells. Fill them, or leave their rows out.")
    columns = np.setdiff1d(np.arange(len(table.columns)), table.covariate_columns)
    return BesideCovariates(law, sampler, columns, table.feature_of)
