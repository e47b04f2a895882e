"""Permutation, Swap and their integrals: how much the loss rises when a column is replaced by a fake.

Two ways to fake a column (``swapped``, ``permuted``) times two ways to reduce a lambda path (``At``, ``Integral``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance.losses import LossLike
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.paths.moves import (
    N_LAMS,
    Fake,
    PathLosses,
    both_halves,
    check_lams,
    check_range,
    faked_tables,
)
from knockoffs.importance.scores import Scores, mean_of
from knockoffs.sampling.pair import check_features


def swapped(X: NDArray, X_tilde: NDArray, rng: Generator) -> tuple[NDArray, NDArray]:
    """Fake every column by its knockoff and every knockoff by its column; nothing is drawn."""
    return X_tilde, X


def permuted(X: NDArray, X_tilde: NDArray, rng: Generator) -> tuple[NDArray, NDArray]:
    """Fake every column by its own values in another order of the rows.

    One order serves all columns. Only one column is faked at a time, so nothing is lost, and a column gets the same
    fake wherever it stands: the score keeps flip-sign exactly.
    """
    order = rng.permutation(len(X))
    return X[order], X_tilde[order]


FAKES: dict[str, Fake] = {"swapped": swapped, "permuted": permuted}


Reduce = Callable[[PathLosses], NDArray]  # Z of the features and then of their knockoffs, shape (2m,), from a path


@dataclass(frozen=True)
class At:
    """Rise of the loss at one lam; 1 replaces the column by its fake."""

    lam: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a negative or infinite lam."""
        check_lams(self.lam)

    def __call__(self, path: PathLosses) -> NDArray:
        """Loss at lam minus the loss of the unmoved table."""
        return path.at(np.array([self.lam]))[:, 0] - path.unmoved()


@dataclass(frozen=True)
class Integral:
    """Integral over lam of the rise of the loss; the paper goes from 0 to 10.

    ``n_lams`` points carry the trapezoid rule where the integral is not exact.
    """

    low: float = 0.0
    high: float = 10.0
    n_lams: int = N_LAMS

    def __post_init__(self) -> None:
        """Refuse an empty or negative range."""
        check_range(self.low, self.high, self.n_lams)

    def __call__(self, path: PathLosses) -> NDArray:
        """Integral of the loss minus that of the unmoved table."""
        area = path.integral(float(self.low), float(self.high), self.n_lams)
        return area - (self.high - self.low) * path.unmoved()


def accuracy_drop(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    rng: Generator,
    fake: Fake = swapped,
    reduce: Reduce = At(),  # noqa: B008 - a frozen value
    loss: LossLike = None,
    n_repeats: int = 1,
    feature_of: NDArray[np.intp] | None = None,
    sample_weight: NDArray | None = None,
) -> Scores:
    """Rise of the model's loss when each feature, and each knockoff, is replaced by its fake.

    With the default loss of a classifier, the 0-1 loss, this is the paper's drop in accuracy.

    Parameters
    ----------
    model : object
        Fitted on ``np.hstack([X, X_tilde])``, perhaps on other rows.
    X, X_tilde : array, shape (n, n_columns)
    y : array, shape (n,)
    rng : numpy.random.Generator
        Draws the orders of ``permuted``.
    fake : callable
        ``swapped`` or ``permuted``, or ``(X, X_tilde, rng) -> (X_fake, X_tilde_fake)``.
    reduce : callable
        ``At(lam)`` or ``Integral(low, high, n_lams)``.
    loss : str, Loss or callable, optional
        A name of ``knockoffs.importance.losses.LOSSES``, or a function ``(y, prediction) -> (n,)``. None is accuracy
        for a classifier and squared error for a regressor.
    n_repeats : int
        Orders of the rows to average over; of no use to ``swapped``, which draws nothing.
    feature_of : array of int, shape (n_columns,), optional
    sample_weight : array, shape (n,), optional

    Returns
    -------
    Scores
    """
    if int(n_repeats) != n_repeats or n_repeats < 1:
        raise InputError(f"n_repeats={n_repeats!r}: use 1 or more.")
    X, X_tilde = np.asarray(X), np.asarray(X_tilde)
    if X.ndim != 2 or X.shape != X_tilde.shape:
        raise InputError(f"X has shape {X.shape} and X_tilde {X_tilde.shape}: knockoffs have the shape of X.")
    feature_of2 = both_halves(check_features(feature_of, X.shape[1]))

    def once() -> Scores:
        XX, XX_fake = faked_tables(X, X_tilde, fake, rng)
        path = path_losses(model, XX, XX_fake, y, loss, feature_of2=feature_of2, sample_weight=sample_weight)
        return Scores.of(reduce(path))

    return mean_of([once() for _ in range(1 if fake is swapped else n_repeats)])


swap_score = partial(accuracy_drop, fake=swapped, reduce=At())
permutation_score = partial(accuracy_drop, fake=permuted, reduce=At())
swap_integral = partial(accuracy_drop, fake=swapped, reduce=Integral())
permutation_integral = partial(accuracy_drop, fake=permuted, reduce=Integral())
