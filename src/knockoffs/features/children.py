"""Columns that are independent given a class: categorical, Bernoulli, Gaussian and Poisson, one node for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from knockoffs.errors import InputError, name_some

LOG_ZERO = -1e30  # stands for log 0 in matrix products, where 0 * inf would be NaN; no real log likelihood is as low
SUM_TOLERANCE = 1e-8  # rows of a table may miss one by rounding, and no more


class Children(Protocol):
    """Columns of X that are independent given the class K."""

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns of X."""
        ...

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        ...

    @property
    def n_parameters(self) -> int:
        """Free parameters, for AIC and BIC."""
        ...

    def check(self, U: NDArray) -> None:
        """Raise InputError where U, shape (n, d), has values the columns cannot take."""
        ...

    def log_prob(self, U: NDArray) -> NDArray:
        """Log P(u | K = k), shape (n, n_classes)."""
        ...

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw from P(u | K) for the class of each row, shape (n, d)."""
        ...


@dataclass(frozen=True)
class Bernoulli:
    """Columns of zeros and ones; ``p`` has shape (n_classes, d)."""

    columns: tuple[int, ...]
    p: NDArray

    def __post_init__(self) -> None:
        _check_shape(self, "p", self.p)
        _refuse(self.columns, ~((self.p >= 0) & (self.p <= 1)).all(axis=0), "p outside [0, 1]")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.p)

    @property
    def n_parameters(self) -> int:
        """One for each class and column."""
        return self.p.size

    def check(self, U: NDArray) -> None:
        """Refuse what is not 0 or 1."""
        _refuse(self.columns, ((U != 0) & (U != 1)).any(axis=0), "values other than 0 and 1")

    def log_prob(self, U: NDArray) -> NDArray:
        """Sum of u log p + (1 - u) log(1 - p)."""
        one, zero = _log(self.p), _log(1 - self.p)
        U = np.asarray(U, dtype=float)
        return _impossible(U @ one.T + (1.0 - U) @ zero.T)

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw ones with probability p."""
        return rng.random((len(K), len(self.columns))) < self.p[K]

    @staticmethod
    def statistics(U: NDArray) -> NDArray:
        """Return u, whose class means are p."""
        return np.asarray(U, dtype=float)

    @staticmethod
    def from_means(columns: tuple[int, ...], U: NDArray, means: NDArray) -> Bernoulli:
        """Children with the given means of the statistics in each class."""
        return Bernoulli(columns, np.clip(means, 0.0, 1.0))


