"""Groups of columns found where knockoffs would be twins of their columns; of neighbours, if columns have an order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.table.groups import Groups, name_group, number_groups

# AR(1) 0.9, 200 columns, ten signals, 12 draws: 0.3, 0.5, 0.7 have power .81, .95, .97 at level 0.2, 86, 38, 11 groups
ROOM = 0.5  # share of its variance that an automatic group keeps given all other columns
FLOOR = 0.3  # average |correlation| under which branches are never joined


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
    their columns are nearly determined by the others, and only fewer columns can help. The target is not looked at, so
    the FDR over the groups is controlled as for groups that were given.

    Parameters
    ----------
    correlation : array-like, shape (d, d)
        Of the columns, or of their latent scores; positive definite.
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

    from knockoffs.sampling.diagonal import check_covariance

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
        branches = cut_tree(tree, d, 1 - cut)
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


def cut_tree(tree: NDArray, d: int, height: float) -> list[list[int]]:
    """Columns of the branches that are left when the tree has grown to the first join above a height.

    >>> cut_tree(np.array([[0, 1, 0.1], [3, 2, 0.75]]), 3, 0.5)
    [[0, 1], [2]]
    """
    members = {j: [j] for j in range(d)}
    for node, (left, right, distance) in enumerate(tree[:, :3], start=d):
        if distance > height:
            break
        members[node] = members.pop(int(left)) + members.pop(int(right))
    return sorted(members.values())


# ---- groups of neighbouring columns ----------------------------------------------------------------------------------
WINDOW = 30  # columns on either side that are looked at for the variance that a group keeps given the others


def runs(feature_of: ArrayLike) -> NDArray[np.intp]:
    """Count the stretches of neighbouring columns of one group: a group that is not together is several of them.

    Knockoffs that can be exchanged stretch by stretch can be exchanged group by group.

    >>> runs([0, 0, 1, 0, 2, 2])
    array([0, 0, 1, 2, 3, 3])
    """
    owners = np.asarray(feature_of)
    return np.concatenate([[0], np.cumsum(owners[1:] != owners[:-1])]).astype(np.intp)


def neighbour_tree(R: NDArray) -> NDArray:
    """Tree of average linkage on 1 - |correlation| in which only neighbouring branches are joined, shape (d - 1, 3).

    A row holds two branches, below d single columns, and their distance, as scipy's ``linkage`` has them. Sums of |R|
    over rectangles come from one table of cumulated sums: O(d^2) in all.

    >>> neighbour_tree(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.5], [0.0, 0.5, 1.0]])).round(2)
    array([[0.  , 1.  , 0.1 ],
           [3.  , 2.  , 0.75]])
    """
    total = np.zeros((len(R) + 1, len(R) + 1))
    total[1:, 1:] = np.abs(R).cumsum(axis=0).cumsum(axis=1)

    def distance(k: int) -> float:
        """Distance of branch k from the next."""
        a, b, c = starts[k : k + 3]
        both = total[b, c] - total[a, c] - total[b, b] + total[a, b]
        return 1 - both / ((b - a) * (c - b))

    starts = np.arange(len(R) + 1)  # first column of each branch; and the number of columns
    branches = np.arange(len(R))
    distances = np.array([distance(k) for k in range(len(R) - 1)])
    tree: list[tuple[int, int, float]] = []
    while len(branches) > 1:
        k = int(distances.argmin())
        tree.append((branches[k], branches[k + 1], distances[k]))
        starts, branches, distances = np.delete(starts, k + 1), np.delete(branches, k + 1), np.delete(distances, k)
        branches[k] = len(R) - 1 + len(tree)
        for changed in range(max(k - 1, 0), min(k + 1, len(distances))):
            distances[changed] = distance(changed)
    return np.array(tree).reshape(-1, 3)
