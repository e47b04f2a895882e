"""What moves where on a lambda path, and what each way to follow it answers.

At lam, the columns of one feature (or of one knockoff) are ``XX + lam * (XX_fake - XX)`` and all others stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.importance.losses import class_codes
from knockoffs.sampling.pair import check_features

N_LAMS = 21  # steps of 0.5 on [0, 10]; the paper integrates to 10

Fake = Callable[[NDArray, NDArray, Generator], tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class Moves:
    """What moves where: the tables, the labels and the features that the columns belong to."""

    # shape (n, 2 * n_columns): ``[X, X_tilde]`` and where lam = 1 takes each column
    XX: NDArray
    XX_fake: NDArray
    y: NDArray  # shape (n,)
    # shape (2 * n_columns,): the feature 0, ..., m - 1 or knockoff m, ..., 2m - 1 of each column
    feature_of2: NDArray[np.intp]
    weights: NDArray  # shape (n,): weights of the rows, of sum 1

    @property
    def n_features2(self) -> int:
        """Number of features and knockoffs, 2m."""
        return int(self.feature_of2.max()) + 1


class PathLosses(Protocol):
    """The mean loss along the path of every feature and knockoff."""

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Integral of the mean loss over lam, shape (2m,)."""


def move(x: NDArray, x_fake: NDArray, lam: float) -> NDArray:
    """Columns moved to lam: exactly x at 0 and exactly the fake at 1.

    >>> move(np.array([1.0]), np.array([3.0]), 2.0)
    array([5.])
    """
    return x_fake if lam == 1.0 else x + lam * (x_fake - x)


def trapezoid(path: PathLosses, low: float, high: float, n_lams: int) -> NDArray:
    """Integral of a path by the trapezoid rule on n_lams equidistant points, shape (2m,)."""
    lams = np.linspace(low, high, n_lams)
    return np.trapezoid(path.at(lams), lams, axis=1)


def faked_tables(X: NDArray, X_tilde: NDArray, fake: Fake, rng: Generator) -> tuple[NDArray, NDArray]:
    """[X, X_tilde] and its fake [X^f, X_tilde^f], as floats."""
    XX = np.hstack([X, X_tilde]).astype(float, copy=False)
    return XX, np.hstack(fake(X, X_tilde, rng)).astype(float, copy=False)


def both_halves(feature_of: NDArray[np.intp]) -> NDArray[np.intp]:
    """Feature or knockoff that owns each column of [X, X_tilde].

    >>> both_halves(np.array([0, 0, 1]))
    array([0, 0, 1, 2, 2, 3])
    """
    return np.concatenate([feature_of, feature_of + feature_of.max() + 1])


def check_lams(lams: ArrayLike) -> NDArray:
    """Points of a path as floats that are finite and not negative."""
    grid = np.atleast_1d(np.asarray(lams, dtype=float))
    if grid.ndim != 1 or grid.size == 0:
        raise InputError(f"lams has shape {grid.shape}: give at least one lambda, for instance np.linspace(0, 10, 21).")
    if not np.all(np.isfinite(grid)) or grid.min() < 0:
        raise InputError(f"lams must be finite and at least 0, got {grid[~(grid >= 0) | ~np.isfinite(grid)][0]:g}.")
    return grid


def check_range(low: float, high: float, n_lams: int = N_LAMS) -> None:
    """Refuse a range of lambda that is empty or negative, or a grid without an interval."""
    if not (np.isfinite(low) and np.isfinite(high)) or low < 0:
        raise InputError(
            f"lambda range ({low:g}, {high:g}) must be finite and start at 0 or above; the paper's is (0, 10)."
        )
    if not low < high:
        raise InputError(f"lambda range ({low:g}, {high:g}) is empty: high must exceed low; the paper's is (0, 10).")
    if int(n_lams) != n_lams or n_lams < 2:
        raise InputError(f"n_lams={n_lams!r}: a trapezoid needs at least 2 points; 21 are steps of 0.5 on (0, 10).")


def check_moves(
    model: object,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    feature_of2: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> Moves:
    """Check tables, labels and weights once, before any prediction."""
    XX, XX_fake = np.asarray(XX, dtype=float), np.asarray(XX_fake, dtype=float)
    if XX.ndim != 2 or XX.shape != XX_fake.shape:
        raise InputError(
            f"the table has shape {XX.shape} and its fake {XX_fake.shape}: they must be alike, (n, 2 columns)."
        )
    n, n_columns2 = XX.shape
    width = getattr(model, "n_features_in_", None)
    if width not in (None, n_columns2):
        raise InputError(
            f"{type(model).__name__} takes {width} columns, but [X, X_tilde] has {n_columns2} "
            f"({n_columns2 // 2} and as many knockoffs). Fit it on np.hstack([X, X_tilde])."
        )
    y = np.asarray(y)
    if len(y) != n or y.ndim > 2:
        raise InputError(f"y has shape {y.shape}: expected one value for each of {n} rows.")
    classes = getattr(model, "classes_", None)
    if classes is not None:
        class_codes(y, classes)
    return Moves(XX, XX_fake, y, check_features(feature_of2, n_columns2), normalised_weights(sample_weight, n))


def normalised_weights(sample_weight: ArrayLike | None, n: int) -> NDArray:
    """Weights of the rows, of sum 1; equal ones if left out."""
    weights = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one weight for each of {n} rows.")
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.sum() <= 0:
        raise InputError("sample_weight must be finite, not negative, and not all zero.")
    return weights / weights.sum()
