"""Rows: whether they are independent of each other.

Knockoffs are drawn row by row, so a row shares nothing with the knockoffs of another row but by its own. If rows repeat
or follow each other, X_a is nearer to its neighbour b than X_tilde_a is. With M_b = (s(x_b) + s(x_tilde_b)) / 2, which
no swap changes, D_a M_b changes its sign when row a is swapped: the coins of ``signs.py`` again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from knockoffs.diagnostics.scores import FEW_LEVELS, RankScores
from knockoffs.diagnostics.sign_tests import Check, critical_value, sign_p_value, sign_sums, worst_columns
from knockoffs.errors import name_some
from knockoffs.sampling.pair import Pair

LAGS = 20  # rows before a row that may be like it
AT_ONCE = 200  # rows whose distances to all others are held


def check_repeats(pair: Pair) -> Check:
    """Rows of X that stand in the table more than once, beyond those of X_tilde."""
    n = len(pair)
    if all_different(pair.X):
        return Check("repeated rows", 1.0, 0.0, 0.0, (), "No row is repeated.")
    both = np.vstack([pair.X, pair.X_tilde]).astype(float, copy=False)
    both += 0.0  # -0.0 becomes 0.0
    keys = both.view(np.dtype((np.void, both.dtype.itemsize * both.shape[1]))).ravel()
    code, counts = np.unique(keys, return_inverse=True, return_counts=True)[1:]
    more = (counts > 1)[code]
    t = float(sign_sums(np.subtract(more[:n], more[n:], dtype=float)[:, None])[0])
    p = float(sign_p_value(t, one_sided=True))
    repeats = n - len(np.unique(keys[:n]))
    sentence = "No row is repeated." if not repeats else f"{repeats} of {n} rows are copies of an earlier row"
    if repeats:
        sentence += ": no more than P^X expects." if p > 0.05 else ", which independent rows would not be."
    return Check("repeated rows", p, t, float(max(t, 0.0) / np.sqrt(n)), (), sentence)


def repeated_by_rows(X: NDArray) -> NDArray[np.bool_]:
    """Columns whose values repeat because whole rows do, shape (d,): the different rows have different values.

    >>> X = np.random.default_rng(0).standard_normal((30, 2))
    >>> repeated_by_rows(np.vstack([X, X])), repeated_by_rows(X)
    (array([ True,  True]), array([False, False]))
    """
    if all_different(X):
        return np.zeros(X.shape[1], dtype=bool)
    n_rows = len(np.unique(X, axis=0))
    if n_rows == len(X) or n_rows <= FEW_LEVELS:
        return np.zeros(X.shape[1], dtype=bool)
    return np.array([len(np.unique(x)) >= 0.9 * n_rows for x in X.T])


def all_different(X: NDArray) -> bool:
    """Whether some column has different values in all rows: then none is repeated.

    >>> all_different(np.array([[1.0, 1.0], [1.0, 2.0]])), all_different(np.ones((2, 2)))
    (True, False)
    """
    return any((np.diff(np.sort(x)) > 0).all() for x in X.T)


def check_order(pair: Pair, scores: RankScores, names: Sequence[str]) -> Check:
    """Rows that are like the row before them, column by column, or in all columns like one of the LAGS rows before.

    D_a M_(a-k), k = 1 for a single column. A table may hold its seasons, rooms or layers one after the other: then it
    is the row some steps before that is alike.
    """
    keep = ~sorted_columns(pair.X)[scores.column_of]
    D, M = scores.difference, scores.middle
    if not keep.all():
        D, M = D[:, keep], M[:, keep]
    t_column = np.abs(sign_sums(D[1:] * M[:-1]))
    lags = range(1, min(LAGS, len(pair) // 4) + 1)
    t_lag = np.array([abs(float(sign_sums(np.einsum("ni,ni->n", D[k:], M[:-k])[:, None])[0])) for k in lags])
    n_sums = D.shape[1] + len(lags)
    per_column = np.zeros(pair.n_columns)
    np.maximum.at(per_column, scores.column_of[keep], t_column)
    t = max(per_column.max(initial=0.0), t_lag.max(initial=0.0))
    p = float(sign_p_value(t, n_sums))
    worst = worst_columns(per_column, names, critical_value(n_sums))
    if p > 0.05:
        sentence = "The order of the rows does not show."
    else:
        far = int(t_lag.argmax()) + 1 if t_lag.max() >= per_column.max() else 1
        lag = lag_correlation(pair.X, far)
        like = f"lag-one correlation {np.nanmean(lag):.2f}" if far == 1 else f"correlation {np.nanmean(lag):.2f}"
        where = "the row before them" if far == 1 else f"the row {far} before them"
        named = f": {name_some(worst)}" if worst and far == 1 else ""
        sentence = (
            f"Rows are like {where} ({like} on average, {np.nanmax(lag):.2f} at most{named}). If the table was only "
            "sorted, this is harmless; if rows follow each other in time or belong together, the guarantee is lost."
        )
    return Check("order of rows", p, float(t), float(t / np.sqrt(len(pair) - 1)), worst, sentence)


def check_neighbours(pair: Pair, scores: RankScores) -> Check:
    """Rows that are nearer to their nearest row than P^X lets them be, wherever it stands."""
    M = scores.middle
    scale = M.std(axis=0)
    near = nearest(M / np.where(scale > 0, scale, 1.0))
    t = float(sign_sums(np.einsum("ni,ni->n", scores.difference, M[near])[:, None])[0])
    p = float(sign_p_value(t, one_sided=True))
    sentence = (
        "Rows are as far from each other as P^X expects."
        if p > 0.05
        else "Rows are nearer to each other than P^X expects: several rows of one patient, house or batch, or a P^X "
        "that misses groups of rows."
    )
    return Check("neighbouring rows", p, t, float(max(t, 0.0) / np.sqrt(len(pair))), (), sentence)


def nearest(M: NDArray) -> NDArray[np.intp]:
    """Row nearest to each row, shape (n,), in blocks of rows.

    >>> nearest(np.array([[0.0], [5.0], [1.0]]))
    array([2, 2, 0])
    """
    M = M.astype(np.float32)
    length = (M**2).sum(axis=1)
    found = np.empty(len(M), dtype=np.intp)
    for start in range(0, len(M), AT_ONCE):
        block = slice(start, min(start + AT_ONCE, len(M)))
        distance = (-2 * M[block]) @ M.T
        distance += length  # in place: a block is AT_ONCE rows times all
        distance[np.arange(block.stop - start), np.arange(start, block.stop)] = np.inf
        found[block] = distance.argmin(axis=1)
    return found


def sorted_columns(X: NDArray) -> NDArray[np.bool_]:
    """Columns of many values in ascending or descending order: the table was sorted by them.

    With more than ``FEW_LEVELS`` steps this is no chance (2 / 21!), so that leaving them out costs no validity.
    """
    steps = np.diff(X, axis=0)
    in_order = np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0)
    return np.asarray(in_order & (np.sum(steps != 0, axis=0) > FEW_LEVELS))


def lag_correlation(X: NDArray, lag: int) -> NDArray:
    """Correlation of each column with itself so many rows later, shape (d,); nan where it is constant."""
    U = X - np.nanmean(X, axis=0)
    U = np.where(np.isnan(U), 0.0, U)
    size = (U**2).sum(axis=0)
    return np.divide((U[lag:] * U[:-lag]).sum(axis=0), size, out=np.full(X.shape[1], np.nan), where=size > 0)
