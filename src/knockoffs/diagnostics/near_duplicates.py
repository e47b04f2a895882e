"""Distance: a feature whose knockoff is nearly a copy of it cannot be found, whatever it does to the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knockoffs.sampling.pair import Pair

TWIN = 0.95  # correlation of a feature and its knockoff: 5 % of its variance distinguish them


@dataclass(frozen=True)
class Twin:
    """A feature whose knockoff is nearly a copy: no matter of validity, but of power."""

    columns: tuple[str, ...]
    # of a column and its knockoff, the smallest where there are several; of labels agreement beyond chance
    correlation: float


def find_twins(pair: Pair, names: Sequence[str], kinds: tuple[str, ...], bound: float = TWIN) -> tuple[Twin, ...]:
    """Features all of whose columns are nearly their knockoffs; constant columns are no twins."""
    closeness = likeness(pair, kinds)
    twins = []
    for feature in range(pair.n_features):
        columns = np.flatnonzero(pair.feature_of == feature)
        varying = columns[~np.isnan(closeness[columns])]
        if varying.size and closeness[varying].min() >= bound:
            twins.append(Twin(tuple(names[j] for j in varying), float(closeness[varying].min())))
    return tuple(sorted(twins, key=lambda twin: -twin.correlation))


def likeness(pair: Pair, kinds: tuple[str, ...]) -> NDArray:
    """|correlation| of x_j and x_tilde_j, or Cohen's kappa for nominal columns; nan where x_j is constant."""
    measures = [kappa if kind == "nominal" else correlation for kind in kinds]
    return np.array([measure(pair.X[:, j], pair.X_tilde[:, j]) for j, measure in enumerate(measures)])


def correlation(x: NDArray, x_tilde: NDArray) -> float:
    """|correlation| over the rows that hold both; nan where x is constant.

    >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([-2.0, -4.0, -6.0]))
    1.0
    """
    seen = np.isfinite(x) & np.isfinite(x_tilde)
    u, v = x[seen] - x[seen].mean(), x_tilde[seen] - x_tilde[seen].mean()
    if not (u**2).sum():
        return np.nan
    size = np.sqrt((u**2).sum() * (v**2).sum())
    return float(min(abs(u @ v) / size, 1.0)) if size else 0.0


def kappa(x: NDArray, x_tilde: NDArray) -> float:
    """Share of rows with the same label, beyond that of independent draws; nan where x is constant."""
    labels, codes = np.unique(np.concatenate([x, x_tilde]), return_inverse=True)
    a, b = np.bincount(codes[: len(x)], minlength=len(labels)), np.bincount(codes[len(x) :], minlength=len(labels))
    if (a > 0).sum() < 2:
        return np.nan
    chance = float(a @ b) / len(x) ** 2
    return float(((x == x_tilde).mean() - chance) / (1 - chance))
