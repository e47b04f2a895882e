"""Groups of columns that are selected together: as the user gives them, or found where knockoffs would be twins."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError, did_you_mean, name_some
from knockoffs.table.neighbours import WINDOW, cut_neighbours, neighbour_tree

# AR(1) 0.9, 200 columns, ten signals, 12 draws: 0.3, 0.5, 0.7 have power .81, .95, .97 at level 0.2, 86, 38, 11 groups
ROOM = 0.5  # share of its variance that an automatic group keeps given all other columns
FLOOR = 0.3  # average |correlation| under which branches are never joined


SHRUNK = 0.01  # of the correlations that "auto" looks at


@dataclass(frozen=True)
class Groups:
    """Which group owns each column, and how the groups are called.

    Parameters
    ----------
    feature_of : array of int, shape (n_columns,)
        Groups are numbered 0, 1, 2, ... by their first column.
    names : tuple of str
        One for each group.
    note : str
        How they were found; empty if they were given.
    """

    feature_of: NDArray[np.intp]
    names: tuple[str, ...]
    note: str = ""

    def __len__(self) -> int:
        """Count the groups."""
        return len(self.names)

    def columns(self, group: int) -> NDArray[np.intp]:
        """Columns of one group."""
        return np.flatnonzero(self.feature_of == group)

    def keep(self, kept: NDArray[np.bool_]) -> Groups:
        """Keep some of the columns; a group of which none stays is gone.

        >>> Groups(np.array([0, 1, 0, 2]), ("a", "b", "c")).keep(np.array([True, False, True, True]))
        Groups(feature_of=array([0, 0, 1]), names=('a', 'c'), note='')
        """
        stay = list(dict.fromkeys(self.feature_of[kept].tolist()))  # in the order of their first columns
        number = {group: place for place, group in enumerate(stay)}
        feature_of = np.array([number[group] for group in self.feature_of[kept].tolist()], dtype=np.intp)
        return Groups(feature_of, tuple(self.names[group] for group in stay), self.note)


def as_groups(groups: Any, names: Sequence[str]) -> Groups:
    """Read the groups of a table's columns in any of the forms below; a column that is in none is its own.

    Parameters
    ----------
    groups : mapping, sequence, array or None
        A mapping from column to group or from group to a list of columns; a group for each column, in their order; or
        pairs (column, group), as ``read_groups`` gives them. None: every column alone.
    names : sequence of str
        Names of the table's columns.

    >>> as_groups({"lipids": ["ldl", "hdl"]}, ["age", "ldl", "hdl"])
    Groups(feature_of=array([0, 1, 1]), names=('age', 'lipids'), note='')
    >>> as_groups(["a", "b", "a"], ["x", "y", "z"]).feature_of
    array([0, 1, 0])
    """
    if isinstance(groups, Groups):
        if len(groups.feature_of) != len(names):
            raise InputError(f"groups has {len(groups.feature_of)} columns: the table has {len(names)}.")
        return groups
    if groups is None:
        return number_groups([None] * len(names), names)
    if isinstance(groups, str):
        raise InputError(
            f"groups={groups!r}: use a mapping from column to group, a list of groups, one for each column, or 'auto'."
        )
    if isinstance(groups, Mapping):
        pairs = _pairs_of_mapping(groups)
    else:
        try:
            listed = list(groups)
        except TypeError:
            raise InputError(
                f"groups={groups!r}: use a mapping from column to group, a list of groups, or 'auto'."
            ) from None
        if not (listed and all(isinstance(item, tuple) and len(item) == 2 for item in listed)):
            return _groups_in_order(listed, names)
        pairs = listed
    return number_groups(_label_columns(pairs, names), names)


def read_groups(path: Path) -> list[tuple[str, str]]:
    """Read pairs (column, group) from a csv file with the header ``column,group``."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as csv in UTF-8: {error}.") from None
    if not rows or [cell.strip().lower() for cell in rows[0]] != ["column", "group"]:
        raise InputError(f"{path}: expected a csv file that begins with the line column,group.")
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != 2 or not row[1].strip():
            raise InputError(f"{path}: row {line} has {len(row)} cells or no group: expected a column and its group.")
    return [(row[0], row[1].strip()) for row in rows[1:]]


