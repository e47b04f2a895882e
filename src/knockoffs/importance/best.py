"""Several models of y, of which the one that predicts rows it has not seen best is used.

Which model predicts best depends on the data. The choice keeps flip-sign in distribution, as every fit does: columns
are swapped at random before it, and predictions of held-out rows do not know which columns are knockoffs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.importance.lambda_path import check_weights
from knockoffs.importance.losses import predict_for, resolve_loss
from knockoffs.importance.rows import check_takes_weights, draw_folds, fresh, predicts_classes
from knockoffs.progress import track

ROWS = 400  # predicted by every candidate, of which one in n_folds is held out at a time


@dataclass(frozen=True)
class Candidate:
    """A model of y with the score that it gets if it is chosen.

    Attributes
    ----------
    name : str
    estimator : object
        Unfitted.
    importance : Importance
    evaluation : str
    notes : mapping
        What was chosen by default, in words.
    """

    name: str
    estimator: Any
    importance: Any
    evaluation: str
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BestOf:
    """Candidates, and the loss by which they are compared.

    Attributes
    ----------
    candidates : tuple of Candidate
    loss : str
        A name of ``knockoffs.importance.losses.LOSSES``.
    """

    candidates: tuple[Candidate, ...]
    loss: str

    def say(self, losses: Mapping[str, float]) -> str:
        """Say which candidate was chosen and why."""
        ranked = sorted(losses, key=losses.__getitem__)
        rest = "; ".join(f"{name} {losses[name]:.3g}" for name in ranked[1:])
        words = {
            "log_loss": "log-loss",
            "squared_error": "squared error, in variances of y,",
            "poisson_deviance": "Poisson deviance",
        }
        measure = words.get(self.loss, self.loss)
        found = f"{measure} {losses[ranked[0]]:.3g} ({rest})"
        return f"estimator={ranked[0]!r}, because it predicts held-out rows best: {found}"


def choose_best(
    best: BestOf,
    XX: NDArray,
    y: NDArray,
    *,
    n_folds: int = 5,
    sample_weight: NDArray | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> tuple[Candidate, dict[str, float]]:
    """Candidate with the smallest mean loss on held-out rows, the first of equal ones; and the losses of all.

    Parameters
    ----------
    best : BestOf
    XX : array, shape (n, 2 n_columns)
        [X, X_tilde].
    y : array, shape (n,)
        Numbers are put in units of their standard deviation.
    n_folds : int
        As many folds are held out in turn as give ``ROWS`` rows, or all of them: a large table needs a single one.
    sample_weight : array, shape (n,), optional
    rng : numpy.random.Generator
    n_jobs : int, optional
        Fits at a time; the answer does not depend on it.
    """
    if sample_weight is not None:  # rows of weight 0 are not there
        for candidate in best.candidates:
            check_takes_weights(candidate.estimator)
        kept = sample_weight > 0
        XX, y, sample_weight = XX[kept], y[kept], sample_weight[kept]
    labels = y if predicts_classes(best.candidates[0].estimator) else None
    if labels is None:
        y = y / (np.abs(y).max() or 1.0)  # squares of very large numbers would be infinite
        y = (y - y.mean()) / (y.std() or 1.0)
    n_folds = min(n_folds, len(y))
    fold_of = draw_folds(len(y), n_folds, rng, labels=labels)
    n_held = min(n_folds, -(-ROWS * n_folds // len(y)))
    jobs = [(candidate, fold) for candidate in best.candidates for fold in range(n_held)]
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_held_out_loss)(candidate.estimator, best.loss, XX, y, fold_of == fold, sample_weight, stream)
        for (candidate, fold), stream in zip(jobs, rng.spawn(len(jobs)), strict=True)
    )
    losses = np.array(list(track(work, "choice of the model", total=len(jobs)))).reshape(len(best.candidates), n_held)
    sizes = np.bincount(fold_of, weights=sample_weight)[:n_held]
    means = np.nan_to_num(losses @ sizes / sizes.sum(), nan=np.inf)
    found = {candidate.name: float(mean) for candidate, mean in zip(best.candidates, means, strict=True)}
    return best.candidates[int(np.argmin(means))], found


def settle(
    estimator: Any,
    importance: Any,
    evaluation: str,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    **options: Any,
) -> tuple[Any, Any, str, dict[str, str]]:
    """Model of y, score and evaluation that are used, and notes: those of the best candidate if there is a choice.

    Parameters
    ----------
    estimator, importance, evaluation
        As they were asked for; a ``BestOf`` has scores and evaluations of its own.
    X, X_tilde : array, shape (n, n_columns)
        After the random swap of columns.
    y : array, shape (n,)
    **options
        Of ``choose_best``.
    """
    if not isinstance(estimator, BestOf):
        return estimator, importance, evaluation, {}
    chosen, losses = choose_best(estimator, np.hstack([X, X_tilde]), y, **options)
    notes = {"estimator": estimator.say(losses)} | dict(chosen.notes)
    return chosen.estimator, chosen.importance, chosen.evaluation, notes


def _held_out_loss(
    estimator: Any,
    loss: str,
    XX: NDArray,
    y: NDArray,
    held: NDArray[np.bool_],
    sample_weight: NDArray | None,
    rng: Generator,
) -> float:
    """Mean loss on the held-out rows of a model fitted on the others."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight[~held]}
    model = fresh(estimator, rng).fit(XX[~held], y[~held], **weights)
    measure = resolve_loss(loss, model)
    losses = measure(y[held], predict_for(measure, model, XX[held]), getattr(model, "classes_", None))
    return float(losses @ check_weights(None if sample_weight is None else sample_weight[held], int(held.sum())))
