"""Gaussian mixtures by EM: a path over 1, 2, 3, ... components, in which each mixture grows out of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.features.covariance import FEW
from knockoffs.features.em_steps import RIDGE, Fitted, Mixture, em_steps, mixture_of, run_em
from knockoffs.features.held_out import N_FOLDS, bounded, fold_of, is_behind, simplest
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track

__all__ = [
    "Fold",
    "Mixture",
    "admissible",
    "collapsed",
    "em_steps",
    "one_component",
    "run_em",
    "search_mixture",
]

CRITERIA = ("aic", "bic", "held_out")
N_STARTS = 3  # default of ``n_starts``

Settle = Callable[[NDArray, Mixture], Mixture]
MakeFold = Callable[[], "Fold"]


@dataclass(frozen=True)
class Fold:
    """Rows that a mixture is fitted to, and rows that judge it.

    Parameters
    ----------
    rows, held : array, shape (n_rows, d), (n_held, d)
        Complete rows, standardised.
    log_slope : array, shape (n_held,)
        Log of the factor between a density of the held rows and one in the units that candidates are compared in.
    """

    rows: NDArray
    held: NDArray
    log_slope: NDArray | float = 0.0

    def judge(self, mixture: Mixture, settle: Settle | None) -> NDArray:
        """Log density of the held rows under a mixture of the others."""
        used = mixture if settle is None else settle(self.rows, mixture)
        return bounded(used.log_density(self.held), self.held) + self.log_slope


def folds_of(Z: NDArray) -> list[MakeFold]:
    """Folds of rows, shape (n, d)."""
    folds = fold_of(len(Z))
    return [lambda k=k: Fold(Z[folds != k], Z[folds == k]) for k in range(N_FOLDS) if (folds == k).any()]  # type: ignore[misc]


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
    """Mixture with the best criterion among the numbers of components given.

    AIC and BIC choose the number for which they are smallest. Held-out rows choose the smallest number within one
    standard error of the best; see ``held_out``.

    Parameters
    ----------
    Z : array, shape (n, d)
        Complete rows, standardised.
    candidates : sequence of int
    criterion : {"aic", "bic", "held_out"}
    rng : numpy.random.Generator
        Seeds of k-means, and the rows that starts are found on.
    n_jobs : int, optional
        Starts tried at a time; the answer does not depend on it.
    n_starts : int
    settle : callable, optional
        (rows, mixture) -> what is made of a mixture fitted to these rows before it is used, for instance by shrinkage:
        what held-out rows judge.

    Returns
    -------
    mixture : Mixture
        Components by falling weight; as EM left it.
    values : dict
        Criterion of each number tried; infinite where it cannot be chosen: a component has few rows or no spread, or
        the first fold found it behind. Empty for a single candidate.
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

    Parameters
    ----------
    Z : array, shape (n, d)
        Complete rows, standardised.
    criterion : {"aic", "bic", "held_out"}
    folds : list of callable
        Each returns a Fold, which is as large as Z: one is held at a time. Those of Z if left out.
    settle : callable, optional
        See ``search_mixture``.
    n_starts, n_jobs : int
        See ``search_mixture``.
    patience : int
        Numbers in a row that are worse than the best, after which larger ones are not tried.
    race_steps : int
        Steps of EM after which the best of several starts is kept.
    """

    Z: NDArray
    criterion: str = "held_out"
    folds: Sequence[MakeFold] = ()
    settle: Settle | None = None
    n_starts: int = N_STARTS
    n_jobs: int | None = None
    patience: int = 2
    race_steps: int = 10

    def __post_init__(self) -> None:
        self.fitted: dict[int, Mixture] = {}
        self.values: dict[int, float] = {}
        self.log_densities: dict[int, NDArray] = {}
        self._growing: dict[int, _Growing] = {}
        if self.criterion == "held_out" and not self.folds:
            self.folds = folds_of(self.Z)

    def walk(self, numbers: Sequence[int], rng: Generator) -> None:
        """Fit the numbers given, in order, until ``patience`` of them in a row are worse than the best."""
        if numbers:
            for _ in track(self._steps(numbers, rng), "fitting P^X", total=len(numbers)):
                pass

    def _steps(self, numbers: Sequence[int], rng: Generator) -> Iterator[int]:
        self._most, self._streams = max(numbers), rng.spawn(max(len(self.folds), 1))
        self._growing = {}
        worse = 0
        for k in numbers:
            best = min(self.values.values(), default=np.inf)
            self.fitted[k], self.values[k] = self._hold_out(k) if self.folds else self._count(k)
            worse = 0 if self.values[k] < best else worse + 1
            yield k
            if worse >= self.patience:
                return

    def _count(self, k: int) -> tuple[Mixture, float]:
        """Mixture of k components, and its AIC or BIC."""
        found = self._grow(0, self.Z).fit(k, self)
        if not admissible(found.mixture, len(self.Z)):
            return found.mixture, np.inf
        price = 2.0 if self.criterion == "aic" else float(np.log(len(self.Z)))
        return found.mixture, price * found.mixture.n_parameters - 2 * found.log_likelihood

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
            fitted = start if k == 1 else run_em(fold.rows, start).mixture
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
        able = sorted(self.log_densities) or sorted(self.values)[:1]
        if not self.log_densities:
            return able[0]
        return able[simplest([self.log_densities[k] for k in able])]

    def mixture(self, k: int) -> Mixture:
        """Mixture of k components fitted to all rows, components by falling weight."""
        if k == 1:
            return one_component(self.Z)
        return by_weight(run_em(self.Z, self.fitted[k]).mixture if self.criterion == "held_out" else self.fitted[k])


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

    def fit(self, k: int, path: MixturePath) -> Fitted:
        """Mixture of k components at the end of EM: on the sample, then on all rows."""
        start = self.start(k, path)
        if k == 1:
            return Fitted(start, float(start.log_density(path.Z).sum()))
        found = run_em(path.Z, run_em(self.rows, start).mixture)
        self.mixture = found.mixture
        return found


def sample_rows(
    Z: NDArray, most: int, rng: Generator, *, enough: int = 4096, a_column: int = 20, safe: float = 1e-3
) -> NDArray:
    """Rows that starts are found on, in float32 where that is exact enough.

    Parameters
    ----------
    Z : array, shape (n, d)
    most : int
        Largest number of components.
    rng : numpy.random.Generator
    enough, a_column : int
        So many rows, or so many for each column and component if that is more.
    safe : float
        Smallest eigenvalue of the correlations from which on float32 is exact enough.
    """
    n, d = Z.shape
    size = max(enough, a_column * d * most)
    rows = Z[np.sort(rng.choice(n, size, replace=False))] if n > size else Z
    exact = n > d and np.linalg.eigvalsh(rows.T @ rows / len(rows))[0] > safe
    return rows.astype(np.float32) if exact else rows


def one_component(Z: NDArray) -> Mixture:
    """Mixture of one component: the moments of the rows."""
    return replace(mixture_of(Z, np.ones((len(Z), 1))), converged=True)


def admissible(mixture: Mixture, n: int) -> bool:
    """Whether a candidate's likelihood can be compared: it is inflated where a component has few rows or no spread."""
    few = mixture.weights.min() * n < FEW * mixture.means.shape[1]
    return mixture.n_components == 1 or not (few or collapsed(mixture))


