"""Exact p-values from one symmetry: under exchangeability a swap in a row is the toss of a fair coin.

Every check adds up, over the rows, a number that changes its sign when features of that row are swapped. Under
exchangeability, and with independent rows, the absolute values say nothing about the signs, which are independent fair
coins. So t = sum_i a_i / sqrt(sum_i a_i^2) is a Rademacher sum of unit length given the |a_i|, and

    P(t >= x) <= c P(Z >= x),    Z ~ N(0, 1),    c = 1 / (4 P(Z >= sqrt(2))) = 3.178

for every x, every n and all weights (Bentkus and Dzindzalieta, Bernoulli 21, 2015; c is the best constant). No limit
theorem, no moments, no permutations: heavy tails cost power and never validity. Of many sums, the largest is corrected
by their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

C = 1 / (4 * ndtr(-np.sqrt(2.0)))  # 3.178


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    p_value: float  # valid for any number of rows, corrected for the number of comparisons within the check
    statistic: float  # the largest t, the sum of the signed numbers in units of their Euclidean length
    effect: float  # |t| / sqrt(rows), from 0 to 1: how lopsided the signs are, whatever the number of rows
    columns: tuple[str, ...]  # those that are beyond chance by themselves, worst first
    sentence: str


def studentise(total: NDArray, squares: NDArray) -> NDArray:
    """Sum over rows divided by the root of the sum of squares; 0 where every row is 0.

    >>> studentise(np.array([3.0, 0.0]), np.array([9.0, 0.0]))
    array([1., 0.])
    """
    return np.divide(total, np.sqrt(squares), out=np.zeros_like(total, dtype=float), where=squares > 0)


def sign_sums(A: NDArray) -> NDArray:
    """T of each column of A, shape (n, k): sum over rows in units of their Euclidean length, shape (k,)."""
    return studentise(A.sum(axis=0), np.square(A).sum(axis=0))


def sign_p_value(t: ArrayLike, n_sums: int = 1, *, one_sided: bool = False) -> NDArray:
    """Bound of P(some |t| of ``n_sums`` is as large as this), for Rademacher sums; see the head of this file.

    >>> float(np.round(sign_p_value(4.0), 6))
    0.000201
    """
    t = np.asarray(t, dtype=float)
    tail = C * ndtr(-t) if one_sided else 2 * C * ndtr(-np.abs(t))
    return np.minimum(n_sums * tail, 1.0)


def either(first: tuple[float, int], second: tuple[float, int]) -> tuple[float, float]:
    """P-value and t of the surer of two families of sums, each given by its largest |t| and its size.

    >>> [round(value, 4) for value in either((2.0, 1000), (4.0, 4))]
    [0.0016, 4.0]
    """
    p, t = min((float(sign_p_value(t, n_sums)), float(t)) for t, n_sums in (first, second))
    return min(2 * p, 1.0), t


def worst_columns(strength: NDArray, names: Sequence[str], least: float) -> tuple[str, ...]:
    """Names of the columns whose strength reaches ``least``, strongest first."""
    order = np.argsort(-strength, kind="stable")
    return tuple(dict.fromkeys(names[j] for j in order if strength[j] >= least))


def critical_value(n_sums: int, level: float = 0.05) -> float:
    """Smallest t that is beyond chance among ``n_sums`` sums.

    >>> round(critical_value(100), 1)
    3.8
    """
    return float(-ndtri(min(level / (2 * C * max(n_sums, 1)), 0.5)))
