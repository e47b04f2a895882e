"""g_j, one for each column: X_j = g_j(L_j) is monotone, and learned from the column's own distribution.

Every margin reads cells (what x says about L), writes values (x = g(l)), gives a score (the mean of L given x alone)
and the log slope dl/dx at points. NaN is a missing cell. The pooled distribution of L_j is near the standard normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from knockoffs.features.latent.normals import interval_mean

POINT, FREE, INTERVAL = 0, 1, 2
ATOM_SHARE = 0.01  # a value of a continuous column that holds this share of its rows is a step
ATOM_ROWS = 5  # and at least so many rows
TIED = 2.0  # rows for each distinct value from which on all the values of a continuous column are steps
STEEPEST = 3.0  # largest growth rate of a tail: e^3 for each unit of L


class LatentCells(NamedTuple):
    """Constraints on the latent coordinates, one row for each row of X; each array has shape (n, n_coordinates)."""

    status: NDArray[np.int8]  # POINT: L is known. FREE: the cell is missing. INTERVAL: low < L <= high.
    low: NDArray  # bounds where the status is INTERVAL, infinite elsewhere
    high: NDArray
    start: NDArray  # the point, or the mean of the coordinate given its own cell alone: a value inside the constraints

    def rows(self, which: NDArray | slice) -> LatentCells:
        """Take some of the rows."""
        return LatentCells(*(part[which] for part in self))

    def columns(self, which: NDArray[np.intp]) -> LatentCells:
        """Take the coordinates in another order, contiguous."""
        return LatentCells(*(np.ascontiguousarray(part[:, which]) for part in self))

    @property
    def all_points(self) -> bool:
        """Whether L is known in every cell."""
        return not self.status.any()


def point_cells(start: NDArray) -> LatentCells:
    """LatentCells of known coordinates, shape (n, c)."""
    bound = np.full(start.shape, np.inf)
    return LatentCells(np.zeros(start.shape, np.int8), -bound, bound, start)


def free_cells(n: int, c: int) -> LatentCells:
    """LatentCells of which nothing is known."""
    bound = np.full((n, c), np.inf)
    return LatentCells(np.full((n, c), FREE, np.int8), -bound, bound, np.zeros((n, c)))


def interval_cells(low: NDArray, high: NDArray, start: NDArray) -> LatentCells:
    """LatentCells known up to an interval, shape (n, c)."""
    return LatentCells(np.full(start.shape, INTERVAL, np.int8), low, high, start)


class ColumnMap(Protocol):
    """The map g of one column from its latent coordinates."""

    @property
    def n_coordinates(self) -> int:
        """Latent coordinates of the column."""
        ...

    def read(self, x: NDArray) -> LatentCells:
        """Say what x, shape (n,), tells of the coordinates, each array of shape (n, n_coordinates)."""
        ...

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Return x = g(l), shape (n,), for l of shape (n, n_coordinates)."""
        ...

    def log_slope(self, x: NDArray) -> NDArray:
        """Log dl/dx where x is a point, zero where it is not."""
        ...


@dataclass(frozen=True)
class Affine:
    """X = centre + scale L."""

    centre: float = 0.0
    scale: float = 1.0
    n_coordinates = 1

    def read(self, x: NDArray) -> LatentCells:
        """Every value is a point."""
        return _with_missing(x, point_cells(((x - self.centre) / self.scale)[:, None]))

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Return centre + scale l."""
        return self.centre + self.scale * l[:, 0]

    def log_slope(self, x: NDArray) -> NDArray:
        """-log scale."""
        return np.where(np.isnan(x), 0.0, -np.log(self.scale))


@dataclass(frozen=True)
class Rounded(Affine):
    """X = the value seen next to centre + scale L: numbers with ties, in their own units."""

    # shape (m,): values seen, in increasing order; every knockoff is one of them
    values: NDArray = field(default_factory=lambda: np.zeros(1))

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Return the value seen next to centre + scale l."""
        return self.values[np.searchsorted((self.values[1:] + self.values[:-1]) / 2, super().write(l))]

    def spread(self, x: NDArray, rng: Generator) -> NDArray:
        """Values that rounding may have come from: x moved at random by up to half the way to its neighbours."""
        gap = np.diff(self.values)
        low, high = np.append(gap[:1], gap) / 2, np.append(gap, gap[-1:]) / 2
        place = np.searchsorted(self.values, x).clip(max=len(self.values) - 1)
        u = rng.uniform(-1, 1, len(x))
        return x + np.where(u < 0, u * low[place], u * high[place])


