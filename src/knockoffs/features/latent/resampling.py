"""Columns drawn given the others under the latent model, for conditional tests.

L is drawn once given X; cells that are points determine it. Columns G are then drawn given L of the other columns: the
class K is integrated out, so a class that only G reveals is drawn again with it. If y does not depend on X_G given
the other columns, it does not depend on X_G given L_-G either, because X_-G is a function of L_-G, and L beyond X is
made of random numbers. X_G and the draws are then exchangeable: the test is exact, and no draw needs a Markov chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.features.conditionals import Conditionals

if TYPE_CHECKING:
    from knockoffs.features.latent.model import LatentFeatures


@dataclass(frozen=True)
class LatentResampler:
    """Draws of columns given the latent coordinates of all others.

    Parameters
    ----------
    model : LatentFeatures
    L : array, shape (n, n_coordinates)
        Drawn given X.
    """

    model: LatentFeatures
    L: NDArray

    @cached_property
    def conditionals(self) -> Conditionals:
        """Laws of coordinates given the others."""
        return Conditionals(self.model.mixture.laws, self.L, np.asarray(self.model.mixture.weights))

    def given_others(self, columns: NDArray[np.intp]) -> Callable[[Generator, int], NDArray]:
        """Sampler of the columns, ``(rng, n_draws) -> array``, shape (n_draws, n, n_columns)."""
        column_of, n = self.model.layout.column_of, len(self.L)
        own = np.flatnonzero(np.isin(column_of, columns))
        draw = self.conditionals.given_others(own)

        def sample(rng: Generator, n_draws: int) -> NDArray:
            L = draw(rng, n_draws)
            values = np.empty((n_draws, n, len(columns)))
            for place, j in enumerate(columns):
                of_column = L[..., column_of[own] == j]
                values[..., place] = self.model.margins[j].write(of_column.reshape(n_draws * n, -1)).reshape(n_draws, n)
            return values

        return sample
