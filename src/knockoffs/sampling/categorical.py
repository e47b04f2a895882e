"""Tables of probabilities, and one draw a row from weights or log weights: the posterior of a categorical node."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, name_some


def check_probabilities(name: str, table: NDArray, *, tolerance: float = 1e-8) -> None:
    """Refuse a table whose last axis holds no probabilities: they may miss one by rounding, ``tolerance``, and no more.

    >>> check_probabilities("initial", np.array([0.5, 0.4]))
    Traceback (most recent call last):
    knockoffs.errors.InputError: initial adds up to 0.9, not to 1.
    """
    sums = table.sum(axis=-1)
    bad = np.argwhere(~(np.abs(sums - 1) <= tolerance) | (table < 0).any(axis=-1))
    if len(bad):
        row = tuple(bad[0])
        where = f"{name}[{', '.join(map(str, row))}]" if row else name
        if (table[row] < 0).any():
            raise InputError(f"{where} has a negative probability, {table[row].min():g}.")
        raise InputError(f"{where} adds up to {sums[row]:.9g}, not to 1.")


def sample_weights(weights: NDArray, rng: Generator, *, first_row: int = 0) -> NDArray[np.intp]:
    """Draw one state a row, shape (n,), with probabilities proportional to non-negative weights, shape (n, K).

    ``first_row`` is the number of the first row, for the error that names the rows without a positive weight.
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


def normalise_log_weights(log_weights: NDArray) -> tuple[NDArray, NDArray]:
    """Log posterior of every class, shape (n, K), and log evidence of every row, shape (n,).

    ``log_weights`` are log P(K = k) + log P(x | K = k), -inf where impossible. Rows with NaN, or with probability zero
    in every class, are refused by name.
    """
    top = _finite_maximum(log_weights)
    shifted = log_weights - top[:, None]
    log_total = np.log(np.exp(shifted).sum(axis=1))
    return shifted - log_total[:, None], top + log_total


def sample_categorical(log_weights: NDArray, rng: Generator) -> NDArray[np.intp]:
    """Draw one class a row, shape (n,), with probabilities proportional to exp(log_weights), shape (n, K).

    A class of weight zero is never drawn, and only differences of the log weights matter.

    >>> sample_categorical(np.array([[-np.inf, -2000.0], [-1e5, -np.inf]]), np.random.default_rng(0))
    array([1, 0])
    """
    top = _finite_maximum(log_weights)
    return sample_weights(np.exp(log_weights - top[:, None]), rng)


def _finite_maximum(log_weights: NDArray) -> NDArray:
    top = log_weights.max(axis=1)
    bad = np.flatnonzero(~np.isfinite(top))
    if bad.size:
        raise InputError(
            f"rows {name_some(bad)} are impossible under the model: every class has probability zero "
            "(or the row holds a NaN)."
        )
    return top
