"""Follow the loss along a lambda path, by the fastest way that is exact for the model.

Exactly and fast for tree ensembles and linear models, by rank-one changes of the first layer for neural networks, and
otherwise by calling ``predict`` on few large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import ArrayLike, NDArray

from knockoffs.importance.losses import Loss, LossLike, resolve_loss
from knockoffs.importance.paths.black_box import MEMORY, BlackBoxPath
from knockoffs.importance.paths.moves import N_LAMS, Moves, PathLosses, check_lams, check_moves, check_range
from knockoffs.response.neural_model import NeuralModel
from knockoffs.response.tree_arrays import has_trees


def loss_at(
    model: object,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    lams: ArrayLike,
    loss: LossLike = None,
    *,
    feature_of2: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
) -> NDArray:
    """Mean loss with one feature (or knockoff) moved to lam, for each of them and each lam.

    Parameters
    ----------
    model : object
        Fitted on tables like XX.
    XX, XX_fake : array, shape (n, 2 * n_columns)
        ``np.hstack([X, X_tilde])`` and the fakes of its columns.
    y : array, shape (n,)
    lams : array-like, shape (n_lams,)
        0 is no move, 1 replaces the columns by their fakes.
    loss : str, Loss or callable, optional
        See ``knockoffs.importance.losses``; None is accuracy for classes and squared error for numbers.
    feature_of2 : array-like of int, shape (2 * n_columns,), optional
        Feature (0 to m - 1) or knockoff (m to 2m - 1) of each column; all its columns move together.
    sample_weight : array-like, shape (n,), optional
    memory : float
        Bytes that a table handed to a black box may take.
    n_jobs : int, optional
        Processes that call a black box.

    Returns
    -------
    array, shape (2m, n_lams)
    """
    path = path_losses(
        model, XX, XX_fake, y, loss, feature_of2=feature_of2, sample_weight=sample_weight, memory=memory, n_jobs=n_jobs
    )
    return path.at(check_lams(lams))


def loss_integral(
    model: object,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    low: float = 0.0,
    high: float = 10.0,
    loss: LossLike = None,
    *,
    n_lams: int = N_LAMS,
    feature_of2: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
) -> NDArray:
    """Integral over lam of the mean loss with one feature (or knockoff) moved to lam.

    Exact for tree ensembles and, where their file says so, for linear models; the trapezoid rule on ``n_lams`` points
    otherwise. Parameters are those of ``loss_at``.

    Returns
    -------
    array, shape (2m,)
    """
    check_range(low, high, n_lams)
    path = path_losses(
        model, XX, XX_fake, y, loss, feature_of2=feature_of2, sample_weight=sample_weight, memory=memory, n_jobs=n_jobs
    )
    return path.integral(float(low), float(high), int(n_lams))


def path_losses(
    model: object,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    loss: LossLike,
    *,
    feature_of2: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
) -> PathLosses:
    """Choose how the loss along the path is computed for this model: the fastest way that is exact."""
    moves = check_moves(model, XX, XX_fake, y, feature_of2, sample_weight)
    resolved = resolve_loss(loss, model)
    for build in _fast_paths(model):
        path = build(model, moves, resolved)
        if path is not None:
            return path
    return BlackBoxPath(model, moves, resolved, memory, n_jobs)


def _fast_paths(model: object) -> Iterator[Callable[[Any, Moves, Loss], PathLosses | None]]:
    """Ways to follow the path that know the model; each answers None for a model it does not know."""
    if has_trees(model):
        from knockoffs.importance.paths.tree import tree_path

        yield tree_path
    if hasattr(model, "coef_"):
        from knockoffs.importance.paths.linear import linear_path

        yield linear_path
    if isinstance(model, NeuralModel):
        from knockoffs.importance.paths.neural import NeuralPath

        yield NeuralPath
