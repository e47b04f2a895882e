"""Columns drawn given the others under the latent model, for conditional tests.

L is drawn once given X; cells that are points determine it. Columns G are then drawn given L of the other columns, with
the class K integrated out. If y does not depend on X_G given the other columns, it does not depend on X_G given L_-G
either, because X_-G is a function of L_-G, and L beyond X is made of random numbers. So X_G and the draws are
exchangeable.

Where other columns are coarse (0/1, short scales, labels), L_-G was drawn within intervals with a look at X_G, and
holds information on X_G that X_-G does not. Power is lost then, and p hangs on one draw of L. Besag and Clifford's
(1989) serial method mends both: L_-G gets a place at random in a path of a Gibbs chain in which the cells of G are
free, in each row by itself; the path is run from it, forward to its end and backward in time to its start. Given the
path, every place is as likely to be that of L_-G, however well the chain mixes. A draw takes one state of the path in
each row at random, and X_G given it. X_G and the draws are independent with the same law given the path: the test stays
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray

from knockoffs.features.conditionals import Conditionals, sampler_of
from knockoffs.features.latent.chain import Classes, sweep
from knockoffs.features.latent.margins import FREE, LatentCells
from knockoffs.seeds import seeds_of

if TYPE_CHECKING:
    from knockoffs.features.latent.model import LatentFeatures


@dataclass(frozen=True)
class LatentResampler:
    """Draws of columns given the latent coordinates of all others."""

    model: LatentFeatures
    X: NDArray  # shape (n, n_columns)
    L: NDArray  # shape (n, n_coordinates): drawn given X
    seed: SeedSequence  # of the sweeps; each group of columns has a stream that depends on its columns alone
    n_states: int = 100  # most states of the path beside L_-G. A draw keeps L_-G in one of n_states + 1 rows.
    n_sweeps: int = 2  # from one state to the next; even, so that backward sweeps reverse the others
    most_work: float = 2e8  # multiplications in the sweeps of one group; where they do not suffice, the path is shorter
    most_cells: int = 10_000_000  # coordinates of the group in all states and classes, beyond which the path is shorter

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

    def states(self, columns: NDArray[np.intp], own: NDArray[np.intp]) -> tuple[NDArray[np.intp], Iterable[NDArray]]:
        """Rows in which other columns leave L open, and the states of their paths other than L, one after the other."""
        hidden = np.array(self.X, dtype=float)
        hidden[:, columns] = np.nan
        cells = self.model.read(hidden)
        rows = np.flatnonzero((cells.status > FREE).any(axis=1))
        if not (rows.size and own.size):
            return rows, ()
        D, n_classes = self.L.shape[1], self.model.n_classes
        work = self.n_sweeps * len(rows) * D * (D + 30) * (1 + n_classes / 4)  # a draw costs as much as 30 products
        most = min(self.most_work / work, self.most_cells / (len(self.L) * len(own) * n_classes))
        rng = np.random.default_rng(seeds_of(self.seed, columns))
        n_states = int(np.clip(most, 1, self.n_states))
        return rows, run_path(self.L[rows], cells.rows(rows), self.model.law, n_states, self.n_sweeps, rng)


def run_path(
    L: NDArray, cells: LatentCells, law: Classes, n_states: int, n_sweeps: int, rng: Generator
) -> Iterator[NDArray]:
    """States of a path of n_states + 1 in which each row of L has a place at random, but for L itself.

    Step t is the t-th backward in time for a row whose place is t or later, and one forward for the others: all states
    of a row come up, in an order that plays no part.
    """
    place = np.sort(rng.integers(n_states + 1, size=len(L)))[::-1]
    shuffled = rng.permutation(len(L))
    back = np.argsort(shuffled)
    start = L[shuffled]
    cells = LatentCells(*(np.ascontiguousarray(part[shuffled]) for part in cells))
    state, K = start.copy(), np.zeros(len(L), np.intp)
    for t in range(1, n_states + 1):
        turned = int((place >= t).sum())  # rows before this one go backward
        first = int((place >= t - 1).sum())
        state[turned:first] = start[turned:first]
        for rows, backward in ((slice(0, turned), True), (slice(turned, None), False)):
            sweep(state[rows], K[rows], cells.rows(rows), law, rng=rng, n_sweeps=n_sweeps, backward=backward)
        yield state[back]
