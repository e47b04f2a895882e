"""Inference in a hidden Markov model: its states given X, its evidence, and the law of one state given the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import logsumexp

from knockoffs.errors import InputError
from knockoffs.features.hmm.emissions import BLOCK_BYTES, DiscreteEmissions, Emissions
from knockoffs.sampling.conjugates.markov_chain import draw_key, over_rows

if TYPE_CHECKING:
    from knockoffs.features.hmm.model import HiddenMarkov

LARGEST_SPREAD = 500.0  # exp(-745) is the smallest double; the rest is room for the scaled sums
TINY = 1e-60  # a step as improbable as this is one that scaled arithmetic may not count on


def sample_states(model: HiddenMarkov, X: NDArray, rng: Generator, n_jobs: int = 1) -> NDArray:
    """Draw H from P(H | X) for every row, shape (n, p)."""
    from knockoffs.features.posterior import forward_backward

    X = check_sites(X, model.emissions.shape[0])
    K = len(model.initial)
    H, key = np.empty(X.shape, np.uint8 if K <= 256 else np.int32), draw_key(rng)
    segment = forward_backward.segment_length(X.shape[1], K)
    far = far_rows(model, X)
    for start, codes, likelihood in model.emissions.blocks(X):
        if far.size:
            model.emissions.skip(far[(far >= start) & (far < start + len(codes))] - start, codes, likelihood)
        law = (model.initial, model.transitions, likelihood)

        def work(
            rows: slice, start: int = start, codes: NDArray = codes, law: tuple[NDArray, NDArray, NDArray] = law
        ) -> None:
            first = start + rows.start
            out = H[first : start + rows.stop]
            place = forward_backward.sample_states(codes[rows], *law, key, first, segment, out)
            refuse_impossible(place, first, X)

        over_rows(work, len(codes), n_jobs)
    log_law = _log(model.initial), _log(model.transitions)
    for rows, E in log_likelihoods(model.emissions, X[far]):
        drawn = np.empty((E.shape[1], E.shape[0]), H.dtype)
        place = forward_backward.sample_states_in_logs(E, *log_law, key, far[rows], drawn)
        refuse_impossible(place, 0, X[far[rows]])
        H[far[rows]] = drawn
    return H


def far_rows(model: HiddenMarkov, X: NDArray) -> NDArray[np.intp]:
    """Rows in which scaled arithmetic could lose a state that explains a later site, to be worked in logs.

    The likelihoods of the sites to come differ between two states by no more than ``spread``. What scaling loses is
    below exp(-700) of the largest state, so it can matter where the spread is about that, and there only if some state
    cannot be reached from some other: else a lost state is reached again in the next step. (Of numbers, one cell can do
    it, at the start too; of symbols many together.)
    """
    steps = (
        [model.transitions] if isinstance(model.emissions, DiscreteEmissions) else [model.transitions, model.initial]
    )
    if min(step.min(initial=1.0) for step in steps) > TINY:
        return np.empty(0, np.intp)
    return np.flatnonzero(model.emissions.spread(X) > LARGEST_SPREAD)


def _log(probabilities: NDArray) -> NDArray:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def refuse_impossible(place: int, first: int, X: NDArray) -> None:
    """Raise an error for the place that a sampler of P(H | X) could not explain, if there is one."""
    if place >= 0:
        row, site = divmod(place, X.shape[1])
        raise InputError(
            f"row {first + row}, site {site}: X = {X[first + row, site]} is impossible under the model given the sites "
            "before it. The model does not fit this row, or it was fitted to other symbols."
        )


def check_sites(X: NDArray, p: int) -> NDArray:
    """X as an array with p columns."""
    X = np.asarray(X)
    if X.ndim != 2 or X.shape[1] != p:
        raise InputError(f"X has shape {X.shape}: the model has {p} sites, one for each column.")
    return X


def log_likelihood(model: HiddenMarkov, X: NDArray) -> NDArray:
    """Log P(X) of every row, shape (n,); missing cells are summed out."""
    X = check_sites(X, model.emissions.shape[0])
    total = np.empty(len(X))
    far = far_rows(model, X)
    near = np.setdiff1d(np.arange(len(X)), far)
    for rows, E in log_likelihoods(model.emissions, X[near]):
        total[near[rows]] = filter_states(model, E)[1]
    if far.size:
        from knockoffs.features.posterior import forward_backward

        for rows, E in log_likelihoods(model.emissions, X[far]):
            evidence = np.empty(E.shape[1])
            forward_backward.log_evidence_in_logs(E, _log(model.initial), _log(model.transitions), evidence)
            total[far[rows]] = evidence
    return total


def log_likelihoods(emissions: Emissions, X: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Log P(X_j | H_j = k), shape (p, rows, K), a block of rows at a time."""
    p, K = emissions.shape
    size = max(1, BLOCK_BYTES // (p * K * 8))
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        yield rows, emissions.log_likelihood(X[rows])


def filter_states(model: HiddenMarkov, E: NDArray) -> tuple[NDArray, NDArray]:
    """P(H_j | X_1, ..., X_j), shape (p, rows, K), and log P(X), shape (rows,), from log likelihoods."""
    filtered, total = np.empty_like(E), np.zeros(E.shape[1])
    law = np.broadcast_to(model.initial, E.shape[1:])
    for j in range(len(E)):
        largest = E[j].max(axis=1, keepdims=True)
        law = law * np.exp(E[j] - np.where(np.isfinite(largest), largest, 0.0))
        scale = law.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            total += (np.log(scale) + largest)[:, 0]
        filtered[j] = law = law / np.where(scale > 0, scale, 1.0)
        if j + 1 < len(E):
            law = law @ model.transitions[j]
    return filtered, total


def state_given_others(model: HiddenMarkov, j: int, X: NDArray) -> NDArray:
    """P(H_j = k | X without column j), shape (n, K)."""
    X = np.array(check_sites(X, model.emissions.shape[0]), dtype=float)
    X[:, j] = np.nan
    out = np.empty((len(X), len(model.initial)))
    for rows, E in log_likelihoods(model.emissions, X):
        before, after = _log(model.initial) + E[0], np.zeros(E.shape[1:])
        for i in range(j):
            before = logsumexp(before[:, :, None] + _log(model.transitions[i]), axis=1) + E[i + 1]
        for i in range(len(E) - 1, j, -1):
            after = logsumexp(_log(model.transitions[i - 1]) + (E[i] + after)[:, None, :], axis=2)
        law = before + after
        total = logsumexp(law, axis=1, keepdims=True)
        bad = np.flatnonzero(~np.isfinite(total))
        if bad.size:
            raise InputError(f"row {rows.start + bad[0]} is impossible under the model, whatever its site {j} holds.")
        out[rows] = np.exp(law - total)
    return out
