"""Tree models of y: the forest and the boosting that a task gets by default, and a forest's out-of-bag side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from knockoffs.errors import InputError
from knockoffs.response.task import kind_of

if TYPE_CHECKING:
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.ensemble._forest import BaseForest

FOREST_TREES = 200  # on each of five folds
BOOSTING_LEAVES = 15  # of a boosted tree: half of scikit-learn's, which predict worse where rows are few
BOOSTING_BINS = 63  # of a column: a quarter of scikit-learn's predict as well, in half the time
LEAF_RIDGE = 1.0  # on the leaves: without it a class of a few rows among thousands drives the scores to infinity


def make_forest(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> RandomForestClassifier | RandomForestRegressor:
    """Random forest, unfitted: the estimator "forest".

    Parameters
    ----------
    task : str
        "classification" ("binary", "multiclass") or "regression" ("numeric").
    random_state : int or Generator, optional
    n_jobs : int, optional
    **options
        Of scikit-learn's RandomForestClassifier or RandomForestRegressor.

    >>> make_forest("regression", n_estimators=10)
    RandomForestRegressor(n_estimators=10)
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if kind_of(task) == "regression" else RandomForestClassifier
    return kind(**{"n_estimators": FOREST_TREES, "random_state": _whole(random_state), "n_jobs": n_jobs, **options})


def make_boosting(
    task: str, *, random_state: int | Generator | None = None, n_jobs: int | None = None, **options: object
) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Histogram gradient boosting, unfitted: the estimator "boosting". It takes its threads from OpenMP.

    Parameters
    ----------
    task : str
        "classification" ("binary", "multiclass"), "regression" ("numeric"), "count", a regression by the Poisson
        deviance, or "survival", a log-hazard by the same deviance.
    random_state : int or Generator, optional
    n_jobs : int, optional
        Not used.
    **options
        Of scikit-learn's HistGradientBoostingClassifier or HistGradientBoostingRegressor.

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


@dataclass(frozen=True)
class OutOfBagForest:
    """Fitted forest that uses, on each training row, only the trees that were not fitted on it.

    It can be scored on its training rows by Swap, Permutation and their integrals with the built-in losses; it cannot
    predict other tables.

    Attributes
    ----------
    forest : object
        A fitted forest of scikit-learn with ``bootstrap=True``.
    in_use : array of bool, shape (n, n_trees)
        False where a row was in the bootstrap sample of a tree.
    """

    forest: BaseForest
    in_use: NDArray[np.bool_]

    def __getattr__(self, name: str) -> Any:
        """Look up what the forest learned: its trees, its classes and its width."""
        if name in ("estimators_", "n_outputs_", "n_features_in_", "classes_"):
            return getattr(self.forest, name)
        raise AttributeError(name)

    def predict(self, XX: NDArray) -> NoReturn:
        """Refuse: which trees may be used is known for the training rows only."""
        raise InputError(
            "an out-of-bag forest is scored by the built-in losses on its training rows and cannot predict a table. "
            "Use the importance option rows='cross_fitted' with a loss of your own or with missing values."
        )

    predict_proba = predict


def out_of_bag(fitted: BaseForest, n: int) -> OutOfBagForest:
    """Out-of-bag side of a forest fitted on n rows.

    Parameters
    ----------
    fitted : object
        A RandomForest or ExtraTrees of scikit-learn fitted with ``bootstrap=True``.
    n : int
        Number of rows it was fitted on.
    """
    if not getattr(fitted, "bootstrap", False) or not hasattr(fitted, "estimators_samples_"):
        raise InputError(
            f"rows='out_of_bag' needs a forest of scikit-learn with bootstrap=True, not {type(fitted).__name__}. "
            "Use the importance option rows='cross_fitted'."
        )
    in_use = np.ones((n, len(fitted.estimators_)), dtype=bool)
    for tree, rows in enumerate(fitted.estimators_samples_):
        in_use[rows, tree] = False
    if not in_use.any():
        raise InputError(
            "every row is in the sample of every tree: fit more trees, or use the importance option "
            "rows='cross_fitted'."
        )
    return OutOfBagForest(fitted, in_use)