@dataclass(frozen=True)
class Steps:
    """X = values_m where cuts_m < L <= cuts_{m+1}: counts, ordered labels, 0/1, rounded numbers."""

    values: NDArray  # shape (m,): values seen, in increasing order; every knockoff is one of them
    cuts: NDArray  # shape (m + 1,): from -inf to inf, at the standard normal quantiles of the cumulated shares
    n_coordinates = 1

    @cached_property
    def scores(self) -> NDArray:
        """Mean of a standard normal within each step, shape (m,)."""
        return interval_mean(self.cuts[:-1], self.cuts[1:])

    def place(self, x: NDArray) -> NDArray[np.intp]:
        """Step of each value; one that was never seen belongs to the nearest that was (NaN to the last)."""
        return np.abs(np.searchsorted((self.values[1:] + self.values[:-1]) / 2, x, side="left"))

    def read(self, x: NDArray) -> LatentCells:
        """Every value is an interval."""
        m = self.place(x)
        return _with_missing(
            x, interval_cells(*(part[m][:, None] for part in (self.cuts[:-1], self.cuts[1:], self.scores)))
        )

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Return the value of the step that l lies in."""
        return self.values[np.searchsorted(self.cuts[1:-1], l[:, 0], side="left")]

    def log_slope(self, x: NDArray) -> NDArray:
        """Zero: a step has a probability, not a density."""
        return np.zeros(len(x))


@dataclass(frozen=True)
class Curve:
    """X = g(L), g linear between knots, with exponential tails beyond them and steps at the column's atoms.

    Beyond the last knot g(l) = x_last + slope (exp(rate t) - 1) / rate, t = l - l_last (linear at rate 0), and the
    same mirrored below the first.
    """

    # knots, shape (m,), both non-decreasing: a step is a pair with the same x, a jump beside it one with neighbouring l
    l: NDArray  # noqa: E741
    x: NDArray
    atoms: NDArray  # shape (a,): values of the steps, in increasing order
    low: NDArray  # shape (a,): interval of L of each atom
    high: NDArray  # shape (a,)
    # slope and rate of the lower and of the upper tail; slope 0 where an atom ends the column
    tails: tuple[tuple[float, float], tuple[float, float]]
    n_coordinates = 1

    def read(self, x: NDArray) -> LatentCells:
        """Atoms are intervals, all other values points."""
        point = np.interp(x, self.x, self.l)
        point = np.where(x < self.x[0], self.l[0] - _tail_inverse(self.x[0] - x, *self.tails[0]), point)
        point = np.where(x > self.x[-1], self.l[-1] + _tail_inverse(x - self.x[-1], *self.tails[1]), point)
        cells = point_cells(point[:, None])
        if len(self.atoms):
            m = np.searchsorted(self.atoms, x).clip(max=len(self.atoms) - 1)
            seen = self.atoms[m] == x
            m = m[seen]
            step = interval_cells(*(a[m][:, None] for a in (self.low, self.high, interval_mean(self.low, self.high))))
            for part, value in zip(cells, step, strict=True):
                part[seen] = value
        return _with_missing(x, cells)

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Interpolate between the knots, and follow the tails beyond them."""
        l = l[:, 0]  # noqa: E741
        x = np.interp(l, self.l, self.x)
        below, above = np.flatnonzero(l < self.l[0]), np.flatnonzero(l > self.l[-1])
        x[below] = self.x[0] - _tail(self.l[0] - l[below], *self.tails[0])
        x[above] = self.x[-1] + _tail(l[above] - self.l[-1], *self.tails[1])
        for value, low, high in zip(self.atoms, self.low, self.high, strict=True):
            x[(l > low) & (l <= high)] = value
        return x

    def log_slope(self, x: NDArray) -> NDArray:
        """Log dl/dx by the segment or the tail that x lies in."""
        m = np.searchsorted(self.x, x, side="left").clip(1, len(self.x) - 1)
        least = np.finfo(float).tiny  # steps have no slope; values in a jump beside them are as good as impossible
        slope = (np.log(np.maximum(np.diff(self.l), least)) - np.log(np.maximum(np.diff(self.x), least)))[m - 1]
        for outside, gap, (steep, rate) in (
            (x < self.x[0], self.x[0] - x, self.tails[0]),
            (x > self.x[-1], x - self.x[-1], self.tails[1]),
        ):
            slope = np.where(outside, -np.log(np.maximum(steep + rate * gap, np.finfo(float).tiny)), slope)
        return np.where(np.isnan(x) | np.isin(x, self.atoms), 0.0, slope)


