"""Columns a continuous P^X cannot hold: constants, and columns that other columns determine exactly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from knockoffs.errors import ColumnsError, InputError, KnockoffWarning, name_some, unknown_option

SAME = 1e-10  # squared residual of a column on the others, in its own variance, under which they determine it
CLEAR = 1e-6  # smallest eigenvalue of the correlations from which on no column is determined, and none is looked for
DEPENDENT = ("refuse", "drop")


@dataclass(frozen=True)
class Columns:
    """Columns of a table that a continuous law is fitted to, standardised, and those that it leaves out.

    Parameters
    ----------
    Z : array, shape (n, d)
        The d columns that vary freely, as (x - centre) / scale.
    centre, scale : array, shape (d,)
    varying : array of int, shape (d,)
        Their places in the table.
    fixed : Fixed
    """

    Z: NDArray
    centre: NDArray
    scale: NDArray
    varying: NDArray[np.intp]
    fixed: Fixed


@dataclass(frozen=True)
class Fixed:
    """Columns with an equation instead of a law: x = intercept + slopes^T (the columns that vary freely).

    Parameters
    ----------
    constant, dropped : array of int
        Columns with one value; and columns that others determine, left out on request.
    intercept : array, shape (m,)
        Of the constant columns, then of the dropped ones.
    slopes : array, shape (d, m)
        Zero for constant columns.
    tolerance : array, shape (m,)
        How far a value may be from its equation, by rounding.
    """

    constant: NDArray[np.intp]
    dropped: NDArray[np.intp]
    intercept: NDArray
    slopes: NDArray
    tolerance: NDArray

    @staticmethod
    def none(n_varying: int) -> Fixed:
        """No column but those that vary."""
        nowhere, nothing = np.empty(0, np.intp), np.empty(0)
        return Fixed(nowhere, nowhere, nothing, np.empty((n_varying, 0)), nothing)

    @property
    def columns(self) -> NDArray[np.intp]:
        """All of them, in the order of the equations."""
        return np.concatenate([self.constant, self.dropped])

    def values(self, varying: NDArray) -> NDArray:
        """Solve the equations for rows of the other columns, shape (n, m)."""
        return self.intercept + varying @ self.slopes

    def hold(self, X: NDArray, varying: NDArray) -> NDArray[np.bool_]:
        """Whether each row obeys all equations, shape (n,)."""
        return (np.abs(X[:, self.columns] - self.values(varying)) <= self.tolerance).all(axis=1)


def constant_columns(X: NDArray) -> NDArray[np.intp]:
    """Columns that take one value only: their knockoff is themselves, and they can never be selected.

    >>> constant_columns(np.array([[1.0, 5.0], [1.0, 6.0]]))
    array([0])
    """
    return np.flatnonzero((X == X[0]).all(axis=0))


def standardise(X: NDArray, *, copy: bool = True) -> tuple[NDArray, NDArray, NDArray]:
    """(X - mean) / sd with mean and sd, so that what follows does not know the units of X."""
    centre = X.mean(axis=0)
    Z = np.subtract(X, centre, out=None if copy else X)
    largest = np.maximum(Z.max(axis=0), -Z.min(axis=0))
    Z /= largest  # no overflow of squares
    spread = np.sqrt(np.einsum("ij,ij->j", Z, Z) / len(Z))
    Z /= spread
    return Z, centre, largest * spread


def split_columns(X: NDArray, *, dependent: str = "refuse", names: Sequence[str] | None = None) -> Columns:
    """Columns that vary freely, standardised, apart from constant ones and those that others determine.

    Knockoffs of columns that determine one another would have to obey the same equation, which a fitted covariance
    hides behind rounding or shrinkage. A smallest set of columns is found without which the rest is free.

    Parameters
    ----------
    X : array, shape (n, n_columns)
    dependent : {"refuse", "drop"}
        What happens to that set: an error names it, or it is left out and a warning names it.
    names : sequence of str, optional
        Of the columns, for messages; their numbers if left out.

    Raises
    ------
    InputError
        For fewer than 3 rows, missing or infinite values, no column that varies, or dependent columns.
    """
    if dependent not in DEPENDENT:
        raise unknown_option("dependent", dependent, DEPENDENT)
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
    relations = dependent_columns(Z)
    if relations:
        _refuse_or_warn({int(varying[j]): varying[of] for j, (of, _) in relations.items()}, dependent, names)
    dropped = np.array(sorted(relations), dtype=np.intp)
    kept = np.setdiff1d(np.arange(len(varying)), dropped)
    slopes = np.zeros((len(varying), len(constant) + len(dropped)))
    for place, j in enumerate(dropped, start=len(constant)):
        of, weights = relations[j]
        slopes[of, place] = weights * scale[j] / scale[of]
    slopes = slopes[kept]
    intercept = np.concatenate([np.asarray(X[0, constant], dtype=float), centre[dropped]])
    intercept[len(constant) :] -= centre[kept] @ slopes[:, len(constant) :]
    tolerance = np.concatenate([1e-9 * np.abs(intercept[: len(constant)]), 10 * np.sqrt(SAME) * scale[dropped]])
    fixed = Fixed(constant, varying[dropped], intercept, slopes, tolerance)
    if dropped.size:
        Z, centre, scale = np.ascontiguousarray(Z[:, kept]), centre[kept], scale[kept]
    return Columns(Z, centre, scale, varying[kept], fixed)


def dependent_columns(Z: NDArray) -> dict[int, tuple[NDArray[np.intp], NDArray]]:
    """Smallest set of columns without which the others are free, the later of two rather than the earlier.

    Columns join from left to right; one that those before it determine is left out (Gram and Schmidt). With no more
    rows than columns every column is determined, and only copies count.

    Parameters
    ----------
    Z : array, shape (n, d)
        Standardised columns.

    Returns
    -------
    dict
        For each column to leave out: the few columns that determine it, and their weights in Z.
    """
    n, d = Z.shape
    correlation = Z.T @ Z / n
    if n <= d:
        return _copies(correlation)
    if np.linalg.eigvalsh(correlation)[0] > CLEAR:
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


def _copies(correlation: NDArray) -> dict[int, tuple[NDArray[np.intp], NDArray]]:
    """Columns equal to an earlier one up to sign and units."""
    found: dict[int, tuple[NDArray[np.intp], NDArray]] = {}
    for j in range(len(correlation)):
        same = [i for i in np.flatnonzero(np.abs(correlation[j, :j]) > 1 - SAME) if i not in found]
        if same:
            found[j] = (np.array(same[:1]), np.sign(correlation[j, same[:1]]))
    return found


def _sparse_fit(A: NDArray, b: NDArray, labels: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray]:
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
    chosen.sort()
    return labels[chosen], fit(chosen)[2]


def _refuse_or_warn(relations: dict[int, NDArray], dependent: str, names: Sequence[str] | None) -> None:
    def name(j: int) -> str:
        return str(j) if names is None else names[j]

    made_of = "; ".join(f"{name(j)!r} of {name_some(map(name, of))}" for j, of in list(relations.items())[:5])
    if len(relations) > 5:
        made_of += f"; and {len(relations) - 5} more"
    if dependent == "refuse":
        raise ColumnsError(
            relations,
            "columns",
            f"are exact combinations of other columns ({made_of}: duplicates, sums, or a full set of indicators), so "
            "none of those involved can matter given the others. Without the columns named first the rest is free: "
            "drop them or pass dependent='drop', which does it. Or make one feature of columns that belong together.",
        )
    warnings.warn(
        f"columns {name_some(map(name, relations))} are exact combinations of other columns ({made_of}) and were "
        "dropped: they cannot be selected, and what is said of the others holds in the table without them.",
        KnockoffWarning,
        stacklevel=5,
    )
