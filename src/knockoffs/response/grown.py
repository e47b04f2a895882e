"""Histogram gradient boosting as scikit-learn grows it, compiled: the same trees in a fraction of the time of few rows.

scikit-learn hands every node of every tree from Python to compiled code and back, which is most of a fit to some
hundred rows. Here a fit is one call. What is left to scikit-learn: weights, missing cells, options that change the
growth, and tables so large that its threads are the faster way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from knockoffs.machine.compiled import njit
from knockoffs.response.growth import LOG_LOSS, POISSON, SQUARED, boost, into_bins
from knockoffs.response.tree_arrays import IDENTITY, LOGARITHM, LOGISTIC, TreeArrays

MOST_CELLS = 2_000_000  # of a table that is grown here; of more, scikit-learn's threads share the rows
MOST_COLUMNS = 2_000  # a node that may be split keeps the sums of all bins of all columns
LARGEST = np.float64(1e100)  # values whose sums are far from what a number can hold
# options that the growth follows, or that have no say in it; any other one must be as scikit-learn has it by default
FOLLOWED = frozenset(
    "loss max_iter learning_rate max_leaf_nodes min_samples_leaf l2_regularization max_bins "
    "random_state early_stopping validation_fraction n_iter_no_change tol scoring".split()
)
WHOLE = {"max_iter": 1, "max_leaf_nodes": 2, "min_samples_leaf": 1, "max_bins": 2}  # and the least they may be


@dataclass(frozen=True)
class Grown:
    """Boosted trees of a number, fitted."""

    trees: TreeArrays
    n_features_in_: int

    def predict(self, XX: NDArray) -> NDArray:
        """Predict numbers, shape (n,)."""
        total = self.total(XX)[:, 0]
        return np.exp(total) if self.trees.link == LOGARITHM else total

    def total(self, XX: NDArray) -> NDArray:
        """Sum of the leaves, shape (n, n_outputs)."""
        t, XX = self.trees, np.ascontiguousarray(XX, dtype=float)
        total = np.tile(t.base, (len(XX), 1))
        _add_leaves(XX, t.column, t.threshold, t.left, t.right, t.value[:, 0], t.roots, t.output, total)
        return total


@dataclass(frozen=True)
class GrownClassifier(Grown):
    """Boosted trees of labels, fitted; ``classes_`` has the labels in their order."""

    classes_: NDArray

    def predict(self, XX: NDArray) -> NDArray:
        """Predict labels, shape (n,)."""
        return self.classes_[self.predict_proba(XX).argmax(axis=1)]

    def predict_proba(self, XX: NDArray) -> NDArray:
        """Probabilities of the classes, shape (n, n_classes)."""
        total = self.total(XX)
        if total.shape[1] == 1:
            second = expit(total[:, 0])
            return np.column_stack([1 - second, second])
        return softmax(total, axis=1)

    def decision_function(self, XX: NDArray) -> NDArray:
        """Log-odds of the second class, shape (n,), or a number for each of more, shape (n, n_classes)."""
        total = self.total(XX)
        return total[:, 0] if total.shape[1] == 1 else total


def grow(model: Any, XX: NDArray, y: NDArray) -> Grown | None:
    """Trees that scikit-learn's boosting, unfitted, would grow; None where that is left to scikit-learn.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> XX = np.random.default_rng(0).standard_normal((200, 3))
    >>> model = HistGradientBoostingRegressor(early_stopping=False)
    >>> found = grow(model, XX, XX[:, 0] ** 2).predict(XX)
    >>> bool(np.allclose(found, model.fit(XX, XX[:, 0] ** 2).predict(XX)))
    True
    """
    if not _followed(model) or not _plain(XX) or len(XX) != len(y):
        return None
    if hasattr(model, "predict_proba"):
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            return None
        Y = (codes[:, None] == np.arange(len(classes)) if len(classes) > 2 else codes[:, None]).astype(float)
        return GrownClassifier(_trees(model, XX, Y, LOG_LOSS, LOGISTIC), XX.shape[1], classes)
    Y = np.asarray(y)[:, None]
    if Y.dtype.kind not in "fiub" or not (np.abs(Y := Y.astype(float)) < LARGEST).all():
        return None
    if model.loss == "squared_error":
        return Grown(_trees(model, XX, Y, SQUARED, IDENTITY), XX.shape[1])
    counts = Y.min() >= 0 and Y.sum() > 0
    return Grown(_trees(model, XX, Y, POISSON, LOGARITHM), XX.shape[1]) if counts else None


def _trees(model: Any, XX: NDArray, Y: NDArray, loss: int, link: int) -> TreeArrays:
    """Grow the trees and put their nodes one after the other."""
    base = _base(Y, loss)
    ends, n_bins, cells = into_bins(XX, model.max_bins)
    column, last, child, value, n_nodes = boost(
        cells,
        n_bins,
        Y,
        np.tile(base, (len(Y), 1)),
        loss,
        model.max_iter,
        model.max_leaf_nodes,
        model.min_samples_leaf,
        float(model.l2_regularization),
        float(model.learning_rate),
    )
    used = np.arange(column.shape[1]) < n_nodes[:, None]
    roots = (np.cumsum(n_nodes) - n_nodes).astype(np.int32)
    column, last, left = column[used], last[used], (child + roots[:, None])[used].astype(np.int32)
    leaf = column < 0
    return TreeArrays(
        column=column,
        threshold=np.where(leaf, 0.0, ends[np.where(leaf, 0, column), last]),
        left=np.where(leaf, 0, left),
        right=np.where(leaf, 0, left + 1),
        value=value[used][:, None],
        roots=roots,
        output=np.tile(np.arange(Y.shape[1], dtype=np.int32), model.max_iter),
        base=base,
        average=False,
        link=link,
    )


def _followed(model: Any) -> bool:
    """Whether a model is scikit-learn's boosting, with no option that changes how it grows but those followed here."""
    kind: Any = type(model)
    if not kind.__module__.startswith("sklearn.ensemble._hist_gradient_boosting"):
        return False
    given = {name: getattr(model, name) for name in _defaults(kind)}
    return (
        all(_same(given[name], default) for name, default in _defaults(kind).items() if name not in FOLLOWED)
        and given["early_stopping"] is False
        and given["loss"] in ("squared_error", "poisson", "log_loss")
        and all(isinstance(given[name], int) and given[name] >= least for name, least in WHOLE.items())
        and given["max_bins"] <= 255
        and given["learning_rate"] > 0
        and given["l2_regularization"] >= 0
    )


