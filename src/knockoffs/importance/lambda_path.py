"""The lambda path: a column moves from its values through its fake's and beyond, and the loss is followed.

At lam, the columns of one feature (or of one knockoff) are ``XX + lam * (XX_fake - XX)`` and all others stay. The loss
on the path is found exactly and fast for tree ensembles and linear models, by rank-one changes of the first layer for
neural networks, and otherwise by calling ``predict`` on few large tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from knockoffs.errors import InputError
from knockoffs.importance.losses import Loss, LossLike, class_codes, predict_for, resolve_loss
from knockoffs.importance.scores import Scores
from knockoffs.sampling.swap import check_features

N_LAMS = 21  # steps of 0.5 on [0, 10]; the paper integrates to 10
MEMORY = 256e6  # bytes of table handed to predict at once

Fake = Callable[[NDArray, NDArray, Generator], tuple[NDArray, NDArray]]


@dataclass(frozen=True)
class Moves:
    """What moves where: the tables, the labels and the features that the columns belong to.

    Attributes
    ----------
    XX, XX_fake : array, shape (n, 2 * n_columns)
        ``[X, X_tilde]`` and where lam = 1 takes each column.
    y : array, shape (n,)
    feature_of2 : array of int, shape (2 * n_columns,)
        The feature 0, ..., m - 1 or knockoff m, ..., 2m - 1 of each column.
    weights : array, shape (n,)
        Weights of the rows, of sum 1.
    """

    XX: NDArray
    XX_fake: NDArray
    y: NDArray
    feature_of2: NDArray[np.intp]
    weights: NDArray

    @property
    def n_features2(self) -> int:
        """Number of features and knockoffs, 2m."""
        return int(self.feature_of2.max()) + 1


class PathLosses(Protocol):
    """The mean loss along the path of every feature and knockoff."""

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        ...

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        ...

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Integral of the mean loss over lam, shape (2m,)."""
        ...


def loss_at(
    model: Any,
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
    model: Any,
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
    model: Any,
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
    moves = _check_moves(model, XX, XX_fake, y, feature_of2, sample_weight)
    resolved = resolve_loss(loss, model)
    for build in _fast_paths(model):
        path = build(model, moves, resolved)
        if path is not None:
            return path
    return BlackBoxPath(model, moves, resolved, memory, n_jobs)


def _fast_paths(model: Any) -> Iterator[Callable[[Any, Moves, Loss], PathLosses | None]]:
    """Ways to follow the path that know the model; each answers None for a model it does not know."""
    from knockoffs.importance.tree_arrays import has_trees

    if has_trees(model):
        from knockoffs.importance.tree_paths import tree_path

        yield tree_path
    if hasattr(model, "coef_"):
        from knockoffs.importance.linear_paths import linear_path

        yield linear_path
    neural = sys.modules.get("knockoffs.response.neural")  # loaded, if the model is one of its
    if neural is not None and isinstance(model, neural.NETWORKS):
        yield NeuralPath


def move(x: NDArray, x_fake: NDArray, lam: float) -> NDArray:
    """Columns moved to lam: exactly x at 0 and exactly the fake at 1.

    >>> move(np.array([1.0]), np.array([3.0]), 2.0)
    array([5.])
    """
    return x_fake if lam == 1.0 else x + lam * (x_fake - x)


def unmoved_loss(model: Any, moves: Moves, loss: Loss) -> float:
    """Mean loss of the model on the table as it is."""
    losses = loss(moves.y, predict_for(loss, model, moves.XX), getattr(model, "classes_", None))
    return float(losses @ moves.weights)


@dataclass(frozen=True)
class NeuralPath:
    """A neural network of this package: its first layer changes by a rank-one term."""

    model: Any
    moves: Moves
    loss: Loss

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return float(self.at(np.zeros(1))[0, 0])

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams)."""
        moves = self.moves
        return import_module("knockoffs.importance.neural_paths").loss_at(
            self.model,
            moves.XX,
            moves.XX_fake,
            moves.y,
            lams,
            self.loss,
            feature_of2=moves.feature_of2,
            sample_weight=moves.weights,
        )

    def integral(self, low: float, high: float, n_lams: int) -> NDArray:
        """Trapezoid rule on n_lams equidistant points."""
        return trapezoid(self, low, high, n_lams)


def trapezoid(path: PathLosses, low: float, high: float, n_lams: int) -> NDArray:
    """Integral of a path by the trapezoid rule on n_lams equidistant points, shape (2m,)."""
    lams = np.linspace(low, high, n_lams)
    return np.trapezoid(path.at(lams), lams, axis=1)


@dataclass(frozen=True)
class BlackBoxPath:
    """Any model: columns and lambdas are batched into few large predict calls within a memory bound."""

    model: Any
    moves: Moves
    loss: Loss
    memory: float = MEMORY
    n_jobs: int | None = None

    def unmoved(self) -> float:
        """Mean loss of the table as it is."""
        return unmoved_loss(self.model, self.moves, self.loss)

    def at(self, lams: NDArray) -> NDArray:
        """Mean loss at each lam, shape (2m, n_lams); the unmoved table is predicted once."""
        from joblib import Parallel, delayed, effective_n_jobs

        from knockoffs.progress import track

        lams, n_features2 = np.asarray(lams, dtype=float), self.moves.n_features2
        jobs = [(feature, lam) for feature in range(n_features2) for lam in np.unique(lams) if lam != 0.0]
        unmoved = [(-1, 0.0)] if np.any(lams == 0.0) else []
        blocks = self._blocks(unmoved + jobs, effective_n_jobs(self.n_jobs))
        done = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_block_losses)(self.model, self.moves, self.loss, block, rows) for block, rows in blocks
        )
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


def _block_losses(model: Any, moves: Moves, loss: Loss, jobs: list[tuple[int, float]], rows: slice) -> NDArray:
    """Weighted sum over the rows of the loss of each move, with one call of the model."""
    XX, XX_fake, y = moves.XX[rows], moves.XX_fake[rows], moves.y[rows]
    table = np.repeat(XX[None], len(jobs), axis=0)
    for moved, (feature, lam) in zip(table, jobs, strict=True):
        columns = moves.feature_of2 == feature  # none for the unmoved table, feature -1
        moved[:, columns] = move(XX[:, columns], XX_fake[:, columns], lam)
    prediction = predict_for(loss, model, table.reshape(-1, XX.shape[1]))
    losses = loss(np.tile(y, len(jobs)), prediction, getattr(model, "classes_", None))
    return np.asarray(losses, dtype=float).reshape(len(jobs), len(y)) @ moves.weights[rows]


@dataclass(frozen=True)
class LambdaPath:
    """W along lambda (Figure 1c of the paper).

    Attributes
    ----------
    lams : array, shape (n_lams,)
    W : array, shape (n_features, n_lams)
        Z - Z_tilde with the columns moved to each lam.
    non_nulls : array of bool, shape (n_features,), optional
        The truth, where it is known.
    feature_names : tuple of str
    loss : str
        Name of the loss that was followed.
    """

    lams: NDArray
    W: NDArray
    non_nulls: NDArray[np.bool_] | None
    feature_names: tuple[str, ...]
    loss: str

    @property
    def colours(self) -> list[str]:
        """Red for non-nulls and grey for nulls, as in the paper; grey-blue where the truth is not known."""
        if self.non_nulls is None:
            return ["#4c72b0"] * len(self.W)
        return ["#c44e52" if true else "#999999" for true in self.non_nulls]

    def plot(self, ax: Any = None) -> Any:
        """Draw the path of every feature on matplotlib axes (made if not given), nulls first."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots()
        truth = np.zeros(len(self.W), dtype=bool) if self.non_nulls is None else self.non_nulls
        labelled: set[str] = set()
        for feature in np.argsort(truth, kind="stable"):
            colour = self.colours[feature]
            kind = "" if self.non_nulls is None else ("non-null" if truth[feature] else "null")
            label = kind if kind and kind not in labelled else None
            labelled.add(kind)
            ax.plot(self.lams, self.W[feature], color=colour, linewidth=1.2, label=label)
        ax.axhline(0.0, color="black", linewidth=0.6)
        ax.set_xlabel("lambda")
        ax.set_ylabel(f"W ({self.loss.replace('_', ' ')})")
        if self.non_nulls is not None:
            ax.legend(frameon=False)
        return ax


