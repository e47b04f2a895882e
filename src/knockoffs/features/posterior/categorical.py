"""Exact posterior of a categorical hidden node, in log space."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


def normalise_log_weights(log_weights: NDArray) -> NDArray:
    """Probabilities proportional to exp(log_weights), each row by itself.

    >>> normalise_log_weights(np.array([[-1000.0, -1000.0]]))
    array([[0.5, 0.5]])
    """
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def sample_categorical(log_weights: NDArray, rng: Generator) -> NDArray[np.intp]:
    """Draw k with probability proportional to exp(log_weights[i, k]) for each row i.

    Parameters
    ----------
    log_weights : array, shape (n, K)
        Up to a constant in each row.

    Returns
    -------
    array of int, shape (n,)
    """
    cumulative = np.cumsum(normalise_log_weights(log_weights), axis=1)
    uniform = rng.random(len(log_weights)) * cumulative[:, -1]  # the last sum may be 1 - 1e-16
    return (cumulative <= uniform[:, None]).sum(axis=1)
