"""The statistic of a streamed table: decided on the sample, then a sum over batches of rows.

The lasso is a Gram; any other model is fitted on the sample and scored on further rows. Both are functions of swapped
pairs that treat a feature and its knockoff alike, so that W keeps its flip-sign property.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance import SCORES
from knockoffs.importance.coefficients import coefficient_magnitude, scores_of_sizes
from knockoffs.importance.model_choice import BestOf, choose_best
from knockoffs.importance.normal_scores import ScoreMap, learn_scores, normal_scores
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, Scored, Statistic, training_rows, weighted_rows
from knockoffs.registry import imported
from knockoffs.response import FittedModel, fitted_copy
from knockoffs.response.gram import FoldGrams, Pilot, fold_grams
from knockoffs.response.gram_lasso import fit_lasso
from knockoffs.response.linear import LassoPathCV, LogisticPathCV, PoissonPathCV
from knockoffs.sampling.pair import Pair
from knockoffs.table.memory import refuse_without_room
from knockoffs.table.target import Target

FOLDS = 5  # of the lasso, as in memory
PATHS = (LassoPathCV, LogisticPathCV, PoissonPathCV)


@dataclass(frozen=True)
class ScoreSum:
    """Scores times the weight of their rows, and the weight."""

    Z: NDArray
    Z_tilde: NDArray
    weight: float

    def __add__(self, other: ScoreSum) -> ScoreSum:
        """Sum over the rows of both."""
        return ScoreSum(self.Z + other.Z, self.Z_tilde + other.Z_tilde, self.weight + other.weight)


@dataclass(frozen=True)
class LassoSum:
    """The lasso by Grams: exact for numbers, and the quadratic approximation at a fit to the sample for others."""

    pilot: Pilot
    feature_of: NDArray[np.intp]
    path: LassoPathCV | LogisticPathCV | PoissonPathCV  # its penalties
    transform: Callable[[Pair], Pair]
    notes: Mapping[str, str] = field(default_factory=dict)
    every_row: ClassVar[bool] = True

    def of(self, pair: Pair, target: Target, rng: Generator) -> FoldGrams:
        """Grams of the folds; each row's fold is drawn."""
        fold_of = rng.integers(FOLDS, size=len(pair))
        return fold_grams(self.pilot, self.transform(pair).stacked, target.values, fold_of, FOLDS, target.weights)

    def scores(self, total: FoldGrams) -> Scores:
        """Absolute coefficients, as ``coefficient_magnitude`` gives them."""
        path, deviations = self.path, total.whole.deviations
        coef = fit_lasso(total, alpha=path.alpha, n_alphas=path.n_alphas, alpha_ratio=path.alpha_ratio).coef
        size = np.abs(coef).sum(axis=0)
        if self.pilot.classes is None and deviations[-1] > 0:
            size = size / deviations[-1]
        return scores_of_sizes(coef, size, np.hypot(*np.split(deviations[:-1], 2)) / np.sqrt(2), self.feature_of)


@dataclass(frozen=True)
class ModelSum:
    """A model fitted on the sample, scored on rows that it has not seen."""

    statistic: ModelScore
    model: FittedModel
    notes: Mapping[str, str] = field(default_factory=dict)
    every_row: ClassVar[bool] = False

    def of(self, pair: Pair, target: Target, rng: Generator) -> ScoreSum:
        """Scores of the rows, times their weight; rows of weight 0 are not there, and a batch may hold no others."""
        pair, target = weighted_rows(pair, target)
        if not len(pair):
            nothing = np.zeros(pair.n_features)
            return ScoreSum(nothing, nothing, 0.0)
        found = self.statistic.score(
            self.model,
            pair.X,
            pair.X_tilde,
            target.values,
            feature_of=pair.feature_of,
            rng=rng,
            sample_weight=target.weights,
            **self.statistic.options,
        )
        weight = float(len(pair)) if target.weights is None else float(target.weights.sum())
        return ScoreSum(found.Z * weight, found.Z_tilde * weight, weight)

    def scores(self, total: ScoreSum) -> Scores:
        """Mean over the rows."""
        if not total.weight > 0:
            raise InputError(
                "no row outside of the sample has a weight and a target, and the model of y is scored on such rows: "
                "raise sample_rows to all rows, or use estimator='lasso'."
            )
        return Scores(total.Z / total.weight, total.Z_tilde / total.weight)


