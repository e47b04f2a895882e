"""Columns that another one tells value by value: a quarter beside its month, sex and town beside a person's number."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from knockoffs.errors import KnockoffWarning, name_some
from knockoffs.features.columns import constant_columns
from knockoffs.table.table import Table

ROWS_A_VALUE = 20  # of a column that tells another, its most frequent value left out; of fewer, chance could do it
CERTAIN = 30.0  # minus the log of the chance that a column seems to be told by one that it has nothing to do with
MOST_ROWS = 5000  # on which pairs are looked for; what is found is checked on all
SCREENED = 256  # rows on which most pairs are seen to be none
MOST_COLUMNS = 1000  # of few values: every pair of them is looked at


def warn_of_told(table: Table) -> dict[str, str]:
    """Warn of columns of other features that a column tells, and return the note.

    Nothing is left out: whether a person's number or what it tells is of interest, only the user knows.
    """
    told = find_told(table)
    owner = table.feature_of
    told &= owner[:, None] != owner[None, :]
    finest = np.flatnonzero(told.any(axis=1) & ~told.any(axis=0))
    if not finest.size:
        return {}
    pairs = [
        f"{table.names[i]!r} tells {name_some(table.names[j] for j in np.flatnonzero(told[i]))}" for i in finest[:5]
    ]
    more = f" and {len(finest) - 5} more do so" if len(finest) > 5 else ""
    said = (
        f"columns tell others, value by value: {'; '.join(pairs)}{more}. Beside it these cannot matter, and knockoffs "
        "of all of them need not fit together, so that one may be selected in error: leave out the one or the others, "
        "or make one feature of them by groups="
    )
    warnings.warn(f"{said}.", KnockoffWarning, stacklevel=4)
    return {"told": said}


def find_told(table: Table) -> NDArray[np.bool_]:
    """Which columns tell which: the cell of the first determines that of the second, shape (d, d).

    Its values are to be seen again and again, so that rows could show otherwise: each row beyond the first of a value
    agrees with it by chance, at most as often as the second has its most frequent value. The most frequent value of the
    first does not count where the second changes beside it: zeros and codes for nothing go together in many columns. A
    missing cell tells nothing but a missing cell, since it is drawn. The order of numbers is not asked: that of a row's
    own number tells whatever a file is sorted by.

    >>> from knockoffs.table.table import read_table
    >>> age = np.random.default_rng(0).integers(20, 80, 4000).astype(float)
    >>> find_told(read_table(np.column_stack([age // 10, age]))).tolist()
    [[False, False], [True, False]]
    """
    n, d = table.X.shape
    told = np.zeros((d, d), dtype=bool)
    columns = np.delete(np.arange(d), constant_columns(table.X))
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.intp)) if n else np.arange(0)
    if len(columns) < 2 or len(rows) < 2 * ROWS_A_VALUE:
        return told
    codes = _codes(table.X[np.ix_(rows, columns)])
    n_values = codes.max(axis=0) + 1
    few = np.flatnonzero((n_values > 1) & (n_values * ROWS_A_VALUE <= len(rows)))
    if len(few) > MOST_COLUMNS:
        return told
    screen = np.linspace(0, len(rows) - 1, min(SCREENED, len(rows))).astype(np.intp)
    for i in few:
        others = few[(n_values[few] < n_values[i]) | ((n_values[few] == n_values[i]) & (few > i))]
        for part in (codes[screen], codes):
            others = others[_tells(part[:, i], part[:, others])]
        others = others[[_certain(codes[:, i], codes[:, j]) for j in others]] if len(others) else others
        if len(others):
            X = table.X[:, columns[[i, *others]]]
            missing_too = np.isnan(X[np.isnan(X[:, 0]), 1:]).all(axis=0)
            all_codes = _codes(X)
            told[columns[i], columns[others]] = _tells(all_codes[:, 0], all_codes[:, 1:]) & missing_too
    return told


def _codes(X: NDArray) -> NDArray[np.intp]:
    """Values of each column by their rank; missing cells have the last."""
    return np.stack([np.unique(x, return_inverse=True)[1].reshape(-1) for x in X.T], axis=1)


def _tells(x: NDArray[np.intp], Y: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns of Y are functions of x."""
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.diff(x[order], prepend=-1))
    Y = Y[order]
    return (np.minimum.reduceat(Y, starts) == np.maximum.reduceat(Y, starts)).all(axis=0)


def _certain(x: NDArray[np.intp], y: NDArray[np.intp]) -> bool:
    """Whether chance would hardly make y a function of x, where it is one."""
    rest = x != np.bincount(x).argmax()
    if y[rest].size and np.ptp(y[rest]) > 0:
        x, y = x[rest], y[rest]
        if len(x) < ROWS_A_VALUE * len(np.unique(x)):
            return False
    share = np.bincount(y).max() / len(y)
    return bool((len(x) - len(np.unique(x))) * -np.log(share) >= CERTAIN)
