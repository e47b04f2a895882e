"""Fit a hidden Markov model by expectation and maximisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some, unknown_option
from knockoffs.features import takes_labels
from knockoffs.features.hidden_markov import HIDDEN_KNOCKOFFS, HiddenMarkov, filter_states, log_likelihoods
from knockoffs.features.hidden_markov_emissions import DiscreteEmissions, Emissions, GaussianEmissions
from knockoffs.progress import track


@takes_labels
def fit_hidden_markov(
    X: NDArray,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    n_states: int | Sequence[int] = (2, 3, 4, 5, 6),
    emissions: str = "auto",
    shared: str = "transitions",
    criterion: str = "aic",
    n_starts: int = 3,
    max_iter: int = 200,
    tol: float = 1e-4,
    pseudocount: float = 0.1,
    hidden_knockoff: str = "chain",
) -> HiddenMarkov:
    """Fit a hidden Markov model to the rows of X by expectation and maximisation (Baum and Welch).

    Parameters
    ----------
    X : array, shape (n, p)
        Rows are independent sequences, columns the sites in their order. NaN (or a negative symbol) is missing.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Fits done at the same time, as joblib has it. The answer does not depend on it.
    n_states : int or sequence of int
        K, or the numbers to choose from.
    emissions : {"auto", "discrete", "gaussian"}
        "auto" takes whole numbers 0, ..., at most 19, and at most one negative number for missing, as symbols and
        everything else as Gaussian.
    shared : {"transitions", "all", "none"}
        What all sites have in common: the transition matrix, that and the emissions, or nothing.
    criterion : {"aic", "bic"}
        How K is chosen, where there is a choice.
    n_starts : int
        Random starts for each K: rows of X as the centres of the states.
    max_iter, tol : int, float
        A fit stops when a round gains less than ``tol`` in mean log likelihood a row.
    pseudocount : float
        Prior weight, in observations, of a uniform transition and of the column's own distribution in each state.
        It keeps a symbol that a state never showed from being impossible.
    hidden_knockoff : {"chain", "posterior"}

    Returns
    -------
    HiddenMarkov
    """
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] < 2 or len(X) < 2:
        raise InputError(f"X has shape {X.shape}: a hidden Markov model needs at least two rows and two sites.")
    for argument, got, allowed in (
        ("emissions", emissions, ("auto", "discrete", "gaussian")),
        ("shared", shared, ("transitions", "all", "none")),
        ("criterion", criterion, ("aic", "bic")),
        ("hidden_knockoff", hidden_knockoff, HIDDEN_KNOCKOFFS),
    ):
        if got not in allowed:
            raise unknown_option(argument, got, allowed)
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        raise InputError(f"row {infinite[0][0]}, site {infinite[0][1]}: X is infinite.")
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        raise InputError(f"site {empty[0]} is missing in every row: leave the column out.")
    sizes = [int(n_states)] if np.ndim(n_states) == 0 else [int(K) for K in n_states]  # type: ignore[arg-type,union-attr]
    if not sizes or min(sizes) < 1 or sizes != [float(K) for K in np.ravel(n_states)]:
        raise InputError(f"n_states={n_states!r}: expected whole numbers of at least one state.")
    for name, number, least in (("n_starts", n_starts, 1), ("max_iter", max_iter, 1), ("pseudocount", pseudocount, 0)):
        if not number >= least:
            raise InputError(f"{name}={number!r}: expected at least {least}.")
    data = _Data.read(X, emissions, shared, pseudocount)
    if not data.n_symbols:
        centre, scale = _scale(X, shared)
        data = replace(data, X=(X - centre) / scale)

    from joblib import Parallel, delayed

    tasks = list(product(sizes, range(n_starts)))
    jobs = [
        delayed(_fit_once)(data, K, max_iter, tol, child)
        for (K, _), child in zip(tasks, rng.spawn(len(tasks)), strict=True)
    ]
    fits = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    best, best_score = None, np.inf
    for (K, _), (model, value) in zip(tasks, track(fits, "hidden Markov fits", total=len(tasks)), strict=True):
        price = 2.0 if criterion == "aic" else np.log(len(X))
        score = -2 * value + price * data.n_parameters(K)
        if score < best_score:
            best, best_score = model, score
    assert best is not None
    found = best.emissions
    if isinstance(found, GaussianEmissions):
        found = GaussianEmissions(found.means * scale[:, None] + centre[:, None], found.sds * scale[:, None])
    return HiddenMarkov(best.initial, best.transitions, found, hidden_knockoff)


def _scale(X: NDArray, shared: str) -> tuple[NDArray, NDArray]:
    """Centre and scale of every column, so that the fit does not mind the units."""
    centre, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    constant = np.flatnonzero(scale <= 1e-12 * np.abs(centre))
    if constant.size:
        raise InputError(
            f"columns {name_some(constant)} are constant: no normal law has a knockoff of them. Leave them out."
        )
    if shared == "all":
        centre, scale = np.full_like(centre, np.nanmean(X)), np.full_like(scale, np.nanstd(X))
    return centre, scale


@dataclass(frozen=True)
class _Data:
    """What a fit needs of X: symbols or numbers, and what the sites share."""

    X: NDArray
    n_symbols: int  # 0 for Gaussian emissions
    shared: str
    pseudocount: float

    @staticmethod
    def read(X: NDArray, emissions: str, shared: str, pseudocount: float) -> _Data:
        seen = X[~np.isnan(X)]
        # one negative number is the code of a missing symbol; several are numbers
        whole = bool((seen == np.round(seen)).all()) and seen.max() < 20 and len(np.unique(seen[seen < 0])) <= 1
        discrete = emissions == "discrete" or (emissions == "auto" and whole)
        if discrete and not (seen == np.round(seen)).all():
            row, site = np.argwhere((X != np.round(X)) & ~np.isnan(X))[0]
            raise InputError(f"row {row}, site {site}: {X[row, site]} is not a symbol 0, 1, ...")
        if discrete and seen.max() < 0:
            raise InputError("X holds no symbol 0, 1, ...: every cell is missing.")
        return _Data(
            np.where(X < 0, np.nan, X) if discrete else X, int(seen.max()) + 1 if discrete else 0, shared, pseudocount
        )

    def n_parameters(self, K: int) -> int:
        p = self.X.shape[1]
        chain = K - 1 + K * (K - 1) * (p - 1 if self.shared == "none" else 1)
        return chain + (1 if self.shared == "all" else p) * K * (self.n_symbols - 1 if self.n_symbols else 2)

    def parts(self) -> Iterator[NDArray]:
        """Yield what is summed in each state: an indicator for each symbol, or 1, x and x^2; 0 where missing."""
        if self.n_symbols:
            yield from ((self.X == m).astype(float) for m in range(self.n_symbols))
        else:
            filled = np.nan_to_num(self.X)
            yield from ((~np.isnan(self.X)).astype(float), filled, filled**2)

    def moments(self, weight: NDArray) -> NDArray:
        """Sum the parts at every site, shape (p, K, M), with weights (p, n, K), or (n, K) at all sites alike."""
        subscripts = "jnk,nj->jk" if weight.ndim == 3 else "nk,nj->jk"
        return np.stack([np.einsum(subscripts, weight, part, optimize=True) for part in self.parts()], axis=2)

    @cached_property
    def columns(self) -> NDArray:
        """Sums of the parts over all rows, shape (p, 1, M)."""
        return np.stack([part.sum(axis=0) for part in self.parts()], axis=1)[:, None, :]

    def emissions(self, moments: NDArray) -> Emissions:
        """Emissions with the largest posterior given moments (p, K, M), the column's own law as the prior."""
        columns = self.columns
        if self.shared == "all":
            moments, columns = moments.sum(axis=0, keepdims=True), columns.sum(axis=0, keepdims=True)
        mass = columns.sum(axis=2, keepdims=True) if self.n_symbols else columns[..., :1]
        moments = moments + self.pseudocount * columns / mass
        p = self.X.shape[1]
        if self.n_symbols:
            table = moments / moments.sum(axis=2, keepdims=True)
            return DiscreteEmissions(np.repeat(table, p // len(table), axis=0))
        means = moments[..., 1] / moments[..., 0]
        column_variance = (columns[..., 2] - columns[..., 1] ** 2 / mass[..., 0]) / mass[..., 0]
        floor = 1e-6 * np.where(column_variance > 0, column_variance, 1.0)  # a state may not shrink to a point
        sds = np.sqrt(np.maximum(moments[..., 2] / moments[..., 0] - means**2, floor))
        return GaussianEmissions(np.repeat(means, p // len(means), axis=0), np.repeat(sds, p // len(sds), axis=0))


def _fit_once(data: _Data, K: int, max_iter: int, tol: float, rng: Generator) -> tuple[HiddenMarkov, float]:
    """One run of expectation and maximisation, and the log likelihood it reached."""
    model, before = _start(data, K, rng), -np.inf
    for _ in range(max_iter):
        starts, steps, moments, value = _expect(data, model)
        if value - before < tol * len(data.X):
            break
        before = value
        if data.shared != "none":
            steps = np.broadcast_to(steps.sum(axis=0), steps.shape)
        steps, starts = steps + data.pseudocount, starts + data.pseudocount
        model = HiddenMarkov(starts / starts.sum(), steps / steps.sum(axis=2, keepdims=True), data.emissions(moments))
    return model, value


def _start(data: _Data, K: int, rng: Generator) -> HiddenMarkov:
    """States around K rows of X, or around K cells where all sites are alike, and a chain that mostly stays."""
    n, p = data.X.shape
    weight = (0.2 + rng.random((n, K))) / n
    if data.shared == "all":
        seen = rng.choice(data.X[~np.isnan(data.X)], size=K)
        cell = _Data(seen[:, None], data.n_symbols, "none", 0.0)
        moments = data.moments(weight) / p + cell.moments(np.eye(K))
    else:
        weight[rng.choice(n, size=K, replace=n < K), np.arange(K)] += 1.0
        moments = data.moments(weight)
    stay = 0.8 * np.eye(K) + 0.2 / K
    return HiddenMarkov(np.full(K, 1 / K), np.tile(stay, (p - 1, 1, 1)), data.emissions(moments))


def _expect(data: _Data, model: HiddenMarkov) -> tuple[NDArray, NDArray, NDArray, float]:
    """Return expected starts (K,), steps (p - 1, K, K) and moments (p, K, M), and the log likelihood."""
    p, K = model.emissions.shape
    starts, steps, value = np.zeros(K), np.zeros((p - 1, K, K)), 0.0
    moments: Any = 0.0
    for rows, E in log_likelihoods(model.emissions, data.X):
        filtered, total = filter_states(model, E)
        value += float(total.sum())
        smoothed, beta = np.empty_like(filtered), np.ones(E.shape[1:])
        for j in range(p - 1, -1, -1):
            smoothed[j] = filtered[j] * beta
            scale = 1 / smoothed[j].sum(axis=1, keepdims=True)
            smoothed[j] *= scale
            if j > 0:
                ahead = np.exp(E[j] - E[j].max(axis=1, keepdims=True)) * beta
                back = ahead @ model.transitions[j - 1].T
                both = (filtered[j - 1] * back).sum(axis=1, keepdims=True)
                steps[j - 1] += model.transitions[j - 1] * (filtered[j - 1].T @ (ahead / both))
                beta = back / back.max(axis=1, keepdims=True)
        starts += smoothed[0].sum(axis=0)
        block = _Data(data.X[rows], data.n_symbols, data.shared, data.pseudocount)
        moments = moments + block.moments(smoothed)
    return starts, steps, moments, value
