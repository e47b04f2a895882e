"""The hidden nodes of a discrete network given the observed ones: exactly, or by Gibbs sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.categorical import sample_categorical, sample_weights
from knockoffs.sampling.factors import Factor, eliminate, elimination_order, row_blocks

Values = dict[int, NDArray]


def sample_by_elimination(
    factors: Sequence[Factor], n_states: Mapping[int, int], n: int, rng: Generator
) -> dict[int, NDArray]:
    """Draw hidden variables from the law proportional to a product of factors, exactly, for each of n rows.

    The variables are summed out by fewest fill-in edges; then each is drawn given those that were summed out later.

    Parameters
    ----------
    factors : sequence of Factor
        The tables of the network, restricted to the evidence of the rows.
    n_states : mapping of hidden variable to its number of states
    n : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of variable to array of int, shape (n,)
    """
    order, largest = elimination_order((factor.scope for factor in factors), n_states)
    values: Values = {variable: np.empty(n, dtype=np.intp) for variable in order}
    for rows in row_blocks(n, largest):
        size = rows.stop - rows.start
        steps, log_total = eliminate([factor.rows(rows) for factor in factors], order, size)
        _refuse_impossible(log_total, rows.start)
        drawn: Values = {}
        for variable, step in zip(reversed(order), reversed(steps), strict=True):
            drawn[variable] = sample_weights(step.at(drawn, n_free=1), rng)
            values[variable][rows] = drawn[variable]
    return values


def log_evidence_by_elimination(factors: Sequence[Factor], n_states: Mapping[int, int], n: int) -> NDArray:
    """Log of the sum of a product of factors over its variables, shape (n,)."""
    order, largest = elimination_order((factor.scope for factor in factors), n_states)
    blocks = row_blocks(n, largest)
    parts = [eliminate([f.rows(rows) for f in factors], order, rows.stop - rows.start)[1] for rows in blocks]
    return np.concatenate(parts) if parts else np.zeros(0)


def sample_by_gibbs(
    factors: Sequence[Factor], n_states: Mapping[int, int], n: int, rng: Generator, *, n_sweeps: int
) -> dict[int, NDArray]:
    """Draw hidden variables by ``n_sweeps`` sweeps of Gibbs sampling: approximate, and possible at any treewidth.

    The first half of the sweeps replaces log 0 by a penalty that grows to infinity, so that the chain finds its way to
    possible values; the second half is plain Gibbs sampling.

    Raises
    ------
    InputError
        If rows are still impossible after the first half.
    """
    values: Values = {v: rng.integers(0, m, size=n) for v, m in n_states.items()}
    touching: dict[int, list[tuple[NDArray, Factor, tuple[int, ...]]]] = {}
    for variable in n_states:
        touching[variable] = []
        for factor in factors:
            if variable in factor.scope:
                axis = factor.scope.index(variable) + 1
                others = tuple(other for other in factor.scope if other != variable)
                with np.errstate(divide="ignore"):
                    table = np.log(np.moveaxis(factor.table, axis, -1))
                touching[variable].append((table, factor, others))
    warm = n_sweeps // 2
    for sweep in range(n_sweeps):
        # 2, 4, ... up to 60: exp(-60) is nothing beside any probability worth having
        penalty = -np.inf if sweep >= warm else -2.0 - 58.0 * sweep / max(warm - 1, 1)
        for variable, m in n_states.items():
            log_weights = np.zeros((n, m))
            for table, factor, others in touching[variable]:
                log_weights += np.maximum(table[(factor.group, *(values[other] for other in others))], penalty)
            if sweep == warm:
                _refuse_impossible(log_weights.max(axis=1), 0, after=f" after {warm} sweeps of Gibbs sampling")
            values[variable] = sample_categorical(log_weights, rng)
    return values


def _refuse_impossible(log_total: NDArray, first_row: int, after: str = "") -> None:
    bad = np.flatnonzero(~(log_total > -np.inf))
    if bad.size:
        hint = " Raise n_sweeps." if after else " Check the coding of the states, or the zeros in the tables."
        raise InputError(f"rows {name_some(first_row + bad)} of X are impossible under the network{after}.{hint}")
