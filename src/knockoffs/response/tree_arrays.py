"""Trees as arrays: the thresholds and leaves of scikit-learn's, XGBoost's and LightGBM's ensembles in one form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lightgbm import LGBMModel
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.tree import BaseDecisionTree
    from xgboost import XGBModel

# the sum of the leaves is a number, a probability, log-odds, or the logarithm of a number
IDENTITY, PROBABILITY, LOGISTIC, LOGARITHM = 0, 1, 2, 3


@dataclass(frozen=True)
class TreeArrays:
    """All trees of an ensemble, nodes one after the other."""

    column: NDArray[np.int32]  # shape (n_nodes,): column of the table that a node splits on; -1 at a leaf
    # shape (n_nodes,): a row goes left if its value, in double precision, is at most this. Where a library rounds the
    # table to single precision, the threshold is moved to where the rounded value changes sides, so that the answer is
    # the same
    threshold: NDArray
    left: NDArray[np.int32]  # shape (n_nodes,)
    right: NDArray[np.int32]  # shape (n_nodes,)
    # shape (n_nodes, n_values): what a leaf adds: one number to the output of its tree, or (n_values > 1) one number to
    # every output
    value: NDArray
    roots: NDArray[np.int32]  # shape (n_trees,)
    output: NDArray[np.int32]  # shape (n_trees,)
    # shape (n_outputs,): the sum starts here. One output is a number, P(second class), or its log-odds; else one for
    # each class
    base: NDArray
    average: bool  # whether the sum is divided by the number of trees
    link: int  # IDENTITY, PROBABILITY, LOGISTIC or LOGARITHM
    tie: int = 0  # 0 or 1: which of two classes the library predicts when they are equally likely


@dataclass(frozen=True)
class Tree:
    """One tree: children as indices into its own nodes, column -1 at leaves, value (n_nodes, n_values)."""

    column: NDArray
    threshold: NDArray
    left: NDArray
    right: NDArray
    value: NDArray


def tree_arrays(model: object, XX: NDArray) -> TreeArrays | None:
    """Arrays of a fitted ensemble, or None if the model is not one whose trees can be followed exactly.

    None for categorical splits, several targets, linear leaves, custom starting models and uncommon links: the path is
    then followed by calling ``predict``. The first row of XX gives the constant that gradient boosting starts from.
    """
    read = _reader(model)
    return None if read is None else read(model, XX)


def has_trees(model: object) -> bool:
    """Whether the model is an ensemble of a kind that is known here; loads no library."""
    return _reader(model) is not None


def _reader(model: object) -> Callable[[Any, NDArray], TreeArrays | None] | None:
    kinds = {kind.__module__.split(".")[0] + ":" + kind.__name__ for kind in type(model).__mro__}
    return next((read for name, read in READERS.items() if name in kinds), None)


def single_precision_at_most(threshold: NDArray) -> NDArray:
    """Largest double whose single-precision rounding is at most the threshold, up to the tie.

    A library that rounds x to single precision and then asks ``x <= threshold`` asks of the unrounded x whether it is
    below the middle between two neighbouring singles.

    >>> t = np.array([0.1])
    >>> x = single_precision_at_most(t)
    >>> bool(np.float32(x[0] - 1e-12) <= t[0]), bool(np.float32(x[0] + 1e-12) <= t[0])
    (True, False)
    """
    below = threshold.astype(np.float32)
    below = np.where(below.astype(float) > threshold, np.nextafter(below, np.float32(-np.inf)), below)
    above = np.nextafter(below, np.float32(np.inf))
    return (below.astype(float) + above.astype(float)) / 2


def single_precision_below(threshold: NDArray) -> NDArray:
    """Largest double whose single-precision rounding is below a single-precision threshold, up to the tie."""
    single = threshold.astype(np.float32)
    return (np.nextafter(single, np.float32(-np.inf)).astype(float) + single.astype(float)) / 2


def stack_trees(trees: Iterable[Tree], **fields: Any) -> TreeArrays:
    """Put trees one after the other."""
    listed = list(trees)
    sizes = np.array([len(tree.column) for tree in listed])
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def shifted(children: str) -> NDArray[np.int32]:
        return np.concatenate(
            [getattr(tree, children).astype(np.int64) + root for tree, root in zip(listed, roots, strict=True)]
        ).astype(np.int32)

    return TreeArrays(
        column=np.concatenate([tree.column for tree in listed]).astype(np.int32),
        threshold=np.concatenate([tree.threshold for tree in listed]).astype(float),
        left=shifted("left"),
        right=shifted("right"),
        value=np.ascontiguousarray(np.concatenate([tree.value for tree in listed]), dtype=float),
        roots=roots.astype(np.int32),
        **fields,
    )


def _sklearn_tree(estimator: BaseDecisionTree, value: NDArray) -> Tree:
    tree = estimator.tree_
    leaf = tree.children_left < 0
    return Tree(
        column=np.where(leaf, -1, tree.feature),
        threshold=single_precision_at_most(np.where(leaf, 0.0, tree.threshold)),
        left=np.maximum(tree.children_left, 0),
        right=np.maximum(tree.children_right, 0),
        value=value,
    )


def _read_forest(model: BaseForest, XX: NDArray) -> TreeArrays | None:
    estimators = getattr(model, "estimators_", [model])
    if model.n_outputs_ != 1:
        return None
    classes = getattr(model, "classes_", None)
    if classes is not None and len(classes) < 2:
        return None
    two = classes is not None and len(classes) == 2
    columns = slice(1, 2) if two else slice(None)
    n_outputs = 1 if classes is None or two else len(classes)
    return stack_trees(
        (_sklearn_tree(estimator, estimator.tree_.value[:, 0, columns]) for estimator in estimators),
        output=np.zeros(len(estimators), dtype=np.int32),
        base=np.zeros(n_outputs),
        average=True,
        link=IDENTITY if classes is None else PROBABILITY,
    )


def _read_gradient_boosting(model: BaseGradientBoosting, XX: NDArray) -> TreeArrays | None:
    if not (model.init is None or model.init == "zero") or model.loss == "exponential":
        return None
    rows = [(tree, k) for stage in model.estimators_ for k, tree in enumerate(stage)]
    n_outputs = model.estimators_.shape[1]
    classifies = hasattr(model, "classes_")
    # the starting constant is what the trees do not explain of one prediction
    first = XX[:1]
    total = np.ravel(model.decision_function(first) if classifies else model.predict(first)).astype(float)
    base = total.copy()
    for tree, k in rows:
        base[k] -= model.learning_rate * tree.predict(first)[0]
    return stack_trees(
        (_sklearn_tree(tree, model.learning_rate * tree.tree_.value[:, 0, :]) for tree, _ in rows),
        output=np.array([k for _, k in rows], dtype=np.int32),
        base=base[:n_outputs],
        average=False,
        link=LOGISTIC if classifies else IDENTITY,
        tie=1,
    )


def _read_histogram_boosting(model: BaseHistGradientBoosting, XX: NDArray) -> TreeArrays | None:
    classifies = hasattr(model, "classes_")
    nodes = [(predictor.nodes, k) for stage in model._predictors for k, predictor in enumerate(stage)]
    links = dict.fromkeys(("squared_error", "absolute_error", "quantile"), IDENTITY) | {"poisson": LOGARITHM}
    if not (classifies or model.loss in links) or any(table["is_categorical"].any() for table, _ in nodes):
        return None
    base = np.ravel(np.asarray(model._baseline_prediction, dtype=float))
    return stack_trees(
        (
            Tree(
                column=np.where(table["is_leaf"] == 1, -1, table["feature_idx"]),
                threshold=table["num_threshold"],
                left=table["left"],
                right=table["right"],
                value=table["value"][:, None],
            )
            for table, _ in nodes
        ),
        output=np.array([k for _, k in nodes], dtype=np.int32),
        base=base,
        average=False,
        link=LOGISTIC if classifies else links[model.loss],
    )


def _read_xgboost(model: XGBModel, XX: NDArray) -> TreeArrays | None:
    """Trees of XGBoost: single-precision tables, ``x < threshold`` goes left.

    XGBoost adds leaves in single precision and this sums them in double: its own probabilities agree to about 1e-7.
    """
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    links = {"binary:logistic": LOGISTIC, "multi:softprob": LOGISTIC, "multi:softmax": LOGISTIC}
    links |= dict.fromkeys(("reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror"), IDENTITY)
    links |= {"count:poisson": LOGARITHM}
    if booster["name"] != "gbtree" or objective not in links:
        return None
    parameters = learner["learner_model_param"]
    if int(parameters.get("num_target", 1)) > 1:
        return None
    trees, output = booster["model"]["trees"], booster["model"]["tree_info"]
    if any(tree["categories_nodes"] or int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in trees):
        return None
    base = np.atleast_1d(np.asarray(json.loads(parameters["base_score"]), dtype=float))
    n_outputs = max(1, int(parameters["num_class"]))
    if objective == "binary:logistic":
        base = np.log(base) - np.log1p(-base)
    elif links[objective] == LOGARITHM:
        base = np.log(base)
    starts = booster["model"]["iteration_indptr"]
    stages = starts[getattr(model, "best_iteration", len(starts) - 2) + 1]  # up to the best, if the fit stopped early
    return stack_trees(
        (_xgboost_tree(tree) for tree in trees[:stages]),
        output=np.array(output[:stages], dtype=np.int32),
        base=np.broadcast_to(base, (n_outputs,)).copy(),
        average=False,
        link=links[objective],
    )


def _xgboost_tree(tree: dict[str, Any]) -> Tree:
    left = np.array(tree["left_children"])
    leaf = left < 0
    number = np.array(tree["split_conditions"], dtype=np.float32)  # threshold of a split, value of a leaf
    return Tree(
        column=np.where(leaf, -1, tree["split_indices"]),
        threshold=single_precision_below(number),
        left=np.maximum(left, 0),
        right=np.maximum(tree["right_children"], 0),
        value=np.where(leaf, number, 0.0)[:, None].astype(float),
    )


def _read_lightgbm(model: LGBMModel, XX: NDArray) -> TreeArrays | None:
    dump = model.booster_.dump_model()
    objective = dump.get("objective", "").split()
    links = {"binary": LOGISTIC, "multiclass": LOGISTIC}
    links |= dict.fromkeys(("regression", "regression_l1", "huber", "fair", "quantile", "mape"), IDENTITY)
    links |= {"poisson": LOGARITHM}
    unusual = "sqrt" in objective or (objective[:1] == ["binary"] and "sigmoid:1" not in objective)
    if not objective or objective[0] not in links or unusual:
        return None
    trees = [_lightgbm_tree(info["tree_structure"]) for info in dump["tree_info"]]
    whole = [tree for tree in trees if tree is not None]
    if len(whole) < len(trees) or getattr(model, "linear_tree", False) or dump.get("average_output"):
        return None
    n_outputs = dump["num_tree_per_iteration"]
    return stack_trees(
        whole,
        output=np.arange(len(whole), dtype=np.int32) % n_outputs,
        base=np.zeros(n_outputs),
        average=False,
        link=links[objective[0]],
    )


def _lightgbm_tree(root: dict[str, Any]) -> Tree | None:
    """Nodes of one dumped tree, or None where a split is categorical or takes zero for missing."""
    column: list[int] = []
    left: list[int] = []
    right: list[int] = []
    threshold, value = [], []
    waiting = [(root, -1, False)]
    while waiting:
        node, parent, is_right = waiting.pop()
        place = len(column)
        if parent >= 0:
            (right if is_right else left)[parent] = place
        split = "split_feature" in node
        if split and (node["decision_type"] != "<=" or node["missing_type"] == "Zero"):
            return None
        column.append(node["split_feature"] if split else -1)
        threshold.append(node["threshold"] if split else 0.0)
        value.append(0.0 if split else node["leaf_value"])
        left.append(0)
        right.append(0)
        if split:
            waiting += [(node["left_child"], place, False), (node["right_child"], place, True)]
    return Tree(
        np.array(column), np.array(threshold, dtype=float), np.array(left), np.array(right), np.array(value)[:, None]
    )


# name of a base class, with the package it is defined in, and who reads its trees
READERS = {
    "sklearn:BaseForest": _read_forest,
    "sklearn:BaseDecisionTree": _read_forest,
    "sklearn:BaseGradientBoosting": _read_gradient_boosting,
    "sklearn:BaseHistGradientBoosting": _read_histogram_boosting,
    "xgboost:XGBModel": _read_xgboost,
    "lightgbm:LGBMModel": _read_lightgbm,
}
