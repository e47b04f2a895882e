"""Functions of the columns of a group, and their sums over the rows: the compiled part of the statistic.

A column of numbers has three functions: itself within fences, its rank and the distance of its rank from the middle;
with few distinct values, an indicator for each as well. A column of labels has its indicators alone. Fences, quantiles
and levels come from pilot draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knockoffs.machine.compiled import njit

N_RANKED = 3  # functions of a number: itself, rank, distance of the rank from the middle


class ColumnFunctions(NamedTuple):
    """Constants of the functions of c columns.

    Attributes
    ----------
    middle : array, shape (c,)
        Median of each column.
    fences : array, shape (c, 2)
        Smallest and largest value of each column; values beyond count as these.
    quantiles, n_quantiles : array, shape (c, q) and (c,)
        Distinct quantiles in increasing order, and how many there are; ranks are linear between them.
    guide : array of int, shape (c, g)
        In each of g equal parts of the range of a column, the last quantile below it: where a search starts.
    levels, n_levels : array, shape (c, most_levels) and (c,)
        Values with an indicator, in increasing order, and how many there are.
    first : array of int, shape (c + 1,)
        Place of the first function of each column, and the number of all functions.
    plain : array of bool, shape (n_functions,)
        Functions that a linear model would use: a number itself, the indicators of a label.
    """

    middle: NDArray
    fences: NDArray
    quantiles: NDArray
    n_quantiles: NDArray[np.intp]
    guide: NDArray[np.intp]
    levels: NDArray
    n_levels: NDArray[np.intp]
    first: NDArray[np.intp]
    plain: NDArray[np.bool_]


def column_functions(
    pilot: NDArray,
    nominal: Sequence[bool] = (),
    *,
    n_quantiles: int = 65,
    most_levels: int = 12,
    n_parts: int = 256,
    most_values: int = 100_000,
) -> ColumnFunctions:
    """Functions of the columns of pilot draws, shape (m, n, c).

    Parameters
    ----------
    pilot : array, shape (m, n, c)
    nominal : sequence of bool
        Whether the values of each column are labels without an order; none are by default.
    n_quantiles : int
        Of which ranks are read off.
    most_levels : int
        Numbers with more distinct values get no indicators; of more labels the most frequent ones get one.
    n_parts : int
        Parts of the range of a column in its guide.
    most_values : int
        Drawn values, evenly spaced among all of them, that quantiles and levels are taken from.

    >>> column_functions(np.array([[[0.0], [1.0]], [[1.0], [1.0]]])).n_levels  # two values: one number says it all
    array([0])
    >>> column_functions(np.array([[[0.0], [1.0]], [[2.0], [1.0]]]), [True]).levels[0, :3]
    array([0., 1., 2.])
    """
    c = pilot.shape[2]
    middle, fences, first, plain = np.zeros(c), np.zeros((c, 2)), np.zeros(c + 1, np.intp), []
    quantiles, n_found = np.zeros((c, n_quantiles)), np.zeros(c, np.intp)
    levels, n_levels = np.zeros((c, most_levels)), np.zeros(c, np.intp)
    guide = np.zeros((c, n_parts), np.intp)
    labels = nominal or [False] * c
    for j in range(c):
        sample = np.sort(pilot[..., j], axis=None)[:: -(-pilot[..., j].size // most_values)]
        values, counts = _distinct(sample)
        if labels[j] or 2 < len(values) <= most_levels:
            kept = np.sort(values[np.argsort(-counts, kind="stable")[:most_levels]])  # the most frequent ones
            levels[j, : len(kept)], n_levels[j] = kept, len(kept)
        if not labels[j]:
            places = np.linspace(0, len(sample) - 1, n_quantiles).round().astype(np.intp)
            found = np.unique(sample[places])
            quantiles[j, : len(found)], n_found[j] = found, len(found)
            middle[j] = found[len(found) // 2]
            fences[j] = outer_fences(sample)
            edges = np.linspace(found[0], found[-1], n_parts, endpoint=False)
            guide[j] = np.searchsorted(found, edges, side="right") - 1
        n_numbers = 0 if labels[j] else N_RANKED if n_found[j] > 2 else 1
        first[j + 1] = first[j] + n_numbers + n_levels[j]
        plain += [True] * (n_levels[j] if labels[j] else 1) + [False] * (n_numbers - 1)
        plain += [False] * (0 if labels[j] else n_levels[j])
    ranked = (quantiles, n_found, guide.clip(0))
    return ColumnFunctions(middle, fences, *ranked, levels, n_levels, first, np.array(plain, bool))


def outer_fences(values: NDArray, *, reach: float = 3.0) -> tuple[float, float]:
    """Tukey's outer fences, ``reach`` interquartile ranges beyond the quartiles; infinite where that range is 0.

    Beyond them a value would be most of every sum that it is in: 4.7 standard deviations from the mean of a normal
    column, where one value in 400,000 lies, and much of what ratios have.

    >>> outer_fences(np.array([0.0, 1.0, 2.0, 3.0, 1000.0]))
    (-5.0, 9.0)
    """
    low, high = np.quantile(values, [0.25, 0.75])
    if high <= low:
        return -np.inf, np.inf
    return float(low - reach * (high - low)), float(high + reach * (high - low))


def _distinct(ordered: NDArray) -> tuple[NDArray, NDArray]:
    """Distinct values of a sorted array, and how often each is there."""
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


@njit(cache=True, nogil=True)
def function_values(f: ColumnFunctions, x: NDArray, mean: NDArray) -> NDArray:
    """Values of all functions less their means, (m, n, c) and (n_functions, n) to (n_functions, m, n)."""
    m, n, c = x.shape
    found = np.empty((f.first[c], m, n))
    n_parts = f.guide.shape[1]
    for j in range(c):
        first, size, middle = f.first[j], f.n_quantiles[j], f.middle[j]
        indicators = f.first[j + 1] - f.n_levels[j]
        low, top = f.quantiles[j, 0], f.quantiles[j, max(size - 1, 0)]
        per_unit = n_parts / (top - low) if top > low else 0.0
        for draw in range(m):
            for i in range(n):
                v = x[draw, i, j]
                if size > 0:
                    found[first, draw, i] = min(max(v, f.fences[j, 0]), f.fences[j, 1]) - middle - mean[first, i]
                if size > 2:
                    rank = 1.0
                    if v <= low:
                        rank = -1.0
                    elif v < top:
                        part = min(int((v - low) * per_unit), n_parts - 1)
                        a = f.guide[j, part]
                        while a < size - 2 and f.quantiles[j, a + 1] <= v:
                            a += 1
                        below, above = f.quantiles[j, a], f.quantiles[j, a + 1]
                        rank = 2.0 * (a + (v - below) / (above - below)) / (size - 1) - 1.0
                    found[first + 1, draw, i] = rank - mean[first + 1, i]
                    found[first + 2, draw, i] = abs(rank) - mean[first + 2, i]
                for k in range(f.n_levels[j]):
                    found[indicators + k, draw, i] = (f.levels[j, k] == v) - mean[indicators + k, i]
    return found
