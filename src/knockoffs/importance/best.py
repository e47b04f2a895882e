"""Several models of y, of which the one that predicts rows it has not seen best is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.importance.losses import predict_for, resolve_loss
from knockoffs.importance.rows import draw_folds
from knockoffs.importance.statistic import ModelScore, Scored, fit_on, weighted_rows
from knockoffs.machine.jobs import at_once
from knockoffs.progress import track
from knockoffs.response.fresh import check_takes_weights, predicts_classes
from knockoffs.sampling.copies import Beside, Copies
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

NEARLY = 0.97  # share of the variance that the best explains, in units of the variance of y
ROWS = 400  # predicted by every candidate, of which one in n_folds is held out at a time


@dataclass(frozen=True)
class BestOf:
    """Several models of y, of which the one that predicts rows it has not seen best is used, with its own score.

    Which model predicts best depends on the data. The choice keeps flip-sign in distribution, as every fit does:
    columns are swapped at random before it, and predictions of held-out rows do not know which are knockoffs.

    Attributes
    ----------
    candidates : tuple of ModelScore
        One whose transform leaves the pair as it is does not take part: another sees the same.
    loss : str
        A name of ``knockoffs.importance.losses.LOSSES``, by which they are compared.
    favoured : str
        Name of a candidate that is taken where it explains as much of a number as the best does, or nearly.
    """

    candidates: tuple[ModelScore, ...]
    loss: str
    favoured: str = ""

    def __call__(self, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None = None) -> Scored:
        """Scores of the candidate that predicts best; the same as if it had been asked for alone."""
        stream, choice_stream = rng.spawn(2)
        chosen, losses = choose_best(self, pair, target, rng=choice_stream, n_jobs=n_jobs)
        scored = chosen.scored(pair, target, rng=stream, n_jobs=n_jobs)
        return Scored(scored.scores, {"estimator": self.say(losses)} | dict(scored.notes), chosen)

    def say(self, losses: Mapping[str, float]) -> str:
        """Say which candidate was chosen and why."""
        chosen = self.chosen(losses)
        others = sorted((name for name in losses if name != chosen), key=losses.__getitem__)
        rest = "; ".join(f"{name} {losses[name]:.3g}" for name in others)
        words = {"log_loss": "log-loss", "squared_error": "squared error, in variances of y,"}
        words["poisson_deviance"] = "Poisson deviance"
        measure = words.get(self.loss, self.loss.replace("_", " "))
        best = losses[chosen] <= min(losses.values())
        why = (
            "because it predicts held-out rows best" if best else "which suits groups and predicts about as well as any"
        )
        return f"estimator={chosen!r}, {why}: {measure} {losses[chosen]:.3g} ({rest})"

    def chosen(self, losses: Mapping[str, float]) -> str:
        """Name of the candidate with the smallest loss, or of the favoured one where it explains ``NEARLY`` as much.

        >>> BestOf((), "squared_error", "ridge").chosen({"lasso": 0.120, "ridge": 0.125})
        'ridge'
        >>> BestOf((), "squared_error", "ridge").chosen({"lasso": 0.55, "ridge": 0.59})
        'lasso'
        """
        best = min(losses, key=losses.__getitem__)
        if self.favoured in losses and 1 - losses[self.favoured] >= NEARLY * (1 - losses[best]) > 0:
            return self.favoured
        return best

    def along_lambda(self, **options: object) -> BestOf:
        """Make the same choice, of models that are scored along a lambda path."""
        return replace(self, candidates=tuple(candidate.along_lambda(**options) for candidate in self.candidates))


def choose_best(
    best: BestOf, pair: Beside, target: Target, *, rng: Generator, n_jobs: int | None = None
) -> tuple[ModelScore, dict[str, float]]:
    """Candidate with the smallest mean loss on held-out rows, the first of equal ones; and the losses of all.

    Parameters
    ----------
    best : BestOf
        As many folds are held out in turn as give ``ROWS`` rows, or all of them: a large table needs a single one.
    pair : Pair or Copies
        After the random swap of columns.
    target : Target
        Numbers are put in units of their standard deviation.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Fits at a time; the answer does not depend on it.
    """
    if target.weights is not None:
        for candidate in best.candidates:
            check_takes_weights(candidate.estimator)
    pair, target = weighted_rows(pair, target)
    labels = target.values if predicts_classes(best.candidates[0].estimator) else None
    if labels is None:
        target = replace(target, values=_in_deviations(target.values, best.loss))
    n_folds = min(best.candidates[0].n_folds, len(pair))
    fold_of = draw_folds(len(pair), n_folds, rng, labels=labels)
    n_held = min(n_folds, -(-ROWS * n_folds // len(pair)))
    able = [(c, pair if c.transform is None else c.transform(pair)) for c in best.candidates]
    able = [(c, seen) for c, seen in able if c.transform is None or seen is not pair]  # else another sees the same
    jobs = [(candidate, seen, fold) for candidate, seen in able for fold in range(n_held)]
    tasks = (
        delayed(_held_out_loss)(candidate, best.loss, seen, target, fold_of == fold, stream)
        for (candidate, seen, fold), stream in zip(jobs, rng.spawn(len(jobs)), strict=True)
    )
    losses = np.array(list(track(at_once(tasks, n_jobs), "choice of the model", total=len(jobs)))).reshape(
        len(able), n_held
    )
    sizes = np.bincount(fold_of, weights=target.weights)[:n_held]
    means = np.nan_to_num(losses @ sizes / sizes.sum(), nan=np.inf)
    found = {candidate.name: float(mean) for (candidate, _), mean in zip(able, means, strict=True)}
    name = best.chosen(found)
    return next(candidate for candidate, _ in able if candidate.name == name), found


def _in_deviations(y: NDArray, loss: str) -> NDArray:
    """Numbers in units of their standard deviation, whose squares cannot overflow; counts stay counts."""
    if loss == "poisson_deviance":
        return y
    y = y / (np.abs(y).max() or 1.0)  # squares of very large numbers would be infinite
    return (y - y.mean()) / (y.std() or 1.0)


def _held_out_loss(
    candidate: ModelScore, loss: str, pair: Pair | Copies, target: Target, held: NDArray[np.bool_], rng: Generator
) -> float:
    """Mean loss on the held-out rows of a model fitted on the others."""
    model = fit_on(candidate.estimator, pair, target, np.flatnonzero(~held), rng)
    measure, rest = resolve_loss(loss, model), target.rows(held)
    losses = measure(
        rest.values, predict_for(measure, model, pair.rows(held).stacked), getattr(model, "classes_", None)
    )
    return float(np.average(losses, weights=rest.weights))