def lambda_path(
    model: Any,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    rng: Generator,
    fake: Fake | None = None,
    lams: ArrayLike | None = None,
    loss: LossLike = None,
    feature_of: ArrayLike | None = None,
    non_nulls: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    sample_weight: ArrayLike | None = None,
    memory: float = MEMORY,
    n_jobs: int | None = None,
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
    non_nulls : array-like of bool, shape (n_features,), optional
        Which features are not null, if that is known: colours the plot.
    feature_names : sequence of str, optional
    sample_weight : array-like, shape (n,), optional
    memory, n_jobs
        See ``loss_at``.

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
    truth = None if non_nulls is None else _check_length("non_nulls", np.asarray(non_nulls, dtype=bool), m)
    names = tuple(f"x{j}" for j in range(m)) if feature_names is None else tuple(feature_names)
    _check_length("feature_names", np.asarray(names), m)
    XX, XX_fake = faked_tables(X, X_tilde, fake, rng)
    losses = loss_at(
        model,
        XX,
        XX_fake,
        y,
        grid,
        loss,
        feature_of2=both_halves(owners),
        sample_weight=sample_weight,
        memory=memory,
        n_jobs=n_jobs,
    )
    return LambdaPath(grid, losses[:m] - losses[m:], truth, names, resolve_loss(loss, model).name)


def path_scores(
    model: Any,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    rng: Generator,
    sample_weight: NDArray | None = None,
    fake: Fake | None = None,
    lams: ArrayLike | None = None,
    loss: LossLike = None,
) -> Scores:
    """W along lambda as scores of shape (n_features, n_lams), so that folds, fits and draws average it as any score."""
    options: dict[str, Any] = {"fake": fake, "lams": lams, "loss": loss, "sample_weight": sample_weight}
    path = lambda_path(model, X, X_tilde, y, rng=rng, feature_of=feature_of, **options)
    return Scores(path.W, np.zeros_like(path.W))


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


def _check_length(argument: str, values: NDArray, n_features: int) -> NDArray:
    if values.shape != (n_features,):
        raise InputError(f"{argument} has shape {values.shape}: expected one entry for each of {n_features} features.")
    return values


def _check_moves(
    model: Any,
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
    if y.shape != (n,):
        raise InputError(f"y has shape {y.shape}: expected one value for each of {n} rows.")
    classes = getattr(model, "classes_", None)
    if classes is not None:
        class_codes(y, classes)
    return Moves(XX, XX_fake, y, check_features(feature_of2, n_columns2), check_weights(sample_weight, n))


def check_weights(sample_weight: ArrayLike | None, n: int) -> NDArray:
    """Weights of the rows, of sum 1; equal ones if left out."""
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {weights.shape}: expected one weight for each of {n} rows.")
    if not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.sum() <= 0:
        raise InputError("sample_weight must be finite, not negative, and not all zero.")
    return weights / weights.sum()
