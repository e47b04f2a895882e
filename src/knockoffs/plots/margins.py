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
    x, x_tilde = np.asarray(x, dtype=float), np.asarray(x_tilde, dtype=float)
    values = np.unique(np.concatenate([x, x_tilde]))
    kind = "continuous" if column is None else column.kind
    steps = kind in ("binary", "nominal") or (kind == "ordinal" and column is not None and column.levels is not None)
    if steps or len(values) <= MOST_BARS:
        shares, labels = _bars(x, x_tilde, values, column, ordered=kind != "nominal")
        return Margin(shares, labels, None, float(np.mean(x == x_tilde)))
    edges = _edges(x, x_tilde, values)
    shares = np.stack([np.histogram(np.clip(v, edges[0], edges[-1]), edges)[0] / max(len(v), 1) for v in (x, x_tilde)])
    return Margin(shares, None, edges, _correlation(x, x_tilde))


def _bars(
    x: NDArray, x_tilde: NDArray, values: NDArray, column: Column | None, *, ordered: bool
) -> tuple[NDArray, tuple[str, ...]]:
    shares = np.stack([np.array([np.mean(v == value) for value in values]) for v in (x, x_tilde)])
    labels = [value_label(value, column) for value in values]
    if len(values) <= MOST_BARS:
        return shares, tuple(labels)
    often = np.argsort(-shares[0], kind="stable")
    kept = np.sort(often[: MOST_BARS - 1]) if ordered else often[: MOST_BARS - 1]
    rest = shares.sum(axis=1) - shares[:, kept].sum(axis=1)
    return np.column_stack([shares[:, kept], rest]), (*(labels[j] for j in kept), OTHERS)


def value_label(value: float, column: Column | None) -> str:
    """Value as it is read: the label of a code, or a number."""
    if column is not None and column.levels is not None and 0 <= value < len(column.levels) and value == int(value):
        return str(column.levels[int(value)])
    return f"{value:.4g}"


def _edges(x: NDArray, x_tilde: NDArray, values: NDArray) -> NDArray:
    """Intervals over the middle 99 % and a little more, so that one stray value does not press the rest flat."""
    both = np.concatenate([x, x_tilde])
    low, high = np.quantile(both, [0.005, 0.995])
    reach = 0.15 * (high - low)
    low, high = max(low - reach, values[0]), min(high + reach, values[-1])
    if not low < high:
        low, high = values[0], values[-1]
    n = int(np.clip(np.sqrt(len(x)), 6, MOST_BINS))
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


def _correlation(x: NDArray, x_tilde: NDArray) -> float:
    a, b = x - x.mean(), x_tilde - x_tilde.mean()
    scale = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / scale) if scale > 0 else 1.0


def strongest_pairs(X: NDArray, j: int, most: int = 2) -> list[int]:
    """Columns that are linked most closely to column j, by the correlation of ranks; constant ones never are."""
    from scipy.stats import rankdata

    some = X[:5000]
    ranks = rankdata(some, axis=0)
    centred = ranks - ranks.mean(axis=0)
    scale = np.sqrt((centred**2).sum(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        links = np.abs(centred.T @ centred[:, j] / (scale * scale[j]))
    links[j] = -1.0
    order = np.argsort(-np.nan_to_num(links, nan=-1.0), kind="stable")
    return [int(k) for k in order[:most] if k != j and np.nan_to_num(links[k], nan=-1.0) >= 0]
