"""Columns that others determine by a function that a Gaussian copula does not know: squares, ratios, products, bins.

A column is derived if the others predict it on held-out rows, and far better than the linear model of normal scores
does: P^X would then give it, and those that it was made of, room that they do not have. A near copy that is linear in
normal scores is no such column, since the copula knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import norm, rankdata

from knockoffs.errors import InputError, name_some, warn
from knockoffs.table.redundancy import Relations, describe_relations, find_functions, pattern_of
from knockoffs.table.table import Table

if TYPE_CHECKING:
    from sklearn.tree import ExtraTreeRegressor


def drop_derived(table: Table, dependent: str = "auto") -> tuple[Table, dict[str, str]]:
    """Table without its derived columns, and a note; a warning names them and what they are functions of."""
    derived = find_derived(table)
    if not derived:
        return table, {}
    said = (
        f"dropped as functions of other columns, exactly or nearly (dependent={dependent!r}): "
        f"{describe_relations(derived, table.names)}. Given those columns they cannot be discoveries. To keep them, "
        "pass dependent='refuse'; to test them together with those columns, use groups="
    )
    warn(f"{said}.")
    return table.without_determined(derived), {"derived": said}


def find_derived(
    table: Table,
    *,
    determined: float = 0.97,
    beyond: float = 0.5,
    exact: float = 1e-4,
    most_rows: int = 1000,
    fewest_rows: int = 100,
    most_columns: int = 100,
    fewest_cells: int = 10,
    n_sources: int = 8,
) -> Relations:
    """Columns that others determine by a function that a Gaussian copula does not know, and those that determine each.

    The column that the others determine best is taken out first, and the last of those that are determined to the same
    power of ten; then the rest is looked at again. The answer is a function of the table.

    Parameters
    ----------
    determined : float
        Share of a column's variance, on the scale of normal scores, that others explain on held-out rows.
    beyond : float
        A derived column keeps at most this share of the variance that linear prediction of normal scores leaves it.
    exact : float
        Share of the variance under which a column is determined, whatever the linear prediction leaves.
    most_rows : int
        Rows that are looked at, evenly spaced: a third of them is held out.
    fewest_rows : int
        Nothing is looked for in fewer rows than this.
    most_columns : int
        Nothing is looked for among more columns than this.
    fewest_cells : int
        Held-out rows, at least, in which a column does not have its most frequent value.
    n_sources : int
        Most columns that one may be a function of.

    >>> from knockoffs.table.table import read_table
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> find_derived(read_table(np.column_stack([X, X[:, 0] * X[:, 1], X[:, 2] ** 2])))
    {3: array([0, 1]), 4: array([2])}
    """
    n, d = table.X.shape
    if n < fewest_rows or not 2 <= d <= most_columns:
        return {}
    rows = np.unique(np.linspace(0, n - 1, min(n, most_rows)).astype(np.intp))
    held_out = np.random.default_rng(0).permutation(len(rows)) < len(rows) // 3
    columns = _Columns(table.X[rows], [kind == "nominal" for kind in table.kinds], held_out)
    kept = ~_identifiers(table)
    best: dict[int, tuple[int, float, NDArray[np.intp]]] = {}

    def look(j: int) -> None:
        others = np.flatnonzero(kept & (np.arange(d) != j))
        best.pop(j, None)
        if others.size:
            limit = min(1 - determined, max(exact, beyond * columns.left_by_scores(j, others)))
            order = columns.by_importance(j, others)[:n_sources]
            left = columns.left(j, order)
            if left <= limit:
                best[j] = (int(np.ceil(np.log10(max(left, exact)))), limit, order)

    for j in np.flatnonzero(kept & columns.varies(fewest_cells)):
        look(int(j))
    found: Relations = {}
    while best:
        column = min(best, key=lambda k: (best[k][0], -k))
        _, limit, order = best.pop(column)
        sources = _fewest(columns, column, order, limit)
        if (table.feature_of[sources] != table.feature_of[column]).any():
            kept[column], found[column] = False, np.sort(sources)
            for other in [other for other, (_, _, used) in best.items() if column in used]:
                look(other)
    return dict(sorted(found.items()))


def _identifiers(table: Table, fewest: int = 3) -> NDArray[np.bool_]:
    """Columns that determine several others, as the number of a person does: the user decides which to keep.

    Each determines at least ``fewest`` columns of more than two values. They are sources of no column, and stay.
    """
    determined = np.zeros((len(table.columns), len(table.columns)), dtype=bool)
    determined[tuple(find_functions(table).T)] = True
    n_values = np.array([len(np.unique(x)) for x in table.X.T])
    determined |= determined.T & np.equal.outer(n_values, n_values)
    return determined[:, n_values > 2].sum(axis=1) >= fewest


def _fewest(columns: _Columns, j: int, order: NDArray[np.intp], limit: float) -> NDArray[np.intp]:
    """Few of the columns, the least important left out first, that still determine column j."""
    chosen = list(order)
    for source in reversed(order.tolist()):
        fewer = np.array([k for k in chosen if k != source])
        if fewer.size and columns.left(j, fewer) <= limit:
            chosen = fewer.tolist()
    return np.array(chosen, dtype=np.intp)


class _Columns:
    """Columns as numbers of four kinds, and the share of one that others leave unexplained on held-out rows."""

    def __init__(self, X: NDArray, nominal: Sequence[bool], held_out: NDArray[np.bool_]) -> None:
        self.known = ~np.isnan(X)
        self.nominal = np.array(nominal, dtype=bool)
        X = np.where(self.known, X, np.nanmedian(X, axis=0))
        self.values = X
        self.scores = norm.ppf((np.apply_along_axis(rankdata, 0, X) - 0.5) / len(X))
        self.units = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        self.positive = (X > 0).all(axis=0) & ~self.nominal
        self.logs = np.log(np.where(self.positive, X, 1.0))
        self.train, self.test = ~held_out, held_out

    def varies(self, fewest: int) -> NDArray[np.bool_]:
        """Whether enough held-out cells differ from the most frequent one."""
        held = [x[known & self.test] for x, known in zip(self.values.T, self.known.T, strict=True)]
        return np.array([len(x) - max(np.unique(x, return_counts=True)[1], default=0) >= fewest for x in held])

    def target(self, j: int) -> NDArray:
        """Return normal scores of a number, indicators of labels, shape (n, m)."""
        if self.nominal[j]:
            return np.equal.outer(self.values[:, j], np.unique(self.values[:, j])).astype(float)
        return self.scores[:, [j]]

    def left_by_scores(self, j: int, others: NDArray[np.intp]) -> float:
        """Unexplained share by least squares on normal scores, indicators of labels among them."""
        y = self.target(j)
        A = np.hstack([np.ones((len(y), 1)), *[self.target(k) for k in others]])
        return self._unexplained(j, _least_squares(A, y, self._rows(j)))

    def by_importance(self, j: int, others: NDArray[np.intp]) -> NDArray[np.intp]:
        """Other columns, those first by which trees, or least squares in units or in logs, predict column j."""
        rows = self._rows(j)
        importance = np.mean([tree.feature_importances_ for tree in self._trees(j, others)], axis=0)
        for A in (self.units, self.logs):
            weights = np.abs(np.linalg.lstsq(A[rows][:, others], A[rows, j], rcond=1e-6)[0])
            importance = np.maximum(importance, weights / max(weights.sum(), 1e-12))
        return others[np.argsort(-importance, kind="stable")]

    def left(self, j: int, sources: NDArray[np.intp]) -> float:
        """Unexplained share by the best of many trees, one tree, and polynomials of degree two in units and in logs."""
        from sklearn.tree import DecisionTreeRegressor

        rows, A = self._rows(j), self.scores[:, sources]
        one = DecisionTreeRegressor(random_state=0).fit(A[rows], self.target(j)[rows])  # exact at the edges of bins
        many = np.mean([tree.predict(A) for tree in self._trees(j, sources)], axis=0)
        found = [self._unexplained(j, predicted.reshape(len(A), -1)) for predicted in (many, one.predict(A))]
        if not self.nominal[j]:
            numbers = sources[~self.nominal[sources]]
            found += [self._left_by_square(j, self.units, numbers)] if numbers.size else []
            logs = numbers[self.positive[numbers]]
            found += [self._left_by_square(j, self.logs, logs)] if logs.size and self.positive[j] else []
        return min(found)

    def _left_by_square(self, j: int, A: NDArray, sources: NDArray[np.intp]) -> float:
        """Unexplained share by a polynomial of degree two; what it predicts is ranked among the cells."""
        first, second = np.triu_indices(len(sources))
        B = A[:, sources]
        B = np.column_stack([np.ones(len(B)), B, B[:, first] * B[:, second]])
        predicted = _least_squares(B, A[:, j], self._rows(j))
        values, place = np.unique(A[:, j], return_index=True)
        return self._unexplained(j, np.interp(predicted, values, self.scores[place, j])[:, None])

    def _trees(self, j: int, sources: NDArray[np.intp], n_trees: int = 10) -> list[ExtraTreeRegressor]:
        from sklearn.tree import ExtraTreeRegressor

        rows = self._rows(j)
        A, y = self.scores[rows][:, sources], self.target(j)[rows]
        trees = [ExtraTreeRegressor(min_samples_leaf=2, max_features=1.0, random_state=i) for i in range(n_trees)]
        return [tree.fit(A, y) for tree in trees]

    def _rows(self, j: int) -> NDArray[np.bool_]:
        return self.train & self.known[:, j]

    def _unexplained(self, j: int, predicted: NDArray) -> float:
        rows = self.test & self.known[:, j]
        y = self.target(j)[rows]
        return float(((y - predicted[rows]) ** 2).sum() / ((y - y.mean(axis=0)) ** 2).sum())


def _least_squares(A: NDArray, y: NDArray, rows: NDArray[np.bool_]) -> NDArray:
    """Predictions for all rows by least squares on some."""
    return A @ np.linalg.lstsq(A[rows], y[rows], rcond=1e-10)[0]


# ---- the target among the features -----------------------------------------------------------------------------------
FIRST_ROWS = 64  # which rule out almost every column
FEWEST_ROWS = 20  # of fewer, a column may determine the target by chance


def refuse_copy_of_target(values: NDArray, table: Table, observed: NDArray[np.bool_] | None = None) -> None:
    """Refuse a table that has a column equal to the target in every row."""
    if values.dtype.kind not in "biuf" or not len(values):
        return
    y = values.astype(float)
    rows = np.arange(len(y)) if observed is None else np.flatnonzero(observed)
    candidates = np.arange(table.X.shape[1])
    for block in (FIRST_ROWS, len(y)):  # a few rows rule out almost every column
        candidates = candidates[(table.X[np.ix_(rows[:block], candidates)] == y[:block, None]).all(axis=0)]
    if candidates.size:
        raise InputError(
            f"column {table.names[candidates[0]]!r} of X equals y in every row: the target is among the "
            "features. Drop that column."
        )


def warn_of_target_in_other_words(
    values: NDArray, kind: str, table: Table, observed: NDArray[np.bool_], *, what: str = "y"
) -> bool:
    """Warn of columns that determine the target, ``what``, and are determined by it; whether there are any.

    A number may have another scale in the table, classes other labels.
    """
    if len(values) < FEWEST_ROWS:
        return False
    ordered = kind in ("number", "count") and len(np.unique(values)) >= FEWEST_ROWS
    y = np.unique(values, return_inverse=True)[1].astype(float)
    places = [j for j, column in enumerate(table.kinds) if (column == "continuous") == ordered]
    for rows in (np.flatnonzero(observed)[:FIRST_ROWS], np.flatnonzero(observed)):
        mine = pattern_of(y[: len(rows)], ordered=ordered)
        places = [j for j in places if pattern_of(table.X[rows, j], ordered=ordered) == mine]
        if not places:
            return False
    warn(
        f"{what} and {name_some(table.names[j] for j in places)} determine each other in all {len(y)} rows: is that "
        "the target in other units or words? Drop it then; beside it no other column can matter."
    )
    return True


def warn_of_leaks(
    values: NDArray,
    kind: str,
    table: Table,
    observed: NDArray[np.bool_],
    *,
    most: int = 3,
    enough: float = 0.9995,
    most_rows: int = 4000,
) -> bool:
    """Warn of a column, or a sum or difference of a few, that predicts a number almost perfectly; whether there is one.

    Parameters
    ----------
    most : int
        Columns that are added or subtracted.
    enough : float
        Share of the variance of held-out rows, the other half, from which on it is a leak.
    most_rows : int
        Rows that are looked at, evenly spaced, where there are more.
    """
    step = -(-len(values) // most_rows)
    y, X = np.asarray(values)[::step], table.X[np.flatnonzero(observed)[::step]]
    seen = np.random.default_rng(0).permutation(len(y)) % 2 == 0
    if kind not in ("number", "count") or len(y) < 2 * FEWEST_ROWS or not np.ptp(y[seen]) or not np.ptp(y[~seen]):
        return False
    numbers = np.array([column != "nominal" for column in table.kinds])
    with np.errstate(over="ignore"):
        unit, spread = np.ptp(y), np.ptp(X[seen], axis=0)
        plain = (spread > 1e-6 * unit) & (spread < 1e6 * unit)  # a sum has parts of its own size
    columns = np.flatnonzero(numbers & np.isfinite(X).all(axis=0) & plain)
    if not 1e-150 < unit < 1e150:
        return False
    X, y = X[:, columns] / unit, y / unit
    U, v = X - X[seen].mean(axis=0), y - y[seen].mean()
    chosen: list[int] = []
    residual = v[seen]
    for _ in range(min(most, len(columns))):
        likeness = np.abs(U[seen].T @ residual) / np.sqrt((U[seen] ** 2).sum(axis=0).clip(1e-300))
        likeness[chosen] = 0.0
        chosen.append(int(likeness.argmax()))
        slope = np.linalg.lstsq(U[seen][:, chosen], v[seen], rcond=None)[0]
        residual = v[seen] - U[seen][:, chosen] @ slope
        left = v[~seen] - U[~seen][:, chosen] @ slope
        share = 1 - (left**2).sum() / ((v[~seen] - v[~seen].mean()) ** 2).sum()
        alike = np.ptp(np.abs(slope)) <= 0.01 * np.abs(slope).max()  # a sum or a difference, and no other formula
        if share >= enough and alike:
            names = [table.names[columns[j]] for j in chosen]
            what = names[0] if len(names) == 1 else f"a sum or difference of {name_some(names)}"
            warn(
                f"y is predicted almost perfectly on held-out rows (R2 = {share:.5f}) by {what!s}: if it is the target "
                f"in other words, use drop={names!r}; beside it no other column can matter."
            )
            return True
    return False


def warn_of_steps(
    values: NDArray, kind: str, table: Table, observed: NDArray[np.bool_], *, chance: float = 1e-6
) -> bool:
    """Warn of columns whose values each have a range of y for themselves, as y cut at a value; whether there are any.

    Parameters
    ----------
    chance : float
        That a column of the table would do so if its cells were permuted: from which on it is no accident.
    """
    if kind not in ("number", "count", "ordinal"):
        return False
    rows = np.flatnonzero(observed)[np.argsort(values, kind="stable")]
    y = np.sort(values)
    first = np.unique(np.linspace(0, len(y) - 1, FIRST_ROWS).astype(np.intp))  # which rule out almost every column
    places = [j for j, x in enumerate(table.X[rows[first]].T) if _in_ranges(x, y[first])]
    limit = np.log(chance / table.X.shape[1])
    columns = ((table.names[j], table.X[rows, j]) for j in places)
    names = [name for name, x in columns if _in_ranges(x, y) and _log_chance(x, y, kind) <= limit]
    if names:
        warn(
            f"each value of {name_some(names)} has a range of y for itself, in all {len(y)} rows: if it was made from "
            f"y, use drop={names!r}."
        )
    return bool(names)


def _in_ranges(x: NDArray, y: NDArray) -> bool:
    """Whether a column, in the order of y, has one run of each of its values, with no step between equal y.

    >>> y = np.array([0.1, 0.2, 0.2, 0.3])
    >>> [_in_ranges(np.array(x), y) for x in ([5.0, 5.0, 5.0, 3.0], [5.0, 5.0, 3.0, 3.0], [5.0, 3.0, 3.0, 5.0])]
    [True, False, False]
    """
    known = ~np.isnan(x)
    x, y = x[known], y[known]
    steps = np.diff(x) != 0
    return bool(not steps[np.diff(y) == 0].any() and 1 + steps.sum() == len(np.unique(x)))


def _log_chance(x: NDArray, y: NDArray, kind: str) -> float:
    """Logarithm of the chance that permuted cells have one run of each value: K! n_1! ... n_K! / n!.

    Rows with the same number as y count once: they may be copies.
    """
    known = np.flatnonzero(~np.isnan(x))
    once = np.unique(y[known], return_index=True)[1] if kind == "number" else slice(None)
    counts = np.unique(x[known[once]], return_counts=True)[1]
    return float(gammaln(len(counts) + 1) + gammaln(counts + 1).sum() - gammaln(counts.sum() + 1))
