"""Columns that carry nothing of their own beside the others: constant, copied, combined from others, functions of one.

Given the others such a column can never matter, nor can those that it was made of beside it: as long as all are in the
table, P^X would have to copy them into their own knockoffs. Without a smallest set of them no exact relation is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.linalg.lapack import dpotrf

from knockoffs.errors import ColumnsError, InputError, name_some, warn
from knockoffs.table.columns import ends
from knockoffs.table.table import Table

DEPENDENT = ("auto", "refuse", "drop")  # what a selection does with columns that others determine
MOST_ROWS = 5000  # on which redundancy is looked for; what is found is checked on all rows

# ---- constant ----------------------------------------------------------------------------------------------------


def constant_columns(X: NDArray) -> NDArray[np.intp]:
    """Columns that take one value only.

    >>> constant_columns(np.array([[1.0, 5.0, np.nan], [1.0, 6.0, 7.0]]))
    array([0, 2])
    """
    low, high = ends(X)
    return np.flatnonzero(low == high)


def drop_constant(table: Table) -> tuple[Table, dict[str, str]]:
    """Table without its constant columns, which are no hypotheses, and a note; a warning names them."""
    constant = constant_columns(table.X)
    if not constant.size:
        return table, {}
    if constant.size == len(table.columns):
        raise InputError("every column of X is constant: there is nothing to select from.")
    said = f"{_constant(table, constant)} and left out"
    warn(f"{said}.")
    kept = np.ones(len(table.columns), dtype=bool)
    kept[constant] = False
    return table.keep(kept), {"constant": said}


def warn_of_constant(table: Table) -> NDArray[np.intp]:
    """Constant columns, with a warning: each is its own knockoff."""
    constant = constant_columns(table.X)
    if constant.size:
        its = "its own knockoff" if constant.size == 1 else "their own knockoffs"
        said = f"{_constant(table, constant)}: {its}, never selected."
        warn(said)
    return constant


def _constant(table: Table, constant: NDArray[np.intp]) -> str:
    named = name_some(table.names[j] for j in constant)
    return f"column {named} is constant" if constant.size == 1 else f"columns {named} are constant"


# ---- copies and combinations -------------------------------------------------------------------------------------


def drop_dependent(table: Table, dependent: str = "drop") -> tuple[Table, dict[str, str]]:
    """Table without a smallest set of columns that others determine, and a note; a warning names them.

    ``dependent`` is what the user asked for: "auto" keeps the columns of one feature together.
    """
    relations = find_relations(table)
    if dependent == "auto":
        relations = _between_features(table, relations)
    if not relations:
        return table, {}
    said = (
        f"dropped as copies or exact combinations of other columns (dependent={dependent!r}): "
        f"{describe_relations(relations, table.names)}. The answer is about the table without them"
    )
    warn(f"{said}.")
    return table.without_determined(relations), {"dependent": said}


def refuse_determined(table: Table) -> None:
    """Refuse features that covariates determine: given those they cannot matter."""
    relations = find_relations(table) if table.covariates else {}
    covariates = set(table.covariate_columns.tolist())
    found = {j: of for j, of in relations.items() if j not in covariates and covariates.issuperset(of.tolist())}
    if found:
        raise InputError(
            f"covariates determine features, which cannot matter given them: {describe_relations(found, table.names)}. "
            f"Use drop={[table.names[j] for j in found]!r}."
        )


def warn_of_dependent(table: Table) -> None:
    """Warn of columns that others determine and that are kept."""
    relations = _between_features(table, find_relations(table))
    if relations:
        warn(
            f"columns are copies or exact combinations of others: {describe_relations(relations, table.names)}. Given "
            "the others none of those involved can matter, and their knockoffs are nearly copies. Use "
            f"drop={[table.names[j] for j in relations]!r} or dependent='drop', or make them one feature by groups=."
        )


def find_relations(table: Table) -> Relations:
    """Columns that others determine: copies, and linear combinations where there are more rows than columns.

    Constant columns are no copies of one another. Labels without an order are copies of other labels at most. Cells are
    missing together in copies; in combinations a missing cell counts as the mean of its column.

    >>> from knockoffs.table.table import read_table
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> find_relations(read_table(np.column_stack([X, np.exp(X[:, 1]), X.sum(axis=1)])))
    {3: array([1]), 4: array([0, 1, 2])}
    """
    n, d = table.X.shape
    varying = np.delete(np.arange(d), constant_columns(table.X))
    varying = varying[np.argsort(~np.isin(varying, table.covariate_columns), kind="stable")]  # covariates stay
    some = np.unique(np.linspace(0, n - 1, min(n, max(MOST_ROWS, 4 * d))).astype(np.intp)) if n else np.arange(0)
    copies = find_copies(table, varying, some)
    numbers = [j for j in varying if j not in copies and table.kinds[j] != "nominal"]
    found = copies | _combinations(table, np.array(numbers, dtype=np.intp), some)
    return dict(sorted(found.items()))


def find_copies(table: Table, columns: Iterable[int], some: NDArray[np.intp]) -> Relations:
    """Columns that say the same as an earlier one: in the same or the reverse order, labels and steps in any."""
    alike: dict[bytes, list[int]] = {}
    for rows in (some, slice(None)) if len(some) < len(table) else (some,):
        suspects = [j for same in alike.values() if len(same) > 1 for j in same] if alike else map(int, columns)
        alike = {}
        for j in suspects:
            pattern = pattern_of(table.X[rows, j], ordered=table.kinds[j] == "continuous")
            alike.setdefault(pattern, []).append(j)
    return {j: np.array(same[:1]) for same in alike.values() for j in same[1:]}


def pattern_of(x: NDArray[np.float64], *, ordered: bool, fewest_ordered: int = 20, steps: int = 10**9) -> bytes:
    """Key that two columns share where each determines the other.

    ``ordered`` numbers are the same in the same or the reverse order, and few of them in other units; labels and
    steps, in any order. Cells are missing in both.

    Parameters
    ----------
    fewest_ordered : int
        Numbers with fewer different values than this may have one order by chance: they are compared as numbers,
        rounded to ``steps`` steps of their range.

    >>> pattern_of(np.arange(30.0), ordered=True) == pattern_of(-np.exp(np.arange(30.0)), ordered=True)
    True
    >>> pattern_of(np.array([0.0, 1, 2, 1]), ordered=False) == pattern_of(np.array([5.0, 7, 3, 7]), ordered=False)
    True
    """
    known = ~np.isnan(x)
    codes = np.full(len(x), -1, dtype=np.int64)
    if ordered:
        values, place = np.unique(x[known], return_inverse=True)  # where each comes first asks for a slower sort
        last = len(values) - 1
        if 0 < last < fewest_ordered - 1:
            place, last = np.rint(steps * ((values - values[0]) / (values[-1] - values[0])))[place].astype(int), steps
        height = 2 * place - last  # above the middle
        up = height[np.argmax(height != 0)] > 0 if len(height) else True  # of the first cell that is not in it
        codes[known] = place if up else last - place
    else:
        _, first, place = np.unique(x[known], return_index=True, return_inverse=True)
        codes[known] = np.argsort(np.argsort(first))[place]  # numbered as they come
    return blake2b(codes.tobytes(), person=b"order" if ordered else b"steps").digest()


def _combinations(table: Table, numbers: NDArray[np.intp], some: NDArray[np.intp]) -> Relations:
    """Columns that are linear combinations of those before them."""
    if len(some) <= len(numbers) or not len(numbers):  # every column is one, then
        return {}
    found: Relations = {}
    for rows in (some, slice(None)) if len(some) < len(table) else (some,):
        X = table.X[rows][:, numbers]
        missing = np.isnan(X)
        X = np.where(missing, np.nan_to_num(X).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1), X)
        varies = np.flatnonzero(np.ptp(X, axis=0) > 0)  # in these rows
        found = dependent_columns(standardise(X[:, varies])[0]) if len(varies) else {}
        found = {int(numbers[varies[j]]): numbers[varies[of]] for j, of in found.items()}
        if not found:
            break
    return found


def _between_features(table: Table, relations: Relations) -> Relations:
    """Relations of columns that are not all of one feature, where they do no harm."""
    owner = table.feature_of
    return {j: of for j, of in relations.items() if (owner[of] != owner[j]).any()}


# ---- functions of one column -------------------------------------------------------------------------------------


def warn_of_functions(table: Table) -> dict[str, str]:
    """Note on columns that are functions of a column of another feature; a warning says the same.

    Nothing is left out: whether a person's number or what it determines is of interest, only the user knows.
    """
    owner, covariates = table.feature_of, set(table.covariate_columns.tolist())  # which are no hypotheses
    pairs = [(i, j) for i, j in find_functions(table).tolist() if owner[i] != owner[j] and j not in covariates]
    coarser = {j for _, j in pairs}
    finest = sorted({i for i, _ in pairs} - coarser)
    if not finest:
        return {}
    said = [_function_of(table.names[i], [table.names[j] for k, j in pairs if k == i]) for i in finest[:5]]
    said += [f"and {len(finest) - 5} more columns determine others"] if len(finest) > 5 else []
    note = "; ".join(said) + ". Drop one side, or make one feature of them by groups="
    warn(f"{note}.")
    return {"functions": note}


def _function_of(name: str, others: list[str]) -> str:
    if len(others) == 1:
        return f"{others[0]!r} is a function of {name!r}, so it cannot be a discovery given {name!r}"
    return f"{name_some(others)} are functions of {name!r}, so they cannot be discoveries given {name!r}"


def find_functions(
    table: Table, *, rows_a_value: int = 20, certain: float = 30.0, most_columns: int = 1000
) -> NDArray[np.intp]:
    """Pairs of columns (i, j), shape (m, 2): column j is a function of column i.

    Values of column i must repeat, so that rows could show otherwise: each row beyond the first of a value agrees with
    it by chance, at most as often as column j has its most frequent value. The most frequent value of column i does not
    count where column j varies beside it: zeros and codes for nothing go together in many columns. A missing cell
    determines nothing but a missing cell, since it is drawn. The order of numbers is ignored: row numbers determine
    whatever a file is sorted by.

    Parameters
    ----------
    rows_a_value : int
        Rows for each value of column i, on average, its most frequent value left out; with fewer, chance could do it.
    certain : float
        Minus the log of the chance, for one pair, that an unrelated column looks like a function.
    most_columns : int
        Nothing is looked for among more columns of few values than this.

    >>> from knockoffs.table.table import read_table
    >>> age = np.random.default_rng(0).integers(20, 80, 4000).astype(float)
    >>> find_functions(read_table(np.column_stack([age // 10, age]))).tolist()
    [[1, 0]]
    """
    n, d = table.X.shape
    found: list[tuple[int, int]] = []
    columns = np.delete(np.arange(d), constant_columns(table.X))
    rows = np.unique(np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(np.intp)) if n else np.arange(0)
    if len(columns) < 2 or len(rows) < 2 * rows_a_value:
        return np.empty((0, 2), dtype=np.intp)
    codes = _codes(table.X[np.ix_(rows, columns)])
    n_values = codes.max(axis=0) + 1
    few = np.flatnonzero((n_values > 1) & (n_values * rows_a_value <= len(rows)))
    if len(few) > most_columns:
        return np.empty((0, 2), dtype=np.intp)
    screen = np.linspace(0, len(rows) - 1, min(256, len(rows))).astype(np.intp)  # which rules out most pairs
    for i in few:
        others = few[(n_values[few] < n_values[i]) | ((n_values[few] == n_values[i]) & (few > i))]
        for part in (codes[screen], codes):
            others = others[_are_functions(part[:, i], part[:, others])]
        others = np.array([j for j in others if _certain(codes[:, i], codes[:, j], rows_a_value, certain)], dtype=int)
        if len(others):
            X = table.X[:, columns[[i, *others]]]
            missing_too = np.isnan(X[np.isnan(X[:, 0]), 1:]).all(axis=0)
            all_codes = _codes(X)
            functions = columns[others][_are_functions(all_codes[:, 0], all_codes[:, 1:]) & missing_too]
            found += [(columns[i], j) for j in sorted(functions)]
    return np.array(found, dtype=np.intp).reshape(-1, 2)


def _codes(X: NDArray) -> NDArray[np.intp]:
    """Values of each column by their rank; missing cells have the last."""
    return np.stack([np.unique(x, return_inverse=True)[1].reshape(-1) for x in X.T], axis=1)


def _are_functions(x: NDArray[np.intp], Y: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns of Y are functions of x."""
    order = np.argsort(x, kind="stable")
    starts = np.flatnonzero(np.diff(x[order], prepend=-1))
    Y = Y[order]
    return (np.minimum.reduceat(Y, starts) == np.maximum.reduceat(Y, starts)).all(axis=0)


def _certain(x: NDArray[np.intp], y: NDArray[np.intp], rows_a_value: int, certain: float) -> bool:
    """Whether chance would hardly make y a function of x, where it is one."""
    rest = x != np.bincount(x).argmax()
    if y[rest].size and np.ptp(y[rest]) > 0:
        x, y = x[rest], y[rest]
        if len(x) < rows_a_value * len(np.unique(x)):
            return False
    share = np.bincount(y).max() / len(y)
    return bool((len(x) - len(np.unique(x))) * -np.log(share) >= certain)


# ---- linear relations ------------------------------------------------------------------------------------------------
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

    Z, shape (n, d), holds standardised columns; ``correlation`` is Z^T Z / n, where it is known.
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
    """Few of the columns of A, which are independent, whose combination is b: those with a weight that are needed."""
    weights = np.linalg.lstsq(A, b, rcond=None)[0]
    chosen = np.flatnonzero(np.abs(weights) > np.sqrt(SAME))
    for column in chosen[np.argsort(np.abs(weights[chosen]))]:
        fewer = A[:, chosen[chosen != column]]
        residual = b - fewer @ np.linalg.lstsq(fewer, b, rcond=None)[0]
        if residual @ residual <= SAME:
            chosen = chosen[chosen != column]
    return labels[chosen]


def describe_relations(relations: Mapping[int, NDArray[np.intp]], names: Sequence[str] | None, most: int = 5) -> str:
    """List which columns are combinations of which, by name or by number.

    >>> describe_relations({2: np.array([0, 1])}, ["ldl", "hdl", "total"])
    "'total' of 'ldl', 'hdl'"
    """
    called = names or [str(j) for j in range(1 + max(relations, default=0))]
    some = [f"{called[j]!r} of {name_some(called[k] for k in of)}" for j, of in list(relations.items())[:most]]
    return "; ".join(some + ([f"and {len(relations) - most} more"] if len(relations) > most else []))


def dependent_error(
    relations: Mapping[int, NDArray[np.intp]], names: Sequence[str] | None, remedy: str = ""
) -> ColumnsError:
    """Error that names a smallest set of columns to drop, all relations at once."""
    listed = "" if names is None else f" (drop={[names[j] for j in relations]!r})"
    one = len(relations) == 1
    are = "is an exact combination" if one else "are exact combinations"
    return ColumnsError(
        relations,
        "column" if one else "columns",
        f"{are} of other columns ({describe_relations(relations, names)}: duplicates, sums, or a full set of "
        "indicators), so none of those involved can matter given the others. Without the columns named first no exact "
        f"relation is left: drop {'it' if one else 'them'}{listed}{remedy}.",
    )
