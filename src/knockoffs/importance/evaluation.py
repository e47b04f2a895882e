"""Fit a model of y on [X, X_tilde] and score it, on the rows it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import unknown_option
from knockoffs.importance.scores import Importance, Scores, mean_of

EVALUATIONS = ("in_sample",)


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
    feature_of: NDArray[np.intp],
    sample_weight: NDArray | None = None,
    rng: Generator,
    n_jobs: int | None = None,
) -> Scores:
    """Scores of a model of y, averaged over several fits."""
    from sklearn.base import clone

    if evaluation not in EVALUATIONS:
        raise unknown_option("evaluation", evaluation, EVALUATIONS)
    XX, scores = np.hstack([X, X_tilde]), []
    for stream in rng.spawn(n_fits):
        model = clone(estimator)
        if "random_state" in model.get_params() and model.get_params()["random_state"] is None:
            model.set_params(random_state=int(stream.integers(2**31)))
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        model.fit(XX, y, **weights)
        scores.append(importance(model, X, X_tilde, y, feature_of=feature_of, rng=stream, sample_weight=sample_weight))
    return mean_of(scores)
