"""The statistic: from [X, X_tilde] and the target to Z and Z_tilde, by a model of y and its importance score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from joblib import delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some, unknown_option
from knockoffs.importance.scores import Importance, Scores, mean_of
from knockoffs.machine.parallel import parallel_map
from knockoffs.progress import track
from knockoffs.response import Estimator, FittedModel, check_takes_weights, fitted_copy, fresh, predicts_classes
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target

ROWS = ("in_sample", "held_out", "cross_fitted")  # on which a fitted model is scored


@dataclass(frozen=True)
class Scored:
    """Importance scores, notes on how they came about, and the model score that was used, where there is one."""

    scores: Scores
    notes: Mapping[str, str] = field(default_factory=dict)
    used: ModelScore | None = None


class Statistic(Protocol):
    """How features and knockoffs are scored.

    Valid if swapping features of the pair swaps their Z and Z_tilde, in distribution where it is random.
    """

    def __call__(self, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None = None) -> Scored:
        """Score every feature and every knockoff."""


@dataclass(frozen=True)
class ModelScore:
    """A model of y fitted on [X, X_tilde], and an importance score of the fitted model.

    Parameters
    ----------
    estimator : object
        Unfitted model with ``fit(XX, y)``; it is copied for every fit. A ``random_state`` of None is drawn.
    score : Importance
    options : mapping
        Keyword arguments of the score, for instance its loss.
    rows : {"in_sample", "held_out", "cross_fitted"}
        On which rows a fitted model is scored: those it was fitted on; one fold of ``n_folds`` that was held out; or
        each fold in turn by a model fitted on the others. Folds hold every class in proportion.
    n_folds : int
    n_fits : int
        Fits (each with folds of its own) that are averaged.
    transform : callable, optional
        What is done to the pair before the model sees it; it treats a feature and its knockoff alike.
    name : str
        What the model is called where it is compared with others.
    saturates : bool
        Whether the score can be stuck at zero, so that many W = 0 ask for a warning.
    notes : mapping
        What was chosen by default, in words.
    """

    estimator: Estimator
    score: Importance
    options: Mapping[str, object] = field(default_factory=dict)
    rows: str = "in_sample"
    n_folds: int = 5
    n_fits: int = 1
    transform: Callable[[Pair], Pair] | None = None
    name: str = ""
    saturates: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rows that have no name here, and no fits at all."""
        if self.rows not in ROWS:
            raise unknown_option("rows", self.rows, ROWS)
        if int(self.n_fits) != self.n_fits or self.n_fits < 1:
            raise InputError(f"n_fits={self.n_fits!r}: use 1 or more.")

    def __call__(self, pair: Pair, target: Target, *, rng: Generator, n_jobs: int | None = None) -> Scored:
        """Scores of the fitted model, averaged over folds and fits."""
        stream, _ = rng.spawn(2)  # the other one is for a choice among models, which there is none of here
        return self.scored(pair, target, rng=stream, n_jobs=n_jobs)

    def scored(
        self,
        pair: Pair,
        target: Target,
        *,
        rng: Generator,
        n_jobs: int | None = None,
        fitted: Mapping[int, FittedModel] | None = None,
    ) -> Scored:
        """Fit, score and average over folds (by their rows) and fits.

        Which rows a model sees is drawn without looking at X or X_tilde, so flip-sign in distribution is kept. Weights
        serve the fit and the score. ``fitted`` has fits that were made before, with the same stream, by their place.
        """
        if pair.m > 1:
            check_linear(self, pair.m)
        seen = pair if self.transform is None else self.transform(pair)
        if target.weights is not None:
            check_takes_weights(self.estimator)
            seen, target = weighted_rows(seen, target)
        labels = target.values if predicts_classes(self.estimator) else None
        jobs: list[Job] = []
        for stream in rng.spawn(int(self.n_fits)):
            jobs += plan(self.rows, len(seen), labels, int(self.n_folds), stream)
        known = fitted or {}
        if len(jobs) == 1:
            found = [self.once(seen, target, jobs[0], known.get(0))]
        else:
            tasks = (delayed(self.once)(seen, target, job, known.get(i)) for i, job in enumerate(jobs))
            found = list(track(parallel_map(tasks, n_jobs), "model fits", total=len(jobs)))
        scores = mean_of(found, weights=np.array([len(job.score_rows) for job in jobs], dtype=float))
        for name, values in (("Z", scores.Z), ("Z_tilde", scores.Z_tilde)):
            if np.shape(values)[:1] != (pair.n_features,):
                raise InputError(
                    f"the importance score returned {name} of shape {np.shape(values)}: expected one number for each "
                    f"of {pair.n_features} features."
                )
        if self.saturates:
            warn_if_saturated(scores)
        return Scored(scores, self.notes, self)

    def once(self, pair: Pair, target: Target, job: Job, model: FittedModel | None = None) -> Scores:
        """Scores of one fit, which may be there already."""
        if model is None:
            XX, y, weights = training_rows(pair, target, job.fit_rows)
            model = fitted_copy(self.estimator, XX, y, job.rng, **weights)
        else:
            fresh(self.estimator, job.rng)  # the score finds its stream as the fit would have left it
        seen, scored = (pair, target) if job.everything else (pair.rows(job.score_rows), target.rows(job.score_rows))
        scores: object = self.score(
            model,
            seen.X,
            seen.X_tilde,
            scored.values,
            feature_of=pair.feature_of,
            rng=job.rng,
            sample_weight=scored.weights,
            **({"more": seen.more} if seen.more else {}),
            **self.options,
        )
        if not isinstance(scores, Scores):
            raise InputError(
                f"the importance score returned {type(scores).__name__}: expected Scores(Z, Z_tilde), the importance "
                "of every feature and of every knockoff."
            )
        return scores

    def along_lambda(self, **options: object) -> ModelScore:
        """Score the same model at every lambda of a path: Z has one more axis, shape (n_features, n_lams).

        Options are ``fake`` and ``lams`` of ``lambda_path``; the loss is that of the score.
        """
        from knockoffs.importance.paths.lambda_path import path_scores

        options = {"loss": self.options.get("loss"), **options}
        return replace(self, score=path_scores, options=options, saturates=False)


