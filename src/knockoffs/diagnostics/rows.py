"""Rows that may depend on each other: copies, sets that share values as the visits of a patient do, and rows in time.

This is a screen. What dependence costs is measured by a trial that keeps it; see ``trials/labels.py``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from knockoffs.errors import KnockoffWarning, name_some
from knockoffs.table.columns import Column, design
from knockoffs.table.redundancy import pattern_of
from knockoffs.table.table import Table
from knockoffs.table.target import Target

# last words of names of columns that say which patient or place a row is of
SUBJECTS = frozenset(
    "id subject subj patient participant person individual pupil student animal herd hospital clinic cluster".split()
)
OR_NUMBERS = frozenset(("school", "family", "household"))  # years of school, or how many live there


@dataclass(frozen=True)
class RowDependence:
    """What was seen, and what to type; and the set of each row, shape (n_observed,), or None if rows follow in time."""

    seen: str
    advice: str
    set_of: NDArray[np.intp] | None = None

    @property
    def sentence(self) -> str:
        """Both."""
        return f"{self.seen} {self.advice}"


def warn_of_dependent_rows(table: Table, target: Target, *, most_rows: int = 5000) -> None:
    """Warn of rows that are copied, share values or follow one another, by the first ``most_rows``."""
    if len(table) > most_rows:
        rows = np.arange(most_rows)
        table, target = table.rows(rows), target.at(rows)
    found = find_dependence(table, target)
    if found is not None:
        warnings.warn(found.sentence, KnockoffWarning, stacklevel=4)


def find_dependence(
    table: Table, target: Target, *, fewest_rows: int = 50, most_columns: int = 200
) -> RowDependence | None:
    """Dependence between the rows whose target is known; None where none is seen.

    A table that was only sorted is none of these: its rows resemble each other by a trend alone. At most
    ``most_columns`` are looked at, evenly spaced. Of survival times only a column that says so is looked for.
    """
    if len(target) < fewest_rows:
        return None
    step = -(-len(table.columns) // most_columns)
    X, columns = table.X[target.known_rows][:, ::step], table.columns[::step]
    if target.kind == "survival":
        return _declared(X, columns)
    y = np.unique(target.values, return_inverse=True)[1]
    return _copies(X, y) or _declared(X, columns) or _shared_values(X, columns) or _in_time(X, y, columns, target)


def _copies(X: NDArray, y: NDArray, *, share: float = 0.02, times: float = 3.0) -> RowDependence | None:
    """Rows that equal another one: so ``share`` of all, and so many ``times`` as two columns would let coincide."""
    n, apart = len(X), [np.bincount(np.unique(x, return_inverse=True)[1]) / len(X) for x in (*X.T, y)]
    coincide = np.sort([(p**2).sum() for p in apart])[:2].prod() * n**2 / 2
    if coincide > n:
        return None
    rows = np.column_stack([np.where(np.isnan(X), np.inf, X), y])
    set_of = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    copies = n - int(set_of.max()) - 1
    if copies < max(share * n, times * coincide, 5):
        return None
    return RowDependence(
        f"{copies} of {n} rows equal an earlier row, target included, and count as new evidence.",
        "Drop the copies, or name what such rows share in clusters= (--clusters).",
        set_of,
    )


def last_word(name: str) -> str:
    """Last word of a name.

    >>> [last_word(name) for name in ("Subject", "patient.id", "famID", "SCH_ID", "acid")]
    ['subject', 'id', 'id', 'id', 'acid']
    """
    return re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())[-1]


def _declared(
    X: NDArray,
    columns: Sequence[Column],
    *,
    fewest: int = 10,
    fewest_surely: int = 30,
    fewest_labels: int = 20,
    most_rows: int = 20,
    uneven: float = 4.0,
) -> RowDependence | None:
    """Find a column whose values are patients or places with several rows each.

    It is called so and has ``fewest`` values or more (``fewest_surely`` if that may be a number of something), none
    with more than ``uneven`` times the usual number of rows. Or it has ``fewest_labels`` labels or more, each with the
    same number of rows, at most ``most_rows``, as a panel has.
    """
    for x, column in zip(X.T, columns, strict=True):
        known = x[~np.isnan(x)]
        size = np.unique(known, return_counts=True)[1]
        if len(size) < fewest or 2 * len(size) > len(known) or (known != np.round(known)).any():
            continue
        usual = int(np.median(size))
        labels, word = column.kind == "nominal", last_word(column.name)
        panel = labels and len(size) >= fewest_labels and size.min() == size.max() <= most_rows
        named = word in SUBJECTS or (word in OR_NUMBERS and (labels or len(size) >= fewest_surely))
        if panel or (named and size.max() <= uneven * usual):
            return RowDependence(
                f"Column {column.name!r} has {len(size)} values, {'' if size.min() == size.max() else 'about '}{usual} "
                "rows each.",
                "If the rows of a value belong together, as the visits of a patient do, use "
                f"clusters={column.name!r} (--clusters {column.name}).",
                np.unique(x, return_inverse=True)[1],
            )
    return None


def _shared_values(X: NDArray, columns: Sequence[Column], *, fewest: int = 20) -> RowDependence | None:
    """Find ``fewest`` sets of rows or more in which columns are constant that are no functions of each other."""
    found: dict[bytes, list[int]] = {}
    for j, column in enumerate(columns):
        if column.kind not in ("nominal", "binary") and fewest <= len(np.unique(X[:, j])) <= 0.9 * len(X):
            found.setdefault(pattern_of(X[:, j], ordered=False), []).append(j)
    for alike in found.values():
        if len({pattern_of(X[:, j], ordered=True) for j in alike}) > 1:
            set_of = np.unique(X[:, alike[0]], return_inverse=True)[1]
            return RowDependence(
                f"Rows come in {set_of.max() + 1} sets that share {name_some(columns[j].name for j in alike)}, as the "
                "visits of a patient do.",
                "Name what the rows of a set share in clusters= (--clusters).",
                set_of,
            )
    return None


def _in_time(
    X: NDArray, y: NDArray, columns: Sequence[Column], target: Target, *, clear: float = 4.0
) -> RowDependence | None:
    """Rows like the row before them, in y given X and in columns given the others, by ``clear`` standard errors."""
    encode, classes = design(columns), target.task == "classification"
    Z = _normed(encode(X))
    if is_sorted(X) or len(Z) <= 3 * Z.shape[1]:  # too few rows for y given X
        return None
    Y = _normed((y[:, None] == np.unique(y)).astype(float) if classes else y[:, None].astype(float))
    precision = np.linalg.pinv(Z.T @ Z, hermitian=True)
    Z, Y = Z @ precision, Y - Z @ (precision @ (Z.T @ Y))
    of_columns, of_y = local_correlation(Z), local_correlation(Y).max()
    least = max(0.2, clear * np.sqrt(2 / len(Z)))
    if of_y < least or of_columns.max() < least:
        return None
    alike = np.argsort(-of_columns)[: (of_columns >= least).sum()]
    names = dict.fromkeys(columns[encode.feature_of[j]].name for j in alike)
    steps = np.sign(np.diff(X, axis=0))
    every = np.abs(steps.sum(axis=0)) == len(steps)  # a column that grows with each row, as day after day
    times = [column.name for column, one in zip(columns, every, strict=True) if one]
    order = f"use order={times[0]!r} (--order)" if times else "name it in order= (--order)"
    return RowDependence(
        f"Rows resemble the row before them in y given X (correlation {of_y:.2f}) and in {name_some(names)} (up to "
        f"{of_columns.max():.2f}).",
        f"If rows follow one another in time, {order}; if several are of one patient or place, name that in clusters= "
        "(--clusters).",
    )


def is_sorted(X: NDArray, *, times: float = 2.0) -> bool:
    """Whether equal rows stand together: there are at most ``times`` as many runs as distinct rows, which recur.

    >>> is_sorted(np.array([[0], [0], [1], [1], [1]])), is_sorted(np.array([[0], [1], [0], [1], [0]]))
    (True, False)
    """
    row = np.unique(np.nan_to_num(X, nan=np.inf), axis=0, return_inverse=True)[1].ravel()
    n_distinct = int(row.max()) + 1
    return bool(2 * n_distinct <= len(row) and 1 + np.count_nonzero(np.diff(row)) <= times * n_distinct)


def _normed(X: NDArray) -> NDArray:
    """Ranks of each column, centred; missing cells are in the middle."""
    ranks = rankdata(X, axis=0, nan_policy="omit")
    return np.nan_to_num(ranks - np.nanmean(ranks, axis=0))


def local_correlation(X: NDArray) -> NDArray:
    """Correlation of neighbouring rows that no slow trend explains, shape (n_columns,); 0 for a sorted column.

    Steps over two rows are on average 1 + rho times as large, squared, as steps over one. A trend adds little to
    either; in a sorted column they are three to four times as large.

    >>> x = np.cumsum(np.random.default_rng(0).standard_normal((1000, 1)), axis=0)
    >>> [round(float(local_correlation(column)[0]), 1) for column in (x, np.sort(x, axis=0), np.diff(x, axis=0))]
    [1.0, 0.0, 0.0]
    """
    one, two = (np.square(X[k:] - X[:-k]).mean(axis=0) for k in (1, 2))
    found = np.divide(two, one, out=np.ones_like(one), where=one > 0) - 1
    return np.where(found > 1.5, 0.0, found.clip(0.0, 1.0))
