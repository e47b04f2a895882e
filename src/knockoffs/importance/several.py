"""Scores of a feature and of several knockoffs of it, by one linear model of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.importance.coefficients import coefficient_magnitude, coefficients_of, deviation, in_units_of_y
from knockoffs.importance.contribution import contribution, contributions
from knockoffs.importance.model_choice import BestOf, choose_best
from knockoffs.importance.scores import Importance, sum_by_feature
from knockoffs.importance.statistic import ModelScore, fit_on, weighted_rows
from knockoffs.response.clone import check_takes_weights
from knockoffs.sampling.copies import Copies
from knockoffs.table.target import Target

LINEAR = "a linear model of y ('lasso', 'logistic', 'linear' or 'ridge') scored by 'coefficients' or 'contribution'"


def score_copies(
    statistic: ModelScore | BestOf, copies: Copies, target: Target, *, rng: Generator, n_jobs: int | None = None
) -> tuple[NDArray, Mapping[str, str], ModelScore]:
    """Scores of the features and of each of their knockoffs, shape (m + 1, n_features), notes, and what was used.

    One model is fitted on [X, X_1, ..., X_m]. Where copies of a feature have changed places before, at random, the
    scores of a null feature can change places too, in distribution, whatever the model makes of the order of its
    columns.

    Parameters
    ----------
    statistic : ModelScore or BestOf
        Linear models, scored by their coefficients or contributions on the rows that they were fitted on.
    copies : Copies
    target : Target
    rng : numpy.random.Generator
    n_jobs : int, optional
    """
    stream, choice_stream = rng.spawn(2)
    notes: dict[str, str] = {}
    if isinstance(statistic, BestOf):
        chosen, losses = choose_best(statistic, copies, target, rng=choice_stream, n_jobs=n_jobs)
        notes["estimator"] = statistic.say(chosen.name, losses)
    else:
        chosen = statistic
    score = check_linear(chosen, len(copies.parts) - 1)
    seen = copies if chosen.transform is None else chosen.transform(copies)
    if target.weights is not None:
        check_takes_weights(chosen.estimator)
        seen, target = weighted_rows(seen, target)
    found = []
    for fit_stream in stream.spawn(int(chosen.n_fits)):
        model = fit_on(chosen.estimator, seen, target, np.arange(len(seen)), fit_stream)
        found.append(score(model, seen.parts, target.values, feature_of=seen.feature_of, sample_weight=target.weights))
    return np.mean(found, axis=0), notes | dict(chosen.notes), chosen


def check_linear(statistic: ModelScore | BestOf, m: int) -> Callable[..., NDArray]:
    """Score of several copies that goes with a statistic; those that are not for several are refused."""
    first = statistic.candidates[0] if isinstance(statistic, BestOf) else statistic
    score = SEVERAL.get(first.score)
    if score is None or first.rows != "in_sample":
        raise InputError(
            f"n_knockoffs={m}: several knockoffs of a feature take {LINEAR}, on the rows it was fitted on."
        )
    return score


def magnitudes(
    model: object,
    parts: Sequence[NDArray],
    y: NDArray,
    *,
    feature_of: NDArray[np.intp],
    sample_weight: NDArray | None = None,
) -> NDArray:
    """Absolute coefficients in standard deviations, pooled over X and its knockoffs, shape (n_parts, n_features)."""
    w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    pooled = np.sqrt(np.mean([deviation(part, w) ** 2 for part in parts], axis=0))
    coef = coefficients_of(model, len(parts) * parts[0].shape[1])
    sizes = in_units_of_y(np.abs(coef).sum(axis=0), model, y, w)
    return np.stack([sum_by_feature(own * pooled, feature_of) for own in np.split(sizes, len(parts))])


SEVERAL: dict[Importance, Callable[..., NDArray]] = {coefficient_magnitude: magnitudes, contribution: contributions}


def by_contribution(statistic: ModelScore) -> ModelScore:
    """Score the same model by what features add to its prediction, which suits groups and single columns alike."""
    said = "importance='contribution', the default for several knockoffs"
    return replace(statistic, score=contribution, notes={**statistic.notes, "importance": said})
