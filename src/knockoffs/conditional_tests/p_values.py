"""p-values of several hypotheses adjusted, and those of one hypothesis from several sets of rows merged."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, unknown_option

ADJUSTMENTS = ("bh", "by")


def adjust_p_values(p_values: ArrayLike, how: str = "bh") -> NDArray:
    """Smallest FDR at which each hypothesis is rejected.

    Benjamini and Hochberg's adjusted p-values, min over k >= rank of d p_(k) / k; or Benjamini and Yekutieli's.

    BH holds the FDR for independent p-values and for positively dependent ones (Benjamini and Yekutieli, 2001), and
    nothing else is known for certain; BY multiplies by 1 + 1/2 + ... + 1/d and holds it under every dependence.

    >>> adjust_p_values([0.01, 0.04, 0.03, 0.5])
    array([0.04      , 0.05333333, 0.05333333, 0.5       ])
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p_values must be a vector of numbers between 0 and 1, got shape {p.shape}.")
    if how not in ADJUSTMENTS:
        raise unknown_option("adjustment", how, ADJUSTMENTS)
    d = len(p)
    order = np.argsort(p, kind="stable")
    rank = np.arange(1, d + 1)
    factor = d if how == "bh" else d * (1 / rank).sum()
    adjusted = np.empty(d)
    adjusted[order] = np.minimum.accumulate((factor * p[order] / rank)[::-1])[::-1]
    return np.minimum(adjusted, 1.0)


def merge_p_values(p_values: NDArray) -> NDArray:
    """Twice the mean over the first axis, at most 1: valid for any dependence (Rueschendorf, 1982).

    >>> merge_p_values(np.array([[0.01, 0.5], [0.03, 0.9]]))
    array([0.04, 1.  ])
    """
    return p_values[0] if len(p_values) == 1 else np.minimum(2 * p_values.mean(axis=0), 1.0)
