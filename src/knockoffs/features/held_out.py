"""Held-out log density: the one criterion by which the default P^X is chosen.

Row i is in fold i mod 4, in every choice. A candidate is fitted to three folds and judged by the log density of the
rows of the fourth, for each fold in turn. Candidates are ordered from simple to complex, and the simplest one within
one standard error of the best is chosen. A needless class or correlation costs power, for it explains a column by
others that it has nothing to do with. What held-out rows cannot tell from the best costs the level next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

N_FOLDS = 4  # three quarters of the rows fit, and every row is held out once


def fold_of(n: int) -> NDArray[np.intp]:
    """Fold of each of n rows: 0, 1, 2, 3, 0, 1, ... so that a sorted table does no harm.

    >>> fold_of(6)
    array([0, 1, 2, 3, 0, 1])
    """
    return np.arange(n) % N_FOLDS


def is_behind(log_density: NDArray, best: NDArray) -> bool:
    """Whether rows are less likely than by another candidate, by more than one standard error of the differences."""
    gains = best - log_density
    return bool(gains.mean() > gains.std() / np.sqrt(len(gains)))


def simplest(log_densities: Sequence[NDArray]) -> int:
    """Place of the first candidate that is not behind the best one.

    Parameters
    ----------
    log_densities : sequence of arrays, shape (n,)
        Of the same held-out rows under each candidate, in order from simple to complex.

    >>> noise = np.array([0.5, -0.5, 0.4, -0.4])
    >>> simplest([np.full(4, -9.0), np.zeros(4), 0.01 + noise])
    1
    """
    best = max(log_densities, key=np.mean)
    return next(i for i, values in enumerate(log_densities) if values is best or not is_behind(values, best))


def bounded(log_density: NDArray, Z: NDArray, *, elsewhere: float = 0.01) -> NDArray:
    """Log densities of rows, a share of which come from independent Cauchy variables, whatever the law says.

    Where columns nearly determine one another, a single row off their relation has a density of exp(-1e6) or less. It
    would outweigh all others, and as the standard error of a mean is then as large as the mean, hide what they say.

    Parameters
    ----------
    log_density : array, shape (n,)
    Z : array, shape (n, d)
        The rows, standardised.
    elsewhere : float
        Share of the Cauchy rows.

    >>> bounded(np.array([-2.0, -1e6]), np.zeros((2, 1))).round(2)
    array([-1.99, -5.75])
    """
    anywhere = -np.log(np.pi * (1 + Z**2)).sum(axis=1)
    return np.logaddexp(np.log(1 - elsewhere) + log_density, np.log(elsewhere) + anywhere)
