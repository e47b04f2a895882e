"""Columns a continuous P^X cannot hold: constants, and columns that other columns determine exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import ColumnsError, InputError, name_some

SAME = 1e-10  # squared residual of a column on the others, in its own variance, under which they determine it
CLEAR = 1e-6  # smallest eigenvalue of the correlations from which on no column is determined, and none is looked for
DEPENDENT = ("auto", "refuse", "drop")  # what a selection does with such columns


@dataclass(frozen=True)
class Columns:
    """Columns of a table that a continuous law is fitted to, standardised, and those that it leaves out.

    Parameters
    ----------
    Z : array, shape (n, d)
        The d columns that vary freely, as (x - centre) / scale.
    correlation : array, shape (d, d)
        Z^T Z / n.
    centre, scale : array, shape (d,)
    varying : array of int, shape (d,)
        Their places in the table.
    fixed : Fixed
    """

    Z: NDArray
    correlation: NDArray
    centre: NDArray
    scale: NDArray
    varying: NDArray[np.intp]
    fixed: Fixed


@dataclass(frozen=True)
class Fixed:
    """Columns with one value instead of a law.

    Parameters
    ----------
    columns : array of int, shape (m,)
        Their places in the table.
    values : array, shape (m,)
    """

    columns: NDArray[np.intp]
    values: NDArray

    @staticmethod
    def none() -> Fixed:
        """No column but those that vary."""
        return Fixed(np.empty(0, np.intp), np.empty(0))

    def hold(self, X: NDArray) -> NDArray[np.bool_]:
        """Whether each row has these values, up to rounding, shape (n,)."""
        return (np.abs(X[:, self.columns] - self.values) <= 1e-9 * np.abs(self.values)).all(axis=1)


def constant_columns(X: NDArray) -> NDArray[np.intp]:
    """Columns that take one value only: their knockoff is themselves, and they can never be selected.

    >>> constant_columns(np.array([[1.0, 5.0, np.nan], [1.0, 6.0, 7.0]]))
    array([0, 2])
    """
    return np.flatnonzero(np.fmin.reduce(X, axis=0) == np.fmax.reduce(X, axis=0))


def standardise(X: NDArray, *, copy: bool = True) -> tuple[NDArray, NDArray, NDArray]:
    """(X - mean) / sd with mean and sd, so that what follows does not know the units of X."""
    centre = X.mean(axis=0)
    Z = np.subtract(X, centre, out=None if copy else X)
    largest = np.maximum(Z.max(axis=0), -Z.min(axis=0))
    Z /= largest  # no overflow of squares
    spread = np.sqrt(np.einsum("ij,ij->j", Z, Z) / len(Z))
    Z /= spread
    return Z, centre, largest * spread


def check_numbers(X: object) -> NDArray:
    """Array of numbers, shape (n, n_columns); anything else is refused.

    >>> check_numbers([["a"]])
    Traceback (most recent call last):
    knockoffs.errors.InputError: X has dtype <U1: a covariance is of numbers.
    """
    values = np.asarray(X)
    if values.ndim != 2:
        raise InputError(f"X has shape {values.shape}: expected a row for each sample and a column for each feature.")
    if values.dtype.kind not in "biuf":
        raise InputError(f"X has dtype {values.dtype}: a covariance is of numbers.")
    return values


def split_columns(X: NDArray, *, names: Sequence[str] | None = None) -> Columns:
    """Columns that vary freely, standardised, apart from constant ones; refuses columns that others determine.

    Knockoffs of columns that determine one another would have to obey the same equation, which a fitted covariance
    hides behind rounding or shrinkage.

    Parameters
    ----------
    X : array, shape (n, n_columns)
    names : sequence of str, optional
        Of the columns, for messages; their numbers if left out.

    Raises
    ------
    InputError
        For fewer than 3 rows, missing or infinite values, no column that varies, or dependent columns: a smallest set
        of them is named, without which the rest is free.
    """
    if len(X) < 3:
        raise InputError(f"X has {len(X)} rows: a covariance needs at least 3.")
    finite = np.isfinite(X.sum(axis=0, dtype=float))  # a sum may overflow, so what it accuses is looked at
    missing = np.flatnonzero(~finite)
    missing = missing[~np.isfinite(X[:, missing]).all(axis=0)]
    if missing.size:
        raise ColumnsError(missing, "columns", "have missing or infinite values: fill them or drop the rows first.")
    constant = constant_columns(X)
    varying = np.setdiff1d(np.arange(X.shape[1]), constant)
    if not varying.size:
        raise InputError("every column of X is constant: there is nothing to select from.")
    own = np.take(X, varying, axis=1).astype(float, copy=False)  # the one copy of X that a fit makes
    Z, centre, scale = standardise(own, copy=False)
    correlation = Z.T @ Z / len(Z)
    relations = {int(varying[j]): varying[of] for j, of in dependent_columns(Z, correlation).items()}
    if relations:
        raise dependent_error(relations, names, ", or pass dependent='drop' to the selector (--dependent drop)")
    return Columns(Z, correlation, centre, scale, varying, Fixed(constant, np.asarray(X[0, constant], dtype=float)))


def dependent_columns(Z: NDArray, correlation: NDArray | None = None) -> dict[int, NDArray[np.intp]]:
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


def dependent_in_covariance(Sigma: NDArray) -> dict[int, NDArray[np.intp]]:
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


def _copies(correlation: NDArray) -> dict[int, NDArray[np.intp]]:
    """Columns equal to an earlier one up to sign and units."""
    found: dict[int, NDArray[np.intp]] = {}
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


def say_relations(relations: Mapping[int, NDArray[np.intp]], names: Sequence[str] | None, most: int = 5) -> str:
    """Which columns are combinations of which, by name or by number.

    >>> say_relations({2: np.array([0, 1])}, ["ldl", "hdl", "total"])
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
    all_of_them = "" if names is None else f" (drop={[names[j] for j in relations]!r})"
    return ColumnsError(
        relations,
        "columns",
        f"are exact combinations of other columns ({say_relations(relations, names)}: duplicates, sums, or a full set "
        "of indicators), so none of those involved can matter given the others. Without the columns named first the "
        f"rest is free: drop them{all_of_them}{remedy}.",
    )
