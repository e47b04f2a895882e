"""Equicorrelated: the same s for every feature, as large as it can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from knockoffs.sampling.diagonal.newton import MARGIN


def equicorrelated(R: NDArray, feature_of: NDArray) -> NDArray:
    """Largest common s: min(1, 2 lambda_min(R) (1 - MARGIN)) for every feature, so that 2R - D >= 2 MARGIN R.

    Parameters
    ----------
    R : ndarray, shape (d, d)
        Covariance, the identity within each feature.
    feature_of : ndarray, shape (d,)

    Returns
    -------
    ndarray, shape (m,)

    >>> equicorrelated(np.array([[1.0, 0.8], [0.8, 1.0]]), np.arange(2)).round(4)
    array([0.4, 0.4])
    """
    smallest = eigvalsh(R, subset_by_index=(0, 0))[0]
    return np.full(int(feature_of.max()) + 1, min(1.0, 2.0 * (1.0 - MARGIN) * smallest))
