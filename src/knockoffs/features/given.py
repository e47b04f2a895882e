"""P^X that is known, as a law, a network or a covariance; and knockoffs that were drawn elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import ColumnsError, InputError
from knockoffs.features import FeatureModel
from knockoffs.features.beside import COVARIATES, by_sites, fit_beside
from knockoffs.features.source import FittedSampler, check_takes, check_width, fills_cells, in_order, settled
from knockoffs.sampling.pair import Pair
from knockoffs.table.coding import check_knockoffs, code_by
from knockoffs.table.redundancy import dependent_error, dependent_in_covariance
from knockoffs.table.table import Table, read_table
from knockoffs.table.types import Kinds


@dataclass(frozen=True)
class GivenModel:
    """P^X that is known: a fitted family or a Bayesian network."""

    model: FeatureModel

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Labels get the codes that the model has for them."""
        table = read_table(X, kinds=kinds, argument=argument, min_rows=min_rows)
        table = replace(table, ordered=True) if in_order(self.model) else table
        check_takes(table, ("labels", "missing") if fills_cells(self.model) else ("labels",), argument)
        from knockoffs.features.network import DiscreteNetwork
        from knockoffs.features.network.model import code_by_state

        if not isinstance(self.model, DiscreteNetwork):
            return table
        return code_by_state(code_by(table, self.model.states or {}, argument), self.model)

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Match the model's columns with the table's."""
        if table.covariates and by_sites(self):
            again = partial(self, rng=rng, n_jobs=n_jobs)
            return settled(fit_beside(again, table, table.covariate_columns, COVARIATES))
        from knockoffs.features.network import DiscreteNetwork
        from knockoffs.features.network.model import observe_columns

        model: FeatureModel = self.model
        if isinstance(model, DiscreteNetwork):
            model = observe_columns(model, table.names, named=table.named)
        found = settled(model, {}, table)
        check_width(len(found.sampler.feature_of), table)
        return found


@dataclass(frozen=True)
class Covariance:
    """P^X Gaussian with a known covariance, around the means of the columns."""

    covariance: ArrayLike  # shape (n_columns, n_columns)
    options: Mapping[str, str] = field(default_factory=dict)  # of ``gaussian_features``

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Numbers only."""
        table = read_table(X, kinds=kinds, argument=argument, min_rows=min_rows)
        check_takes(table, ("numbers",), argument)
        return table

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Gaussian around the means of the table."""
        from knockoffs.features.gaussian import check_covariance_units, gaussian_features

        names = getattr(self.covariance, "columns", None)
        if names is not None and table.named and tuple(map(str, names)) != table.names:
            raise InputError("feature_model is a covariance whose columns are not those of X, in the order of X.")
        values = np.asarray(self.covariance, dtype=float)
        if values.ndim != 2 or values.shape[0] != values.shape[1]:
            raise InputError(f"feature_model is a covariance of shape {values.shape}: expected a square matrix.")
        check_width(len(values), table)
        grouped = table.feature_of if table.grouped else None
        try:
            check_covariance_units(values, table.X)
        except ColumnsError as error:
            raise error.named(table.names) from None
        try:
            model = gaussian_features(table.X.mean(axis=0), values, feature_of=grouped, **self.options)
        except InputError:
            relations = dependent_in_covariance(values)
            if not relations:
                raise
            raise dependent_error(relations, table.names, " from X and from the covariance").named(
                table.names
            ) from None
        return settled(model, {}, table)


@dataclass(frozen=True)
class GivenKnockoffs:
    """Knockoffs that were drawn elsewhere; the guarantee rests on how they were drawn."""

    knockoffs: object

    def read(self, X: object, *, kinds: Kinds = None, argument: str = "X", min_rows: int = 1) -> Table:
        """Any complete table that comes with its knockoffs will do."""
        table = read_table(X, kinds=kinds, argument=argument, min_rows=min_rows)
        check_takes(table, ("labels",), argument)
        return table

    def __call__(self, table: Table, *, rng: Generator, n_jobs: int | None = None) -> FittedSampler:
        """Check that they fit the table."""
        X_tilde = check_knockoffs(self.knockoffs, table)
        note = "the knockoffs were brought along: the guarantee rests on how they were drawn"
        return FittedSampler(FixedKnockoffs(X_tilde, table.feature_of), None, {"knockoffs": note})


@dataclass(frozen=True)
class FixedKnockoffs:
    """Sampler of knockoffs that are there already."""

    X_tilde: NDArray
    feature_of: NDArray[np.intp]

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """X beside them; nothing is drawn."""
        return Pair(X, self.X_tilde, self.feature_of)
