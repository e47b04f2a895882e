"""What values a column takes, and codes 0, 1, ... for them that do not depend on how they are written.

The law of a column must not depend on its coding (0/1 or 1/2, grades from 0 or from 1) or on its units (counts, or
counts times 0.1). A law of codes therefore carries the values that the codes stand for, and its draws are such values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import unknown_option
from knockoffs.table.columns import KINDS

MOST_STEPS = 10_000  # of a lattice, from zero to its largest value: beyond it, steps look like numbers
ROUNDING = 1e-6  # of a step, by which a value of a lattice may miss its place (0.1 + 0.2 is not 0.3)


class Support(Protocol):
    """The values of a column and their codes."""

    def encode(self, u: NDArray) -> NDArray:
        """Codes of values, as floats; NaN for what is no value of the column."""
        ...

    def decode(self, codes: NDArray) -> NDArray:
        """Values of codes."""
        ...


@dataclass(frozen=True)
class Labels:
    """Finitely many values, in rising order: code i stands for ``values[i]``.

    >>> grades = Labels(np.array([1.0, 2.0, 5.0]))
    >>> grades.encode(np.array([5.0, 1.0, 3.0])), grades.decode(np.array([2, 0]))
    (array([ 2.,  0., nan]), array([5., 1.]))
    """

    values: NDArray

    def encode(self, u: NDArray) -> NDArray:
        """Place of each value among those known."""
        u = np.asarray(u, dtype=float)
        codes = np.minimum(np.searchsorted(self.values, u), len(self.values) - 1)
        return np.where(self.values[codes] == u, codes, np.nan)

    def decode(self, codes: NDArray) -> NDArray:
        """Values of codes."""
        return self.values[codes]


@dataclass(frozen=True)
class Lattice:
    """Multiples of a unit: code c stands for c * unit. Values that were seen are given back to the last bit.

    >>> tenths = Lattice.of(np.array([0.0, 0.3, 0.1, 0.7]))
    >>> float(tenths.unit), tenths.encode(np.array([0.2, 0.25])), tenths.decode(np.array([3, 7]))
    (0.1, array([ 2., nan]), array([0.3, 0.7]))
    """

    unit: float = 1.0
    seen: NDArray | None = None  # values of the codes 0, 1, ..., len(seen) - 1

    @staticmethod
    def of(values: ArrayLike) -> Lattice | None:
        """Lattice through zero that holds the values, which are not negative; None if there is no such lattice."""
        places = np.unique(np.append(np.asarray(values, dtype=float), 0.0))
        unit = _common_unit(places)
        if unit is None:
            return None
        codes = np.rint(places / unit).astype(np.intp)
        seen = unit * np.arange(codes[-1] + 1)
        seen[codes] = places
        return Lattice(unit, seen)

    def encode(self, u: NDArray) -> NDArray:
        """Count the units."""
        steps = np.asarray(u, dtype=float) / self.unit
        steps = np.where(np.isfinite(steps), steps, np.nan)
        codes = np.rint(steps)
        return np.where((np.abs(steps - codes) <= ROUNDING) & (codes >= 0), codes, np.nan)

    def decode(self, codes: NDArray) -> NDArray:
        """Values of codes."""
        if self.seen is None:
            return codes * self.unit
        known = codes < len(self.seen)
        return np.where(known, self.seen[np.where(known, codes, 0)], codes * self.unit)


def in_units(column: NDArray) -> NDArray:
    """Column in units of its lattice; as it is where it has none, so that a kind does not depend on units.

    >>> in_units(np.array([0.0, 0.3, 0.1])), in_units(np.array([0.0, np.pi, 1.0]))
    (array([0., 3., 1.]), array([0.        , 3.14159265, 1.        ]))
    """
    lattice = Lattice.of(column) if column.size and column.min() >= 0 else None
    return column if lattice is None else lattice.encode(column)


def check_kinds(kinds: Iterable[str]) -> None:
    """Refuse words that are no kinds."""
    for kind in kinds:
        if kind not in KINDS:
            raise unknown_option("kinds", kind, KINDS)


def _common_unit(places: NDArray) -> float | None:
    """Greatest common divisor of values that begin with zero, by Euclid's algorithm; None if it is too small."""
    if len(places) < 2 or not np.isfinite(places).all():
        return None
    unit = float(np.diff(places).min())
    while places[-1] <= MOST_STEPS * unit:
        steps = places / unit
        off = np.abs(steps - np.rint(steps)) * unit
        if not (off > ROUNDING * unit).any():
            largest = np.rint(steps[-1])
            return float(f"{places[-1] / largest:.12g}")  # the last digits of 0.1 * 3 are no part of the unit
        unit = float(off[off > ROUNDING * unit].min())
    return None
