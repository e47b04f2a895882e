"""Correlations of few rows of which only those that stand out from chance are kept: where most are none.

Shrinking all of them alike takes as much from the few that are there as from the noise in all the others, and knockoffs
then hang together less than their columns do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def thresholded(R: NDArray, threshold: float, *, least: float = 0.1) -> NDArray:
    """Correlations beyond a threshold, shrunk as far as a positive definite matrix needs; the others are zero.

    Parameters
    ----------
    R : array, shape (d, d)
    threshold : float
    least : float
        Smallest eigenvalue: half of it, or twice it, makes held-out rows of chains and blocks less likely.

    >>> thresholded(np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.0]]), 0.2)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    eye = np.eye(len(R))
    return definite(np.where(np.abs(R) > threshold, R, 0.0) * (1 - eye) + eye, least=least)


def definite(R: NDArray, *, least: float = 0.02) -> NDArray:
    """Correlations shrunk until their smallest eigenvalue is at least ``least``: (1 - a) R + a I, a as small as can be.

    Parameters
    ----------
    R : array, shape (d, d)
        Symmetric, with a diagonal of ones.
    least : float
        Room for the rounding of what is solved with the matrix, and for a knockoff that differs from its column.

    >>> definite(np.array([[1.0, 2.0], [2.0, 1.0]]), least=0.1)
    array([[1. , 0.9],
           [0.9, 1. ]])
    """
    smallest = np.linalg.eigvalsh(R)[0]
    if smallest >= least:
        return R
    left = (1 - least) / (1 - smallest)  # the smallest eigenvalue of left R + (1 - left) I is then ``least``
    return np.where(np.eye(len(R), dtype=bool), 1.0, left * R)
