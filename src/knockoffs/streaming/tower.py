"""Sums over batches of rows in a fixed order, so that the last bit does not depend on who adds and when.

Floating-point sums depend on their brackets. Here eight batches are added in their order, then eight such sums, then
eight of these: whoever adds, one process or many workers that end in any order, and wherever a stopped run goes on, the
brackets are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class RowSum(Protocol):
    """What is added over rows, and written to a file between two batches."""

    def __add__(self, other: Self, /) -> Self:
        """Sum over the rows of both."""
        ...

    def arrays(self) -> dict[str, NDArray]:
        """Everything as arrays by name, for a file."""
        ...


class Addable(Protocol):
    """What has a sum with its like."""

    def __add__(self, other: Self, /) -> Self:
        """Sum of both."""
        ...


Sum = TypeVar("Sum", bound=Addable)
FAN = 8  # sums that are added to one of the next level


@dataclass(frozen=True)
class Part:
    """What some batches say.

    Attributes
    ----------
    totals : tuple
        Of each draw of knockoffs the sum of its statistic; None where these batches have none.
    moved : tuple of array of bool, shape (n_features,)
        Of each draw the features that some knockoff has moved.
    n_unknown : array of int, shape (n_columns,)
        Cells with labels that the sample does not have.
    """

    totals: tuple[RowSum | None, ...]
    moved: tuple[NDArray[np.bool_], ...]
    n_unknown: NDArray[np.intp]

    def __add__(self, other: Part) -> Part:
        """Both together."""
        pairs = zip(self.totals, other.totals, strict=True)
        totals = tuple(b if a is None else a if b is None else a + b for a, b in pairs)
        moved = tuple(a | b for a, b in zip(self.moved, other.moved, strict=True))
        return Part(totals, moved, self.n_unknown + other.n_unknown)


def add_up(parts: Iterable[Sum]) -> Sum:
    """Sum of up to eight parts of one level, in their order."""
    return reduce(add, parts)


@dataclass(frozen=True)
class Tower(Generic[Sum]):
    """Sums so far, one a level at most.

    Attributes
    ----------
    done : int
        Batches in them.
    sums : tuple
        Of level 0, 1, ...: the sum of the parts of that level that wait for others to make one of the next; or None.
    """

    done: int = 0
    sums: tuple[Sum | None, ...] = ()

    def put(self, part: Sum, n: int = 1, level: int = 0) -> Tower[Sum]:
        """Tower with the sum of the next ``n`` batches; there are FAN^level of them, or fewer if they are the last.

        >>> tower = Tower()
        >>> for letter in "abcdefghij":
        ...     tower = tower.put(letter)
        >>> tower.sums, tower.total()
        (('ij', 'abcdefgh'), 'abcdefghij')
        """
        sums, done = [*self.sums, *[None] * (level + 1 - len(self.sums))], self.done + n
        sums[level] = whole = _plus(sums[level], part)
        while done % FAN ** (level + 1) == 0:
            sums[level], level = None, level + 1
            sums += [None] * (level + 1 - len(sums))
            sums[level] = whole = _plus(sums[level], whole)
        return Tower(done, tuple(sums))

    def total(self) -> Sum | None:
        """Sum of everything; None if there is nothing."""
        found = None
        for one in self.sums:  # what waits on a level comes after what waits on the next
            if one is not None:
                found = one if found is None else one + found
        return found


def _plus(first: Sum | None, second: Sum) -> Sum:
    return second if first is None else first + second


def runs(done: int, n: int, most: int) -> Iterator[tuple[int, int, int]]:
    """First, last + 1 and level of the sums by which a tower grows from ``done`` to ``n`` batches.

    >>> list(runs(6, 21, 1))
    [(6, 7, 0), (7, 8, 0), (8, 16, 1), (16, 21, 1)]
    """
    while done < n:
        level = most
        while done % FAN**level:
            level -= 1
        last = min(done + FAN**level, n)
        yield done, last, level
        done = last
