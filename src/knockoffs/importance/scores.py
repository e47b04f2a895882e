"""Scores: the importance of every feature, Z, and of its knockoff, Z_tilde."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray


@dataclass(frozen=True)
class Scores:
    """Importance scores of the features and of their knockoffs, shape (n_features,) each.

    Along a lambda path they have one more axis, shape (n_features, n_lams). Where the model of y has a direction for
    every feature, ``slopes`` (2, n_features) holds it for features and knockoffs, NaN for those of several columns; W
    does not look at it. With m knockoffs of each feature ``more`` holds the scores of the others, m - 1 arrays.
    """

    Z: NDArray
    Z_tilde: NDArray
    slopes: NDArray | None = None
    more: tuple[NDArray, ...] = ()

    @classmethod
    def of(cls, stacked: NDArray) -> Scores:
        """Scores of the columns of [X, X_tilde], shape (2 n_features, ...)."""
        Z, Z_tilde = np.split(stacked, 2)
        return cls(Z, Z_tilde)

    @property
    def stacked(self) -> NDArray:
        """Z and then Z_tilde, shape (2 n_features, ...)."""
        return np.concatenate([self.Z, self.Z_tilde])

    @property
    def parts(self) -> NDArray:
        """Z and then the scores of the m knockoffs, shape (m + 1, n_features, ...)."""
        return np.stack([self.Z, self.Z_tilde, *self.more])

    def swap(self, S: NDArray[np.bool_]) -> Scores:
        """Exchange Z and Z_tilde of the features where S is true."""
        S = np.asarray(S, dtype=bool)
        return self.put_back(np.stack([S, ~S]).astype(np.intp))

    def put_back(self, place: NDArray[np.intp]) -> Scores:
        """Scores of a pair, given those of ``pair.permute(place)``; place has shape (m + 1, n_features)."""
        back = _put(self.parts, place)
        slopes = None if self.slopes is None else _put(self.slopes, place)
        return Scores(back[0], back[1], slopes, tuple(back[2:]))

    def tie(self, copied: NDArray[np.bool_]) -> Scores:
        """Equal scores for features that are their own knockoffs: rounding may depend on the place of a column."""
        if not copied.any():
            return self
        same = np.asarray(copied).reshape(-1, *[1] * (self.Z.ndim - 1))
        mean = self.parts.mean(axis=0)
        Z, Z_tilde, *more = (np.where(same, mean, part) for part in self.parts)
        return Scores(Z, Z_tilde, self.slopes, tuple(more))

    def first(self, n_features: int) -> Scores:
        """Scores of the first features."""
        slopes = None if self.slopes is None else self.slopes[:, :n_features]
        more = tuple(part[:n_features] for part in self.more)
        return Scores(self.Z[:n_features], self.Z_tilde[:n_features], slopes, more)

    def against_largest(self) -> Scores:
        """Scores in which Z_tilde is the largest of any knockoff of the feature."""
        return Scores(self.Z, self.parts[1:].max(axis=0)) if self.more else self


def _put(values: NDArray, place: NDArray[np.intp]) -> NDArray:
    back = np.empty_like(values)
    np.put_along_axis(back, place.reshape(*place.shape, *[1] * (values.ndim - 2)), values, axis=0)
    return back


class Importance(Protocol):
    """An importance score: how much a fitted model of y uses each column of [X, X_tilde].

    Valid if swapping features of (X, X_tilde), for the fit and for the score, swaps their Z and Z_tilde
    (in distribution if the fit is random): the flip-sign property of W.
    """

    def __call__(
        self,
        model: object,
        X: NDArray,
        X_tilde: NDArray,
        y: NDArray,
        *,
        feature_of: NDArray[np.intp],
        rng: Generator,
        sample_weight: NDArray | None = None,
    ) -> Scores:
        """Score a model that was fitted on ``np.hstack([X, X_tilde])`` (perhaps on other rows).

        A score for m knockoffs of each feature also takes ``more``, the other m - 1 arrays, and gives as many scores.
        """


def mean_of(scores: list[Scores], weights: NDArray | None = None) -> Scores:
    """Average scores over folds or fits."""
    parts = zip(*((one.Z, one.Z_tilde, *one.more) for one in scores), strict=True)
    Z, Z_tilde, *more = (np.average(part, axis=0, weights=weights) for part in parts)
    slopes = [score.slopes for score in scores if score.slopes is not None]
    mean = np.average(slopes, axis=0, weights=weights) if len(slopes) == len(scores) else None
    return Scores(Z, Z_tilde, mean, tuple(more))


def sum_by_feature(values: NDArray, feature_of: NDArray[np.intp]) -> NDArray:
    """Sum a value per column over the columns of each feature.

    >>> sum_by_feature(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]))
    array([3., 4.])
    """
    return np.bincount(feature_of, weights=values, minlength=int(feature_of.max()) + 1)
