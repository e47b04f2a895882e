"""Follow the loss along a lambda path, by the fastest way that is exact for the model.

Exactly and fast for tree ensembles and linear models, by rank-one changes of the first layer for neural networks, and
otherwise by calling ``predict`` on few large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.importance.losses import Loss, LossLike, predict_for, resolve_loss
from knockoffs.importance.paths.moves import Moves, PathLosses, check_moves, move, trapezoid, unmoved_loss
from knockoffs.response.neural_model import NeuralModel
from knockoffs.response.tree_arrays import has_trees

MEMORY = 256e6  # bytes of table handed to predict at once


def path_losses(
    model: object,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    loss: LossLike = None,
    *,
    feature_of2: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
) -> PathLosses:
    """Mean loss with one feature (or knockoff) moved along lam: ``at`` some lams, or its ``integral``.

    It is computed by the fastest way that is exact for the model. Integrals are exact for tree ensembles and, where
    their file says so, for linear models; the trapezoid rule otherwise.

    Parameters
    ----------
    model : object
        Fitted on tables like XX.
    XX, XX_fake : array, shape (n, 2 * n_columns)
        ``np.hstack([X, X_tilde])`` and the fakes of its columns: lam = 0 is no move, 1 replaces columns by their fakes.
    y : array, shape (n,)
    loss : str, Loss or callable, optional
        See ``knockoffs.importance.losses``; None is accuracy for classes and squared error for numbers.
    feature_of2 : array-like of int, shape (2 * n_columns,), optional
        Feature (0 to m - 1) or knockoff (m to 2m - 1) of each column; all its columns move together.
    sample_weight : array-like, shape (n,), optional
    memory : float
        Bytes that a table handed to a black box may take.
    n_jobs : int, optional
        Processes that call a black box.
    """
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


@dataclass(frozen=True)
class BlackBoxPath:
    """Any model: columns and lambdas are batched into few large predict calls within a memory bound."""

    model: object
    moves: Moves
    loss: Loss
    memory: float = MEMORY
    n_jobs: int | None = None

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return unmoved_loss(self.model, self.moves, self.loss)

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams); the unmoved table is predicted once."""
        from joblib import delayed, effective_n_jobs

        from knockoffs.machine.parallel import parallel_map
        from knockoffs.progress import track

        lams, n_features2 = np.asarray(lams, dtype=float), self.moves.n_features2
        jobs = [(feature, lam) for feature in range(n_features2) for lam in np.unique(lams) if lam != 0.0]
        unmoved = [(-1, 0.0)] if np.any(lams == 0.0) else []
        blocks = self._blocks(unmoved + jobs, effective_n_jobs(self.n_jobs))
        tasks = (delayed(_block_losses)(self.model, self.moves, self.loss, block, rows) for block, rows in blocks)
        done = parallel_map(tasks, self.n_jobs)
        total: dict[tuple[int, float], float] = {}
        for (block, _), losses in zip(blocks, track(done, "lambda paths", total=len(blocks)), strict=True):
            for job, value in zip(block, losses, strict=True):
                total[job] = total.get(job, 0.0) + value
        return np.array(
            [[total[(feature, lam) if lam != 0.0 else (-1, 0.0)] for lam in lams] for feature in range(n_features2)]
        )

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Trapezoid rule on n_lams equidistant points."""
        return trapezoid(self, low, high, n_lams)

    def _blocks(self, jobs: list[tuple[int, float]], n_workers: int) -> list[tuple[list[tuple[int, float]], slice]]:
        """Cut jobs (and rows, where one move of the whole table is too large) into tables that fit the memory."""
        n, n_columns2 = self.moves.XX.shape
        n_cells = max(1, int(self.memory / n_workers / 8))
        n_rows = min(n, max(1, n_cells // n_columns2))
        n_moves = max(1, n_cells // (n_rows * n_columns2))
        # as many blocks as workers at least
        n_moves = max(1, min(n_moves, -(-len(jobs) // n_workers)))
        return [
            (jobs[first : first + n_moves], slice(start, min(start + n_rows, n)))
            for first in range(0, len(jobs), n_moves)
            for start in range(0, n, n_rows)
        ]


def _block_losses(model: object, moves: Moves, loss: Loss, jobs: list[tuple[int, float]], rows: slice) -> NDArray:
    """Weighted sum over the rows of the loss of each move, with one call of the model."""
    XX, XX_fake, y = moves.XX[rows], moves.XX_fake[rows], moves.y[rows]
    table = np.repeat(XX[None], len(jobs), axis=0)
    for moved, (feature, lam) in zip(table, jobs, strict=True):
        columns = moves.feature_of2 == feature  # none for the unmoved table, feature -1
        moved[:, columns] = move(XX[:, columns], XX_fake[:, columns], lam)
    prediction = predict_for(loss, model, table.reshape(-1, XX.shape[1]))
    classes = getattr(model, "classes_", None)  # each move by itself: a loss may compare rows with one another
    losses = [loss(y, part, classes) for part in np.split(prediction, len(jobs))]
    return np.asarray(losses, dtype=float) @ moves.weights[rows]