@dataclass(frozen=True)
class Constant:
    """A column with one value, its own knockoff: no latent coordinate. Missing cells hold the same value."""

    value: float
    n_coordinates = 0

    def read(self, x: NDArray) -> LatentCells:
        """Nothing to read."""
        return free_cells(len(x), 0)

    def write(self, l: NDArray) -> NDArray:  # noqa: E741
        """Return the one value."""
        return np.full(len(l), self.value)

    def log_slope(self, x: NDArray) -> NDArray:
        """Zero."""
        return np.zeros(len(x))


def count_values(x: NDArray) -> tuple[NDArray, NDArray]:
    """Values seen, in increasing order, and how often: what a margin is fitted to."""
    return np.unique(x, return_counts=True)


def fit_steps(x: NDArray, counted: tuple[NDArray, NDArray] | None = None) -> Steps:
    """Set steps at the values seen, cut where the standard normal has their cumulated shares."""
    values, counts = counted or count_values(x)
    return Steps(values, np.concatenate([[-np.inf], ndtri(np.cumsum(counts)[:-1] / len(x)), [np.inf]]))


def fit_affine(x: NDArray) -> Affine:
    """Mean and standard deviation of the values seen."""
    largest = np.abs(x - x.mean()).max()
    return Affine(float(x.mean()), float(largest * np.sqrt((((x - x.mean()) / largest) ** 2).mean())))


def fit_curve(x: NDArray, counted: tuple[NDArray, NDArray] | None = None) -> Curve:
    """Take normal scores of the values seen, smoothed to about 2 n^0.4 knots, with steps at the atoms.

    ``counted`` is what ``count_values`` says of them, where it is known already.
    """
    values, counts = counted or count_values(x)
    n = len(x)
    is_atom = (counts >= ATOM_SHARE * n) & (counts >= ATOM_ROWS)
    is_atom |= np.append(True, is_atom[:-1]) & np.append(is_atom[1:], True)  # a value alone between atoms is one too
    below = np.cumsum(counts) - counts
    atoms = values[is_atom]
    low, high = ndtri(below[is_atom] / n), ndtri((below + counts)[is_atom] / n)
    # the stretches between atoms, each with knots of its own at evenly spaced normal scores
    stretches = np.split(np.arange(len(values)), np.flatnonzero(is_atom))
    l_knots, x_knots = [], []
    for s, stretch in enumerate(stretches):
        if s > 0:
            l_knots += [low[s - 1], high[s - 1]]
            x_knots += [atoms[s - 1], atoms[s - 1]]
            stretch = stretch[1:]  # it begins with the atom
        if not len(stretch):
            continue
        middle = ndtri((below[stretch] + counts[stretch] / 2) / n)
        some = _thin(middle, counts[stretch].sum())
        l_part, x_part = middle[some].tolist(), values[stretch][some].tolist()
        if s > 0:  # the value beside an atom lies at its edge, so that no value is drawn between the two
            l_part[0] = np.nextafter(high[s - 1], np.inf)
        if s < len(stretches) - 1:
            l_part[-1] = np.nextafter(low[s], -np.inf)
        l_knots += l_part
        x_knots += x_part
    l, v = np.array(l_knots), np.array(x_knots)  # noqa: E741
    inner = np.isfinite(l)
    lower, upper = not is_atom[0], not is_atom[-1]
    l, v = l[inner], v[inner]  # noqa: E741
    tails = (_fit_tail(-l[::-1], -v[::-1], lower and values[0] > 0, lower), _fit_tail(l, v, False, upper))
    return Curve(l, v, atoms, low, high, tails)


def _thin(middle: NDArray, n: int) -> NDArray[np.intp]:
    """Which values are knots: both ends, and those nearest to evenly spaced normal scores between them."""
    m = int(np.clip(2 * n**0.4, 8, 200))
    if len(middle) <= m:
        return np.arange(len(middle))
    return np.unique(np.searchsorted(middle, np.linspace(middle[0], middle[-1], m)).clip(max=len(middle) - 1))


