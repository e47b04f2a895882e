"""The filter for several knockoffs of every feature at once (Gimenez and Zou 2019): fewer discoveries are needed.

A null feature is the first among its m knockoffs once in m + 1 times, so m that are not first count for one that is:
1 / (m q) discoveries will do at level q, where one knockoff asks for 1 / q.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.filter import Filtered, check_fdr, check_offset, path_counts


def several_statistics(Z: ArrayLike) -> NDArray:
    """W, shape (d,), from the scores of a feature and of its m knockoffs, shape (m + 1, d).

    |W| is the largest score less the median of the others (He et al. 2021), positive where the feature has the largest.
    Under the null the m + 1 scores can change places, which leaves |W| as it is: its sign is positive once in m + 1.

    >>> several_statistics([[5.0, 1.0], [1.0, 4.0], [2.0, 3.0], [0.0, 2.0]])
    array([ 4., -2.])
    """
    Z = np.asarray(Z, dtype=float)
    if Z.ndim != 2 or len(Z) < 2:
        raise InputError(f"Z has shape {Z.shape}: expected (m + 1, d), a feature and its knockoffs.")
    if np.isnan(Z).any():
        raise InputError("Z holds NaN: the score failed there.")
    ordered = np.sort(Z, axis=0)[::-1]
    size = ordered[0] - np.median(ordered[1:], axis=0)
    first = Z[0] > Z[1:].max(axis=0)
    return np.where(first, size, -size)


def several_filter(Z: ArrayLike, fdr: float, *, offset: int = 1) -> Filtered:
    """Threshold, q-values and selection from scores of shape (m + 1, d).

    The threshold is the smallest t with (offset + #{W <= -t}) / m / #{W >= t} <= fdr.

    Parameters
    ----------
    Z : array-like, shape (m + 1, d)
        Of the features, and of each of their m knockoffs, which can be exchanged with them feature by feature.
    fdr : float
    offset : {1, 0}
        1 controls the false discovery rate.

    >>> several_filter([[5.0, 4.0, 3.0], [1.0, 0.0, 2.0], [2.0, 1.0, 1.0], [0.0, 2.0, 0.0]], 0.2).selected
    array([ True,  True,  True])
    """
    W, m = several_statistics(Z), len(np.asarray(Z)) - 1
    return filter_several(W, m, check_fdr(fdr), check_offset(offset))


def filter_several(W: NDArray, m: int, fdr: float, offset: int) -> Filtered:
    """Threshold, q-values and selection from W of m knockoffs; level and offset have been checked."""
    t, n_above, n_below = path_counts(W)
    fdp = np.where(n_above > 0, (offset + n_below) / m / np.maximum(n_above, 1), np.inf)
    q = np.full(W.shape, np.inf)
    best = np.minimum.accumulate(fdp)
    q[W > 0] = best[np.searchsorted(t, W[W > 0])]
    passing = t[fdp <= fdr]
    return Filtered(float(passing[0]) if passing.size else float("inf"), q, q <= fdr)
