"""Cuts of the columns of steps and labels, where the classes together have the shares of the column's values.

With one class they are quantiles of the standard normal. A mixture of several has other quantiles, and with the cuts
left where they were, knockoffs would not have the distribution of their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from knockoffs.features.latent.margins import Margin, Steps
from knockoffs.features.latent.nominal import Nominal


def cut_again(
    margins: Sequence[Margin], column_of: NDArray[np.intp], weights: NDArray, means: NDArray, covariances: NDArray
) -> tuple[Margin, ...]:
    """Margins whose values have the same shares under a mixture as they had under the standard normal.

    Parameters
    ----------
    margins : sequence of Margin
        Cut at quantiles of the standard normal.
    column_of : array of int, shape (D,)
        Column of each coordinate.
    weights, means, covariances : array, shape (l,), (l, D), (l, D, D)
    """
    deviations = np.sqrt(np.einsum("kii->ki", covariances))
    moved = list(margins)
    for j, margin in enumerate(margins):
        own = column_of == j
        if isinstance(margin, Steps):
            inner = mixture_quantiles(ndtr(margin.cuts[1:-1]), weights, means[:, own][:, 0], deviations[:, own][:, 0])
            moved[j] = replace(margin, cuts=np.concatenate([[-np.inf], inner, [np.inf]]))
        elif isinstance(margin, Nominal):
            moved[j] = margin.under(weights, means[:, own], deviations[:, own])
    return tuple(moved)


def mixture_quantiles(
    p: NDArray, weights: NDArray, means: NDArray, deviations: NDArray, *, n_halvings: int = 60
) -> NDArray:
    """Where a mixture of normals has the cumulated probabilities p, shape (m,), by halving.

    >>> mixture_quantiles(np.array([0.5]), np.array([0.5, 0.5]), np.array([-2.0, 2.0]), np.ones(2)).round(6) + 0.0
    array([0.])
    """
    # the quantile of the mixture lies between those of its parts
    each = means[:, None] + deviations[:, None] * ndtri(p)
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(n_halvings):
        middle = (low + high) / 2
        below = weights @ ndtr((middle - means[:, None]) / deviations[:, None]) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2
