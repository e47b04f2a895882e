"""P^X of a real table, by any family: fitted once, and drawn from for every draw of labels."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.features.source import FittedSampler, knockoff_source
from knockoffs.sampling.pair import Pair
from knockoffs.table.columns import Column
from knockoffs.table.table import Table, read_table

PLAIN = ("mixture", "gaussian", "knockpy")  # families that get labels as codes, and complete rows only


@dataclass(frozen=True)
class Law:
    """P^X fitted to a table, or to the rows and codes that its family takes."""

    table: Table
    rows: NDArray[np.intp]
    settled: FittedSampler
    seconds: float


@dataclass(frozen=True)
class Drawn:
    """Sampler of one draw, for several statistics of the same knockoffs."""

    pair: Pair

    @property
    def feature_of(self) -> NDArray[np.intp]:
        """Feature of each column."""
        return self.pair.feature_of

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """Return the draw."""
        return self.pair


@dataclass(frozen=True)
class KnockpySampler:
    """Second-order Gaussian knockoffs of the package knockpy."""

    feature_of: NDArray[np.intp]

    def sample(self, X: NDArray, rng: Generator) -> Pair:
        """Draw with knockpy, which uses the global state of NumPy."""
        from knockpy.knockoffs import GaussianSampler  # type: ignore[import-not-found]

        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002
        return Pair(X, GaussianSampler(X, method="mvr").sample_knockoffs(check_psd=False), self.feature_of)


def fit_law(table: Table, family: str, rng: Generator) -> Law | str:
    """P^X of a table, once; or why there is none."""
    start = time.perf_counter()
    rows = np.arange(len(table))
    if family in PLAIN:
        rows = np.flatnonzero(~np.isnan(table.X).any(axis=1))
        table = as_numbers(table.rows(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if family == "knockpy":
                import knockpy  # type: ignore[import-not-found]  # noqa: F401

                found = FittedSampler(KnockpySampler(np.arange(table.X.shape[1])))
            else:
                found = knockoff_source(family)(table, rng=rng)
            found.sampler.sample(table.X, rng)  # what cannot be drawn is known now
        except (InputError, ValueError, np.linalg.LinAlgError, ModuleNotFoundError) as error:
            return f"{type(error).__name__}: {error}"
    return Law(table, rows, found, time.perf_counter() - start)


def as_numbers(table: Table) -> Table:
    """Labels as the numbers of their codes, as a user without a model of labels would write them."""
    columns = tuple(Column(column.name) for column in table.columns)
    return replace(read_table(table.X), columns=columns, named=True)
