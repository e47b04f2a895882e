"""A column beside its knockoff, in numbers: how often which values, and how near the two are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.table.columns import Column

MOST_BARS = 12  # values that get a bar of their own; the rest are one bar
MOST_BINS = 24
OTHERS = "others"


@dataclass(frozen=True)
class Margin:
    """How the values of a column and of its knockoff are spread.

    Parameters
    ----------
    shares : array, shape (2, n_bars)
        Share of the rows in each bar: of the column, of its knockoff.
    labels : tuple of str, or None
        Of the bars, where they stand for values.
    edges : array, shape (n_bars + 1,), or None
        Of the bars, where they stand for intervals.
    correlation : float
        Of the column and its knockoff, for labels the share of the rows in which the two agree.
    """

    shares: NDArray
    labels: tuple[str, ...] | None
    edges: NDArray | None
    correlation: float

    @property
    def nearness(self) -> str:
        """The correlation in words."""
        word = "correlation" if self.edges is not None else "agreement"
        return f"{word} {self.correlation:.2f}"


def margin(x: NDArray, x_tilde: NDArray, column: Column | None = None) -> Margin:
    """Compare a column with its knockoff.

    Parameters
    ----------
    x, x_tilde : array, shape (n,)
        Numbers, or codes of labels; missing cells filled.
    column : Column, optional
        Its kind and its labels; numbers if left out.
    """
    column = Column("") if column is None else column
    both = np.stack([np.asarray(x, dtype=float), np.asarray(x_tilde, dtype=float)])
    values = np.unique(both)
    if column.kind in ("binary", "nominal") or column.levels is not None or len(values) <= MOST_BARS:
        counts = [np.bincount(np.searchsorted(values, v), minlength=len(values)) for v in both]
        shares = np.stack(counts) / max(both.shape[1], 1)
        labels = [value_label(value, column) for value in values]
        if len(values) > MOST_BARS:
            often = np.argsort(-shares[0], kind="stable")[: MOST_BARS - 1]
            kept = often if column.kind == "nominal" else np.sort(often)
            rest = 1.0 - shares[:, kept].sum(axis=1)
            shares, labels = np.column_stack([shares[:, kept], rest]), [*(labels[j] for j in kept), OTHERS]
        return Margin(shares, tuple(labels), None, float(np.mean(both[0] == both[1])))
    edges = _edges(both, values)
    counts = [np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] for v in both]
    return Margin(np.stack(counts) / max(both.shape[1], 1), None, edges, float(np.corrcoef(both)[0, 1]))


def value_label(value: float, column: Column) -> str:
    """Value as it is read: the label of a code, or a number."""
    if column.levels is not None and 0 <= value < len(column.levels) and value == int(value):
        return str(column.levels[int(value)])
    return f"{value:.4g}"


def _edges(both: NDArray, values: NDArray) -> NDArray:
    """Intervals over the middle 99 % and a little more, so that one stray value does not press the rest flat."""
    low, high = np.quantile(both, [0.005, 0.995])
    reach = 0.15 * (high - low)
    low, high = max(low - reach, values[0]), min(high + reach, values[-1])
    if not low < high:
        low, high = values[0], values[-1]
    n = int(np.clip(np.sqrt(both.shape[1]), 6, MOST_BINS))
    gap = _gap(values)
    if gap:  # as many of the values in every interval, or bars rise and fall by themselves
        width = np.ceil((high - low + gap) / (n * gap)) * gap
        first = values[0] + np.floor((low - values[0]) / gap + 1e-6) * gap
        return np.arange(first - gap / 2, high + width, width)
    return np.linspace(low, high, n + 1)


def _gap(values: NDArray) -> float:
    """Distance of values that are evenly spaced, some of them left out; 0 where they are not.

    >>> float(_gap(np.array([1.0, 2.0, 5.0]))), float(_gap(np.array([0.1, 0.2, 0.35])))
    (1.0, 0.0)
    """
    gap = np.diff(values).min()
    places = (values - values[0]) / gap
    return gap if places[-1] < 1e6 and np.allclose(places, np.round(places), rtol=0, atol=1e-3) else 0.0


def rank_correlations(X: NDArray, y: NDArray) -> NDArray:
    """Spearman's correlation of each column of X with y, shape (d,); NaN where one of the two is constant.

    >>> rank_correlations(np.array([[1.0, 4.0], [2.0, 4.0], [9.0, 4.0]]), np.array([1.0, 2.0, 3.0])).round(9).tolist()
    [1.0, nan]
    """
    from scipy.stats import rankdata

    ranks = rankdata(np.column_stack([X, y]), axis=0)
    ranks -= ranks.mean(axis=0)
    scale = np.sqrt((ranks**2).sum(axis=0))
    scale[scale == 0] = np.nan
    return ranks[:, :-1].T @ ranks[:, -1] / (scale[:-1] * scale[-1])


def strongest_pairs(X: NDArray, j: int, most: int = 2) -> list[int]:
    """Columns that are linked most closely to column j, by the correlation of ranks; constant ones never are."""
    links = np.nan_to_num(np.abs(rank_correlations(X[:5000], X[:5000, j])), nan=-1.0)
    links[j] = -1.0
    return [int(k) for k in np.argsort(-links, kind="stable")[:most] if links[k] >= 0]