def settle_statistic(
    statistic: Statistic, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None
) -> LassoSum | ModelSum | Scored:
    """Statistic of all rows: models are compared on the sample, and what is not a sum over rows is scored there.

    ``pair`` is the sample after the random swap.
    """
    if not isinstance(statistic, ModelScore | BestOf):
        raise InputError("a user-defined statistic is not a sum over rows: use a table in memory.")
    stream, choice_stream = rng.spawn(2)
    notes: dict[str, str] = {}
    chosen = statistic
    if isinstance(chosen, BestOf):
        # what the sample is too small to show, the lasso may find in all rows, and boosting cannot
        best = replace(chosen, flexible="")
        chosen, losses, *_ = choose_best(best, pair, target, rng=choice_stream, n_jobs=n_jobs)
        notes["estimator"] = best.say(chosen.name, losses)
    notes |= dict(chosen.notes)
    if by_gram(chosen):
        return _lasso_sum(chosen, pair, target, notes, stream)
    read_off = [imported(score.function) for score in SCORES.values() if not score.rows]
    if chosen.score in read_off or chosen.transform is not None:
        scored = chosen.scored(pair, target, rng=stream, n_jobs=n_jobs)
        notes["statistic"] = "the model of the target is fitted and scored on the sample alone"
        return Scored(scored.scores, notes)
    XX, y, weights = training_rows(pair, target)
    return ModelSum(chosen, fitted_copy(chosen.estimator, XX, y, stream, **weights), notes)


def _lasso_sum(chosen: ModelScore, pair: Pair, target: Target, notes: Mapping[str, str], stream: Generator) -> LassoSum:
    """Lasso of all rows, with the normal scores and the pilot fit of the sample."""
    assert isinstance(chosen.estimator, PATHS)
    numbers = isinstance(chosen.estimator, LassoPathCV)
    transform = ScoreMap({}) if chosen.transform is None else learn_scores(pair)
    n_columns = 2 * pair.n_columns
    n_outputs = 1 if numbers or target.kind in ("binary", "count") else len(np.unique(target.values))
    n_grams = n_outputs if numbers else n_outputs + 1
    refuse_without_room(
        2.0 * FOLDS * n_grams * 8 * (n_columns + 1) ** 2,  # Grams of every fold, twice while a batch is added
        f"a lasso of {n_columns} columns and knockoffs",
        "drop columns, or use estimator='boosting', which is scored row by row.",
    )
    if numbers:
        pilot = Pilot(np.zeros((1, n_columns)), np.zeros(1))
        said = "the lasso is fitted to the sums of products of all rows"
    else:
        XX, y, weights = training_rows(transform(pair), target)
        fitted = fitted_copy(chosen.estimator, XX, y, stream, **weights)
        assert isinstance(fitted, PATHS)
        pilot = Pilot.of(fitted)
        said = "the lasso takes one Newton step over all rows from its fit to the sample"
    return LassoSum(pilot, pair.feature_of, chosen.estimator, transform, {**notes, "statistic": said})


def by_gram(statistic: ModelScore) -> bool:
    """Whether it is the coefficients of a lasso whose penalty a Gram can find."""
    model = statistic.estimator
    if statistic.score is not coefficient_magnitude or not isinstance(model, PATHS) or statistic.n_fits != 1:
        return False
    if statistic.transform not in (None, normal_scores) or not isinstance(model.folds, int | np.integer):
        return False
    return model.alpha is None or isinstance(model, LassoPathCV)
