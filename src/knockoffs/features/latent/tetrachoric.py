"""Tetrachoric correlations: of two normals, of which only signs about a cut are seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

N_NODES = 24  # of the integral over the correlation, right to 1e-6 up to 0.99
N_HALVINGS = 24


def tetrachoric(both: NDArray, first: NDArray, second: NDArray, *, most: float) -> NDArray:
    """Correlation r for which P(A > h, B > k) = both, with P(A > h) = first and P(B > k) = second.

    P(A > h, B > k; r) = P(A > h) P(B > k) + integral from 0 to asin r of
    exp(-(h^2 + k^2 - 2 h k sin t) / (2 cos^2 t)) / (2 pi) dt, which grows in r: solved by bisection.

    Parameters
    ----------
    both, first, second : array, any one shape
        Probabilities strictly between 0 and 1.
    most : float
        Largest absolute correlation returned.

    >>> tetrachoric(np.array([1 / 3]), np.array([0.5]), np.array([0.5]), most=0.999).round(4)
    array([0.5])
    """
    h, k = -ndtri(first), -ndtri(second)
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    low, high = np.full(h.shape, -np.arcsin(most)), np.full(h.shape, np.arcsin(most))
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        total = np.zeros(h.shape)
        for node, weight in zip(nodes, weights, strict=True):
            t = middle * (node + 1) / 2
            total += weight * np.exp(-(h**2 + k**2 - 2 * h * k * np.sin(t)) / (2 * np.cos(t) ** 2))
        below = first * second + total * middle / (4 * np.pi) < both
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.sin((low + high) / 2)
