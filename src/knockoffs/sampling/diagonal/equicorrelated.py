"""Equicorrelated: the same s for every column, as large as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from knockoffs.sampling.diagonal.newton import MARGIN
from knockoffs.sampling.diagonal.shape import BlockShape


def equicorrelated(R: NDArray, shape: BlockShape) -> NDArray:
    """D = s I with the largest s: min(1, 2 lambda_min(R) (1 - MARGIN)), so that 2R - D >= 2 MARGIN R.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance in the order of ``shape``, the identity within each feature.
    shape : BlockShape

    Returns
    -------
    ndarray, shape (n_entries,)

    >>> from knockoffs.sampling.diagonal.shape import shape_of
    >>> equicorrelated(np.array([[1.0, 0.8], [0.8, 1.0]]), shape_of(np.arange(2))).round(4)
    array([0.4, 0.4])
    """
    smallest = eigvalsh(R, subset_by_index=(0, 0))[0]
    return shape.from_diagonal(np.full(len(R), min(1.0, 2.0 * (1.0 - MARGIN) * smallest)))