@cache
def _defaults(kind: Any) -> dict[str, object]:
    """Options of a model and what they are where nothing is said."""
    return kind().get_params()


def _same(given: object, default: object) -> bool:
    return given is default or (isinstance(given, int | float | str) and given == default)


def _plain(XX: NDArray) -> bool:
    """Whether a table is one of finite numbers, and not a large one."""
    if not isinstance(XX, np.ndarray) or XX.ndim != 2 or XX.dtype.kind not in "fiub":
        return False
    if not 0 < XX.size <= MOST_CELLS or XX.shape[1] > MOST_COLUMNS:
        return False
    return bool(XX.min() > -LARGEST and XX.max() < LARGEST)  # which no missing cell is


def _base(Y: NDArray, loss: int) -> NDArray:
    """Find the best constants, shape (n_outputs,), which the sums start from."""
    mean = Y.mean(axis=0)
    if loss == SQUARED:
        return mean
    if loss == POISSON:
        return np.log(mean)
    if len(mean) == 1:
        return np.log(mean / (1 - mean))
    return np.log(mean) - np.log(mean).mean()


@njit(cache=True, nogil=True)
def _add_leaves(
    XX: NDArray,
    column: NDArray[np.int32],
    threshold: NDArray,
    left: NDArray[np.int32],
    right: NDArray[np.int32],
    value: NDArray,
    roots: NDArray[np.int32],
    output: NDArray[np.int32],
    total: NDArray,
) -> None:
    """Add to the totals, shape (n, n_outputs), the leaf of every tree."""
    for i in range(len(XX)):
        for tree in range(len(roots)):
            node = roots[tree]
            while column[node] >= 0:
                node = left[node] if XX[i, column[node]] <= threshold[node] else right[node]
            total[i, output[tree]] += value[node]
