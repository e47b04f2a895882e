"""Groups of neighbouring columns, for tables whose columns follow each other: sites of a chromosome, times of a day."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

    A row holds two branches, below d single columns, and their distance, as scipy's ``linkage`` has them; heights
    need not rise. Sums of |R| over rectangles come from one table of cumulated sums: O(d^2) in all.

    >>> neighbour_tree(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.5], [0.0, 0.5, 1.0]])).round(2)
    array([[0.  , 1.  , 0.1 ],
           [3.  , 2.  , 0.75]])
    """
    d = len(R)
    total = np.zeros((d + 1, d + 1))
    total[1:, 1:] = np.abs(R).cumsum(axis=0).cumsum(axis=1)

    def distance(a: int, b: int, c: int) -> float:
        """Of the columns a, ..., b - 1 from b, ..., c - 1."""
        both = total[b, c] - total[a, c] - total[b, b] + total[a, b]
        return 1 - float(both) / ((b - a) * (c - b))

    begin = {j: j for j in range(d)}  # of the branches that can still be joined
    end = {j: j + 1 for j in range(d)}
    left_of: dict[int, int] = {j: j - 1 for j in range(1, d)}
    right_of: dict[int, int] = {j: j + 1 for j in range(d - 1)}
    heap = [(distance(j, j + 1, j + 2), j, j + 1) for j in range(d - 1)]
    heapq.heapify(heap)
    tree: list[tuple[int, int, float]] = []
    while heap:
        height, a, b = heapq.heappop(heap)
        if a not in begin or b not in begin:
            continue  # one of them was joined before
        node = d + len(tree)
        tree.append((a, b, height))
        begin[node], end[node] = begin.pop(a), end.pop(b)
        del begin[b], end[a]
        if (before := left_of.pop(a, None)) is not None:
            left_of[node], right_of[before] = before, node
            heapq.heappush(heap, (distance(begin[before], begin[node], end[node]), before, node))
        if (after := right_of.pop(b, None)) is not None:
            right_of[node], left_of[after] = after, node
            heapq.heappush(heap, (distance(begin[node], end[node], end[after]), node, after))
    return np.array(tree).reshape(-1, 3)


def cut_neighbours(tree: NDArray, d: int, height: float) -> list[list[int]]:
    """Columns of the branches that are left when the tree has grown to the first join above a height.

    >>> cut_neighbours(np.array([[0, 1, 0.1], [3, 2, 0.75]]), 3, 0.5)
    [[0, 1], [2]]
    """
    members = {j: [j] for j in range(d)}
    for node, (left, right, distance) in enumerate(tree, start=d):
        if distance > height:
            break
        members[node] = members.pop(int(left)) + members.pop(int(right))
    return sorted(members.values())
