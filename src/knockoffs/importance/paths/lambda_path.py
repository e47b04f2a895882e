"""The lambda path: a column moves from its values through its fake's and beyond, and W is followed (Figure 1c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.importance.losses import LossLike, resolve_loss
from knockoffs.importance.paths.follow import path_losses
from knockoffs.importance.paths.moves import N_LAMS, Fake, both_halves, check_lams, faked_tables
from knockoffs.importance.scores import Scores
from knockoffs.sampling.pair import check_features


@dataclass(frozen=True)
class LambdaPath:
    """W along lambda (Figure 1c of the paper)."""

    lams: NDArray  # shape (n_lams,)
    W: NDArray  # shape (n_features, n_lams): Z - Z_tilde with the columns moved to each lam
    feature_names: tuple[str, ...]
    loss: str  # name of the loss that was followed


def lambda_path(
    model: object,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    rng: Generator,
    fake: Fake | None = None,
    lams: ArrayLike | None = None,
    loss: LossLike = None,
    feature_of: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
) -> LambdaPath:
    """W as a function of lambda, the paper's lambda path, for every feature.

    Parameters
    ----------
    model : object
        Fitted on ``np.hstack([X, X_tilde])``.
    X, X_tilde : array, shape (n, n_columns)
    y : array, shape (n,)
    rng : numpy.random.Generator
        For fakes that are drawn (permuted); swapped columns draw nothing.
    fake : callable, optional
        ``swapped`` (the default) or ``permuted`` of ``knockoffs.importance.accuracy_drop``, or another.
    lams : array-like, optional
        21 points from 0 to 10 if left out.
    loss : str, Loss or callable, optional
    feature_of : array-like of int, shape (n_columns,), optional
    feature_names : sequence of str, optional
    sample_weight : array-like, shape (n,), optional

    Returns
    -------
    LambdaPath
    """
    if fake is None:
        from knockoffs.importance.accuracy_drop import swapped

        fake = swapped
    owners = check_features(feature_of, X.shape[1])
    m = int(owners.max()) + 1
    grid = check_lams(np.linspace(0.0, 10.0, N_LAMS) if lams is None else lams)
    names = tuple(f"x{j}" for j in range(m)) if feature_names is None else tuple(feature_names)
    if len(names) != m:
        raise InputError(f"feature_names has {len(names)} names: expected one for each of {m} features.")
    XX, XX_fake = faked_tables(X, X_tilde, fake, rng)
    feature_of2 = both_halves(owners)
    path = path_losses(model, XX, XX_fake, y, loss, feature_of2=feature_of2, sample_weight=sample_weight)
    Z, Z_tilde = np.split(path.at(grid), 2)
    return LambdaPath(grid, Z - Z_tilde, names, resolve_loss(loss, model).name)


def path_scores(model: object, X: NDArray, X_tilde: NDArray, y: NDArray, **options: Any) -> Scores:
    """W along lambda as scores of shape (n_features, n_lams), so that folds, fits and draws average it as any score."""
    path = lambda_path(model, X, X_tilde, y, **options)
    return Scores(path.W, np.zeros_like(path.W))
