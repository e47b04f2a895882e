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
from knockoffs.features.hmm.emissions import DiscreteEmissions, Emissions, GaussianEmissions
from knockoffs.features.hmm.model import HiddenMarkov, filter_states, log_likelihoods
from knockoffs.progress import track
from knockoffs.table.columns import ROWS_A_VALUE, check_kinds

MOST_SYMBOLS = 20  # more different values than this are taken for numbers, unless the kinds say otherwise
MOST_DISTINCT = 1000  # symbols of a chain: its tables have p K M entries


def fit_hidden_markov(
    X: NDArray,
    *,
    rng: Generator,
    n_jobs: int | None = None,
    kinds: Sequence[str] | None = None,
    n_states: int | Sequence[int] = (2, 3, 4, 5, 6),
    emissions: str = "auto",
    shared: str = "transitions",
    criterion: str = "aic",
    n_starts: int = 3,
    max_iter: int = 200,
    tol: float = 1e-4,
    pseudocount: float = 0.1,
) -> HiddenMarkov:
    """Fit a hidden Markov model to the rows of X by expectation and maximisation (Baum and Welch).

    Parameters
    ----------
    X : array, shape (n, p)
        Rows are independent sequences, columns the sites in their order. NaN is missing, and nothing else is.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Fits done at the same time, as joblib has it. The answer does not depend on it.
    kinds : sequence of str, optional
        What the sites hold, for ``emissions="auto"``: the chain is Gaussian if one is "continuous", and of symbols if
        one is "nominal" or all are "binary" or "ordinal". Left out, or with "count", the values decide.
    n_states : int or sequence of int
        K, or the numbers to choose from.
    emissions : {"auto", "discrete", "gaussian"}
        A symbol is a value that occurs, whatever number it is. "auto" takes at most 20 different values, each seen
        five times on average, as symbols, and everything else as Gaussian: coding and units do not matter.
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
    if not sizes or not 1 <= min(sizes) <= max(sizes) <= 1000 or sizes != [float(K) for K in np.ravel(n_states)]:
        raise InputError(f"n_states={n_states!r}: expected whole numbers from 1 to 1000.")
    for name, number, least in (("n_starts", n_starts, 1), ("max_iter", max_iter, 1), ("pseudocount", pseudocount, 0)):
        if not number >= least:
            raise InputError(f"{name}={number!r}: expected at least {least}.")
    data = _Data.read(X, _are_symbols(X, emissions, kinds), shared, pseudocount)
    if not data.n_symbols:
        centre, scale = _scale(X, shared)
        data = replace(data, X=(X - centre) / scale)

    from joblib import delayed

    from knockoffs.machine.parallel import parallel_map

    tasks = list(product(sizes, range(n_starts)))
    jobs = [
        delayed(_fit_once)(data, K, max_iter, tol, child)
        for (K, _), child in zip(tasks, rng.spawn(len(tasks)), strict=True)
    ]
    fits = parallel_map(jobs, n_jobs)
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
    else:
        found = DiscreteEmissions(found.table, data.symbols)
    return HiddenMarkov(best.initial, best.transitions, found)


def _are_symbols(X: NDArray, emissions: str, kinds: Sequence[str] | None) -> bool:
    """Whether X holds symbols and not numbers: as asked for, by the kinds of the columns, or by the values."""
    if emissions != "auto":
        return emissions == "discrete"
    if kinds is not None:
        if len(kinds) != X.shape[1]:
            raise InputError(f"kinds has {len(kinds)} entries for {X.shape[1]} columns.")
        check_kinds(kinds)
        labels = [j for j, kind in enumerate(kinds) if kind == "nominal"]
        numbers = [j for j, kind in enumerate(kinds) if kind == "continuous"]
        if labels and numbers:
            raise InputError(
                f"columns {name_some(labels)} hold labels and columns {name_some(numbers)} continuous numbers: the "
                "sites of a chain hold one or the other. Use naive_bayes, which takes both."
            )
        if labels or numbers or "count" not in kinds:  # two values and scales are numbers among numbers
            return not numbers
    distinct = len(np.unique(X[~np.isnan(X)]))
    return distinct <= MOST_SYMBOLS and ROWS_A_VALUE * distinct <= int(np.count_nonzero(~np.isnan(X)))


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
    symbols: NDArray | None = None  # the values that the codes in X stand for

    @staticmethod
    def read(X: NDArray, discrete: bool, shared: str, pseudocount: float) -> _Data:
        if not discrete:
            return _Data(X, 0, shared, pseudocount)
        symbols = np.unique(X[~np.isnan(X)])
        if len(symbols) > MOST_DISTINCT:
            raise InputError(
                f"X holds {len(symbols):,} different values, too many for symbols (the limit is {MOST_DISTINCT:,}): "
                "use emissions='gaussian', or join rare symbols."
            )
        codes = np.where(np.isnan(X), np.nan, np.searchsorted(symbols, X))
        return _Data(codes, len(symbols), shared, pseudocount, symbols)

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
            return DiscreteEmissions(np.repeat(table, p // len(table), axis=0))  # of codes
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
