"""Follow the loss along a lambda path, by the fastest way that is exact for the model.

Exactly and fast for tree ensembles and linear models, by rank-one changes of the first layer for neural networks, and
otherwise by calling ``predict`` on few large tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knockoffs.importance.losses import Loss, LossLike, predict_for, resolve_loss
from knockoffs.importance.paths.moves import Moves, PathLosses, check_moves, move, trapezoid
from knockoffs.progress import track
from knockoffs.response.tree_arrays import has_trees

MEMORY = 256e6  # bytes of table handed to predict at once


def path_losses(
    model: Any,
    XX: NDArray,
    XX_fake: NDArray,
    y: NDArray,
    loss: LossLike = None,
    *,
    feature_of2: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> PathLosses:
    """Mean loss with one feature (or knockoff) moved along lam: ``at`` some lams, or its ``integral``.

    It is computed by the fastest way that is exact for the model. Integrals are exact for tree ensembles and, where
    their file says so, for linear models; the trapezoid rule otherwise. XX is ``np.hstack([X, X_tilde])``, and lam = 1
    replaces its columns by those of XX_fake. ``feature_of2`` is the feature (0 to m - 1) or knockoff (m to 2m - 1) of
    each column; all its columns move together.
    """
    moves = check_moves(model, XX, XX_fake, y, feature_of2, sample_weight)
    resolved = resolve_loss(loss, model)
    path: PathLosses | None = None
    if has_trees(model):
        from knockoffs.importance.paths.tree import tree_path

        path = tree_path(model, moves, resolved)
    elif hasattr(model, "coef_"):
        from knockoffs.importance.paths.linear import linear_path

        path = linear_path(model, moves, resolved)
    elif hasattr(model, "split_first_layer"):
        from knockoffs.importance.paths.neural import neural_path

        path = neural_path(model, moves, resolved)
    return BlackBoxPath(model, moves, resolved) if path is None else path


@dataclass(frozen=True)
class BlackBoxPath:
    """Black box: columns and lambdas are batched into few large predict calls within a memory bound."""

    model: object
    moves: Moves
    loss: Loss
    memory: float = MEMORY

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return float(self._losses([(-1, 0.0)])[0])

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams); the unmoved table is predicted once."""
        lams, features = np.asarray(lams, dtype=float), range(self.moves.n_features2)
        jobs = [(feature, lam) for feature in features for lam in np.unique(lams) if lam != 0.0]
        jobs += [(-1, 0.0)] if np.any(lams == 0.0) else []
        found = dict(zip(jobs, self._losses(jobs), strict=True))
        return np.array([[found[(feature, lam) if lam else (-1, 0.0)] for lam in lams] for feature in features])

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Trapezoid rule on n_lams equidistant points."""
        return trapezoid(self, low, high, n_lams)

    def _losses(self, jobs: list[tuple[int, float]]) -> NDArray:
        """Mean loss of each move of a feature to lam; rows are cut where one move of the whole table is too large."""
        n, n_columns2 = self.moves.XX.shape
        n_cells = max(1, int(self.memory / 8))
        n_rows = min(n, max(1, n_cells // n_columns2))
        n_moves = max(1, n_cells // (n_rows * n_columns2))
        blocks = [slice(first, first + n_moves) for first in range(0, len(jobs), n_moves)]
        total = np.zeros(len(jobs))
        for some in track(blocks, "lambda paths"):
            for start in range(0, n, n_rows):
                total[some] += self._block(jobs[some], slice(start, start + n_rows))
        return total

    def _block(self, jobs: list[tuple[int, float]], rows: slice) -> NDArray:
        """Weighted sum over some rows of the loss of each move, with one call of the model."""
        moves, loss = self.moves, self.loss
        XX, XX_fake, y = moves.XX[rows], moves.XX_fake[rows], moves.y[rows]
        table = np.repeat(XX[None], len(jobs), axis=0)
        for moved, (feature, lam) in zip(table, jobs, strict=True):
            columns = moves.feature_of2 == feature  # none for the unmoved table, feature -1
            moved[:, columns] = move(XX[:, columns], XX_fake[:, columns], lam)
        prediction = predict_for(loss, self.model, table.reshape(-1, XX.shape[1]))
        classes = getattr(self.model, "classes_", None)  # each move by itself: a loss may compare rows with one another
        losses = [loss(y, part, classes) for part in np.split(prediction, len(jobs))]
        return np.asarray(losses, dtype=float) @ moves.weights[rows]
