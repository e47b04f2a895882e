"""Boosting that is grown here: the trees of scikit-learn, node by node, and what is left to scikit-learn."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils.fixes import parse_version

from knockoffs import KnockoffSelector
from knockoffs.importance.accuracy_drop import swap_integral, swap_score
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.statistic import ModelScore
from knockoffs.response import grown
from knockoffs.response.clone import fitted_copy
from knockoffs.response.grown import Grown, grow
from knockoffs.response.growth import into_bins
from knockoffs.response.tree_arrays import has_trees, tree_arrays
from knockoffs.response.trees import make_boosting


def skip_where_bins_are_others(X, max_bins=63):
    """Before 1.9 scikit-learn put the ends of bins elsewhere, where a column has more values than bins."""
    if parse_version(sklearn.__version__) < parse_version("1.9") and len(np.unique(np.asarray(X)[:, 0])) > max_bins:
        pytest.skip("this version of scikit-learn has other bins")


def tables():
    """Tables of all kinds, by name."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    mixed = np.column_stack([X[:, :3], np.round(X[:, 3]), X[:, 4] > 0, np.zeros(400)])
    return {
        "numbers": X,
        "integers": np.round(3 * X).astype(int),
        "mixed": mixed,
        "booleans": X > 0,
        "singles": X.astype(np.float32),
        "columns twice": np.hstack([X[:, :3], X[:, :3]]),
        "one column": X[:, :1],
        "all constant": np.ones((400, 2)),
        "few rows": X[:39],  # too few for a cut
        "just rows enough": X[:40],
        "few and heavy": np.exp(5 * X[:90]),
    }


def responses(X):
    """Targets of all kinds, by name."""
    rng = np.random.default_rng(1)
    Z = np.asarray(X, dtype=float)
    signal = Z[:, 0] * Z[:, -1] / (1 + np.abs(Z[:, 0])) + Z[:, -1]
    noisy = signal / (signal.std() or 1) + rng.standard_normal(len(X))
    return {
        "regression": noisy,
        "count": rng.poisson(np.exp(0.5 * noisy.clip(-3, 3))),
        "binary": np.array(["no", "yes"])[(noisy > 0).astype(int)],
        "multiclass": np.digitize(noisy, [-0.8, 0.6]) * 10,
    }


@pytest.mark.parametrize("task", ["regression", "count", "binary", "multiclass"])
@pytest.mark.parametrize("name", list(tables()))
def test_trees_are_those_of_scikit_learn(name, task):
    X = tables()[name]
    skip_where_bins_are_others(X)
    y = responses(X)[task]
    model = make_boosting(task, random_state=0, max_iter=25)
    found, theirs = grow(model, X, y), clone(model).fit(X, y)
    own, other = tree_arrays(found, X), tree_arrays(theirs, X)
    assert has_trees(found)
    np.testing.assert_array_equal(own.roots, other.roots)
    np.testing.assert_array_equal(own.output, other.output)
    np.testing.assert_allclose(own.base, other.base, atol=1e-14)
    assert own.link == other.link
    new = np.asarray(X, dtype=float) + np.random.default_rng(2).standard_normal(X.shape)
    for rows in (X, new):  # nodes are numbered in another order
        if hasattr(theirs, "predict_proba"):
            np.testing.assert_allclose(found.predict_proba(rows), theirs.predict_proba(rows), atol=1e-12)
            np.testing.assert_allclose(found.decision_function(rows), theirs.decision_function(rows), atol=1e-12)
            assert (found.predict(rows) == theirs.predict(rows)).all()
            assert (found.classes_ == theirs.classes_).all()
        else:
            np.testing.assert_allclose(found.predict(rows), theirs.predict(rows), rtol=1e-9)
            assert not hasattr(found, "classes_")
            assert not hasattr(found, "decision_function")


@pytest.mark.parametrize(
    "options",
    [
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 31},
        {"min_samples_leaf": 1},
        {"min_samples_leaf": 150},
        {"l2_regularization": 0.0},
        {"l2_regularization": 30.0},
        {"learning_rate": 0.9},
        {"max_bins": 2},
        {"max_bins": 3},
        {"max_bins": 64},
        {"max_bins": 255},
        {"max_iter": 1},
    ],
)
@pytest.mark.parametrize("kind", [HistGradientBoostingRegressor, HistGradientBoostingClassifier])
def test_options_are_followed(kind, options):
    X = tables()["mixed"]
    skip_where_bins_are_others(X, options.get("max_bins", 255))
    y = responses(X)["regression" if kind is HistGradientBoostingRegressor else "multiclass"]
    model = kind(**{"early_stopping": False, "max_iter": 15, **options})
    found, theirs = grow(model, X, y), clone(model).fit(X, y)
    np.testing.assert_allclose(found.predict(X), theirs.predict(X), rtol=1e-9)
    assert len(found.trees.column) == sum(len(tree.nodes) for stage in theirs._predictors for tree in stage)


