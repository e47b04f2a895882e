"""Fit the model of y and score it: on the rows it was fitted on, on rows held out, cross-fitted, or out of bag."""

from __future__ import annotations

import copy
import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError, KnockoffWarning, name_some, unknown_option
from knockoffs.importance.scores import Importance, Scores, mean_of
from knockoffs.progress import track

EVALUATIONS = ("in_sample", "held_out", "cross_fitted", "out_of_bag")


@dataclass(frozen=True)
class Job:
    """One fit: the rows it is fitted on, the rows it is scored on, and its randomness."""

    fit_rows: NDArray[np.intp]
    score_rows: NDArray[np.intp]
    rng: Generator


def fit_and_score(
    estimator: Any,
    importance: Importance,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    *,
    evaluation: str = "in_sample",
    n_folds: int = 5,
    n_fits: int = 1,
    feature_of: NDArray[np.intp] | None = None,
    sample_weight: NDArray | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> Scores:
    """Scores of a model of y fitted on [X, X_tilde], averaged over folds and fits.

    Which rows a model sees is drawn without looking at X or X_tilde, so flip-sign in distribution is kept.

    Parameters
    ----------
    estimator : object
        Unfitted model with ``fit(XX, y)``; it is copied for every fit. A ``random_state`` of None is drawn from rng.
    importance : Importance
    X, X_tilde : array, shape (n, n_columns)
    y : array, shape (n,)
    evaluation : {"in_sample", "held_out", "cross_fitted", "out_of_bag"}
        On which rows a fitted model is scored: those it was fitted on; one fold of ``n_folds`` that was held out; each
        fold in turn by a model fitted on the others; or, for a bootstrapped forest, each row by the trees that were not
        fitted on it. Folds hold every class in proportion.
    n_folds : int
    n_fits : int
        Fits (each with folds of its own) that are averaged.
    feature_of : array of int, shape (n_columns,), optional
    sample_weight : array, shape (n,), optional
        For the fit and for the score.
    rng : numpy.random.Generator
    n_jobs : int, optional
        Fits at a time; the answer does not depend on it.

    Returns
    -------
    Scores
        Averages over folds weighted by their rows.
    """
    if evaluation not in EVALUATIONS:
        raise unknown_option("evaluation", evaluation, EVALUATIONS)
    if int(n_fits) != n_fits or n_fits < 1:
        raise InputError(f"n_fits={n_fits!r}: use 1 or more.")
    if sample_weight is not None:
        check_takes_weights(estimator)
        kept = np.asarray(sample_weight) > 0  # rows of weight 0 are not there
        X, X_tilde, y = X[kept], X_tilde[kept], np.asarray(y)[kept]
        sample_weight = np.asarray(sample_weight, dtype=float)[kept]
    owners = np.arange(X.shape[1]) if feature_of is None else feature_of
    y = np.asarray(y)
    labels = y if predicts_classes(estimator) else None
    jobs = [job for stream in rng.spawn(int(n_fits)) for job in _plan(evaluation, len(y), labels, int(n_folds), stream)]
    work = Parallel(n_jobs=n_jobs if len(jobs) > 1 else None, return_as="generator")(
        delayed(_fit_and_score_once)(estimator, importance, X, X_tilde, y, evaluation, owners, sample_weight, job)
        for job in jobs
    )
    scores = list(track(work, "model fits", total=len(jobs)))
    return mean_of(scores, weights=np.array([len(job.score_rows) for job in jobs], dtype=float))


def _fit_and_score_once(
    estimator: Any,
    importance: Importance,
    X: NDArray,
    X_tilde: NDArray,
    y: NDArray,
    evaluation: str,
    feature_of: NDArray[np.intp],
    sample_weight: NDArray | None,
    job: Job,
) -> Scores:
    fit_rows, score_rows = job.fit_rows, job.score_rows
    model = fresh(estimator, job.rng)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight[fit_rows]}
    model.fit(np.hstack([X[fit_rows], X_tilde[fit_rows]]), y[fit_rows], **weights)
    if evaluation == "out_of_bag":
        from knockoffs.response.trees import out_of_bag

        model = out_of_bag(model, len(fit_rows))
    return importance(
        model,
        X[score_rows],
        X_tilde[score_rows],
        y[score_rows],
        feature_of=feature_of,
        rng=job.rng,
        sample_weight=None if sample_weight is None else sample_weight[score_rows],
    )


def fresh(estimator: Any, rng: Generator) -> Any:
    """Unfitted copy whose open random states are drawn from rng."""
    from sklearn.base import clone

    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    model = clone(estimator)
    states = {
        name: int(rng.integers(2**31 - 1))
        for name, value in sorted(model.get_params().items())
        if value is None and name.split("__")[-1] == "random_state"
    }
    return model.set_params(**states) if states else model


def predicts_classes(estimator: Any) -> bool:
    """Whether an unfitted model is a classifier."""
    from sklearn.base import is_classifier

    if hasattr(estimator, "__sklearn_tags__"):
        return is_classifier(estimator)
    return getattr(estimator, "_estimator_type", None) == "classifier" or hasattr(estimator, "predict_proba")


def check_takes_weights(estimator: Any) -> None:
    """Refuse weights for a model that takes none."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(
            f"{type(estimator).__name__}.fit takes no sample_weight. Leave the weights out, or use a model that takes "
            "them, for instance a forest, boosting or a logistic regression."
        )


def _plan(evaluation: str, n: int, labels: NDArray | None, n_folds: int, rng: Generator) -> list[Job]:
    """Rows of each fit and of its score."""
    everything = np.arange(n)
    if evaluation in ("in_sample", "out_of_bag"):
        return [Job(everything, everything, rng)]
    fold_of = draw_folds(n, n_folds, rng, labels=labels)
    used = range(n_folds) if evaluation == "cross_fitted" else range(1)
    return [
        Job(np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold), stream)
        for fold, stream in zip(used, rng.spawn(len(used)), strict=True)
    ]


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
                "without it. Leave such classes out or join them, or use evaluation='in_sample'."
            )
        # rows of a class one after the other, dealt out in turn: two rows of a class never share all folds
        order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(n, dtype=np.intp)
    fold_of[order] = np.arange(n) % n_folds
    return fold_of


def warn_if_saturated(W: NDArray, importance: Any = None) -> None:
    """Warn where an accuracy-drop score left most W at exactly 0.

    Other scores are sparse by design (a lasso's coefficients) and are left alone.

    Parameters
    ----------
    W : array, shape (d,)
    importance : Importance, optional
        The score; None is taken for an accuracy drop.
    """
    from knockoffs.importance.accuracy_drop import accuracy_drop

    while isinstance(importance, functools.partial):
        importance = importance.func
    zeros = int(np.sum(np.asarray(W) == 0))
    if importance not in (None, accuracy_drop) or zeros <= len(W) / 2:
        return
    warnings.warn(
        f"W is exactly 0 for {zeros} of {len(W)} features: faking them changed no prediction, as happens when a model "
        "is scored by accuracy on the rows it was fitted on. Use evaluation='cross_fitted' (or 'out_of_bag' for a "
        "forest), or loss='log_loss' (loss='squared_error' for numbers).",
        KnockoffWarning,
        stacklevel=2,
    )
