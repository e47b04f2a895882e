"""Y given [X, X_tilde]: models of the target."""

from __future__ import annotations

from typing import Any

from numpy.random import Generator

from knockoffs.registry import load

# name -> "module:factory", imported when first used; a factory is called with (task, random_state=, n_jobs=)
ESTIMATORS: dict[str, str] = {
    "lasso": "knockoffs.response.linear:make_lasso",
    "logistic": "knockoffs.response.linear:make_logistic",
    "linear": "knockoffs.response.linear:make_linear",
    "forest": "knockoffs.response.trees:make_forest",
    "boosting": "knockoffs.response.trees:make_boosting",
    "neural": "knockoffs.response.neural:make_neural",
}


def make_estimator(
    name: str, task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None
) -> Any:
    """Unfitted model of y under a name, for a task.

    Parameters
    ----------
    name : str
        A name in ``ESTIMATORS``.
    task : str
        "classification" ("binary", "multiclass") or "regression" ("numeric").

    >>> make_estimator("lasso", "binary")
    LogisticPathCV()
    """
    return load(ESTIMATORS, "estimator", name)(task, random_state=random_state, n_jobs=n_jobs)