def number_groups(labels: Sequence[object], names: Sequence[str], note: str = "") -> Groups:
    """Make groups from a label for each column, None for a column of its own."""
    alone = {name for name, label in zip(names, labels, strict=True) if label is None}
    clash = sorted(alone & {label for label in labels if isinstance(label, str)})
    if clash:
        raise InputError(
            f"groups: {clash[0]!r} is the name of a group and of a column that is in none. Rename the group, or put "
            "the column into it."
        )
    keys = [("column", name) if label is None else ("group", label) for name, label in zip(names, labels, strict=True)]
    number = {key: g for g, key in enumerate(dict.fromkeys(keys))}
    feature_of = np.array([number[key] for key in keys], dtype=np.intp)
    members: list[list[str]] = [[] for _ in number]
    for g, name in zip(feature_of, names, strict=True):
        members[g].append(str(name))
    called = [_called(kind, label, columns) for (kind, label), columns in zip(number, members, strict=True)]
    return Groups(feature_of, tuple(called), note)


def join_groups(groups: Groups | None, names: Sequence[str], columns: Sequence[str]) -> Groups:
    """Make one group of some columns and of every group that holds one of them.

    >>> join_groups(None, ["a", "b", "c"], ["a", "c"]).names
    ('a and c', 'b')
    """
    found = as_groups(groups, names)
    touched = {int(found.feature_of[list(names).index(column)]) for column in columns}
    members = [name for name, g in zip(names, found.feature_of, strict=True) if g in touched]
    sizes = np.bincount(found.feature_of)
    labels = [
        name_group(members) if g in touched else found.names[g] if sizes[g] > 1 else None for g in found.feature_of
    ]
    return number_groups(labels, names, found.note)


def name_group(columns: Sequence[str], most: int = 2) -> str:
    """Name of a group that was given none.

    >>> name_group(["a"]), name_group(["a", "b"]), name_group(["a", "b", "c"]), name_group(list("abcde"))
    ('a', 'a and b', 'a, b and c', 'a, b and 3 more')
    """
    if len(columns) == 1:
        return str(columns[0])
    if len(columns) <= most + 1:
        return ", ".join(columns[:-1]) + f" and {columns[-1]}"
    return ", ".join(columns[:most]) + f" and {len(columns) - most} more"


def _called(kind: str, label: object, columns: list[str]) -> str:
    """Name as given; a number says little, so the columns are named with it."""
    if kind == "column" or isinstance(label, str):
        return str(label)
    return f"{label}: {name_group(columns)}"


def _groups_in_order(labels: list[object], names: Sequence[str]) -> Groups:
    if len(labels) != len(names):
        raise InputError(f"groups has {len(labels)} entries: expected {len(names)}, a group for each column.")
    return number_groups([_plain(label) for label in labels], names)


def _plain(label: Any) -> object:
    """Label as a string or an int; None and NaN are none."""
    if label is None or (isinstance(label, float | np.floating) and np.isnan(label)):
        return None
    if (
        isinstance(label, int | np.integer | float | np.floating)
        and not isinstance(label, bool)
        and np.isfinite(label)
        and label == int(label)
    ):
        return int(label)
    return str(label)