@dataclass(frozen=True)
class Poisson:
    """Columns of counts; ``rate`` has shape (n_classes, d)."""

    columns: tuple[int, ...]
    rate: NDArray

    def __post_init__(self) -> None:
        _check_shape(self, "rate", self.rate)
        _refuse(self.columns, ~((self.rate >= 0) & np.isfinite(self.rate)).all(axis=0), "a rate that is not >= 0")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.rate)

    @property
    def n_parameters(self) -> int:
        """One for each class and column."""
        return self.rate.size

    def check(self, U: NDArray) -> None:
        """Refuse negative and fractional counts."""
        _refuse(self.columns, (U < 0).any(axis=0), "negative counts")
        _refuse(self.columns, (U != np.floor(U)).any(axis=0), "counts that are not integers")

    def log_prob(self, U: NDArray) -> NDArray:
        """Sum of u log rate - rate - log u!."""
        U = np.asarray(U, dtype=float)
        return _impossible(U @ _log(self.rate).T - self.rate.sum(axis=1) - gammaln(U + 1.0).sum(axis=1)[:, None])

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw counts."""
        return rng.poisson(self.rate[K])

    @staticmethod
    def statistics(U: NDArray) -> NDArray:
        """Return u, whose class means are the rates."""
        return np.asarray(U, dtype=float)

    @staticmethod
    def from_means(columns: tuple[int, ...], U: NDArray, means: NDArray) -> Poisson:
        """Children with the given means of the statistics in each class."""
        return Poisson(columns, means)


@dataclass(frozen=True)
class Gaussian:
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
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.mean)

    @property
    def n_parameters(self) -> int:
        """Two for each class and column."""
        return 2 * self.mean.size

    def check(self, U: NDArray) -> None:
        """Refuse integer arrays: the knockoffs of a real column would be cut to integers."""
        if not np.issubdtype(U.dtype, np.floating):
            raise InputError(f"X has dtype {U.dtype}, but columns {list(self.columns)} are Gaussian: pass floats.")

    def log_prob(self, U: NDArray) -> NDArray:
        """Sum of log N(u; mean, variance)."""
        out = np.empty((len(U), self.n_classes))
        for k, (mean, scale) in enumerate(zip(self.mean, np.sqrt(self.variance), strict=True)):
            out[:, k] = -0.5 * (((U - mean) / scale) ** 2).sum(axis=1) - np.log(scale).sum()
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
    def from_means(columns: tuple[int, ...], U: NDArray, means: NDArray) -> Gaussian:
        """Children with the given means of the statistics in each class."""
        center, scale = _standard(U)
        _refuse(columns, np.ptp(U, axis=0) == 0, "one value only: drop constant columns")
        first, second = np.split(means, 2, axis=1)
        return Gaussian(columns, center + scale * first, scale**2 * np.maximum(second - first**2, 1e-12))


@dataclass(frozen=True)
class Categorical:
    """Columns of codes 0, ..., n_states - 1; ``tables`` holds one (n_classes, n_states) array for each column."""

    columns: tuple[int, ...]
    tables: tuple[NDArray, ...]

    def __post_init__(self) -> None:
        if len(self.tables) != len(self.columns):
            raise InputError(f"{len(self.tables)} tables for {len(self.columns)} categorical columns.")
        for column, table in zip(self.columns, self.tables, strict=True):
            if table.ndim != 2 or len(table) != len(self.tables[0]):
                raise InputError(f"the table of column {column} has shape {table.shape}: expected (n_classes, states).")
            off = np.flatnonzero(~(np.abs(table.sum(axis=1) - 1.0) <= SUM_TOLERANCE) | (table < 0).any(axis=1))
            if off.size:
                raise InputError(
                    f"row {off[0]} of the table of column {column} is no probability: it sums to "
                    f"{table[off[0]].sum():.6g}, smallest entry {table[off[0]].min():.3g}. Divide it by its sum."
                )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.tables[0])

    @property
    def n_parameters(self) -> int:
        """States less one for each class and column."""
        return sum(table.size - len(table) for table in self.tables)

    def check(self, U: NDArray) -> None:
        """Refuse codes without a state."""
        n_states = np.array([table.shape[1] for table in self.tables])
        for j in np.flatnonzero(((U < 0) | (U >= n_states) | (U != np.floor(U))).any(axis=0)):
            bad = U[(U[:, j] < 0) | (U[:, j] >= n_states[j]) | (U[:, j] != np.floor(U[:, j])), j]
            raise InputError(
                f"column {self.columns[j]} has the value {bad[0]:g}, which is no state of the model: "
                f"its states are coded 0, ..., {n_states[j] - 1}."
            )

    def log_prob(self, U: NDArray) -> NDArray:
        """Sum of log table[k, u_j]."""
        log_tables = _log(np.hstack(self.tables))
        return _impossible(_one_hot(U, [table.shape[1] for table in self.tables]) @ log_tables.T)

    def draw(self, K: NDArray, rng: Generator) -> NDArray:
        """Draw codes by inverse cdf."""
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
        return codes

    @staticmethod
    def statistics(U: NDArray) -> csr_array:
        """Return indicators of the states, whose class means are the tables."""
        return _one_hot(U, _count_states(U))

    @staticmethod
    def from_means(columns: tuple[int, ...], U: NDArray, means: NDArray) -> Categorical:
        """Children with the given means of the statistics in each class."""
        tables = np.split(np.maximum(means, 0.0), np.cumsum(_count_states(U))[:-1], axis=1)
        return Categorical(columns, tuple(table / table.sum(axis=1, keepdims=True) for table in tables))


KINDS: dict[str, Any] = {
    "categorical": Categorical,
    "bernoulli": Bernoulli,
    "gaussian": Gaussian,
    "poisson": Poisson,
}
MOST_CATEGORIES = 10  # more distinct integers than this are taken for counts


def infer_kind(column: NDArray) -> str:
    """Kind of a column by its values.

    Zeros and ones are Bernoulli; non-negative integers categorical if they are the codes 0, 1, ... without a gap and
    at most ten of them, else Poisson; all else Gaussian.

    >>> [infer_kind(np.array(c)) for c in ([0, 1, 1], [0, 2, 1], [0, 7, 40], [0.5, -1.0])]
    ['bernoulli', 'categorical', 'poisson', 'gaussian']
    """
    values = np.unique(column)
    if values[0] < 0 or (values != np.floor(values)).any():
        return "gaussian"
    if values[-1] <= 1:
        return "bernoulli"
    gapless = len(values) == values[-1] + 1
    return "categorical" if gapless and len(values) <= MOST_CATEGORIES else "poisson"


def _count_states(U: NDArray) -> list[int]:
    return [int(top) + 1 for top in U.max(axis=0)]


def _one_hot(U: NDArray, n_states: Sequence[int]) -> csr_array:
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