def collapsed(mixture: Mixture, *, least: float = 1e-4) -> tuple[int, int] | None:
    """Component and column where a component has no spread of its own, or None.

    Parameters
    ----------
    mixture : Mixture
    least : float
        Variance in a component, in units of the column's own, below which the component sits on one value.
    """
    spread = np.einsum("kii->ki", mixture.covariances) - RIDGE
    if len(spread) == 1 or spread.min() >= least:
        return None
    k, column = np.unravel_index(int(spread.argmin()), spread.shape)
    return int(k), int(column)


def by_weight(mixture: Mixture) -> Mixture:
    """Order components by falling weight, so that how they were found does not show."""
    order = np.argsort(-mixture.weights, kind="stable")
    return Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order], mixture.converged)


def clusters_start(Z: NDArray, n_components: int, rng: Generator, *, n_steps: int = 20) -> Mixture:
    """Moments of the clusters of k-means: seeds far from one another (k-means++), then at most n_steps of Lloyd."""
    from sklearn.cluster import kmeans_plusplus

    centres, _ = kmeans_plusplus(Z, n_components, random_state=int(rng.integers(2**31)))
    before = np.full(len(Z), -1)
    for _ in range(n_steps):
        nearest = (Z @ centres.T - 0.5 * (centres**2).sum(axis=1)).argmax(axis=1)
        if np.array_equal(nearest, before):  # all further steps would be this one
            break
        members = np.eye(n_components, dtype=Z.dtype)[nearest]
        counts = members.sum(axis=0)[:, None]
        centres = np.where(counts > 0, members.T @ Z / np.maximum(counts, 1), centres)
        before = nearest
    return mixture_of(Z, members)


