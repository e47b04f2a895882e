"""The conjugate of several discrete coordinates with a joint table: sequential conditional independent pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some
from knockoffs.sampling.categorical import sample_weights
from knockoffs.sampling.factors import Factor, eliminate, elimination_order, multiply, rescale, row_blocks
from knockoffs.sampling.network import Blanket

MAX_JOINT_TABLE = 2**22  # entries for one row, 32 MiB; three such tables are held at once


@dataclass(frozen=True)
class JointTable:
    """Draw each coordinate from its law given the others and the new ones drawn so far (Candes et al., Algorithm 1).

    P(u | v) is proportional to a product of tables, one of which may be over all the coordinates. With phi the
    product of those that hold u_j, the new u_tilde_j is drawn from phi(. , others), and phi is replaced by

        phi(u_j, others) phi(u_tilde_j, others) / sum_w phi(w, others),

    a table over the neighbours of j alone: the law of what is left given the pair (u_j, u_tilde_j). The coordinates
    go by fewest fill-in edges, so a chain or tree costs O(K^2) a coordinate, and the largest table is that of variable
    elimination, not the joint one. Coordinates are integer codes; each may be swapped on its own.
    """

    n_states: tuple[int, ...]  # number of states of each coordinate
    # ``(blanket, n) -> factors`` for n rows, their scopes numbering the coordinates. Every coordinate must be in one
    factors: Callable[[Blanket, int], list[Factor]]
    # entries of the largest table that may be needed for one row; more are refused, with the sizes
    max_table: int = MAX_JOINT_TABLE

    def sample(self, u: NDArray, blanket: Blanket, rng: Generator) -> NDArray:
        """Draw u_tilde, a coordinate at a time."""
        codes = self._check(u)
        u_tilde = np.empty_like(codes)
        for factors, order, rows in self._blocks(codes, blanket):
            _pairs(factors, order, codes[rows], u_tilde[rows], rng, rows.start)
        return u_tilde.astype(u.dtype)

    def log_conditional(self, u: NDArray, blanket: Blanket) -> NDArray:
        """Log P(u | v)."""
        codes, out = _as_codes(u), np.zeros(len(u))
        for factors, order, rows in self._blocks(codes, blanket):
            values = dict(enumerate(codes[rows].T))
            with np.errstate(divide="ignore"):
                out[rows] = sum(np.log(factor.at(values)) for factor in factors)
            out[rows] -= eliminate(factors, order, len(out[rows]))[1]
        return out

    def log_kernel(self, u_tilde: NDArray, u: NDArray, blanket: Blanket) -> NDArray:
        """Log Q(u_tilde | u, v)."""
        codes, codes_tilde, out = _as_codes(u), _as_codes(u_tilde), np.zeros(len(u))
        for factors, order, rows in self._blocks(codes, blanket):
            out[rows] = _pairs(factors, order, codes[rows], codes_tilde[rows], None, rows.start)
        return out

    def _check(self, u: NDArray) -> NDArray[np.intp]:
        """Codes of u, which must be states: a fraction would be cut, and a negative number count from the end."""
        values = np.asarray(u).reshape(len(u), -1)
        bad = np.argwhere(~((values >= 0) & (values < np.array(self.n_states)) & (values == np.floor(values))))
        if len(bad):
            row, j = bad[0]
            raise InputError(
                f"row {row}: {values[row, j]} is no state of coordinate {j}, whose states are coded "
                f"0, ..., {self.n_states[j] - 1}."
            )
        return _as_codes(values)

    def _blocks(self, codes: NDArray, blanket: Blanket) -> list[tuple[list[Factor], list[int], slice]]:
        factors = self.factors(blanket, len(codes))
        order, largest = elimination_order((f.scope for f in factors), dict(enumerate(self.n_states)))
        if largest > self.max_table:
            raise InputError(
                f"a joint table of {len(self.n_states)} coordinates with {name_some(self.n_states)} states needs "
                f"{largest:,} entries for one row ({8 * largest / 2**20:,.0f} MiB); the limit is max_table="
                f"{self.max_table:,}. Write the law as a product of smaller tables, or raise max_table."
            )
        return [([factor.rows(rows) for factor in factors], order, rows) for rows in row_blocks(len(codes), largest)]


def _pairs(
    factors: list[Factor], order: list[int], u: NDArray, u_tilde: NDArray, rng: Generator | None, first_row: int
) -> NDArray:
    """Run through the coordinates, filling u_tilde if there is an rng; return log Q(u_tilde | u)."""
    values = dict(enumerate(u.T))
    every, log_q = np.arange(len(u)), np.zeros(len(u))
    pool = factors
    for j in order:
        phi, _ = multiply([factor for factor in pool if j in factor.scope], j)  # a common number cancels in every draw
        weights = phi.at(values, n_free=1)
        if rng is not None:
            u_tilde[:, j] = sample_weights(weights, rng, first_row=first_row)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_q += np.nan_to_num(
                np.log(weights[every, u_tilde[:, j]] / weights.sum(axis=1)), nan=-np.inf, neginf=-np.inf
            )
        pool = [factor for factor in pool if j not in factor.scope]
        pool.append(_given_pair(phi, u[:, j], u_tilde[:, j]))
    return log_q


def _given_pair(phi: Factor, u: NDArray, u_tilde: NDArray) -> Factor:
    """Law of the other coordinates given the pair of the last one, one table for each triple (group, u, u_tilde)."""
    m = phi.table.shape[-1]
    seen, group = np.unique((phi.group * m + u) * m + u_tilde, return_inverse=True)
    of, a, b = seen // m**2, seen // m % m, seen % m
    total = phi.table.sum(axis=-1)[of]
    old, new = phi.table[of, ..., a], phi.table[of, ..., b]
    table = old * np.divide(new, total, out=np.zeros_like(total), where=total > 0)  # 0 where u_j has no law at all
    return Factor(phi.scope[:-1], rescale(table)[0], group)


def _as_codes(u: NDArray) -> NDArray[np.intp]:
    return np.asarray(u).reshape(len(u), -1).astype(np.intp)
