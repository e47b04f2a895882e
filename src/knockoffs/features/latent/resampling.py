"""Columns drawn given the others under the latent model, for conditional tests.

L is drawn once given X; cells that are points determine it. Columns G are then drawn given L of the other columns, with
the class K integrated out. If y does not depend on X_G given the other columns, it does not depend on X_G given L_-G
either, because X_-G is a function of L_-G, and L beyond X is made of random numbers. So X_G and the draws are
exchangeable.

Where other columns are coarse (0/1, short scales, labels), L_-G was drawn within intervals with a look at X_G, and
holds information on X_G that X_-G does not. Power is lost then. Besag and Clifford's (1989) parallel method gives it
back: from L, Gibbs sweeps with the cells of G free run backward in time to a hub, and from the hub as many run forward,
several times. The states at their ends and L are exchangeable given the hub, in each row, however well the chain
mixes. A draw takes one of them, L among them, in each row at random, and X_G given its L_-G. X_G and the draws are
independent with the same law given the set of states: the test stays exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from knockoffs.features.conditionals import Conditionals, sampler_of
from knockoffs.features.latent.chain import sweep
from knockoffs.features.latent.margins import FREE, LatentCells
from knockoffs.seeds import seeds_of

if TYPE_CHECKING:
    from knockoffs.features.latent.model import LatentFeatures


@dataclass(frozen=True)
class LatentResampler:
    """Draws of columns given the latent coordinates of all others.

    Parameters
    ----------
    model : LatentFeatures
    X : array, shape (n, n_columns)
    L : array, shape (n, n_coordinates)
        Drawn given X.
    seed : numpy.random.SeedSequence
        Of the sweeps; each group of columns has a stream that depends on its columns alone.
    n_states : int
        Most states that are drawn beside L where other columns are coarse. A draw keeps L in one of n_states + 1 rows.
    n_sweeps : int, optional
        Sweeps to each state; by default those of the model.
    most_work : float
        Multiplications in the sweeps of one group; see ``affordable_chains``.
    most_cells : int
        Coordinates of the group in all states and classes, beyond which there are fewer states.
    """

    model: LatentFeatures
    X: NDArray
    L: NDArray
    seed: SeedSequence
    n_states: int = 10
    n_sweeps: int | None = None
    most_work: float = 1e8
    most_cells: int = 10_000_000

    def given_others(self, columns: NDArray[np.intp]) -> Callable[[Generator, int], NDArray]:
        """Sampler of the columns, ``(rng, n_draws) -> array``, shape (n_draws, n, n_columns)."""
        column_of, n = self.model.layout.column_of, len(self.L)
        own = np.flatnonzero(np.isin(column_of, columns))
        laws = [self.conditionals(self.L).law(own)]
        rows, states = self.states(columns, own)
        for L in states:
            weights, means, factors = laws[0][0].copy(), laws[0][1].copy(), laws[0][2]
            weights[rows], means[rows], _ = self.conditionals(L).law(own)
            laws.append((weights, means, factors))
        draw = sampler_of(laws)

        def sample(rng: Generator, n_draws: int) -> NDArray:
            L = draw(rng, n_draws)
            values = np.empty((n_draws, n, len(columns)))
            for place, j in enumerate(columns):
                of_column = L[..., column_of[own] == j]
                values[..., place] = self.model.margins[j].write(of_column.reshape(n_draws * n, -1)).reshape(n_draws, n)
            return values

        return sample

    def conditionals(self, L: NDArray) -> Conditionals:
        """Laws of coordinates given the others."""
        return Conditionals(self.model.mixture.laws, L, np.asarray(self.model.mixture.weights))

    def states(self, columns: NDArray[np.intp], own: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[NDArray]]:
        """Rows in which other columns leave L open, and states of L there, exchangeable with L given these columns."""
        hidden = np.array(self.X, dtype=float)
        hidden[:, columns] = np.nan
        cells = self.model.read(hidden)
        rows = np.flatnonzero((cells.status > FREE).any(axis=1))
        size = len(self.L) * max(len(own), 1) * self.model.n_classes
        most = int(min(self.n_states, self.most_cells // size)) if own.size else 0
        D = self.L.shape[1]
        sweeps = self.most_work / max(len(rows) * D * (D + 30) * (1 + self.model.n_classes / 4), 1)  # a draw: 30
        n_states, n_sweeps = affordable_chains(sweeps, most, self.n_sweeps or self.model.n_sweeps)
        if n_states < 1 or not rows.size:
            return rows, []
        cells = LatentCells(*map(np.ascontiguousarray, cells.rows(rows)))
        rng = np.random.default_rng(seeds_of(self.seed, columns))
        hub, K = self.L[rows], np.zeros(len(rows), np.intp)
        sweep(hub, K, cells, self.model.law, rng=rng, n_sweeps=n_sweeps, backward=True)
        states = [hub.copy() for _ in range(n_states)]
        for L in states:
            sweep(L, K, cells, self.model.law, rng=rng, n_sweeps=n_sweeps)
        return rows, states


def affordable_chains(sweeps: float, most_states: int, n_sweeps: int) -> tuple[int, int]:
    """Numbers of states and of sweeps to each of them, where ``sweeps`` can be paid for in all.

    The hub takes as many sweeps as a state. Where they do not suffice, chains are made shorter first, then fewer: the
    test is exact for any number, and a state that is two sweeps away gives back most of the power. The number of sweeps
    is even: only then do backward sweeps reverse the others.

    >>> affordable_chains(1000, 10, 20), affordable_chains(110, 10, 20), affordable_chains(15, 10, 20)
    ((10, 20), (10, 10), (6, 2))
    >>> affordable_chains(0.1, 10, 20)
    (1, 2)
    """
    n_sweeps = 2 * int(np.clip(sweeps / (2 * (most_states + 1)), 1, -(-n_sweeps // 2)))
    return min(most_states, max(int(sweeps / n_sweeps) - 1, 1)), n_sweeps
