"""The path of an L1 penalty, cross-validated: all folds walk it in step, on the few columns that matter.

At each stretch of the path a working set of columns is chosen by the strong rule, every fold is solved on it, and
one matrix product with all columns checks the optimality (KKT) conditions of all folds and penalties at once;
columns that violate them join and the stretch is solved again. So no answer rests on the screening. ``polish`` makes
the solution at the chosen penalty exact: its support is known nearly, and the rest is linear algebra.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from knockoffs.errors import InputError

STRETCH = 4  # penalties solved between two looks at all columns: few enough for the strong rule to be sharp
REACH = 1.0  # gradients above this share of the stretch's last penalty let their columns in
FEWEST = 64  # columns that may join at once
KKT_SLACK = 1e-6  # relative excess of a gradient over the penalty that is put down to the solver's tolerance
NO_ROWS = slice(0, 0)  # held out: all are trained on
SATURATED = 0.999  # share of the null loss explained in training at which a path has nothing left to say


@dataclass(frozen=True)
class Standardised:
    """Which standardised column each column of a table is; constant columns and repeated ones are left out."""

    # shape (n_columns,): the standardised column, and its sign, that a column of the table is equal to; -1 where it is
    # constant
    column_of: NDArray[np.intp]
    sign_of: NDArray
    mean: NDArray  # shape (n_columns,)
    scale: NDArray  # shape (n_columns,)

    def spread(self, beta: NDArray) -> NDArray:
        """Coefficients of the table's columns, in its units, from those of the standardised ones (last axis).

        Equal columns share their coefficient equally: the one choice that no order of the columns can change.
        """
        kept = self.column_of >= 0
        copies = np.bincount(self.column_of[kept], minlength=beta.shape[-1])
        coef = np.zeros((*beta.shape[:-1], self.column_of.size))
        share = (beta / np.maximum(copies, 1))[..., self.column_of[kept]]
        coef[..., kept] = share * self.sign_of[kept] / self.scale[kept]
        return coef


@dataclass(frozen=True)
class PathDesign(Standardised):
    """Standardised columns, rows sorted by fold."""

    # shape (n, d): columns with weighted mean 0 and variance 1; constant columns and repeated columns are left out
    X: NDArray
    weights: NDArray  # shape (n,): sample weights with mean 1
    folds: list[slice]  # the rows of each fold; rows in none are always used for training
    order: NDArray[np.intp]  # shape (n,): which row of the table each row is

    @property
    def fold_weights(self) -> NDArray:
        """Weight of the rows of each fold."""
        return np.array([self.weights[rows].sum() for rows in self.folds])

    def gradients(self, residuals: NDArray) -> NDArray:
        """Gradients by all columns from residuals by rows (last axis)."""
        return (residuals.reshape(-1, residuals.shape[-1]) @ self.X).reshape(*residuals.shape[:-1], -1)


def make_design(X: NDArray, weights: NDArray | None, fold_of: NDArray[np.intp]) -> PathDesign:
    """Standardise the columns of X and sort its rows by fold (fold -1: always in training)."""
    n = X.shape[0]
    n_folds = int(fold_of.max()) + 1
    order = np.argsort(np.where(fold_of < 0, n_folds, fold_of), kind="stable")
    ends = np.searchsorted(np.where(fold_of < 0, n_folds, fold_of)[order], np.arange(n_folds + 1))
    folds = [slice(int(a), int(b)) for a, b in zip(ends[:-1], ends[1:], strict=True)]
    w = np.ones(n) if weights is None else weights[order] / weights.mean()
    Xs = np.empty(X.shape, order="F")
    for j in range(X.shape[1]):  # column by column: X[order] would be one more copy of the table
        Xs[:, j] = X[order, j]
    biggest = np.maximum(Xs.max(axis=0), -Xs.min(axis=0))
    unit = np.where(biggest > 0, biggest, 1.0)  # so that neither squares nor sums overflow or underflow
    Xs /= unit
    mean = w @ Xs / n
    Xs -= mean
    # einsum adds in one order whatever the number of BLAS threads
    sd = np.sqrt(np.einsum("i,ij,ij->j", w, Xs, Xs) / n)
    varies = sd > 1e-13 * np.sqrt(n)  # a constant leaves rounding errors of about 1e-16 sqrt(n)
    Xs /= np.where(varies, sd, 1.0)
    first, sign = _equal_columns(Xs, varies)
    kept, column_of = kept_columns(first)
    if kept.size < first.size:
        Xs = np.asfortranarray(Xs[:, kept])
    return PathDesign(column_of, sign, mean * unit, np.where(varies, sd, 1.0) * unit, Xs, w, folds, order)


def kept_columns(first: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Columns that are kept, of those that are the first of their kind; and the place of each column among them."""
    kept = np.flatnonzero(first == np.arange(first.size))
    position = np.full(first.size, -1, dtype=np.intp)
    position[kept] = np.arange(kept.size)
    return kept, np.where(first >= 0, position[first], -1)


