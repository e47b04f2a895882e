"""Several models of y: the one that predicts rows it has not seen best, and beside boosting a linear one as good."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.importance.losses import predict_for, resolve_loss
from knockoffs.importance.normal_scores import scores_of_target
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Scored, draw_folds, n_scored, training_rows, weighted_rows
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track
from knockoffs.response import Estimator, FittedModel, check_takes_weights, fitted_copy, predicts_classes
from knockoffs.response.linear import PenaltyPath, with_penalties
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

ALSO = 0.8  # share of what the flexible one explains, from which on a simpler candidate has a say beside it
NEARLY = 0.97  # share of the variance that the best explains, in units of the variance of y
ROWS = 400  # predicted by every candidate, of which one in n_folds is held out at a time
MOST_CELLS = 10_000_000  # of [X, X_tilde] that candidates are compared on; of a larger table rows are drawn at random
FEWEST = 5 * ROWS  # rows that are drawn, however wide the table is
RARE = 100  # rows of a class that are all among them
PLAIN = (1e-9, 1e9)  # largest |y| between which squares are safe, and y stays as it is; else it is in its deviations
SURE = 2.5  # standard errors by which the flexible candidate, after each fold, is behind and out of it
CLEAR = 2.0  # standard errors of a difference of losses, under which more rows are predicted, as far as there are


@dataclass(frozen=True)
class BestOf:
    """Several models of y, of which the one that predicts rows it has not seen best is used, with its own score.

    Which model predicts best depends on the data. The choice keeps flip-sign in distribution, as every fit does:
    columns are swapped at random before it, and predictions of held-out rows do not know which are knockoffs. The
    model that predicts best need not be the one whose scores tell most: trees spread what is linear over many columns.
    So where the flexible candidate is chosen and a simpler one explains ``ALSO`` as much, their scores are added, in
    units in which the largest |W| of both are the same.
    """

    candidates: tuple[ModelScore, ...]  # one whose transform leaves the pair as it is takes no part: another sees it
    loss: str  # a name of ``knockoffs.importance.losses.LOSSES``, by which they are compared
    favoured: str = ""  # candidate that is taken where it explains as much of a number as the best does, or nearly
    # candidate that is taken where the best does not predict clearly better than a constant: of products and humps a
    # linear model sees nothing at all, and trees may just begin to
    flexible: str = ""
    # whether a number that is far from normal is also put in its normal scores, and left there if the candidates
    # explain more of them than of the number: a function of y alone, which knows of no column
    by_scores: bool = False

    def __call__(self, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None = None) -> Scored:
        """Scores of the candidate that predicts best; the same as if it had been asked for alone."""
        stream, choice_stream = rng.spawn(2)
        race, notes = choose_best(self, pair, target, choice_stream, n_jobs, scored_by=stream), {}
        ranked = scores_of_target(target) if self.by_scores else None
        if ranked is not None:
            again = choose_best(self, pair, ranked, rng.spawn(1)[0], n_jobs, scored_by=stream)
            left, before = min(again.losses.values()), min(race.losses.values())
            if again.predicts and left < before:
                race, target = again, ranked
                notes["target"] = (
                    "the target by its normal scores, because its tails are heavy and more of the scores is explained: "
                    f"{1 - left:.2g} of the variance, against {max(1 - before, 0):.2g}"
                )
        scored = race.chosen.scored(pair, target, rng=stream, n_jobs=n_jobs, fitted=race.fitted)
        notes["estimator"] = self.say(race.chosen.name, race.losses)
        scores, also = scored.scores, self.also(race)
        if also is not None and scores.Z.ndim == 1:  # not along a lambda path
            sparse = replace(also, saturates=False)  # where it is 0, the sum need not be
            beside = sparse.scored(pair, target, rng=rng.spawn(1)[0], n_jobs=n_jobs)
            scores = added(scores.tie(pair.copied), beside.scores.tie(pair.copied))
            notes["estimator"] += (
                f". {also.name!r} explains at least {ALSO:g} of what it does: scores of both are added"
            )
            return Scored(scores, notes | of_both(scored.notes, beside.notes), race.chosen)
        return Scored(scores, notes | dict(scored.notes), race.chosen)

    def also(self, race: Race) -> ModelScore | None:
        """Candidate whose scores are added to those of the flexible one, if there is one that explains enough."""
        simpler = [candidate for candidate in race.able if candidate.name != self.flexible]
        if race.chosen.name != self.flexible or not race.predicts or not simpler:
            return None
        best = min(simpler, key=lambda candidate: race.losses[candidate.name])
        enough = race.constant - race.losses[best.name] >= ALSO * (race.constant - race.losses[self.flexible])
        return best if enough else None

    def say(self, chosen: str, losses: Mapping[str, float]) -> str:
        """Say which candidate was chosen and why."""
        others = sorted((name for name in losses if name != chosen), key=losses.__getitem__)
        rest = "; ".join(f"{name} {losses[name]:.3g}" for name in others)
        words = {"log_loss": "log-loss", "squared_error": "squared error, in variances of y,"}
        words |= {"poisson_deviance": "Poisson deviance", "partial_likelihood": "minus the log partial likelihood"}
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


class Race(NamedTuple):
    """What a comparison of candidates found."""

    chosen: ModelScore  # the one that won
    losses: dict[str, float]  # of all
    predicts: bool  # whether a constant predicts clearly worse
    fitted: Mapping[int, FittedModel]  # of the one that won, by the place of the fit among those that score it
    able: Sequence[ModelScore] = ()  # candidates that took part
    constant: float = np.nan  # loss of a constant, where one is asked about


def added(first: Scores, second: Scores) -> Scores:
    """Sum of two scores of the same features, the second in units in which its largest |W| is that of the first.

    The units do not change when columns are swapped, so that W of the sum changes its sign as the two do. They are
    those of the first, so that draws with and without a second can be averaged.

    >>> both = added(Scores(np.array([4.0, 1.0]), np.zeros(2)), Scores(np.array([0.0, 3.0]), np.array([1.0, 1.0])))
    >>> both.Z - both.Z_tilde
    array([2., 5.])
    """
    own, other = (float(np.abs(scores.Z - scores.Z_tilde).max()) or 1.0 for scores in (first, second))
    Z, Z_tilde = (Z + W / other * own for Z, W in ((first.Z, second.Z), (first.Z_tilde, second.Z_tilde)))
    return Scores(Z, Z_tilde, first.slopes if first.slopes is not None else second.slopes)


def of_both(first: Mapping[str, str], second: Mapping[str, str]) -> dict[str, str]:
    """Say of both models of which W is the sum what was chosen for them: of the second after the first.

    >>> of_both({"rows": "rows='held_out', for trees"}, {"rows": "rows='in_sample', for the lasso"})
    {'rows': "rows='held_out', for trees; 'in_sample', for the lasso"}
    """
    other = {key: note.partition("=")[2] for key, note in second.items()}
    return {key: f"{note}; {other[key]}" if other.get(key) else note for key, note in first.items()}


def choose_best(
    best: BestOf,
    pair: Pair,
    target: Target,
    rng: Generator,
    n_jobs: int | None = None,
    scored_by: Generator | None = None,
) -> Race:
    """Candidate with the smallest mean loss on held-out rows, the first of equal ones; and the losses of all.

    As many folds are held out in turn as give ``ROWS`` rows, a single one of a large table; then the others too, for
    the candidates that are within ``CLEAR`` standard errors of the best. The flexible candidate, whose fits cost the
    most, is left out after the first fold that leaves it ``SURE`` standard errors behind, and its loss is told from the
    rows before. Of more than ``MOST_CELLS`` cells as many rows take part as have that many, and all rows where none
    predicts by those. ``scored_by`` is the stream of the fits by which the one that wins will be scored.
    """
    if target.weights is not None:
        for candidate in best.candidates:
            check_takes_weights(candidate.estimator)
    pair, target = weighted_rows(pair, target)
    labels = target.values if predicts_classes(best.candidates[0].estimator) else None
    if labels is None and not PLAIN[0] < np.abs(target.values).max() < PLAIN[1]:
        target, scored_by = replace(target, values=_in_deviations(target.values, best.loss)), None
    most = max(MOST_CELLS // (len(pair.parts) * pair.n_columns), FEWEST)
    some = _some_rows(len(pair), most, labels, rng)
    if some is not None:
        race = _compare(best, pair.rows(some), target.rows(some), rng, n_jobs)
        if race.predicts:
            return race
    return _compare(best, pair, target, rng, n_jobs, scored_by)


def _compare(
    best: BestOf,
    pair: Pair,
    target: Target,
    rng: Generator,
    n_jobs: int | None,
    scored_by: Generator | None = None,
) -> Race:
    """Choose by the rows given."""
    labels = target.values if predicts_classes(best.candidates[0].estimator) else None
    n_folds = min(best.candidates[0].n_folds, len(pair))
    # folds as the score will have them
    fold_stream = rng if scored_by is None else copy.deepcopy(scored_by).spawn(1)[0]
    fold_of = draw_folds(len(pair), n_folds, fold_stream, labels=labels)
    score_streams = [] if scored_by is None else fold_stream.spawn(n_folds)
    n_held = min(n_folds, -(-ROWS * n_folds // len(pair)))
    views = [(c, pair if c.transform is None else c.transform(pair)) for c in best.candidates]
    able: list[tuple[ModelScore, Pair]] = [
        (c, seen)
        for c, seen in views
        if c.transform is None or seen is not pair  # else another sees the same
    ]
    models = []
    for candidate, seen in able:
        models.append(_for_folds(candidate.estimator, seen, target, fold_of))
    fitted: list[dict[int, FittedModel]] = [{} for _ in able]

    def held_out(which: Sequence[int], folds: Sequence[int]) -> NDArray:
        """Losses of the rows of some folds, shape (n_candidates, n_rows)."""
        jobs = [(i, fold) for i in which for fold in folds]
        tasks = []
        for (i, fold), stream in zip(jobs, rng.spawn(len(jobs)), strict=True):
            keep = scored_by is not None and fold < _n_alike(able[i][0], n_folds)
            own = copy.deepcopy(score_streams[fold]) if keep else stream
            held = fold_of == fold
            tasks.append(delayed(_held_out_losses)(models[i][fold], best.loss, able[i][1], target, held, own, keep))
        found = list(track(parallel_map(tasks, n_jobs), "choice of the model", total=len(jobs)))
        for (i, fold), (_, model) in zip(jobs, found, strict=True):
            if model is not None:
                fitted[i][fold] = model
        losses = [loss for loss, _ in found]
        return np.stack([np.concatenate(losses[at : at + len(folds)]) for at in range(0, len(losses), len(folds))])

    racing, losses, behind = list(range(len(able))), np.empty((len(able), 0)), None
    at, until = 0, 1
    while at < n_held:
        losses = np.hstack([losses, held_out(racing, range(at, until))])
        weights = _weights(target, fold_of, range(until))
        means = losses @ weights
        ahead = int(np.argmin(means))
        slow = next((place for place, i in enumerate(racing) if able[i][0].name == best.flexible), ahead)
        if until < n_held and means[slow] > means[ahead] and _clear(losses[slow] - losses[ahead], weights, SURE):
            behind = racing[ahead], racing.pop(slow), float(means[slow] - means[ahead])
            losses, slow = np.delete(losses, slow, axis=0), ahead
        at, until = until, n_held if slow == ahead else until + 1
    asked = range(n_held)
    close = [i for i in range(len(racing)) if i == ahead or not _clear(losses[i] - losses[ahead], weights)]
    if len(close) > 1 and n_held < n_folds:
        gaps = means - means[ahead]  # of those that are out of it, from the rows they were asked about
        more, asked = held_out([racing[i] for i in close], range(n_held, n_folds)), range(n_folds)
        losses = np.hstack([losses[close], more])
        weights = _weights(target, fold_of, asked)
        settled = losses @ weights
        means = settled[close.index(ahead)] + gaps
        means[close] = settled
        losses, ahead = losses[[int(np.argmin(settled))]], 0
    unit = (float(target.values.var()) or 1.0) if best.loss == "squared_error" else 1.0
    told = dict(zip(racing, means.tolist(), strict=True))
    if behind is not None:
        before, out, gap = behind
        told[out] = told[before] + gap
    found = {candidate.name: told[i] / unit for i, (candidate, _) in enumerate(able)}
    predicts, alone = True, np.nan
    if best.flexible in found:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        constant = DummyClassifier(strategy="prior") if labels is not None else DummyRegressor()
        idle = [_held_out_losses(constant, best.loss, pair, target, fold_of == fold, rng)[0] for fold in asked]
        alone = float(np.concatenate(idle) @ weights) / unit
        gain = np.concatenate(idle) - losses[ahead]
        predicts = bool(gain @ weights > 0 and _clear(gain, weights))
    name = best.chosen(found, predicts=predicts)
    won = next(i for i, (candidate, _) in enumerate(able) if candidate.name == name)
    return Race(able[won][0], found, predicts, fitted[won], [candidate for candidate, _ in able], alone)


def _n_alike(candidate: ModelScore, n_folds: int) -> int:
    """How many folds of a comparison are held out as a candidate's score holds them out: its fits are the same."""
    alike = candidate.n_fits == 1 and candidate.n_folds == n_folds and candidate.transform is None
    return n_scored(candidate.rows, n_folds) if alike else 0


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