@dataclass(frozen=True)
class Job:
    """One fit: the rows it is fitted on, the rows it is scored on, and its randomness."""

    fit_rows: NDArray[np.intp]
    score_rows: NDArray[np.intp]
    rng: Generator

    @property
    def everything(self) -> bool:
        """Whether a model is scored on the rows it was fitted on, which are all of them."""
        return self.fit_rows is self.score_rows


def plan(rows: str, n: int, labels: NDArray | None, n_folds: int, rng: Generator) -> list[Job]:
    """Rows of each fit and of its score."""
    everything = np.arange(n)
    if rows == "in_sample":
        return [Job(everything, everything, rng)]
    fold_of = draw_folds(n, n_folds, rng, labels=labels)
    return [
        Job(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), stream)
        for fold, stream in enumerate(rng.spawn(n_scored(rows, n_folds)))
    ]


def n_scored(rows: str, n_folds: int) -> int:
    """How many folds are scored by a model fitted on the others."""
    return {"cross_fitted": n_folds, "held_out": 1}.get(rows, 0)


def draw_folds(n: int, n_folds: int, rng: Generator, *, labels: NDArray | None = None) -> NDArray[np.intp]:
    """Fold of each row, at random, of sizes that differ by at most one; every class is spread evenly.

    >>> np.bincount(draw_folds(10, 3, np.random.default_rng(0)))
    array([4, 3, 3])
    """
    if not 2 <= n_folds <= n:
        raise InputError(f"n_folds={n_folds}: use between 2 and the number of rows, {n}.")
    order = rng.permutation(n)
    if labels is not None:
        classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if counts.min() < 2:
            raise InputError(
                f"class {name_some(classes[counts < 2].tolist())} of y has a single row, so a fold would leave a model "
                "without it. Leave such classes out or join them, or use the importance option rows='in_sample'."
            )
        # rows of a class one after the other, dealt out in turn: two rows of a class never share all folds
        order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[order] = np.arange(n) % n_folds
    return fold_of


def weighted_rows(pair: Pair, target: Target) -> tuple[Pair, Target]:
    """Without the rows of weight 0, which are not there."""
    if target.weights is None or (target.weights > 0).all():
        return pair, target
    kept = target.weights > 0
    return pair.rows(kept), target.rows(kept)


def training_rows(
    pair: Pair, target: Target, rows: NDArray[np.intp] | slice = slice(None)
) -> tuple[NDArray, NDArray, dict[str, NDArray]]:
    """Rows of [X, X_tilde], y, and sample weights if there are any: what a model is fitted on."""
    if not isinstance(rows, slice) and len(rows) < len(pair):
        pair, target = pair.rows(rows), target.rows(rows)
    return pair.stacked, target.values, {} if target.weights is None else {"sample_weight": target.weights}


def is_linear(statistic: ModelScore) -> bool:
    """Whether a statistic reads the coefficients of a linear model on the rows that it was fitted on."""
    from knockoffs.importance.coefficients import coefficient_magnitude, contribution

    return statistic.score in (coefficient_magnitude, contribution) and statistic.rows == "in_sample"


def check_linear(statistic: ModelScore, m: int) -> None:
    """Refuse a statistic that cannot compare a feature with several knockoffs at once."""
    if not is_linear(statistic):
        raise InputError(
            f"n_knockoffs={m}: several knockoffs of a feature take a linear model of y ('lasso', 'logistic', 'linear' "
            "or 'ridge') scored by 'coefficients' or 'contribution', on the rows it was fitted on."
        )


def warn_if_saturated(scores: Scores) -> None:
    """Warn where an accuracy-drop score left most W at exactly 0.

    Other scores are sparse by design (a lasso's coefficients) and are left alone.
    """
    zeros, d = int(np.sum(scores.Z == scores.Z_tilde)), len(scores.Z)
    if zeros <= d / 2:
        return
    warnings.warn(
        f"W is exactly 0 for {zeros} of {d} features: faking them changed no prediction, as happens when a model "
        "is scored by accuracy on the rows it was fitted on. Use the importance option rows='cross_fitted', or "
        "loss='log_loss' (loss='squared_error' for numbers).",
        KnockoffWarning,
        stacklevel=2,
    )
