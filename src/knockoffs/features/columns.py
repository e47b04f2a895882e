"""Columns a continuous P^X cannot hold: constants, and columns that determine one another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from knockoffs.errors import ColumnsError

SAME = 1e-10  # squared residual of a column on the others, in its own variance, under which they determine it


def constant_columns(X: NDArray) -> NDArray[np.intp]:
    """Columns that take one value only: their knockoff is themselves, and they can never be selected.

    >>> constant_columns(np.array([[1.0, 5.0], [1.0, 6.0]]))
    array([0])
    """
    return np.flatnonzero((X == X[0]).all(axis=0))


def standardise(X: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """(X - mean) / sd with mean and sd, so that what follows does not know the units of X."""
    centre = X.mean(axis=0)
    centred = X - centre
    largest = np.abs(centred).max(axis=0)
    scale = largest * np.sqrt(((centred / largest) ** 2).mean(axis=0))  # no overflow of squares
    return centred / scale, centre, scale


def check_independent(standardised: NDArray) -> None:
    """Refuse columns that are linear functions of others, by name.

    Knockoffs of such columns would have to obey the same equation, which a fitted covariance hides behind rounding
    or shrinkage.
    """
    n, d = standardised.shape
    if n > d:
        dependent = _dependent_columns(standardised)
        if dependent.size:
            raise ColumnsError(
                dependent,
                "columns",
                "determine one another exactly (duplicates, sums, or a full set of indicators), so none of them can "
                "matter given the others. Drop one of them, or make them one feature.",
            )
        return
    duplicates = _duplicated_columns(standardised)
    if duplicates.size:
        raise ColumnsError(
            duplicates,
            "columns",
            "are copies of one another up to units, so none of them can matter given the others. Keep one of them.",
        )


def _dependent_columns(Z: NDArray) -> NDArray[np.intp]:
    """Columns of the first exact linear relation among the columns of Z, or none."""
    covariance = Z.T @ Z / len(Z)
    # The pivoted QR of the covariance finds which column is determined by those before it.
    R, order = qr(covariance, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(R)) > SAME * abs(R[0, 0])).sum())
    if rank == len(covariance):
        return np.empty(0, dtype=np.intp)
    kept, dropped = order[:rank], order[rank]
    weights = np.linalg.lstsq(Z[:, kept], Z[:, dropped], rcond=None)[0]
    return np.sort(np.append(kept[np.abs(weights) > 1e-6], dropped))


def _duplicated_columns(Z: NDArray) -> NDArray[np.intp]:
    """First pair of columns that are equal up to sign, where there are too few rows for more."""
    correlation = np.abs(Z.T @ Z / len(Z))
    np.fill_diagonal(correlation, 0)
    pair = np.argwhere(correlation > 1 - SAME)
    return np.sort(pair[0]) if pair.size else np.empty(0, dtype=np.intp)
