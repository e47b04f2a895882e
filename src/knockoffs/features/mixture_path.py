"""How many Gaussians: a path over 1, 2, 3, ... components, in which each mixture grows out of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, unknown_option
from knockoffs.features.covariance import FEW, N_FOLDS, bounded, fold_of, is_behind, simplest
from knockoffs.features.em import (
    Mixture,
    admissible,
    clusters_start,
    em_steps,
    one_component,
    run_em,
    sample_rows,
    split_start,
)
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track

CRITERIA = ("aic", "bic", "held_out")
N_STARTS = 3  # default of ``n_starts``

Settle = Callable[[NDArray, Mixture], Mixture]
MakeFold = Callable[[], "Fold"]


class Fold(NamedTuple):
    """Rows that a mixture is fitted to, and rows that judge it."""

    # shape (n_rows, d): complete rows, standardised
    rows: NDArray
    held: NDArray
    # shape (n_held,): log of the factor between a density of the held rows and one in the units that candidates are
    # compared in
    log_slope: NDArray | float = 0.0

    def judge(self, mixture: Mixture, settle: Settle | None) -> NDArray:
        """Log density of the held rows under a mixture of the others."""
        used = mixture if settle is None else settle(self.rows, mixture)
        return bounded(used.log_density(self.held), self.held) + self.log_slope


def folds_of(Z: NDArray) -> list[MakeFold]:
    """Folds of rows, shape (n, d)."""
    folds = fold_of(len(Z))
    return [lambda k=k: Fold(Z[folds != k], Z[folds == k]) for k in range(N_FOLDS) if (folds == k).any()]  # type: ignore[misc]


def numbers_to_try(name: str, given: int | Iterable[int], n: int) -> list[int]:
    """Numbers of classes or components, in order: the one that was asked for, or those to choose among."""
    listed = list(given) if isinstance(given, Iterable) else [given]
    for k in listed:
        if not isinstance(k, int | np.integer) or not 1 <= k <= n:
            raise InputError(f"{name}={k!r}: expected whole numbers from 1 to the number of rows, {n}.")
    if not listed:
        raise InputError(f"{name} is empty: give a number or a range, for instance range(1, 11).")
    return sorted({int(k) for k in listed})


def search_mixture(
    Z: NDArray,
    candidates: Sequence[int],
    *,
    criterion: str,
    rng: Generator,
    n_jobs: int | None = None,
    n_starts: int = N_STARTS,
    settle: Settle | None = None,
) -> tuple[Mixture, dict[int, float]]:
    """Mixture of all rows with the best number of components, and the criterion of each number tried.

    AIC and BIC choose the number for which they are smallest, held-out rows the smallest number within one standard
    error of the best. A criterion is infinite where a number cannot be chosen: a component has few rows or no spread,
    or the first fold found it behind. Nothing is compared for a single candidate. See ``MixturePath``.
    """
    if criterion not in CRITERIA:
        raise unknown_option("criterion", criterion, CRITERIA)
    numbers = sorted(set(candidates))
    path = MixturePath(
        Z, criterion=criterion if len(numbers) > 1 else "aic", settle=settle, n_starts=n_starts, n_jobs=n_jobs
    )
    path.walk(numbers, rng)
    return path.mixture(path.best), path.values if len(numbers) > 1 else {}


@dataclass
class MixturePath:
    """Mixtures of 1, 2, 3, ... components, each grown out of the one before.

    Each number has ``n_starts`` starts: the mixture before it with its best component split, and clusters of k-means.
    Starts are found on a sample of the rows in float32, and the best after a few steps goes on in float64: on all rows
    for AIC and BIC, and for held-out rows on the folds without them.
    """

    Z: NDArray  # shape (n, d): complete rows, standardised
    criterion: str = "held_out"  # "aic", "bic" or "held_out"
    # each returns a Fold, which is as large as Z: one is held at a time. Those of Z if left out
    folds: Sequence[MakeFold] = ()
    # (rows, mixture) -> what is made of a mixture fitted to these rows before it is used, for instance by shrinkage:
    # what held-out rows judge
    settle: Settle | None = None
    n_starts: int = N_STARTS
    n_jobs: int | None = None  # starts tried at a time; the answer does not depend on it
    patience: int = 2  # numbers in a row that are worse than the best, after which larger ones are not tried
    race_steps: int = 10  # steps of EM after which the best of several starts is kept

    def __post_init__(self) -> None:
        self.fitted: dict[int, Mixture] = {}
        self.values: dict[int, float] = {}
        self.log_densities: dict[int, NDArray] = {}
        self._growing: dict[int, _Growing] = {}
        if self.criterion == "held_out" and not self.folds:
            self.folds = folds_of(self.Z)

    def walk(self, numbers: Sequence[int], rng: Generator) -> None:
        """Fit the numbers given, in order, until ``patience`` of them in a row are worse than the best."""
        self._most, self._streams = max(numbers, default=0), rng.spawn(max(len(self.folds), 1))
        self._growing, worse = {}, 0
        for k in track(numbers, "modelling the features"):
            best = min(self.values.values(), default=np.inf)
            self.fitted[k], self.values[k] = self._hold_out(k) if self.folds else self._count(k)
            worse = 0 if self.values[k] < best else worse + 1
            if worse >= self.patience:
                break

    def _count(self, k: int) -> tuple[Mixture, float]:
        """Mixture of k components, and its AIC or BIC."""
        growing = self._grow(0, self.Z)
        start = growing.start(k, self)
        found, log_likelihood = start, float(start.log_density(self.Z).sum()) if k == 1 else 0.0
        if k > 1:  # to the end on the sample, then on all rows
            found, log_likelihood = run_em(self.Z, run_em(growing.rows, start)[0])
            growing.mixture = found
        if not admissible(found, len(self.Z)):
            return found, np.inf
        price = 2.0 if self.criterion == "aic" else float(np.log(len(self.Z)))
        return found, price * found.n_parameters - 2 * log_likelihood

    def _hold_out(self, k: int) -> tuple[Mixture, float]:
        """Mixture of the first fold's rows, and minus twice the log density of all rows, each held out once.

        A number that the first fold finds behind the best is given up there, before EM or after it.
        """
        parts: list[NDArray] = []
        for i, make in enumerate(self.folds):
            fold = make()
            growing = self._grow(i, fold.rows)  # no start knows the rows that will judge it
            start = growing.start(k, self)
            if not parts and self._lags(fold.judge(start, self.settle)):
                return start, np.inf
            fitted = start if k == 1 else run_em(fold.rows, start)[0]
            growing.mixture = fitted
            if not parts:
                found = fitted
            if not admissible(fitted, len(fold.rows)):
                return found, np.inf
            parts.append(fold.judge(fitted, self.settle))
            if len(parts) == 1 and self._lags(parts[0]):
                return found, np.inf
        self.log_densities[k] = np.concatenate(parts)
        return found, -2 * float(self.log_densities[k].sum())

    def _grow(self, i: int, rows: NDArray) -> _Growing:
        """Mixture that grows on the rows of fold i, or on all of them."""
        if i not in self._growing:
            self._growing[i] = _Growing(rows, self._most, self._streams[i])
        return self._growing[i]

    def _lags(self, first: NDArray) -> bool:
        """Whether the first fold finds a number behind the best so far."""
        if not self.log_densities:
            return False
        best = min(self.log_densities, key=self.values.__getitem__)
        return is_behind(first, self.log_densities[best][: len(first)])

    @property
    def best(self) -> int:
        """Number of components that the criterion chooses."""
        if self.criterion != "held_out":
            return min(self.values, key=self.values.__getitem__)
        able = sorted(self.log_densities)
        return able[simplest([self.log_densities[k] for k in able])] if able else min(self.values)

    def mixture(self, k: int) -> Mixture:
        """Mixture of k components fitted to all rows, components by falling weight: how they were found is hidden."""
        if k == 1:
            return one_component(self.Z)
        found = run_em(self.Z, self.fitted[k])[0] if self.criterion == "held_out" else self.fitted[k]
        order = np.argsort(-found.weights, kind="stable")
        return Mixture(found.weights[order], found.means[order], found.covariances[order], found.converged)


class _Growing:
    """The last mixture of a path, and a sample of the rows that it is fitted to, for starts."""

    def __init__(self, Z: NDArray, most: int, rng: Generator) -> None:
        sample_stream, *self.streams = rng.spawn(most + 1)
        self.rows = sample_rows(Z, most, sample_stream)
        self.mixture = one_component(Z)

    def start(self, k: int, path: MixturePath) -> Mixture:
        """Best of several starts with k components, and one component itself."""
        if k == 1:
            return self.mixture
        rows, least = self.rows, FEW * self.rows.shape[1]
        grown = self.mixture
        for size in range(grown.n_components + 1, k + 1):
            grown = split_start(rows, grown, least) or clusters_start(rows, size, self.streams[size - 1].spawn(1)[0])
        starts = [grown, *(clusters_start(rows, k, child) for child in self.streams[k - 1].spawn(path.n_starts - 1))]
        if len(starts) > 1:
            tasks = (delayed(em_steps)(rows, start, path.race_steps) for start in starts)
            runs = parallel_map(tasks, path.n_jobs, threads=True)
            grown = max(runs, key=lambda run: (admissible(run[0], len(rows)), run[1][-1]))[0]
        self.mixture = grown
        return grown
