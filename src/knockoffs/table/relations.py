"""Linear relations among columns of numbers: exact combinations of others, and a smallest set to leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import ColumnsError, name_some

SAME = 1e-10  # squared residual of a column on the others, in its own variance, under which they determine it
CLEAR = 1e-6  # smallest eigenvalue of the correlations from which on no column is determined, and none is looked for

Relations = dict[int, NDArray[np.intp]]  # for each column to leave out, the columns that determine it


def standardise(X: NDArray, *, copy: bool = True) -> tuple[NDArray, NDArray, NDArray]:
    """Standardised columns, (X - mean) / sd, with mean and sd."""
    centre = X.mean(axis=0)
    Z = np.subtract(X, centre, out=None if copy else X)
    largest = np.maximum(Z.max(axis=0), -Z.min(axis=0))
    Z /= largest  # no overflow of squares
    spread = np.sqrt(np.einsum("ij,ij->j", Z, Z) / len(Z))
    Z /= spread
    return Z, centre, largest * spread


def dependent_columns(Z: NDArray, correlation: NDArray | None = None) -> Relations:
    """Smallest set of columns without which the others are free, the later of two rather than the earlier.

    Columns join from left to right; one that those before it determine is left out (Gram and Schmidt). With no more
    rows than columns every column is determined, and only copies count.

    Parameters
    ----------
    Z : array, shape (n, d)
        Standardised columns.
    correlation : array, shape (d, d), optional
        Z^T Z / n, where it is known.

    Returns
    -------
    dict
        For each column to leave out: the few columns that determine it.
    """
    n, d = Z.shape
    if correlation is None:
        correlation = Z.T @ Z / n
    if n <= d:
        return _copies(correlation)
    if dpotrf(correlation - CLEAR * np.eye(d), lower=1)[1] == 0:  # no eigenvalue is that small
        return {}
    R = qr(Z, mode="r")[0][:d] / np.sqrt(n)  # columns of R stand to one another as those of Z do
    basis = np.zeros((d, 0))
    kept: list[int] = []
    found = {}
    for j in range(d):
        residual = R[:, j] - basis @ (basis.T @ R[:, j])
        residual -= basis @ (basis.T @ residual)  # twice is enough
        size = residual @ residual
        if size > SAME:
            basis, kept = np.column_stack([basis, residual / np.sqrt(size)]), [*kept, j]
        else:
            found[j] = _sparse_fit(R[:, kept], R[:, j], np.array(kept))
    return found


def dependent_in_covariance(Sigma: NDArray) -> Relations:
    """Smallest set of columns without which a covariance is not singular, and the columns that determine each."""
    if not np.isfinite(Sigma).all():
        return {}  # not a covariance at all
    sd = np.sqrt(np.maximum(np.diagonal(Sigma), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(Sigma / np.outer(sd, sd))
    if values[0] < -SAME * len(sd):
        return {}  # not a covariance at all
    n = len(sd) + 1  # rows whose second moments are these correlations; the last is zero
    Z = np.vstack([np.sqrt(n * np.maximum(values, 0.0))[:, None] * vectors.T, np.zeros(len(sd))])
    return dependent_columns(Z)


def _copies(correlation: NDArray) -> Relations:
    """Columns equal to an earlier one up to sign and units."""
    found: Relations = {}
    for j in range(len(correlation)):
        same = [i for i in np.flatnonzero(np.abs(correlation[j, :j]) > 1 - SAME) if i not in found]
        if same:
            found[j] = np.array(same[:1])
    return found


def _sparse_fit(A: NDArray, b: NDArray, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Few columns of A whose combination is b: the best one more at a time, then those that are not needed go."""

    def fit(columns: list[int]) -> tuple[NDArray, float, NDArray]:
        weights = np.linalg.lstsq(A[:, columns], b, rcond=None)[0]
        residual = b - A[:, columns] @ weights
        return residual, float(residual @ residual), weights

    chosen: list[int] = []
    residual, size = b, float(b @ b)
    while size > SAME and len(chosen) < A.shape[1]:
        gain = np.abs(A.T @ residual)
        gain[chosen] = -1
        chosen.append(int(gain.argmax()))
        residual, size, _ = fit(chosen)
    for column in sorted(chosen, key=lambda c: abs(fit(chosen)[2][chosen.index(c)])):
        fewer = [c for c in chosen if c != column]
        if fewer and fit(fewer)[1] <= SAME:
            chosen = fewer
    return labels[sorted(chosen)]


def describe_relations(relations: Mapping[int, NDArray[np.intp]], names: Sequence[str] | None, most: int = 5) -> str:
    """List which columns are combinations of which, by name or by number.

    >>> describe_relations({2: np.array([0, 1])}, ["ldl", "hdl", "total"])
    "'total' of 'ldl', 'hdl'"
    """

    def name(j: int) -> str:
        return str(j) if names is None else names[j]

    some = [f"{name(j)!r} of {name_some(map(name, of))}" for j, of in list(relations.items())[:most]]
    return "; ".join(some + ([f"and {len(relations) - most} more"] if len(relations) > most else []))


def dependent_error(
    relations: Mapping[int, NDArray[np.intp]], names: Sequence[str] | None, remedy: str = ""
) -> ColumnsError:
    """Error that names a smallest set of columns to drop, all relations at once."""
    listed = "" if names is None else f" (drop={[names[j] for j in relations]!r})"
    column, are, them = (
        ("column", "is an exact combination", "it")
        if len(relations) == 1
        else ("columns", "are exact combinations", "them")
    )
    return ColumnsError(
        relations,
        column,
        f"{are} of other columns ({describe_relations(relations, names)}: duplicates, sums, or a full set of "
        "indicators), so none of those involved can matter given the others. Without the columns named first no exact "
        f"relation is left: drop {them}{listed}{remedy}.",
    )
