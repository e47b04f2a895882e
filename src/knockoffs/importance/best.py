"""Several models of y, of which the one that predicts rows it has not seen best is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from knockoffs.response.fresh import Estimator, check_takes_weights, predicts_classes
from knockoffs.sampling.copies import Beside, Copies
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

NEARLY = 0.97  # share of the variance that the best explains, in units of the variance of y
ROWS = 400  # predicted by every candidate, of which one in n_folds is held out at a time
MOST_CELLS = 10_000_000  # of [X, X_tilde] that candidates are compared on; of a larger table rows are drawn at random
FEWEST = 5 * ROWS  # rows that are drawn, however wide the table is
RARE = 100  # rows of a class that are all among them
CLEAR = 2.0  # standard errors of a difference of losses, under which more rows are predicted, as far as there are


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
    flexible : str
        Name of a candidate that is taken where the best does not predict clearly better than a constant: of products
        and humps a linear model sees nothing at all, and trees may just begin to.
    """

    candidates: tuple[ModelScore, ...]
    loss: str
    favoured: str = ""
    flexible: str = ""

    def __call__(self, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None = None) -> Scored:
        """Scores of the candidate that predicts best; the same as if it had been asked for alone."""
        stream, choice_stream = rng.spawn(2)
        chosen, losses = choose_best(self, pair, target, rng=choice_stream, n_jobs=n_jobs)
        scored = chosen.scored(pair, target, rng=stream, n_jobs=n_jobs)
        return Scored(scored.scores, {"estimator": self.say(chosen.name, losses)} | dict(scored.notes), chosen)

    def say(self, chosen: str, losses: Mapping[str, float]) -> str:
        """Say which candidate was chosen and why."""
        others = sorted((name for name in losses if name != chosen), key=losses.__getitem__)
        rest = "; ".join(f"{name} {losses[name]:.3g}" for name in others)
        words = {"log_loss": "log-loss", "squared_error": "squared error, in variances of y,"}
        words["poisson_deviance"] = "Poisson deviance"
        measure = words.get(self.loss, self.loss.replace("_", " "))
        best = losses[chosen] <= min(losses.values())
        why = "because it predicts held-out rows best"
        if not best:
            nothing = "because none predicts held-out rows clearly better than a constant does"
            why = nothing if chosen == self.flexible else "which suits groups and predicts about as well as any"
        return f"estimator={chosen!r}, {why}: {measure} {losses[chosen]:.3g} ({rest})"

    def chosen(self, losses: Mapping[str, float], *, predicts: bool = True) -> str:
        """Name of the candidate with the smallest loss, or of the favoured one where it explains ``NEARLY`` as much.

        Where the best of them does not predict, it is the flexible one.

        >>> BestOf((), "squared_error", "ridge").chosen({"lasso": 0.120, "ridge": 0.125})
        'ridge'
        >>> BestOf((), "squared_error", "ridge").chosen({"lasso": 0.55, "ridge": 0.59})
        'lasso'
        >>> BestOf((), "squared_error", flexible="trees").chosen({"lasso": 0.99, "trees": 1.01}, predicts=False)
        'trees'
        """
        best = min(losses, key=losses.__getitem__)
        if self.flexible in losses and not predicts:
            return self.flexible
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
        As many folds are held out in turn as give ``ROWS`` rows, a single one of a large table; then the others too,
        for the candidates that are within ``CLEAR`` standard errors of the best. Of more than ``MOST_CELLS`` cells
        as many rows take part as have that many, and all rows where none predicts by those.
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
    most = max(MOST_CELLS // (len(pair.parts) * pair.n_columns), FEWEST)
    some = _some_rows(len(pair), most, labels, rng)
    if some is not None:
        chosen, found, predicts = _compare(best, pair.rows(some), target.rows(some), rng, n_jobs)
        if predicts:
            return chosen, found
    return _compare(best, pair, target, rng, n_jobs)[:2]


def _compare(
    best: BestOf, pair: Beside, target: Target, rng: Generator, n_jobs: int | None
) -> tuple[ModelScore, dict[str, float], bool]:
    """Choose by the rows given; and whether a constant predicts clearly worse, where that is asked."""
    labels = target.values if predicts_classes(best.candidates[0].estimator) else None
    n_folds = min(best.candidates[0].n_folds, len(pair))
    fold_of = draw_folds(len(pair), n_folds, rng, labels=labels)
    n_held = min(n_folds, -(-ROWS * n_folds // len(pair)))
    views = [(c, pair if c.transform is None else c.transform(pair)) for c in best.candidates]
    able: list[tuple[ModelScore, Beside]] = [
        (c, seen)
        for c, seen in views
        if c.transform is None or seen is not pair  # else another sees the same
    ]

    def held_out(which: Sequence[int], folds: Sequence[int]) -> NDArray:
        """Losses of the rows of some folds, shape (n_candidates, n_rows)."""
        asked = [able[i] for i in which]
        jobs = [(candidate, seen, fold) for candidate, seen in asked for fold in folds]
        tasks = (
            delayed(_held_out_losses)(candidate.estimator, best.loss, seen, target, fold_of == fold, stream)
            for (candidate, seen, fold), stream in zip(jobs, rng.spawn(len(jobs)), strict=True)
        )
        found = list(track(at_once(tasks, n_jobs), "choice of the model", total=len(jobs)))
        return np.stack([np.concatenate(found[at : at + len(folds)]) for at in range(0, len(found), len(folds))])

    folds = list(range(n_held))
    losses = held_out(range(len(able)), folds)
    weights = _weights(target, fold_of, folds)
    means = losses @ weights
    ahead = int(np.argmin(means))
    close = [i for i in range(len(able)) if i == ahead or not _clear(losses[i] - losses[ahead], weights)]
    if len(close) > 1 and n_held < n_folds:
        more, folds = list(range(n_held, n_folds)), list(range(n_folds))
        gaps = means - means[ahead]  # of those that are out of it, from the rows they were asked about
        losses = np.hstack([losses[close], held_out(close, more)])
        weights = _weights(target, fold_of, folds)
        settled = losses @ weights
        means = settled[close.index(ahead)] + gaps
        means[close] = settled
        losses, ahead = losses[[int(np.argmin(settled))]], 0
    found = {candidate.name: float(mean) for (candidate, _), mean in zip(able, means, strict=True)}
    predicts = True
    if best.flexible in found:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        constant = DummyClassifier(strategy="prior") if labels is not None else DummyRegressor()
        idle = [_held_out_losses(constant, best.loss, pair, target, fold_of == fold, rng) for fold in folds]
        gain = np.concatenate(idle) - losses[ahead]
        predicts = bool(gain @ weights > 0 and _clear(gain, weights))
    name = best.chosen(found, predicts=predicts)
    return next(candidate for candidate, _ in able if candidate.name == name), found, predicts


def _some_rows(n: int, most: int, labels: NDArray | None, rng: Generator) -> NDArray[np.intp] | None:
    """Rows that candidates are compared on, drawn without a look at them, and all of a rare class; none says all."""
    if n <= most:
        return None
    taken = np.zeros(n, dtype=bool)
    taken[rng.choice(n, most, replace=False)] = True
    if labels is not None:
        _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        taken |= (counts <= RARE)[codes]
    return np.flatnonzero(taken)


def _weights(target: Target, fold_of: NDArray[np.intp], folds: Sequence[int]) -> NDArray:
    """Weights of the rows of some folds, in the order of the folds, with the sum one."""
    each = np.ones(len(fold_of)) if target.weights is None else target.weights
    weights = np.concatenate([each[fold_of == fold] for fold in folds])
    return weights / weights.sum()


def _clear(difference: NDArray, weights: NDArray) -> bool:
    """Whether a weighted mean is ``CLEAR`` of its standard errors away from zero."""
    mean = difference @ weights
    return bool(abs(mean) >= CLEAR * np.sqrt((weights**2) @ (difference - mean) ** 2))


def _in_deviations(y: NDArray, loss: str) -> NDArray:
    """Numbers in units of their standard deviation, whose squares cannot overflow; counts stay counts."""
    if loss == "poisson_deviance":
        return y
    y = y / (np.abs(y).max() or 1.0)  # squares of very large numbers would be infinite
    return (y - y.mean()) / (y.std() or 1.0)


def _held_out_losses(
    estimator: Estimator, loss: str, pair: Pair | Copies, target: Target, held: NDArray[np.bool_], rng: Generator
) -> NDArray:
    """Losses of the held-out rows, shape (n_held,), of a model fitted on the others; infinite where it has none."""
    model = fit_on(estimator, pair, target, np.flatnonzero(~held), rng)
    measure, rest = resolve_loss(loss, model), target.rows(held)
    losses = measure(
        rest.values, predict_for(measure, model, pair.rows(held).stacked), getattr(model, "classes_", None)
    )
    return np.nan_to_num(losses, nan=np.inf)
