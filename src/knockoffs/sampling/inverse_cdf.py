"""One draw a row from a table of weights."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some


def sample_weights(weights: NDArray, rng: Generator, *, first_row: int = 0) -> NDArray[np.intp]:
    """Draw one state a row, with probabilities proportional to non-negative weights.

    Parameters
    ----------
    weights : array, shape (n, K)
    rng : numpy.random.Generator
    first_row : int
        Number of the first row, for the error that names the rows without a positive weight.

    Returns
    -------
    array of int, shape (n,)
    """
    cdf = np.cumsum(weights, axis=1)
    total = cdf[:, -1]
    bad = np.flatnonzero(~(total > 0))
    if bad.size:
        rows = name_some(first_row + bad)
        raise InputError(f"rows {rows} are impossible under the model: every state has probability zero.")
    # u < total even after rounding, and cdf <= u skips states of weight zero on either side
    u = np.minimum(rng.random(len(weights)) * total, np.nextafter(total, 0.0))
    return (cdf <= u[:, None]).sum(axis=1)
