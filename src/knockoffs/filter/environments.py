"""One W from those of several environments (Li, Ren, Sabatti and Candès, 2022): what matters in at least r of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import binom


def join_environments(W: Sequence[NDArray], at_least: int, rng: Generator) -> tuple[NDArray, int]:
    """W, shape (d,), of features that matter in ``at_least`` environments, and how many - stand for one false +.

    A feature that matters in fewer than r of E environments is null in m = E - r + 1 of them or more, and its signs
    there are fair coins. So the number N of environments in which W is not positive is at least that of m coins, and
    p = P(fewer than N) + U P(exactly N), of m coins and U uniform, is a p-value. The sign is + if p <= c: c = 1/2 if
    r = E, where that means positive everywhere, and 1/4 otherwise. |W| is the r-th largest of the environments, each in
    units of its mean, and so does not depend on the signs. Among nulls at most c of the signs are +, so that
    (1 - c) / c of - stand for one +: the filter with that number (Selective SeqStep+; Barber and Candès, 2015) controls
    the false discovery rate. Rows of different environments are independent.

    >>> join_environments([np.array([4.0, 2.0, -2.0]), np.array([3.0, -3.0, -3.0])], 2, np.random.default_rng(0))
    (array([ 1.  , -0.75, -0.75]), 1)
    """
    every = np.stack([np.asarray(one, dtype=float) for one in W])
    E, d = every.shape
    odds = 1 if at_least == E else 3
    unit = np.abs(every).mean(axis=1, keepdims=True)
    size = np.sort(np.abs(every) / np.where(unit > 0, unit, 1.0), axis=0)[E - at_least]
    coins, N = binom(E - at_least + 1, 0.5), (every <= 0).sum(axis=0)
    p = coins.cdf(N - 1) + rng.random(d) * coins.pmf(N)
    return np.where(p * (odds + 1) <= 1, size, -size), odds
