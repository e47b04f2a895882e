"""Covariances, shrunk towards their diagonal where rows are few (Ledoit and Wolf 2004), and only there."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning

FEW = 2  # rows a column; with more the covariance is kept as it is, for shrinkage hides near-collinear columns


def estimate_covariance(X: NDArray, weights: NDArray | None = None, *, what: str) -> tuple[NDArray, NDArray]:
    """Mean and covariance of weighted rows, shrunk with a warning where there are fewer than two rows a column.

    Parameters
    ----------
    X : array, shape (n, d)
    weights : array, shape (n,), optional
        Weight of each row in [0, 1]; all one if left out.
    what : str
        What the covariance is of, for the warning.
    """
    rows, d = len(X) if weights is None else weights.sum(), X.shape[1]
    if rows >= FEW * d:
        mean = np.average(X, axis=0, weights=weights)
        centred = X - mean
        weighted = centred if weights is None else centred * weights[:, None]
        return mean, weighted.T @ centred / rows
    mean, covariance, intensity = shrunk_covariance(X, weights)
    warnings.warn(
        f"{what} rests on {rows:.0f} rows for {d} columns: its covariance was shrunk towards the diagonal by "
        f"{intensity:.2f}. P^X, and with it the FDR, is less sure; more rows or fewer components make it surer.",
        KnockoffWarning,
        stacklevel=4,
    )
    return mean, covariance


def shrunk_covariance(X: NDArray, weights: NDArray | None = None) -> tuple[NDArray, NDArray, float]:
    """Mean and covariance of the rows of X, shrunk towards the diagonal by the Ledoit-Wolf intensity.

    On the correlation scale the target is the identity, so neither variances nor units change.

    Parameters
    ----------
    X : array, shape (n, d)
    weights : array, shape (n,), optional
        Weight of each row in [0, 1], as EM's responsibilities; all one if left out.

    Returns
    -------
    mean : array, shape (d,)
    covariance : array, shape (d, d)
    intensity : float
        0 keeps the covariance, 1 would leave its diagonal only. It vanishes as rows grow.
    """
    w = np.ones(len(X)) if weights is None else weights
    total = w.sum()
    mean = w @ X / total
    centred = X - mean
    variance = w @ centred**2 / total
    scale = np.sqrt(variance)
    Z = centred / scale
    correlation = (Z * w[:, None]).T @ Z / total
    off_diagonal = (correlation**2).sum() - len(correlation)
    # E |z_i z_j - r_ij|^2 / n summed over i, j: how much of the off-diagonal is sampling noise
    fourth = (w / total) @ ((Z**2).sum(axis=1) ** 2)
    noise = (fourth - (correlation**2).sum()) / total
    intensity = float(np.clip(noise / off_diagonal, 0.0, 1.0)) if off_diagonal > 0 else 1.0
    shrunk = (1 - intensity) * correlation
    np.fill_diagonal(shrunk, 1.0)
    return mean, shrunk * np.outer(scale, scale), intensity
