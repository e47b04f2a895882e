"""Columns that are independent given a class: categorical, Gaussian and Poisson, one node for each kind.

A discrete law is one of codes 0, 1, ... and carries the values of X that they stand for: neither the coding of a label
(0/1 or 1/2) nor the unit of a count (pieces or dozens) matters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.categorical import check_probabilities

LOG_ZERO = -1e30  # stands for log 0 in matrix products, where 0 * inf would be NaN; no real log likelihood is as low


def place_values(values: NDArray, u: NDArray) -> NDArray:
    """Place of each number among ``values``, in rising order, as a float; NaN for what is none of them.

    >>> place_values(np.array([1.0, 2.0, 5.0]), np.array([5.0, 1.0, 3.0]))
    array([ 2.,  0., nan])
    """
    u = np.asarray(u, dtype=float)
    codes = np.minimum(np.searchsorted(values, u), len(values) - 1)
    return np.where(values[codes] == u, codes, np.nan)


class Children(ABC):
    """Columns of X that are independent given the class K."""

    columns: tuple[int, ...]

    @property
    @abstractmethod
    def parameters(self) -> tuple[NDArray, ...]:
        """Arrays with a row for each class."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.parameters[0])

    @abstractmethod
    def encode(self, U: NDArray) -> NDArray:
        """Codes of U, shape (n, d), as floats: NaN for values that the columns cannot take."""

    @abstractmethod
    def check(self, U: NDArray) -> None:
        """Raise InputError where U, shape (n, d), has values the columns cannot take."""

    @abstractmethod
    def log_prob_of_codes(self, C: NDArray) -> NDArray:
        """Log P(codes | K = k), shape (n, n_classes)."""

    @abstractmethod
    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw from P(u | K) for the class of each row, shape (n, d)."""

    def log_prob(self, U: NDArray) -> NDArray:
        """Log P(u | K = k), shape (n, n_classes); -inf where a value is outside the support."""
        C = self.encode(U)
        outside = np.isnan(C).any(axis=1)
        out = self.log_prob_of_codes(np.where(outside[:, None], 0.0, C) if outside.any() else C)
        out[outside] = -np.inf
        return out

    def refuse_first(self, U: NDArray, C: NDArray, known: Sequence[str]) -> None:
        """Refuse the first value without a code, and say what its column holds."""
        for i in np.flatnonzero(np.isnan(C).any(axis=0)).tolist():
            row = int(np.isnan(C[:, i]).argmax())
            raise InputError(f"column {self.columns[i]} has the value {U[row, i]:g} in row {row}, and {known[i]}.")


@dataclass(frozen=True)
class PoissonColumn(Children):
    """Columns of counts, in units of their own; ``rate``, shape (n_classes, d), counts the units."""

    columns: tuple[int, ...]
    rate: NDArray
    units: NDArray | None = None  # shape (d,), whole numbers; ones if left out

    def __post_init__(self) -> None:
        _check_shape(self, "rate", self.rate)
        _refuse(self.columns, ~((self.rate >= 0) & np.isfinite(self.rate)).all(axis=0), "a rate that is not >= 0")
        if self.units is None:
            object.__setattr__(self, "units", np.ones(len(self.columns)))

    @property
    def parameters(self) -> tuple[NDArray, ...]:
        """Rates."""
        return (self.rate,)

    def encode(self, U: NDArray) -> NDArray:
        """Count the units."""
        codes = np.asarray(U, dtype=float) / self.units
        return np.where((codes >= 0) & (codes == np.floor(codes)) & np.isfinite(codes), codes, np.nan)

    def check(self, U: NDArray) -> None:
        """Refuse what is no multiple of a column's unit."""
        known = [f"it holds counts in units of {unit:g}" for unit in np.ravel(np.asarray(self.units))]
        self.refuse_first(U, self.encode(U), known)

    def log_prob_of_codes(self, C: NDArray) -> NDArray:
        """Sum of c log rate - rate - log c!."""
        return _impossible(C @ _log(self.rate).T - self.rate.sum(axis=1) - gammaln(C + 1.0).sum(axis=1)[:, None])

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw counts."""
        return rng.poisson(self.rate[K]) * self.units

    @staticmethod
    def statistics(C: NDArray) -> NDArray:
        """Return the codes, whose class means are the rates."""
        return C

    @staticmethod
    def from_means(columns: tuple[int, ...], C: NDArray, means: NDArray) -> PoissonColumn:
        """Columns of codes with the given means of the statistics in each class."""
        return PoissonColumn(columns, means)


@dataclass(frozen=True)
class GaussianColumn(Children):
    """Real columns; ``mean`` and ``variance`` have shape (n_classes, d)."""

    columns: tuple[int, ...]
    mean: NDArray
    variance: NDArray

    def __post_init__(self) -> None:
        _check_shape(self, "mean", self.mean)
        _check_shape(self, "variance", self.variance)
        if self.mean.shape != self.variance.shape:
            raise InputError(f"mean has shape {self.mean.shape}, variance {self.variance.shape}: they must agree.")
        bad = ~((self.variance > 0) & np.isfinite(self.variance) & np.isfinite(self.mean)).all(axis=0)
        _refuse(self.columns, bad, "a variance that is not positive (or a mean that is not finite)")

    @property
    def parameters(self) -> tuple[NDArray, ...]:
        """Means and variances."""
        return (self.mean, self.variance)

    def encode(self, U: NDArray) -> NDArray:
        """Return the numbers themselves: NaN has no density."""
        return np.asarray(U, dtype=float)

    def check(self, U: NDArray) -> None:
        """Refuse integer arrays: the knockoffs of a real column would be cut to integers."""
        if not np.issubdtype(U.dtype, np.floating):
            raise InputError(f"X has dtype {U.dtype}, but columns {list(self.columns)} are Gaussian: pass floats.")

    def log_prob_of_codes(self, C: NDArray) -> NDArray:
        """Sum of log N(u; mean, variance)."""
        out = np.empty((len(C), self.n_classes))
        for k, (mean, scale) in enumerate(zip(self.mean, np.sqrt(self.variance), strict=True)):
            out[:, k] = -0.5 * (((C - mean) / scale) ** 2).sum(axis=1) - np.log(scale).sum()
        return out - 0.5 * np.log(2 * np.pi) * len(self.columns)

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw normal numbers."""
        return self.mean[K] + np.sqrt(self.variance)[K] * rng.standard_normal((len(K), len(self.columns)))

    @staticmethod
    def statistics(U: NDArray) -> NDArray:
        """Return z and z**2 of the standardised columns, so that units and offsets do not matter."""
        center, scale = _standard(U)
        z = (U - center) / scale
        return np.hstack([z, z**2])

    @staticmethod
    def from_means(columns: tuple[int, ...], U: NDArray, means: NDArray) -> GaussianColumn:
        """Children with the given means of the statistics in each class."""
        center, scale = _standard(U)
        _refuse(columns, np.ptp(U, axis=0) == 0, "one value only: drop constant columns")
        first, second = np.split(means, 2, axis=1)
        return GaussianColumn(columns, center + scale * first, scale**2 * np.maximum(second - first**2, 1e-12))