def _pairs_of_mapping(groups: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """(column, group) of a mapping in either direction."""
    lists = [
        isinstance(value, Sequence | set | frozenset | np.ndarray) and not isinstance(value, str)
        for value in groups.values()
    ]
    if not any(lists):
        return list(groups.items())
    if not all(lists):
        odd = next(key for key, is_list in zip(groups, lists, strict=True) if not is_list)
        raise InputError(
            f"groups: {odd!r} maps to {groups[odd]!r}, others to lists. Map every group to a list of columns, or every "
            "column to its group."
        )
    return [(column, group) for group, columns in groups.items() for column in columns]


def _label_columns(pairs: Iterable[tuple[Any, Any]], names: Sequence[str]) -> list[object]:
    """Label of each column, None where it is in no pair."""
    place = {str(name): j for j, name in enumerate(names)}
    labels: list[object] = [None] * len(names)
    unknown = []
    for column, group in pairs:
        j = place.get(str(column))
        if j is None:
            unknown.append(str(column))
            continue
        label = _plain(group)
        if labels[j] is not None and label is not None and labels[j] != label:
            raise InputError(
                f"groups: column {str(column)!r} is in two groups, {str(labels[j])!r} and {str(label)!r}. Put it into "
                "one, or make one group of both."
            )
        labels[j] = label if label is not None else labels[j]
    if unknown:
        hint = did_you_mean(unknown[0], list(place))
        raise InputError(
            f"groups: the table has no {'column' if len(unknown) == 1 else 'columns'} {name_some(unknown)}.{hint}"
        )
    return labels


def auto_groups(
    correlation: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    room: float = ROOM,
    cut: float | None = None,
    ordered: bool = False,
) -> Groups:
    """Find columns whose knockoffs would be twins, and group them by average linkage on 1 - |correlation|.

    The room of a group is tr(S_gg^-1 S_g|rest) / |g|: the share of its variance that is left given all other columns,
    on average over its directions (for one column 1 - R^2). No knockoff can be further from its column than that
    allows: D_gg <= 2 S_g|rest. The groups are the finest branches of the tree whose room is at least ``room``, but
    branches whose average |correlation| is below FLOOR = 0.3 are not joined; with ``cut``, the groups are the branches
    of the tree cut where the average |correlation| is ``cut``. Groups that still lack room are counted in the note:
    their columns are nearly determined by the others, and only fewer columns can help (``representatives``). The
    target is not looked at, so the FDR over the groups is controlled as for groups that were given.

    Parameters
    ----------
    correlation : array-like, shape (d, d)
        Of the columns, or of their latent scores; positive definite.
    names : sequence of str, optional
    room : float
        Between 0 (every column alone) and 1.
    cut : float, optional
        Average |correlation| above which branches are joined, instead of ``room``.
    ordered : bool
        Whether columns follow each other, as sites of a chromosome do: only neighbours are joined, and the room of a
        group is that given the ``WINDOW`` columns on either side of it.

    >>> R = np.eye(4) + 0.97 * np.eye(4)[[1, 0, 3, 2]]
    >>> auto_groups(R, ["a", "b", "c", "d"]).names
    ('a and b', 'c and d')
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    from knockoffs.sampling.covariance import check_covariance

    S = check_covariance(correlation, "correlation")
    d = len(S)
    called = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    for argument, value in (("room", room), ("cut", room if cut is None else cut)):
        if not 0 <= value <= 1:
            raise InputError(f"{argument}={value!r}: use a number between 0 and 1.")
    if d == 1:
        return number_groups([None], called)
    sd = np.sqrt(np.diagonal(S))
    R = S / np.outer(sd, sd)
    distance = np.clip(1 - np.abs(R), 0, None)
    np.fill_diagonal(distance, 0.0)
    tree = neighbour_tree(R) if ordered else linkage(squareform(distance, checks=False), method="average")
    left = partial(_room_among_neighbours, R) if ordered else partial(room_of, R, np.linalg.inv(R))
    if cut is None:
        branches = _finest_branches(tree, d, left, room)
        rule = (
            f"until a group keeps {room:.0%} of its variance given all other columns, or the average is under {FLOOR}"
        )
    else:
        branches = cut_neighbours(tree, d, 1 - cut) if ordered else _cut_branches(tree, d, 1 - cut)
        rule = f"average |correlation| above {cut:g}"
    labels = np.empty(d, dtype=int)
    for g, columns in enumerate(branches):
        labels[columns] = g
    of_neighbours = "of neighbours " if ordered else ""
    note = (
        f"{len(branches)} groups of {d} columns by average linkage {of_neighbours}on |correlation| ({rule}); "
        f"the largest has {max(map(len, branches))}."
    )
    short = sum(left(np.array(columns)) < room for columns in branches)
    if short:
        note += f" {short} of them keep less than {room:.0%}: nearly determined by the others, they are hard to find."
    found = number_groups(labels.tolist(), called)
    members = [name_group([called[j] for j in found.columns(g)]) for g in range(len(found))]
    return Groups(found.feature_of, tuple(members), note)


def score_correlation(X: NDArray) -> NDArray:
    """Correlations of the normal scores of the columns, missing cells at their mean; identity for constant ones.

    Shrunk a little towards none, so that columns that determine one another have an inverse.
    """
    from scipy.stats import norm, rankdata

    scores = np.zeros(X.shape)
    for j, x in enumerate(X.T):
        seen = ~np.isnan(x)
        if seen.any():
            scores[seen, j] = norm.ppf((rankdata(x[seen]) - 0.5) / seen.sum())
    scores -= scores.mean(axis=0)
    sd = scores.std(axis=0)
    scores /= np.where(sd > 0, sd, 1.0)
    R = (1 - SHRUNK) * scores.T @ scores / len(scores)
    np.fill_diagonal(R, 1.0)
    return R


def room_of(R: NDArray, precision: NDArray, columns: NDArray[np.intp]) -> float:
    """tr(S_gg^-1 S_g|rest) / |g|, S_g|rest being the inverse of the group's block of S^-1.

    >>> R = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> round(room_of(R, np.linalg.inv(R), np.array([0])), 12)  # 1 - R^2
    0.64
    """
    block = np.ix_(columns, columns)
    return float(np.trace(np.linalg.inv(precision[block] @ R[block]))) / len(columns)


def _room_among_neighbours(R: NDArray, columns: NDArray[np.intp]) -> float:
    """Room of neighbouring columns given those near them: far ones matter little, and could outnumber the rows."""
    start = max(int(columns.min()) - WINDOW, 0)
    near = slice(start, int(columns.max()) + 1 + WINDOW)
    return room_of(R[near, near], np.linalg.inv(R[near, near]), columns - start)


def _finest_branches(tree: NDArray, d: int, left: Callable[[NDArray[np.intp]], float], room: float) -> list[list[int]]:
    """Find the finest branches with enough room: a node is kept whole if a branch below it lacks room."""
    members: list[list[int]] = [[j] for j in range(d)]
    parts: list[list[list[int]]] = [[[j]] for j in range(d)]  # the finest branches below each node
    fine = [left(np.array([j])) >= room for j in range(d)]  # do they all have room?
    for first, second, height in zip(tree[:, 0].astype(int), tree[:, 1].astype(int), tree[:, 2], strict=True):
        members.append(members[first] + members[second])
        both = fine[first] and fine[second]
        if both or height > 1 - FLOOR:
            parts.append(parts[first] + parts[second])
            fine.append(both)
        else:
            parts.append([members[-1]])
            fine.append(left(np.array(members[-1])) >= room)
    return parts[-1]


def _cut_branches(tree: NDArray, d: int, height: float) -> list[list[int]]:
    from scipy.cluster.hierarchy import fcluster

    labels = fcluster(tree, height, criterion="distance")
    return [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]


def representatives(correlation: ArrayLike, feature_of: ArrayLike, n: int = 1) -> NDArray[np.intp]:
    """Columns that represent their groups best: chosen one by one to explain the most variance of the group.

    Knockoffs of the representatives alone are further from them, at a price: what is selected then is a column
    that depends on y given the other representatives, not given all columns.

    Parameters
    ----------
    correlation : array-like, shape (d, d)
    feature_of : array-like of int, shape (d,)
    n : int
        Columns of each group, or all of it where it has fewer.

    Returns
    -------
    ndarray of int
        In the order of the table.

    >>> R = np.array([[1.0, 0.9, 0.5, 0.0], [0.9, 1.0, 0.9, 0.0], [0.5, 0.9, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    >>> representatives(R, [0, 0, 0, 1])
    array([1, 3])
    """
    if n < 1:
        raise InputError(f"n={n!r}: a group needs at least one representative.")
    R, owners = np.asarray(correlation, dtype=float), np.asarray(feature_of)
    chosen: list[int] = []
    for group in np.unique(owners):
        columns = np.flatnonzero(owners == group)
        left = R[np.ix_(columns, columns)].copy()
        for _ in range(min(n, len(columns))):
            variance = np.diagonal(left)
            explained = np.where(variance > 1e-10, (left**2).sum(axis=0) / np.maximum(variance, 1e-10), -1.0)
            explained[np.isin(columns, chosen)] = -2.0
            best = int(explained.argmax())
            chosen.append(int(columns[best]))
            if variance[best] > 1e-10:
                left = left - np.outer(left[:, best], left[best]) / variance[best]
    return np.array(sorted(chosen), dtype=np.intp)
