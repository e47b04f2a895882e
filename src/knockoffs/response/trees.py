"""Tree models of y: the forest and the boosting that a task gets by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.random import Generator

from knockoffs.response.clone import kind_of

if TYPE_CHECKING:
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

FOREST_TREES = 200  # on each of five folds
FOREST_COLUMNS = 300  # of [X, X_tilde] that a split of a number is chosen among: all of 2000 take four times as long
BOOSTING_LEAVES = 15  # of a boosted tree: half of scikit-learn's, which predict worse where rows are few
BOOSTING_BINS = 63  # of a column: a quarter of scikit-learn's predict as well, in half the time
LEAF_RIDGE = 1.0  # on the leaves: without it a class of a few rows among thousands drives the scores to infinity


def make_forest(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> RandomForestClassifier | RandomForestRegressor:
    """Random forest, unfitted: the estimator "forest"; options are those of scikit-learn's.

    >>> make_forest("regression", n_estimators=10)
    RandomForestRegressor(max_features=300, n_estimators=10)
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    own: dict[str, object] = {"n_estimators": FOREST_TREES, "random_state": _whole(random_state), "n_jobs": n_jobs}
    if kind_of(task) != "regression":
        return RandomForestClassifier(**own | options)
    return RandomForestRegressor(**{"max_features": FOREST_COLUMNS} | own | options)


def make_boosting(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Histogram gradient boosting, unfitted: the estimator "boosting"; options are those of scikit-learn's.

    Counts, and log-hazards of survival times, are fitted by the Poisson deviance. Threads are OpenMP's.

    >>> make_boosting("binary", max_iter=50).max_iter
    50
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if kind_of(task) == "regression" else HistGradientBoostingClassifier
    if task == "survival":
        from knockoffs.response.cox_boosting import CoxBoosting as kind
    own: dict[str, object] = {
        "max_bins": BOOSTING_BINS,
        "max_leaf_nodes": BOOSTING_LEAVES,
        "l2_regularization": LEAF_RIDGE,
    }
    if task in ("count", "survival"):
        own["loss"] = "poisson"
    # early stopping would set rows aside by class, which a class of one row does not survive
    return kind(**{"early_stopping": False, "random_state": _whole(random_state), **own, **options})


def _whole(random_state: int | Generator | None) -> int | None:
    """Seed for scikit-learn, which knows no generators."""
    return int(random_state.integers(2**31 - 1)) if isinstance(random_state, Generator) else random_state