def _clear(difference: NDArray, weights: NDArray, errors: float = CLEAR) -> bool:
    """Whether a weighted mean is so many of its standard errors away from zero."""
    mean = difference @ weights
    return bool(abs(mean) >= errors * np.sqrt((weights**2) @ (difference - mean) ** 2))


def _in_deviations(y: NDArray, loss: str) -> NDArray:
    """Numbers in units of their standard deviation, whose squares cannot overflow; counts and times stay."""
    if loss != "squared_error":
        return y
    y = y / (np.abs(y).max() or 1.0)  # squares of very large numbers would be infinite
    return (y - y.mean()) / (y.std() or 1.0)


def _for_folds(estimator: Estimator, pair: Pair, target: Target, fold_of: NDArray[np.intp]) -> Sequence[Estimator]:
    """Unfitted model for each fold; one whose penalty is cross-validated, with the best for the other folds."""
    if not isinstance(estimator, PenaltyPath) or estimator.alpha is not None:
        return [estimator] * (int(fold_of.max()) + 1)
    return cast(list[Estimator], with_penalties(estimator, pair.stacked, target.values, fold_of, target.weights))


def _held_out_losses(
    estimator: Estimator,
    loss: str,
    pair: Pair,
    target: Target,
    held: NDArray[np.bool_],
    rng: Generator,
    keep: bool = False,
) -> tuple[NDArray, FittedModel | None]:
    """Losses of the held-out rows, infinite where there is none, of a model fitted on the others; and it, to keep."""
    XX, y, weights = training_rows(pair, target, np.flatnonzero(~held))
    model = fitted_copy(estimator, XX, y, rng, **weights)
    measure, rest = resolve_loss(loss, model), target.rows(held)
    prediction = predict_for(measure, model, pair.rows(held).stacked)
    losses = measure(rest.values, prediction, getattr(model, "classes_", None))
    return np.nan_to_num(losses, nan=np.inf), model if keep else None
