"""Boosted trees of depth three for the verdict, compiled: scikit-learn's take ten times as long where rows are few.

Logistic loss, values in bins, a random part of the columns for each tree. A tree is seven cuts and eight leaves: node
k has the children 2 k + 1 and 2 k + 2. Nothing here knows about knockoffs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit

SUM_OF_RATES = 9.0  # what all trees count for: fewer trees take larger steps
N_VERDICT_BINS = 16
BIN_ROWS = 160  # from which the edges of the bins are taken
LEAST_CURVATURE = 2.0  # sum of p (1 - p) in a leaf: eight rows that could be either


@dataclass(frozen=True)
class Trees:
    """Boosted trees.

    Parameters
    ----------
    column : array of int, shape (n_trees, 7)
        That a node cuts.
    cut : array, shape (n_trees, 7)
        Values up to it go left; larger ones, and missing ones, right.
    leaf : array, shape (n_trees, 8)
    """

    column: NDArray[np.int64]
    cut: NDArray
    leaf: NDArray

    def decide(self, V: NDArray) -> NDArray:
        """Log-odds of class 1, shape (n,), of values (n, n_columns)."""
        return _decide(np.ascontiguousarray(V, dtype=float), self.column, self.cut, self.leaf)


def fit_trees(V: NDArray, y: NDArray[np.bool_], rng: Generator, n_trees: int = 60, n_tried: int = 100) -> Trees:
    """Boosted trees that predict the classes y, shape (n,), from the values V, shape (n, n_columns).

    Parameters
    ----------
    V, y
    rng : numpy.random.Generator
    n_trees : int
    n_tried : int
        Columns that a tree may cut, drawn for each tree.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V = rng.standard_normal((400, 3))
    >>> y = (V[:, 0] > 0) != (V[:, 1] > 0)
    >>> trees = fit_trees(V, y, rng)
    >>> bool(((trees.decide(V) > 0) == y).mean() > 0.95)
    True
    """
    n_columns = V.shape[1]
    edges = bin_edges(V[rng.permutation(len(V))[:BIN_ROWS]])
    n_tried, rate = min(n_columns, n_tried), SUM_OF_RATES / n_trees
    tried = rng.random((n_trees, n_columns)).argpartition(n_tried - 1, axis=1)[:, :n_tried]
    tried = np.ascontiguousarray(tried)
    codes = _bin(np.ascontiguousarray(V.T, dtype=float), edges)
    return Trees(*_boost(codes, edges, np.asarray(y, dtype=float), tried, rate, LEAST_CURVATURE))


def bin_edges(V: NDArray) -> NDArray:
    """Edges of the bins of each column, shape (n_columns, N_VERDICT_BINS - 1), ascending, without missing cells."""
    with np.errstate(invalid="ignore"):
        ordered = np.sort(V, axis=0)  # missing cells come last
    seen = np.maximum((~np.isnan(V)).sum(axis=0), 1)
    place = (np.arange(1, N_VERDICT_BINS)[:, None] * seen // N_VERDICT_BINS).clip(max=seen - 1)
    return np.ascontiguousarray(np.take_along_axis(ordered, place, axis=0).T)


@njit(cache=True)
def _bin(V: NDArray, edges: NDArray) -> NDArray[np.uint8]:
    """Bin of every value, shape (n_columns, n): v <= edges[b] if and only if its bin is b or lower."""
    n_columns, n = V.shape
    codes = np.zeros((n_columns, n), dtype=np.uint8)
    for j in range(n_columns):
        for b in range(edges.shape[1]):  # edge by edge, without a branch: some numbers at a time
            edge = edges[j, b]
            for i in range(n):
                codes[j, i] += 1 - (V[j, i] <= edge)
    return codes


@njit(cache=True)
def _boost(
    codes: NDArray[np.uint8], edges: NDArray, y: NDArray, tried: NDArray[np.int64], rate: float, least: float
) -> tuple[NDArray[np.int64], NDArray, NDArray]:
    """Newton steps by trees: columns, cuts and leaves."""
    n, n_trees, n_bins = codes.shape[1], tried.shape[0], edges.shape[1] + 1
    column = np.zeros((n_trees, 7), dtype=np.int64)
    cut = np.full((n_trees, 7), np.inf)  # a node that is not cut sends all to the left
    leaf = np.zeros((n_trees, 8))
    score = np.zeros(n)
    gh, at = np.empty(n, dtype=np.complex128), np.zeros(n, dtype=np.uint8)  # g + i h: both are added at once
    GH = np.empty(4 * n_bins, dtype=np.complex128)
    gain, bin_of = np.empty(7), np.empty(7, dtype=np.int64)
    for t in range(n_trees):
        for i in range(n):
            p = 1 / (1 + np.exp(-score[i]))
            gh[i], at[i] = complex(y[i] - p, p * (1 - p)), 0
        gain[:] = 0.0
        for level in range(3):
            first, width = 2**level - 1, 2**level
            bin_of[first : first + width] = n_bins
            for j in tried[t]:
                GH[: width * n_bins] = 0.0
                code = codes[j]
                for i in range(n):
                    GH[np.uint8(at[i] * n_bins + code[i])] += gh[i]
                for k in range(width):
                    of_node = GH[k * n_bins : (k + 1) * n_bins]
                    total = of_node.sum()
                    all_g, all_h = total.real, total.imag
                    left_g = left_h = 0.0
                    for b in range(n_bins - 1):
                        left_g += of_node[b].real
                        left_h += of_node[b].imag
                        right_h = all_h - left_h
                        if left_h < least:
                            continue
                        if right_h < least:
                            break
                        right_g = all_g - left_g
                        found = left_g**2 / left_h + right_g**2 / right_h - all_g**2 / all_h
                        if found > gain[first + k]:
                            gain[first + k], bin_of[first + k] = found, b
                            column[t, first + k], cut[t, first + k] = j, edges[j, b]
            for i in range(n):
                node = first + at[i]
                goes_right = bin_of[node] < n_bins and codes[column[t, node], i] > bin_of[node]
                at[i] = 2 * at[i] + (1 if goes_right else 0)
        sum_g, sum_h = np.zeros(8), np.zeros(8)
        for i in range(n):
            sum_g[at[i]] += gh[i].real
            sum_h[at[i]] += gh[i].imag
        for k in range(8):
            leaf[t, k] = rate * sum_g[k] / (sum_h[k] + 1e-3)
        for i in range(n):
            score[i] += leaf[t, at[i]]
    return column, cut, leaf


@njit(cache=True)
def _decide(V: NDArray, column: NDArray[np.int64], cut: NDArray, leaf: NDArray) -> NDArray:
    """Sum of the leaves."""
    total = np.zeros(len(V))
    for i in range(len(V)):
        for t in range(len(column)):
            at = 0
            for level in range(3):
                node = 2**level - 1 + at
                edge = cut[t, node]
                at = 2 * at + (0 if V[i, column[t, node]] <= edge or edge == np.inf else 1)
            total[i] += leaf[t, at]
    return total