def test_classes_that_are_told_without_doubt():
    """Curvatures go to zero, and nodes that have none left are not cut."""
    X = tables()["integers"]
    y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 1)
    for target in (y, y > 0):
        model = HistGradientBoostingClassifier(max_iter=80, learning_rate=0.9, min_samples_leaf=1, early_stopping=False)
        found, theirs = grow(model, X, target), clone(model).fit(X, target)
        nodes = [len(tree.nodes) for stage in theirs._predictors for tree in stage]
        assert min(nodes) == 1  # a tree of no cut
        assert np.diff(np.append(found.trees.roots, len(found.trees.column))).tolist() == nodes
        np.testing.assert_allclose(found.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


def test_bins_of_many_sizes():
    """Quantiles at steps of the empirical distribution: numbers of rows that are and are not multiples of the bins."""
    skip_where_bins_are_others(np.arange(99.0)[:, None])
    for n in (63, 64, 65, 100, 126, 127, 189, 640):
        X = np.random.default_rng(n).standard_normal((n, 2)).cumsum(axis=0)
        X[n // 2 :, 1] = X[0, 1]  # half of it is one value
        ends, n_bins, cells = into_bins(X, 63)
        mapper = (
            HistGradientBoostingRegressor(max_bins=63, max_iter=1, early_stopping=False).fit(X, X[:, 0])._bin_mapper
        )
        assert mapper.n_bins_non_missing_.tolist() == n_bins.tolist()
        for j in range(2):
            np.testing.assert_array_equal(ends[j, : n_bins[j] - 1], mapper.bin_thresholds_[j])
        np.testing.assert_array_equal(cells.T, mapper.transform(X))


class Own(HistGradientBoostingRegressor):
    """Boosting of one's own."""


def test_what_is_left_to_scikit_learn():
    X = tables()["numbers"]
    y = responses(X)["regression"]
    missing, huge = X.copy(), X.copy()
    missing[3, 2], huge[0, 0] = np.nan, 1e200
    boosting = HistGradientBoostingRegressor(early_stopping=False)
    assert grow(boosting, X, y) is not None
    for table, target in (
        (missing, y),
        (huge, y),
        (X.astype(object), y),
        (X, y * 1e200),
        (X, np.append(y[:-1], np.nan)),
    ):
        assert grow(boosting, table, target) is None
    for options in (
        {"early_stopping": True},
        {"early_stopping": "auto"},
        {"max_depth": 3},
        {"max_leaf_nodes": None},
        {"loss": "absolute_error"},
        {"monotonic_cst": [1] * 6},
        {"interaction_cst": "no_interactions"},
        {"max_features": 0.5},
        {"categorical_features": [0]},
        {"warm_start": True},
        {"verbose": 1},
        {"max_iter": 0},
        {"max_bins": 500},
        {"learning_rate": -1.0},
    ):
        assert grow(clone(boosting).set_params(**options), X, y) is None, options
    assert grow(Own(early_stopping=False), X, y) is None
    assert grow(object(), X, y) is None
    labels = HistGradientBoostingClassifier(early_stopping=False)
    assert grow(labels, X, np.zeros(len(X))) is None
    assert grow(clone(boosting).set_params(loss="poisson"), X, y) is None  # negative counts: their error


def test_large_tables_are_left_to_scikit_learn(monkeypatch):
    X = tables()["numbers"]
    boosting, y = HistGradientBoostingRegressor(early_stopping=False), X[:, 0]
    monkeypatch.setattr(grown, "MOST_CELLS", X.size)
    assert grow(boosting, X, y) is not None
    monkeypatch.setattr(grown, "MOST_CELLS", X.size - 1)
    assert grow(boosting, X, y) is None


def test_weights_and_scores_of_ones_own_have_the_model_itself():
    X = tables()["numbers"]
    y, rng = responses(X)["regression"], np.random.default_rng(0)
    model = make_boosting("regression", max_iter=5)
    assert isinstance(fitted_copy(model, X, y, rng, to_predict=True), Grown)
    assert isinstance(fitted_copy(model, X, y, rng), HistGradientBoostingRegressor)
    weighted = fitted_copy(model, X, y, rng, to_predict=True, sample_weight=np.ones(len(y)))
    assert isinstance(weighted, HistGradientBoostingRegressor)
    for score, predicts in ((swap_score, True), (swap_integral, True), (coefficient_magnitude, False), (print, False)):
        assert ModelScore(model, score).predicts is predicts


@pytest.mark.parametrize("task", ["regression", "binary"])
def test_a_selection_is_the_same_by_either(task, monkeypatch):
    X = np.random.default_rng(3).standard_normal((300, 8))
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.1 * np.random.default_rng(4).standard_normal(300)
    y = y if task == "regression" else y > 0
    skip_where_bins_are_others(X)
    selector = KnockoffSelector(estimator="boosting", random_state=0, fdr=0.3, method="knockoffs")
    fits = []
    monkeypatch.setattr(grown, "grow", lambda *given: fits.append(grow(*given)) or fits[-1])
    quick = clone(selector).fit(X, y)
    assert fits
    assert all(isinstance(fit, Grown) for fit in fits)
    monkeypatch.setattr(grown, "grow", lambda *given: None)
    np.testing.assert_allclose(quick.W_, clone(selector).fit(X, y).W_, atol=1e-12)


def test_what_is_grown_can_be_sent_elsewhere():
    X = tables()["numbers"]
    found = grow(make_boosting("binary", max_iter=5), X, X[:, 0] > 0)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(found.predict_proba(X), again.predict_proba(X))
