"""The hidden nodes of a discrete network given the observed ones, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.factors import Factor, eliminate, elimination_order, row_blocks

Values = dict[int, NDArray]


def sample_by_elimination(
    factors: Sequence[Factor], n_states: Mapping[int, int], n: int, rng: Generator
) -> dict[int, NDArray]:
    """Draw hidden variables from the law proportional to a product of factors, exactly, for each of n rows.

    The factors are the tables of the network, restricted to the evidence of the rows. The variables, ``n_states`` by
    their numbers of states, are summed out by fewest fill-in edges; then each is drawn given those that were summed
    out later.
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


def _refuse_impossible(log_total: NDArray, first_row: int) -> None:
    bad = np.flatnonzero(~(log_total > -np.inf))
    if bad.size:
        raise InputError(
            f"rows {name_some(first_row + bad)} of X are impossible under the network. Check the coding of the states, "
            "or the zeros in the tables."
        )
