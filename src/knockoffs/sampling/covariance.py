"""What a covariance must be before anything is computed from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import InputError

ASYMMETRY = 1e-8  # of an entry, relative to its two standard deviations: more than rounding


def check_covariance(Sigma: ArrayLike, name: str = "covariance") -> NDArray[np.float64]:
    """Sigma as a symmetric positive definite float array; rounding in its symmetry is averaged out.

    Whether it is positive definite is decided for the correlation matrix, so the answer does not depend on units:
    its smallest eigenvalue must exceed d times the rounding of its largest row sum.

    Parameters
    ----------
    Sigma : array-like, shape (d, d)
    name : str
        How the message calls it, for instance "covariance of component 3".

    >>> check_covariance([[4.0, 1.0], [1.0, 1.0]])
    array([[4., 1.], [1., 1.]])
    >>> check_covariance([[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: covariance is not positive definite (smallest eigenvalue -1 as a correlation matrix).
    Drop duplicated or dependent columns, or shrink it.
    """
    try:
        Sigma = np.array(Sigma, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a matrix of numbers: {error}.") from None
    if Sigma.ndim != 2 or Sigma.shape[0] != Sigma.shape[1] or Sigma.shape[0] == 0:
        raise InputError(
            f"{name} has shape {Sigma.shape}: expected (d, d), one row and one column for each column of X."
        )
    if not np.isfinite(Sigma).all():
        i, j = np.argwhere(~np.isfinite(Sigma))[0]
        raise InputError(f"{name} is {Sigma[i, j]} at row {i}, column {j}: every entry must be finite.")
    variances = np.diagonal(Sigma)
    if (variances <= 0).any():
        j = int(np.argmin(variances > 0))
        raise InputError(
            f"{name} has variance {variances[j]:g} in column {j}: drop constant columns; variances are > 0."
        )
    sd = np.sqrt(variances)
    R = Sigma / sd / sd[:, None]
    asymmetry = np.abs(R - R.T)
    if asymmetry.max() > ASYMMETRY:
        i, j = np.unravel_index(int(asymmetry.argmax()), R.shape)
        raise InputError(
            f"{name} is not symmetric: {Sigma[i, j]:g} at row {i}, column {j}, "
            f"but {Sigma[j, i]:g} at row {j}, column {i}."
        )
    R = (R + R.T) / 2
    rounding = len(R) * np.finfo(float).eps * np.abs(R).sum(axis=1).max()
    if dpotrf(R - rounding * np.eye(len(R)), lower=1)[1] != 0:
        smallest = float(np.linalg.eigvalsh(R)[0])
        raise InputError(
            f"{name} is not positive definite (smallest eigenvalue {smallest:.3g} as a correlation matrix). "
            "Drop duplicated or dependent columns, or shrink it."
        )
    return (Sigma + Sigma.T) / 2
