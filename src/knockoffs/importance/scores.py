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
    does not look at it.
    """

    Z: NDArray
    Z_tilde: NDArray
    slopes: NDArray | None = None

    @classmethod
    def of(cls, stacked: NDArray) -> Scores:
        """Scores of the columns of [X, X_tilde], shape (2 n_features, ...)."""
        return cls(*np.split(stacked, 2))

    @property
    def stacked(self) -> NDArray:
        """Z and then Z_tilde, shape (2 n_features, ...)."""
        return np.concatenate([self.Z, self.Z_tilde])

    def swap(self, S: NDArray[np.bool_]) -> Scores:
        """Exchange Z and Z_tilde of the features where S is true."""
        S = np.asarray(S, dtype=bool)
        slopes = None if self.slopes is None else np.where(S, self.slopes[::-1], self.slopes)
        S = S.reshape(-1, *[1] * (self.Z.ndim - 1))
        return Scores(np.where(S, self.Z_tilde, self.Z), np.where(S, self.Z, self.Z_tilde), slopes)

    def tie(self, copied: NDArray[np.bool_]) -> Scores:
        """Equal scores for features that are their own knockoffs: rounding may tell columns by where they stand."""
        if not copied.any():
            return self
        same = np.asarray(copied).reshape(-1, *[1] * (self.Z.ndim - 1))
        both = (self.Z + self.Z_tilde) / 2
        return Scores(np.where(same, both, self.Z), np.where(same, both, self.Z_tilde), self.slopes)


class NamedScores(dict[str, Scores]):
    """Several scores of the same features, by name; where one model is scored in many ways."""

    def swap(self, S: NDArray[np.bool_]) -> NamedScores:
        """Exchange Z and Z_tilde of the features where S is true."""
        return NamedScores({name: scores.swap(S) for name, scores in self.items()})

    def tie(self, copied: NDArray[np.bool_]) -> NamedScores:
        """Equal scores for features that are their own knockoffs."""
        return NamedScores({name: scores.tie(copied) for name, scores in self.items()})


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
        """Score a model that was fitted on ``np.hstack([X, X_tilde])`` (perhaps on other rows)."""
        ...


def mean_of(scores: list[Scores], weights: NDArray | None = None) -> Scores:
    """Average scores over folds or fits."""
    Z = np.average([score.Z for score in scores], axis=0, weights=weights)
    Z_tilde = np.average([score.Z_tilde for score in scores], axis=0, weights=weights)
    slopes = [score.slopes for score in scores if score.slopes is not None]
    return Scores(Z, Z_tilde, np.average(slopes, axis=0, weights=weights) if len(slopes) == len(scores) else None)


def sum_by_feature(values: NDArray, feature_of: NDArray[np.intp]) -> NDArray:
    """Sum a value per column over the columns of each feature.

    >>> sum_by_feature(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]))
    array([3., 4.])
    """
    return np.bincount(feature_of, weights=values, minlength=int(feature_of.max()) + 1)
