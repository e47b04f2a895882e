"""Labels drawn from a known subset of a table's own columns, so that its nulls are known.

A column of numbers acts by its values or ranks, a column of labels by an effect of each level. A missing cell counts as
the column's mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

CLIP = 3.0  # robust standard deviations; beyond them a value counts as this, or one row would be all of the signal


class Frame(Protocol):
    """Data frame of pandas or polars."""

    columns: Any

    def __getitem__(self, name: Any) -> Any:
        """Cells of a column."""


def draw_truth(
    frame: Frame, rng: Generator, n_non_nulls: int | None = None, *, most_missing: float = 0.1
) -> NDArray[np.bool_]:
    """Which columns matter: a quarter of them, from 6 to 30, drawn among those with few missing cells.

    Where cells are missing for reasons that other columns hold, those columns would matter too. Hence the columns that
    matter have few of them; the nulls may have many. With 6 that matter, knockoff+ can select some at 0.2.
    """
    missing = [np.mean(is_missing(cells)) for cells in cells_of(frame)]
    d, able = len(missing), np.flatnonzero(np.array(missing) <= most_missing)
    k = min(int(np.clip(d // 4, 6, 30)) if n_non_nulls is None else n_non_nulls, len(able))
    truth = np.zeros(d, dtype=bool)
    truth[rng.choice(able, k, replace=False)] = True
    return truth


def linear_labels(
    frame: Frame, truth: NDArray[np.bool_], rng: Generator, *, strength: float = 10.0
) -> NDArray[np.float64]:
    """Numbers: a sum of effects of random sign, one for each column that matters, and Gaussian noise."""
    effects = np.stack([linear_effect(column, rng) for column in chosen(frame, truth)], axis=1)
    signal = unit(effects @ rng.choice([-1.0, 1.0], effects.shape[1]))
    return signal + noise_of(strength, *effects.shape) * rng.standard_normal(len(signal))


def curved_labels(
    frame: Frame, truth: NDArray[np.bool_], rng: Generator, *, strength: float = 16.0
) -> NDArray[np.intp]:
    """Two classes: steps, humps and slopes in ranks, and products of pairs of columns, cut at the median."""
    columns = chosen(frame, truth)
    main = np.stack([curved_effect(column, rng) for column in columns], axis=1)
    ranks = np.stack([rank_effect(column, rng) for column in columns], axis=1)
    pairs = rng.permutation(len(columns))[: len(columns) // 2 * 2].reshape(2, -1)
    products = np.stack([unit(a) for a in (ranks[:, pairs[0]] * ranks[:, pairs[1]]).T], axis=1)
    signal = unit(main @ rng.choice([-1.0, 1.0], main.shape[1]) + products @ rng.choice([-1.0, 1.0], products.shape[1]))
    seen = signal + noise_of(strength, *main.shape) * rng.standard_normal(len(signal))
    return (seen > np.median(seen)).astype(np.intp)


LABELS = {"linear": linear_labels, "curved": curved_labels}


def noise_of(strength: float, n: int, k: int) -> float:
    """Deviation of the noise beside a signal of variance one with k equal parts, which have about this t statistic."""
    return float(np.sqrt(n / k) / strength)


def linear_effect(column: ArrayLike, rng: Generator) -> NDArray:
    """Values of a number, clipped where its tails are extreme; an effect for each level of labels."""
    x = np.asarray(column)
    if not is_number(x):
        return level_effect(x, rng)
    x = x.astype(float)
    low, middle, high = np.nanquantile(x, [0.25, 0.5, 0.75])
    scale = (high - low) / 1.35 or np.nanstd(x)  # the standard deviation, were it Gaussian
    return unit(np.clip((x - middle) / scale, -CLIP, CLIP))


def rank_effect(column: ArrayLike, rng: Generator) -> NDArray:
    """Ranks of a number; an effect for each level of labels."""
    x = np.asarray(column)
    if not is_number(x):
        return level_effect(x, rng)
    return unit(rankdata(x.astype(float), nan_policy="omit"))


def curved_effect(column: ArrayLike, rng: Generator) -> NDArray:
    """Step at a random value, hump or slope of the ranks; an effect for each level of labels."""
    u = rank_effect(column, rng)
    shape = rng.integers(3)
    at = rng.uniform(0.25, 0.75)
    x = np.asarray(column)
    if not is_number(x) or len(np.unique(x[~is_missing(x)])) == 2 or shape == 0:
        return u
    bent = np.abs(u) if shape == 1 else np.where(u == 0, u, u > np.quantile(u, at))
    return unit(bent) if np.ptp(bent) > 0 else u


def level_effect(column: ArrayLike, rng: Generator) -> NDArray:
    """Effect of each level, Gaussian."""
    x = np.asarray(column)
    known = ~is_missing(x)
    levels, codes = np.unique(x[known], return_inverse=True)
    found = np.full(len(x), np.nan)
    found[known] = rng.standard_normal(len(levels))[codes]
    return unit(found)


def unit(x: NDArray) -> NDArray:
    """Mean 0 and variance 1; missing cells at the mean."""
    centred = x - np.nanmean(x)
    return np.nan_to_num(centred / (np.nanstd(x) or 1.0))


def cells_of(frame: Frame) -> list[NDArray]:
    """Cells of each column."""
    return [np.asarray(frame[name]) for name in frame.columns]


def chosen(frame: Frame, truth: NDArray[np.bool_]) -> Sequence[NDArray]:
    """Cells of the columns that matter."""
    return [cells for cells, one in zip(cells_of(frame), truth, strict=True) if one]


def is_number(x: NDArray) -> bool:
    """Whether cells are numbers."""
    return x.dtype.kind in "biuf"


def is_missing(x: NDArray) -> NDArray[np.bool_]:
    """Cells that are None or NaN."""
    return np.array([cell is None or cell != cell for cell in x]) if x.dtype == object else np.asarray(x != x)