@dataclass(frozen=True)
class CategoricalColumn(Children):
    """Columns of finitely many values; ``tables`` holds one (n_classes, n_states) array for each column."""

    columns: tuple[int, ...]
    tables: tuple[NDArray, ...]
    supports: tuple[NDArray, ...] | None = None  # in rising order; the codes 0, ..., n_states - 1 if left out

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.columns):
            raise InputError(f"{len(self.tables)} tables for {len(self.columns)} categorical columns.")
        for column, table in zip(self.columns, self.tables, strict=True):
            if table.ndim != 2 or len(table) != len(self.tables[0]):
                raise InputError(f"the table of column {column} has shape {table.shape}: expected (n_classes, states).")
            check_probabilities(f"the table of column {column}", table)
        plain = (np.arange(float(table.shape[1])) for table in self.tables)
        supports = tuple(plain if self.supports is None else self.supports)
        if len(supports) != len(self.columns):
            raise InputError(f"{len(supports)} supports for {len(self.columns)} columns.")
        object.__setattr__(self, "supports", supports)

    @property
    def parameters(self) -> tuple[NDArray, ...]:
        """Tables."""
        return self.tables

    def log_prob_of_codes(self, C: NDArray) -> NDArray:
        """Sum of log table[k, c_j]."""
        log_tables = _log(np.hstack(self.tables))
        return _impossible(_one_hot(C, [table.shape[1] for table in self.tables]) @ log_tables.T)

    def encode(self, U: NDArray) -> NDArray:
        """Place of each value among those of its column."""
        return np.stack([place_values(values, U[:, i]) for i, values in enumerate(self.supports or ())], axis=1)

    def check(self, U: NDArray) -> None:
        """Refuse values that are none of a column's own, with an example."""
        some = [(", ".join(f"{value:g}" for value in s[:10]), len(s) > 10) for s in self.supports or ()]
        self.refuse_first(U, self.encode(U), [f"its values are {values}{' ...' * more}" for values, more in some])

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw values of the columns, by inverse cdf."""
        n_states = max(table.shape[1] for table in self.tables)
        # A finished cdf is 1 exactly, so that no state beyond the last is drawn
        cdf = np.ones((n_states, self.n_classes, len(self.columns)))
        for j, table in enumerate(self.tables):
            cdf[: table.shape[1], :, j] = (np.cumsum(table, axis=1) / table.sum(axis=1, keepdims=True)).T
            last = np.array([np.flatnonzero(row)[-1] for row in table])
            cdf[:, :, j][np.arange(n_states)[:, None] >= last] = 1.0
        u = rng.random((len(K), len(self.columns)))
        codes = np.zeros(u.shape, dtype=np.int64)
        for below in cdf[:-1]:
            codes += u >= below[K]
        return np.stack([values[codes[:, i]] for i, values in enumerate(self.supports or ())], axis=1)

    @staticmethod
    def statistics(C: NDArray) -> NDArray | csr_array:
        """Return indicators of the states, whose class means are the tables."""
        return _one_hot(C, _count_states(C))

    @staticmethod
    def from_means(columns: tuple[int, ...], C: NDArray, means: NDArray) -> CategoricalColumn:
        """Columns with the given means of the statistics in each class."""
        tables = np.split(np.maximum(means, 0.0), np.cumsum(_count_states(C))[:-1], axis=1)
        return CategoricalColumn(columns, tuple(table / table.sum(axis=1, keepdims=True) for table in tables))


Law = type[PoissonColumn] | type[GaussianColumn] | type[CategoricalColumn]
LAWS: dict[str, Law] = {  # kind of a column -> its law given the class
    "nominal": CategoricalColumn,
    "ordinal": CategoricalColumn,
    "binary": CategoricalColumn,
    "continuous": GaussianColumn,
    "count": PoissonColumn,
}
Some = TypeVar("Some", bound=Children)


def take_columns(children: Some, chosen: Sequence[int]) -> Some:
    """Law of some of the columns, by their places."""
    assert is_dataclass(children)

    def some(value: Any) -> Any:
        return value[..., chosen] if isinstance(value, np.ndarray) else tuple(value[i] for i in chosen)

    return replace(children, **{field.name: some(getattr(children, field.name)) for field in fields(children)})


def _count_states(U: NDArray) -> list[int]:
    return [int(top) + 1 for top in U.max(axis=0)]


def _one_hot(U: NDArray, n_states: Sequence[int]) -> NDArray | csr_array:
    if set(n_states) == {2}:  # a matrix half full is sooner multiplied as it is
        return np.stack([1.0 - U, U], axis=2).reshape(len(U), -1)
    starts = np.concatenate([[0], np.cumsum(n_states)])
    indices = (np.asarray(U).astype(np.int64) + starts[:-1]).ravel()
    indptr = np.arange(0, U.size + 1, U.shape[1])
    return csr_array((np.ones(U.size), indices, indptr), shape=(len(U), int(starts[-1])))


def _standard(U: NDArray) -> tuple[NDArray, NDArray]:
    center, scale = U.mean(axis=0), U.std(axis=0)
    return center, np.where(scale > 0, scale, 1.0)


def _log(p: NDArray) -> NDArray:
    return np.where(p > 0, np.log(np.where(p > 0, p, 1.0)), LOG_ZERO)


def _impossible(log_prob: NDArray) -> NDArray:
    return np.where(log_prob < 0.1 * LOG_ZERO, -np.inf, log_prob)


def _check_shape(children: Children, name: str, values: NDArray) -> None:
    if values.ndim != 2 or values.shape[1] != len(children.columns):
        raise InputError(f"{name} has shape {values.shape}: expected (n_classes, {len(children.columns)}).")


def _refuse(columns: tuple[int, ...], bad: ArrayLike, what: str) -> None:
    if np.any(bad):
        raise InputError(f"columns {name_some(np.asarray(columns)[np.asarray(bad)])} have {what}.")
