"""Gaussian mixtures by EM: a path over 1, 2, 3, ... components, in which each mixture grows out of the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.features.em_starts import clusters_start, merged_start, seem_normal, split_start
from knockoffs.features.em_steps import AT_LEAST, RIDGE, Fitted, Mixture, at_end, em_steps, mixture_of, run_em
from knockoffs.features.order import CRITERIA, HELD_OUT
from knockoffs.features.shrinkage import FEW
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track

__all__ = ["Mixture", "admissible", "collapsed", "em_steps", "one_component", "run_em", "search_mixture"]

N_STARTS = 3
COLLAPSED = 1e-4  # variance in a component, in units of the column's own, under which it sits on one value
PATIENCE = 2  # numbers in a row that are worse than the best, after which larger ones are not tried
RACE_STEPS = 10  # steps of EM after which the best of several starts is kept
TRIED_STEPS = AT_LEAST + 1  # after which a first start may turn out to fit: see ``_Path.fits``
SURE = 0.999  # posterior of its component from which on a row is sure of it
SEARCH_ROWS = 4096  # starts are found on this many rows,
ROWS_A_COLUMN = 20  # or on this many for each column and component, whichever is more
TOLD_APART = 2.0  # standard errors of a held-out likelihood, by which a larger mixture must beat a smaller one
ELSEWHERE = 0.01  # share of held-out rows that may come from anywhere: see ``bounded``
SUPPORT = 3.0  # twice the log-likelihood that a parameter must gain over every smaller mixture: see ``_Path._needed``
SINGLE_SAFE = 1e-3  # smallest eigenvalue of the correlations from which float32 is exact enough to find starts

Settle = Callable[[NDArray, Mixture], Mixture]


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
    """Mixture with the smallest criterion among the numbers of components given.

    Numbers are tried in order. Each has ``n_starts`` starts: clusters of k-means, and the mixture before it with its
    best component split. The best after a few steps goes on; where the first clusters lie apart and fit, the others are
    spared. Starts, and EM up to its stopping rule, run on a sample of the rows in float32; from there EM runs on all
    rows in float64 until it stops by the same rule. So the sample has an effect on which optimum is found, and none on
    its likelihood or criterion, which are those of all rows. The search ends when the criterion has risen ``PATIENCE``
    times in a row; the best mixture is then compared with its successor merged. A candidate that cannot win any more is
    not fitted to the end, and its criterion is that of where EM was given up: where four times what is left to gain is
    not enough, or where held-out rows tell it from a better one after the few steps that choose its start, which is
    asked of two components and after a number that was worse. Held-out rows choose the smallest mixture that they do
    not tell from the best one: it has the same density up to ``TOLD_APART`` standard errors of the rows' differences.

    Parameters
    ----------
    Z : array, shape (n, d)
        Complete rows, standardised.
    candidates : sequence of int
    criterion : {"aic", "bic", "held_out"}
    rng : numpy.random.Generator
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
        Criterion of each number tried; infinite where likelihoods cannot be compared: a component has few rows or no
        spread, or AIC would pay for what the best place for a needless component gains. Empty for a single candidate.
    """
    if criterion not in CRITERIA:
        raise unknown_option("criterion", criterion, CRITERIA)
    path_stream, split_stream = rng.spawn(2)
    if criterion != "held_out" or len(candidates) == 1:
        fitted, values = _search(_Path(Z, criterion=criterion), candidates, path_stream, n_jobs, n_starts)
        return by_weight(fitted), values
    held_out = split_stream.permutation(len(Z)) < HELD_OUT * len(Z)
    path = _Path(Z[~held_out], criterion=criterion, held_out=Z[held_out], settle=settle)
    fitted, values = _search(path, candidates, path_stream, n_jobs, n_starts)
    return (by_weight(run_em(Z, fitted).mixture) if fitted.n_components > 1 else one_component(Z)), values


def _search(
    path: _Path, candidates: Sequence[int], rng: Generator, n_jobs: int | None, n_starts: int
) -> tuple[Mixture, dict[int, float]]:
    """Walk the path over the numbers of components and return its best mixture."""
    wanted, (sample_stream, *streams) = sorted(set(candidates)), rng.spawn(max(candidates) + 1)
    path.rows = _sample(path.Z, wanted[-1], sample_stream)
    single = len(wanted) == 1
    for _ in track(_walk(path, wanted, streams, n_jobs, n_starts), "fitting P^X", total=len(wanted)):
        if path.rises >= PATIENCE and not single:
            break
    best = path.best
    if best + 1 in path.fitted and best > 1:
        path.visit(best, merged_start(path.finished(best + 1)), again=True)
    return path.fitted[best], {} if single else path.values


def _walk(
    path: _Path, wanted: Sequence[int], streams: Sequence[Generator], n_jobs: int | None, n_starts: int
) -> Iterator[int]:
    """Fit the numbers of components that were asked for, in order; yield each when it is done."""
    grown = one_component(path.rows)
    for k in wanted:
        if path.cannot_win(k):
            path.values[k] = np.inf
            path.rises += 1
            yield k
            continue
        if k > 1:
            grown = _start(path, k, grown, streams, n_jobs, n_starts)
        grown = path.visit(k, grown)
        yield k


def _start(
    path: _Path, k: int, grown: Mixture, streams: Sequence[Generator], n_jobs: int | None, n_starts: int
) -> Mixture:
    """Best of several starts with k components; ``grown`` is the last mixture that has fewer.

    Clusters are tried first: where they fit, that is all.
    """

    def clusters(k: int, n: int) -> list[Mixture]:
        children = streams[k - 1].spawn(n)
        return list(
            parallel_map((delayed(clusters_start)(path.rows, k, child) for child in children), n_jobs, threads=True)
        )

    begun = []
    if n_starts > 1:
        first, trace = em_steps(path.rows, clusters(k, 1)[0], TRIED_STEPS)
        if path.fits(first, trace):
            return replace(first, converged=True)
        begun = [first]
    least = FEW * path.Z.shape[1]
    for size in range(grown.n_components + 1, k):
        grown = split_start(path.rows, grown, least) or clusters(size, 1)[0]
    last = split_start(path.rows, grown, least) or clusters(k, 1)[0]
    return path.race([last, *clusters(k, max(n_starts - 2, 0))], begun, n_jobs)


class _Path:
    """What has been fitted so far, on the rows that starts are found on and on all of them."""

    def __init__(
        self, Z: NDArray, *, criterion: str, held_out: NDArray | None = None, settle: Settle | None = None
    ) -> None:
        self.Z, self.rows, self.held_out, self.criterion, self.settle = Z, Z, held_out, criterion, settle
        self.fitted: dict[int, Mixture] = {}
        self.log_likelihoods: dict[int, float] = {}
        self.values: dict[int, float] = {}
        self.densities: dict[int, NDArray] = {}
        self.given_up: set[int] = set()
        self.rises = 0

    @property
    def best(self) -> int:
        best = min(self.values, key=self.values.__getitem__)
        if self.held_out is None:
            return best
        able = [k for k in sorted(self.values) if np.isfinite(self.values[k])]
        return next((k for k in able if not self._told_apart(k, best)), best)

    def _told_apart(self, k: int, best: int) -> bool:
        """Whether held-out rows prefer the best mixture to another by more than chance."""
        gains = self.densities[best] - self.densities[k]
        return bool(gains.mean() > TOLD_APART * gains.std() / np.sqrt(len(gains)))

    def race(self, starts: Sequence[Mixture], begun: Sequence[Mixture], n_jobs: int | None) -> Mixture:
        """Keep the best of several starts after a few steps, one that may be chosen before one that may not.

        Some have ``begun``, with ``TRIED_STEPS`` of these steps.
        """
        if len(starts) + len(begun) == 1:
            return starts[0]
        left = [(start, RACE_STEPS) for start in starts] + [(start, RACE_STEPS - TRIED_STEPS) for start in begun]
        runs = parallel_map((delayed(em_steps)(self.rows, start, n) for start, n in left), n_jobs, threads=True)
        return max(runs, key=lambda run: (admissible(run[0], len(self.rows)), run[1][-1]))[0]

    def fits(self, mixture: Mixture, trace: NDArray) -> bool:
        """Whether no other start would find more: EM is at its end, every row sure of its component, every one normal.

        Then no component cuts through a cluster, and none holds two of them.
        """
        if not at_end(trace, mixture) or not admissible(mixture, len(self.rows)):
            return False
        posterior = mixture.posterior(self.rows)
        return bool(posterior.max(axis=1).min() > SURE) and seem_normal(self.rows, mixture, posterior.argmax(axis=1))

    def visit(self, k: int, start: Mixture, *, again: bool = False) -> Mixture:
        """Fit k components to the end from a start, and keep them if they are the best of that number."""
        found, value = self._fit(k, start)
        if again and value >= self.values[k]:
            return self.fitted[k]
        self.rises = 0 if not self.values or value < min(self.values.values()) else self.rises + 1
        self.fitted[k], self.log_likelihoods[k], self.values[k] = found.mixture, found.log_likelihood, value
        return found.mixture

    def cannot_win(self, k: int) -> bool:
        """Whether no mixture of k components is admissible, whatever EM finds, nor of use to the best one merged."""
        return k * FEW * self.Z.shape[1] > len(self.Z) and bool(self.values) and self.best < k - 1

    def _fit(self, k: int, start: Mixture) -> tuple[Fitted, float]:
        """EM from a start to its end, or to where it is given up; and the criterion there."""
        if k == 1:
            start = one_component(self.Z)
        if self.held_out is not None and (k <= 2 or self.rises):  # else it grew out of the best so far
            begun = Fitted(start, np.nan)  # no likelihood is asked for
            value = self._value(k, begun)
            if k == 1 or (np.isfinite(value) and self._behind(k)):
                self.given_up |= {k} - {1}
                return begun, value
        found = self._run(start)
        return found, self._value(k, found)

    def _run(self, start: Mixture) -> Fitted:
        """EM to its end: on the rows that starts are found on, then on all."""
        share, enough = len(self.rows) / len(self.Z), self._needed(start)
        if start.n_components > 1 and not start.converged:
            start = run_em(self.rows, start, enough=share * enough).mixture
        return run_em(self.Z, start, enough=enough)

    def finished(self, k: int) -> Mixture:
        """Mixture of k components at the end of EM, from where it was given up if it was."""
        return self._run(self.fitted[k]).mixture if k in self.given_up else self.fitted[k]

    def _behind(self, k: int) -> bool:
        """Whether held-out rows prefer a smaller mixture: EM rarely moves them by a tenth of a standard error more."""
        able = [other for other in self.values if other < k and np.isfinite(self.values[other])]
        return bool(able) and self._told_apart(k, min(able, key=self.values.__getitem__))

    def _value(self, k: int, fitted: Fitted) -> float:
        if not admissible(fitted.mixture, len(self.Z)):
            return np.inf
        if self.held_out is not None:
            used = fitted.mixture if self.settle is None else self.settle(self.Z, fitted.mixture)
            self.densities[k] = bounded(used.log_density(self.held_out), self.held_out)
            return -2 * float(self.densities[k].sum())
        value = self._price * fitted.mixture.n_parameters - 2 * fitted.log_likelihood
        lost = value >= min(self.values.values(), default=np.inf)
        return value if lost or fitted.log_likelihood >= self._needed(fitted.mixture) else np.inf

    @property
    def _price(self) -> float:
        """What the criterion asks for a parameter, in twice the log-likelihood."""
        return 2.0 if self.criterion == "aic" else float(np.log(len(self.Z)))

    def _needed(self, mixture: Mixture) -> float:
        """Log-likelihood from which on a mixture can be chosen before every smaller one.

        AIC pays 2 for a parameter because a needless one gains 1 on average. A needless component gains more: its
        place was searched for, and the best place for some hundred rows among 40,000 gains up to 2.3 a parameter
        (measured, one Gaussian in 10 to 64 dimensions). AIC would pay that; a likelihood so found is not comparable.
        """
        if self.held_out is not None:
            return -np.inf
        price = max(self._price, SUPPORT)
        smaller = [k for k in self.fitted if k < mixture.n_components and np.isfinite(self.values[k])]
        return max(
            (
                self.log_likelihoods[k] + price / 2 * (mixture.n_parameters - self.fitted[k].n_parameters)
                for k in smaller
            ),
            default=-np.inf,
        )


def bounded(log_density: NDArray, Z: NDArray) -> NDArray:
    """Log densities of rows, a hundredth of which come from independent Cauchy variables, whatever the law says.

    Where columns nearly determine one another, a single row off their relation has a density of exp(-1e6) or less. It
    would outweigh all others, and as the standard error of a mean is then as large as the mean, hide what they say.

    >>> bounded(np.array([-2.0, -1e6]), np.zeros((2, 1))).round(2)
    array([-1.99, -5.75])
    """
    anywhere = -np.log(np.pi * (1 + Z**2)).sum(axis=1)
    return np.logaddexp(np.log(1 - ELSEWHERE) + log_density, np.log(ELSEWHERE) + anywhere)


def _sample(Z: NDArray, most: int, rng: Generator) -> NDArray:
    """Rows that starts are found on, in float32 where that is exact enough."""
    n, d = Z.shape
    size = max(SEARCH_ROWS, ROWS_A_COLUMN * d * most)
    rows = Z[np.sort(rng.choice(n, size, replace=False))] if n > size else Z
    safe = n > d and np.linalg.eigvalsh(rows.T @ rows / len(rows))[0] > SINGLE_SAFE
    return rows.astype(np.float32) if safe else rows


def one_component(Z: NDArray) -> Mixture:
    """Mixture of one component: the moments of the rows."""
    return replace(mixture_of(Z, np.ones((len(Z), 1))), converged=True)


def admissible(mixture: Mixture, n: int) -> bool:
    """Whether a candidate's likelihood can be compared: it is inflated where a component has few rows or no spread."""
    few = mixture.weights.min() * n < FEW * mixture.means.shape[1]
    return mixture.n_components == 1 or not (few or collapsed(mixture))


def collapsed(mixture: Mixture) -> tuple[int, int] | None:
    """Component and column where a component has no spread of its own, or None."""
    spread = np.einsum("kii->ki", mixture.covariances) - RIDGE
    if len(spread) == 1 or spread.min() >= COLLAPSED:
        return None
    k, column = np.unravel_index(int(spread.argmin()), spread.shape)
    return int(k), int(column)


def by_weight(mixture: Mixture) -> Mixture:
    """Order components by falling weight, so that how they were found does not show."""
    order = np.argsort(-mixture.weights, kind="stable")
    return Mixture(mixture.weights[order], mixture.means[order], mixture.covariances[order], mixture.converged)
