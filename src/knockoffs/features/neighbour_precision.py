"""Correlations of few rows through the few columns that are nearest to each: chains, trees, neighbours on a map.

Each column is regressed on the columns that it is most correlated with, and what it has to do with all others goes
through these. The regressions together are a precision matrix of few entries, which few rows can tell, where each
correlation of its own would have to be shrunk.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knockoffs.features.thresholding import definite


def linked_precision(
    R: NDArray, n: int, *, n_nearest: int = 8, stands_out: float = 2.0, least_own: float = 0.05, ridge: float = 1e-6
) -> NDArray:
    """Precision matrix of d columns, each linked to those nearest to it, shape (d, d).

    Parameters
    ----------
    R : array, shape (d, d)
        Their correlations.
    n : int
        Rows that these were estimated from.
    n_nearest : int
        Most columns that a column is regressed on.
    stands_out : float
        Correlations of at most ``stands_out * sqrt(log(d) / n)`` are no links: the largest of d that are none.
    least_own : float
        Smallest share of a column's variance that its neighbours leave it.
    ridge : float
        Added to the correlations that are inverted.
    """
    d = len(R)
    strength = np.abs(R)
    np.fill_diagonal(strength, 0.0)
    strength[strength <= stands_out * np.sqrt(np.log(d) / n)] = 0.0
    P = np.eye(d)
    for j in range(d):
        near = np.argsort(-strength[j])[:n_nearest]
        near = near[strength[j, near] > 0]
        if near.size:
            slope = np.linalg.solve(R[np.ix_(near, near)] + ridge * np.eye(near.size), R[near, j])
            own = max(1 - slope @ R[near, j], least_own)
            P[j, j], P[j, near] = 1 / own, -slope / own
    scale = np.sqrt(np.diagonal(P))
    partial = P / np.outer(scale, scale)
    partial = np.where(np.abs(partial) < np.abs(partial.T), partial, partial.T)  # the weaker of two opinions of a link
    return definite(partial) * np.outer(scale, scale)


def linked_correlations(R: NDArray, n: int) -> NDArray:
    """Correlations that follow from the links, shape (d, d)."""
    C = np.linalg.inv(linked_precision(R, n))
    sd = np.sqrt(np.diagonal(C))
    return (C + C.T) / 2 / np.outer(sd, sd)