def _equal_columns(Xs: NDArray, varies: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray]:
    """For each standardised column the first one equal to it or to its negative, and the sign (-1 if constant)."""
    d = Xs.shape[1]
    first, sign = np.arange(d), np.ones(d)
    # a column's fingerprint: equal columns have equal ones, and few others do
    fingerprint = np.abs(np.cos(np.arange(1.0, Xs.shape[0] + 1)) @ Xs)
    by_size = np.argsort(fingerprint, kind="stable")
    close = np.diff(fingerprint[by_size]) <= 1e-9 * np.sqrt(Xs.shape[0])
    for i in np.flatnonzero(close):
        j, k = int(by_size[i]), int(by_size[i + 1])
        root = int(first[j])
        s = 1.0 if Xs[:, root] @ Xs[:, k] > 0 else -1.0
        if np.abs(Xs[:, k] - s * Xs[:, root]).max() <= 1e-10:
            first[k], sign[k] = root, s
    # name each group of equal columns by its lowest member
    lowest = np.full(d, d)
    np.minimum.at(lowest, first, np.arange(d))
    root_sign = sign[lowest[first]]
    first, sign = lowest[first], sign * root_sign
    first[~varies] = -1
    return first, sign


State = TypeVar("State")


class TrainingSet(Protocol[State]):
    """One L1 problem on the rows with positive weight, restricted to a growing set of working columns."""

    columns: NDArray[np.intp]  # the working columns, in the order in which they joined

    def null_residual(self) -> NDArray:
        """Residual of the intercept-only fit, shape (n_outputs, n)."""

    def add(self, columns: NDArray[np.intp]) -> None:
        """Append columns to the working set."""

    def solve(self, alphas: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Residuals, held-out losses and shares of the null loss explained at penalties, from the last solution on.

        Residuals, shape (len(alphas), n_outputs, n), are minus the derivatives of the loss by each row's linear
        predictor; 0 on held-out rows. Held-out losses are means over the held-out rows, NaN if there are none.
        """

    def save(self) -> State:
        """Where the solution stands now."""

    def restore(self, state: State) -> None:
        """Go back there; columns added since start from zero."""

    def support(self) -> NDArray[np.intp]:
        """Columns with a nonzero coefficient in the last solution."""


def train_weights(design: PathDesign) -> list[NDArray]:
    """Row weights of every fold's training set: they add up to one and are zero on the fold itself."""
    result = []
    for rows in design.folds:
        w = design.weights.copy()
        w[rows] = 0.0
        result.append(w / w.sum())
    return result


@dataclass(frozen=True)
class CrossValidation:
    """The walked part of a path: penalties, held-out loss of each fold, and the penalty with the smallest mean."""

    alphas: NDArray
    losses: NDArray
    best: int

    @property
    def alpha(self) -> float:
        """The chosen penalty."""
        return float(self.alphas[self.best])


def cross_validate(
    training_sets: Sequence[TrainingSet],
    alphas: NDArray,
    fold_weights: NDArray,
    gradients_of: Callable[[NDArray], NDArray],
) -> tuple[CrossValidation, NDArray[np.intp]]:
    """Walk down the path in all folds at once until the held-out loss is safely past its minimum.

    The walk ends where the mean held-out loss is 5 penalties past its minimum and above it by more than two standard
    errors of their paired difference (or is 30 penalties past it), or where the training fits are saturated. The
    columns are those in use around the chosen penalty: where to start the fit to all rows. ``gradients_of`` gives the
    gradients by all columns from what ``TrainingSet.solve`` returns as residuals.
    """
    losses = np.empty((len(training_sets), 0))
    supports = []
    residuals = np.stack([t.null_residual() for t in training_sets])
    # no solution needs more columns than rows; of few rows and many columns thousands seem to matter at first
    most = max(FEWEST, 2 * residuals[0].size)
    gradients = gradients_of(residuals)
    previous = float(alphas[0])
    for start in range(0, alphas.size, STRETCH):
        stretch = alphas[start : start + STRETCH]
        gradients, held_out, explained = _solve_stretch(training_sets, stretch, previous, gradients, gradients_of, most)
        previous = float(stretch[-1])
        losses = np.hstack([losses, held_out])
        supports.append(np.unique(np.concatenate([t.support() for t in training_sets])))
        if _past_minimum(losses, fold_weights) or explained[:, -1].mean() > SATURATED:
            break
    mean = np.average(losses, axis=0, weights=fold_weights)
    best = int(np.argmin(mean))
    return CrossValidation(alphas[: mean.size], losses, best), supports[best // STRETCH]


def _solve_stretch(
    training_sets: Sequence[TrainingSet],
    alphas: NDArray,
    previous: float,
    gradients: NDArray,
    gradients_of: Callable[[NDArray], NDArray],
    most: int,
) -> tuple[NDArray, NDArray, NDArray]:
    """Solve all folds at penalties ``alphas``; check every column; solve again the folds that lacked one.

    At most ``most`` columns join between two checks.
    """
    # The strong rule would ask for 2 * last - previous. Over a stretch that lets in far more columns than are
    # needed, and what is missing is found by the check.
    reach = max(2 * alphas[-1] - previous, REACH * alphas[-1])
    size = np.abs(gradients).max(axis=1)  # (folds, columns)
    wanted = size >= reach
    states = []
    for t in training_sets:
        states.append(t.save())
    todo = list(range(len(training_sets)))
    found: dict[int, tuple[NDArray, NDArray, NDArray]] = {}
    gradients = gradients.copy()
    while todo:
        for f in todo:
            t = training_sets[f]
            wanted[f, t.columns] = False
            joining = np.flatnonzero(wanted[f])
            if joining.size > most:
                joining = np.sort(joining[np.argsort(-size[f, joining], kind="stable")[:most]])
            t.add(joining)
            t.restore(states[f])
            found[f] = t.solve(alphas)
        R = np.stack([found[f][0] for f in todo])  # (folds to do, alphas, n_outputs, n)
        every = gradients_of(R)
        gradients[todo] = every[:, -1]
        size[todo] = (np.abs(every) / alphas[:, None, None]).max(axis=(1, 2))
        wanted[todo] = size[todo] > 1 + KKT_SLACK
        for f in todo:
            wanted[f, training_sets[f].columns] = False
        todo = [f for f in todo if wanted[f].any()]
    folds = range(len(training_sets))
    return gradients, np.stack([found[f][1] for f in folds]), np.stack([found[f][2] for f in folds])


def solve_at(design: PathDesign, problem: TrainingSet, alpha: float, columns: NDArray[np.intp]) -> None:
    """Bring one problem to its solution at penalty ``alpha``; ``columns`` is a first guess of its working set."""
    problem.add(columns)
    while True:
        residual, _, _ = problem.solve(np.array([alpha]))
        size = np.abs(residual[0] @ design.X).max(axis=0)
        size[problem.columns] = 0.0
        joining = np.flatnonzero(size > alpha * (1 + KKT_SLACK))
        if not joining.size:
            return
        most = max(FEWEST, problem.columns.size)  # far from the solution nearly all columns seem to matter
        problem.add(joining[np.argsort(-size[joining], kind="stable")[:most]])


def _past_minimum(losses: NDArray, fold_weights: NDArray) -> bool:
    mean = np.average(losses, axis=0, weights=fold_weights)
    best = int(np.argmin(mean))
    since = mean.size - 1 - best
    if since < 5:
        return False
    difference = losses[:, -1] - losses[:, best]
    error = difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else 0.0
    return since >= 30 or bool(mean[-1] - mean[best] > 2 * error)


class FullLoss(Protocol):
    """The loss of the full data as a function of all coefficients, minimised over the intercepts."""

    def gradient(self, beta: NDArray) -> NDArray:
        """Minus the gradient at beta, shape (n_outputs, d) like beta."""

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve H step = right on the active coefficients at the last beta; None where H is singular."""


def factorise(H: NDArray) -> Callable[[NDArray], NDArray] | None:
    """Solver of H x = b; none where the others leave less than 1e-12 of a column."""
    scale = np.sqrt(np.maximum(np.diag(H), 0.0))
    if not (scale > 0).all():
        return None
    try:
        factor = cho_factor(H / np.outer(scale, scale), check_finite=False)
    except LinAlgError:
        return None
    if np.diag(factor[0]).min() < 1e-6:
        return None
    return lambda b: cho_solve(factor, b / scale, check_finite=False) / scale


class SquaredErrors(ABC):
    """Squared errors of one response or of several for ``polish``: responses do not touch one another."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[NDArray, Callable[[NDArray], NDArray]]] = {}

    @abstractmethod
    def gradient(self, beta: NDArray) -> NDArray:
        """Minus the gradient, shape (n_outputs, d)."""

    @abstractmethod
    def gram(self, k: int, columns: NDArray[np.intp]) -> NDArray:
        """Gram matrix of some columns, for response k."""

    def newton_step(self, active: NDArray[np.bool_], right: NDArray) -> NDArray | None:
        """Solve with the Gram matrices of the active columns; factors are kept while these stay the same."""
        steps, start = [], 0
        for k, which in enumerate(active):
            columns = np.flatnonzero(which)
            part, start = right[start : start + columns.size], start + columns.size
            if not columns.size:
                continue
            if k not in self._kept or not np.array_equal(self._kept[k][0], columns):
                solve = factorise(self.gram(k, columns))
                if solve is None:
                    return None
                self._kept[k] = columns, solve
            steps.append(self._kept[k][1](part))
        return np.concatenate(steps) if steps else right


def polish(smooth: FullLoss, beta: NDArray, alpha: float, max_steps: int = 200) -> NDArray:
    """Sharpen an L1 solution to rounding error: Newton's method on the active coefficients, their signs held.

    A coefficient that would change its sign stops at zero and leaves; a column that violates its optimality
    condition enters. What comes out satisfies all conditions to about 1e-13 and so does not depend on where the
    descent before it stopped, on the order of the columns or on the number of threads. Where the active columns
    are linearly dependent the solution is not unique and ``beta`` is returned as it was.
    """
    start, beta = beta, beta.copy()
    sign = np.sign(beta)
    best, stalls = np.inf, 0
    for _ in range(max_steps):
        g = smooth.gradient(beta)
        active = sign != 0
        right = (g - alpha * sign)[active]
        error = float(np.abs(right).max()) if right.size else 0.0
        stalls = 0 if error < 0.5 * best else stalls + 1
        best = min(best, error)
        if error <= 1e-14 or (error <= 1e-10 and stalls >= 1):  # the second: rounding is all that is left
            excess = np.where(active, 0.0, np.abs(g) - alpha)
            worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
            if excess[worst] <= 1e-9 * alpha:
                return beta
            sign[worst] = np.sign(g[worst])
            best, stalls = np.inf, 0
            continue
        if stalls > 10:
            break
        step = smooth.newton_step(active, right)
        if step is None:
            break
        current = beta[active]
        crossing = (current + step) * sign[active] < 0
        length = 1.0
        if crossing.any():
            ratios = np.where(crossing, -current / np.where(crossing, step, 1.0), np.inf)
            length = float(ratios.min())
            leaving = ratios <= length
        moved = current + length * step
        if crossing.any():
            moved[leaving] = 0.0
            best, stalls = np.inf, 0
        beta[active] = moved
        if crossing.any():
            sign[np.nonzero(active)[0][leaving], np.nonzero(active)[1][leaving]] = 0.0
    return start


def assign_folds(folds: ArrayLike, n: int, rng: Generator, classes: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Label each row with its fold, at random; each class is spread evenly, and a class of one row stays in training.

    >>> np.bincount(assign_folds(3, 10, np.random.default_rng(0)))
    array([4, 3, 3])
    """
    if not isinstance(folds, int | np.integer):
        _, labels = np.unique(np.asarray(folds), return_inverse=True)
        if labels.shape != (n,) or labels.max() < 1:
            raise InputError(f"folds must be a number, or label {n} rows with at least two folds.")
        return labels
    if folds < 2:
        raise InputError(f"folds={folds}: cross-validation needs at least two.")
    n_folds = min(int(folds), n)
    shuffled = rng.permutation(n)
    fold_of = np.empty(n, dtype=np.intp)
    if classes is None:
        fold_of[shuffled] = np.arange(n) % n_folds
        return fold_of
    counts = np.bincount(classes)
    by_class = shuffled[np.argsort(classes[shuffled], kind="stable")]
    fold_of[by_class] = np.arange(n) % n_folds  # dealt through the classes: all folds as equal as can be
    fold_of[counts[classes] == 1] = -1
    _, used = np.unique(fold_of[fold_of >= 0], return_inverse=True)
    fold_of[fold_of >= 0] = used
    return fold_of


def check_path(alpha: float | None, n_alphas: int, alpha_ratio: float, *, positive: bool = False) -> None:
    """Refuse penalties that are none, before anything is computed."""
    if alpha is not None and not (np.isfinite(alpha) and (alpha > 0 if positive else alpha >= 0)):
        raise InputError(
            f"alpha={alpha!r}: use a {'positive' if positive else 'non-negative'} number, or None to cross-validate."
        )
    if int(n_alphas) != n_alphas or n_alphas < 2:
        raise InputError(f"n_alphas={n_alphas!r}: a path has at least 2 penalties; 100 is the default.")
    if not 0 < alpha_ratio < 1:
        raise InputError(f"alpha_ratio={alpha_ratio!r}: use a share between 0 and 1, for instance 1e-3.")


def penalties(largest: float, n_alphas: int, ratio: float) -> NDArray:
    """Penalties from the smallest that leaves every coefficient at zero down to ``ratio`` of it, evenly in log."""
    return largest * ratio ** (np.arange(n_alphas) / max(n_alphas - 1, 1))