def _fit_tail(l: NDArray, x: NDArray, positive: bool, open_end: bool) -> tuple[float, float]:  # noqa: E741
    """Slope and growth rate beyond the last knot, from the secants of the last unit of L and of the one before it.

    A lower tail of positive values (mirrored here) has the rate that keeps them positive: slope / |x_last|, negative.
    """
    if not open_end:
        return 0.0, 0.0
    ends = np.interp([l[-1] - 2.0, l[-1] - 1.0], l, x)
    near, far = max(x[-1] - ends[1], 0.0), max(ends[1] - ends[0], 0.0)
    slope = near if near > 0 else max(x[-1] - x[0], np.spacing(abs(x[-1])) * 4) / max(l[-1] - l[0], 1.0)
    if positive:
        return float(slope), float(-slope / abs(x[-1]))
    rate = float(np.clip(np.log(near / far), 0.0, STEEPEST)) if near > 0 and far > 0 else 0.0
    return float(slope), rate


def _tail(t: NDArray, slope: float, rate: float) -> NDArray:
    """Compute slope (exp(rate t) - 1) / rate for t > 0; slope t at rate 0."""
    t = np.maximum(t, 0.0)
    return slope * t if rate == 0 else slope * np.maximum(np.expm1(np.minimum(rate * t, 600.0)), -1 + 1e-9) / rate


def _tail_inverse(gap: NDArray, slope: float, rate: float) -> NDArray:
    """Find t with _tail(t) = gap; values that no t reaches are taken to the far end of it."""
    if slope == 0:
        return np.zeros(len(gap))
    ratio = np.maximum(gap, 0.0) / slope
    return ratio if rate == 0 else np.log1p(np.maximum(rate * ratio, -1 + 1e-9)) / rate


def _with_missing(x: NDArray, cells: LatentCells) -> LatentCells:
    missing = np.isnan(x)
    if missing.any():
        for part, value in zip(cells, free_cells(1, cells.start.shape[1]), strict=True):
            part[missing] = value
    return cells


def read_cells(margins: Sequence[ColumnMap], X: NDArray) -> LatentCells:
    """Say what the rows of X, shape (n, d), tell of all the coordinates.

    Where L is known in every cell there are no bounds, and no memory is taken for them.
    """
    shape = (len(X), sum(margin.n_coordinates for margin in margins))
    status, start = np.zeros(shape, np.int8), np.empty(shape)
    bounds: tuple[NDArray, NDArray] | None = None
    end = 0
    for j, margin in enumerate(margins):
        part = margin.read(X[:, j])
        here, end = slice(end, end + margin.n_coordinates), end + margin.n_coordinates
        status[:, here], start[:, here] = part.status, part.start
        if not part.all_points:
            if bounds is None:
                bounds = np.full(shape, -np.inf), np.full(shape, np.inf)
            bounds[0][:, here], bounds[1][:, here] = part.low, part.high
    low, high = bounds or (np.broadcast_to(-np.inf, shape), np.broadcast_to(np.inf, shape))
    return LatentCells(status, low, high, start)


def write_values(margins: Sequence[ColumnMap], L: NDArray) -> NDArray:
    """X_j = g_j(L_j), shape (n, d), for L of shape (n, n_coordinates)."""
    ends = np.cumsum([margin.n_coordinates for margin in margins])
    X = np.empty((len(L), len(margins)))
    for j, (margin, end) in enumerate(zip(margins, ends, strict=True)):
        X[:, j] = margin.write(L[:, end - margin.n_coordinates : end])
    return X


class Coordinates(NamedTuple):
    """Which coordinates belong to which column."""

    column_of: NDArray[np.intp]  # shape (D,): column of each coordinate
    first: NDArray[np.intp]  # shape (D,): range of the coordinates of the same column
    last: NDArray[np.intp]  # shape (D,)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of the columns with several coordinates."""
        pairs = sorted({(int(a), int(b)) for a, b in zip(self.first, self.last, strict=True)})
        return [(a, b) for a, b in pairs if b > a + 1]


def lay_out(margins: Sequence[ColumnMap]) -> Coordinates:
    """Coordinates of the columns, in their order."""
    sizes = np.array([margin.n_coordinates for margin in margins])
    ends = np.cumsum(sizes)
    column_of = np.repeat(np.arange(len(margins)), sizes)
    return Coordinates(column_of, (ends - sizes)[column_of], ends[column_of])
