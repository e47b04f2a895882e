"""Columns a continuous P^X cannot hold: constants, and columns that other columns determine exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import ColumnsError, InputError
from knockoffs.table.redundancy import constant_columns, dependent_columns, dependent_error, standardise


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
