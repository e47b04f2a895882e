"""Correlations of few rows through the few columns that are nearest to each: chains, trees, neighbours on a map.

Each column is regressed on the columns that it is most correlated with, and what it has to do with all others goes
through these. The regressions together are a precision matrix of few entries, which few rows can tell, where each
correlation of its own would have to be shrunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.features.thresholding import CLEARLY, MOST_COLUMNS, N_FOLDS, correlations, log_likelihoods

N_NEAREST = 8  # columns that a column is regressed on, at most
STANDS_OUT = 2.0  # times sqrt(log(d) / n): correlations below that are none among d columns
RIDGE = 1e-6  # of the correlations that are inverted
LEAST_OWN = 0.05  # share of a column's variance that is its own, at least
LEAST = 0.02  # smallest eigenvalue of the partial correlations
LEFT = np.linspace(1.0, 0.0, 11)  # what is left of them, the most that is positive definite


class Links(NamedTuple):
    """How many links were found between how many columns."""

    n_links: int
    d: int

    def __str__(self) -> str:
        return (
            f"correlations through {self.n_links} links between {self.d} columns, by which held-out rows are likelier"
        )


def linked_precision(R: NDArray, n: int) -> NDArray:
    """Precision matrix of d columns, each linked to those nearest to it, shape (d, d).

    Parameters
    ----------
    R : array, shape (d, d)
        Their correlations.
    n : int
        Rows that these are of.
    """
    d = len(R)
    strength = np.abs(R)
    np.fill_diagonal(strength, 0.0)
    strength[strength <= STANDS_OUT * np.sqrt(np.log(d) / n)] = 0.0
    P = np.eye(d)
    for j in range(d):
        near = np.argsort(-strength[j])[:N_NEAREST]
        near = near[strength[j, near] > 0]
        if near.size:
            slope = np.linalg.solve(R[np.ix_(near, near)] + RIDGE * np.eye(near.size), R[near, j])
            own = max(1 - slope @ R[near, j], LEAST_OWN)
            P[j, j], P[j, near] = 1 / own, -slope / own
    scale = np.sqrt(np.diagonal(P))
    partial = P / np.outer(scale, scale)
    partial = np.where(np.abs(partial) < np.abs(partial.T), partial, partial.T)  # the weaker of two opinions of a link
    eye = np.eye(d)
    for left in LEFT:
        weaker = left * (partial - eye) + eye
        if dpotrf(weaker - LEAST * eye, lower=1)[1] == 0:
            break
    return weaker * np.outer(scale, scale)


def linked_correlations(R: NDArray, n: int) -> NDArray:
    """Correlations that follow from the links, shape (d, d)."""
    C = np.linalg.inv(linked_precision(R, n))
    sd = np.sqrt(np.diagonal(C))
    return (C + C.T) / 2 / np.outer(sd, sd)


def choose_links(Z: NDArray, others: list[NDArray], *, rng: Generator) -> tuple[Links, NDArray] | None:
    """Links and factors of the correlations, where held-out rows are clearly likelier by them; None elsewhere.

    Parameters
    ----------
    Z : array, shape (n, d)
        Rows in units of their standard deviations, with means zero.
    others : list of arrays, shape (d, d)
        What else may become of the correlations: factors of them.
    rng : numpy.random.Generator
        Deals the rows out to folds.
    """
    n, d = Z.shape
    if d > MOST_COLUMNS or d < 2 or n < 2 * N_FOLDS:
        return None
    fold_of = rng.permutation(n) % N_FOLDS
    linked, rest = np.empty(n), np.full((len(others), n), -np.inf)
    for fold in range(N_FOLDS):
        held = fold_of == fold
        R, rows = correlations(Z[~held]), Z[held]
        found = log_likelihoods(linked_correlations(R, n - int(held.sum())), rows)
        if found is None:
            return None
        linked[held] = found
        for k, factors in enumerate(others):
            other = log_likelihoods(R * factors, rows)
            rest[k, held] = -np.inf if other is None else other
    gain = linked - rest[np.argmax(rest.mean(axis=1))]
    if not gain.mean() > CLEARLY * gain.std() / np.sqrt(n):
        return None
    R = correlations(Z)
    C = linked_correlations(R, n)
    factors = np.divide(C, R, out=np.zeros_like(C), where=np.abs(R) > 1e-12)
    n_links = np.count_nonzero(np.triu(linked_precision(R, n), 1))
    return Links(int(n_links), d), factors