def split_start(Z: NDArray, mixture: Mixture, least: float, *, n_steps: int = 5) -> Mixture | None:
    """Split one component in two: the split that gains most on the rows of its component.

    A component is cut in half in four ways, each followed by a few steps of EM with two components.

    Parameters
    ----------
    Z : array, shape (n, d)
    mixture : Mixture
    least : float
        Rows that each half needs.
    n_steps : int
        Steps of EM that a split is tried with, on the rows of its component alone.

    Returns
    -------
    Mixture or None
        With one component more; None if every component has too few rows to split.
    """
    owner = mixture.log_joint(Z).argmax(axis=1)
    best, best_gain = None, -np.inf
    for k in range(mixture.n_components):
        rows = Z[owner == k]
        if len(rows) < 2 * least:
            continue
        whole = mixture_of(rows, np.ones((len(rows), 1)))
        before = whole.log_density(rows).sum()
        for half in _halves(rows, whole):
            pair, values = em_steps(rows, mixture_of(rows, np.column_stack([half, ~half])), n_steps)
            if values[-1] - before > best_gain and pair.weights.min() * len(rows) >= least / 2:
                best, best_gain = _replace(mixture, [k], pair), values[-1] - before
    return best


def _halves(rows: NDArray, whole: Mixture) -> list[NDArray]:
    """Four ways to cut the rows of one Gaussian in half, as masks.

    With z the whitened rows, the extreme eigenvectors of E[|z|^2 z z^T] are the directions of least and largest
    kurtosis: between two clusters of like size, and towards a small one, whatever the covariance hides. The radius
    |z| separates a wide component from a narrow one inside it, the first principal axis what lies far apart.
    """
    inverse, _ = whole.whiteners[0]
    centred = rows - whole.means[0].astype(rows.dtype)
    z = centred @ inverse.T.astype(rows.dtype)
    squares = np.einsum("ij,ij->i", z, z)
    weighted = z * np.sqrt(squares)[:, None]
    kurtosis = np.linalg.eigh((weighted.T @ weighted).astype(float))[1]
    principal = np.linalg.eigh(whole.covariances[0])[1][:, -1]
    least, most, principal = (v.astype(rows.dtype) for v in (kurtosis[:, 0], kurtosis[:, -1], principal))
    with np.errstate(invalid="ignore"):  # some kernels of BLAS read beyond the end of a float32 row, and flag it
        scores = (z @ least, z @ most, squares, centred @ principal)
    masks = [values > np.median(values) for values in scores]
    return [mask for mask in masks if 0 < mask.sum() < len(mask)]


def _replace(mixture: Mixture, old: list[int], new: Mixture) -> Mixture:
    """Put new components, with the weight of the old ones, in their place."""
    kept = np.delete(np.arange(mixture.n_components), old)
    return Mixture(
        np.concatenate([mixture.weights[kept], mixture.weights[old].sum() * new.weights]),
        np.concatenate([mixture.means[kept], new.means]),
        np.concatenate([mixture.covariances[kept], new.covariances]),
    )
