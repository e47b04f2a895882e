"""Strings become statistics, and what was chosen by default is said."""

from dataclasses import replace

import numpy as np
import pytest

from knockoffs import defaults
from knockoffs.defaults import task_for
from knockoffs.errors import InputError
from knockoffs.importance import SCORES
from knockoffs.importance.accuracy_drop import swap_integral, swap_score
from knockoffs.importance.normal_scores import normal_scores
from knockoffs.response import ESTIMATORS, make_estimator
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import read_table
from knockoffs.table.target import as_target


def choose(y, *, task=None, sample_weight=None, **options):
    """Statistic of a target that is read as a selection reads it."""
    return defaults.choose(target_of(y, task_for(task, options.get("estimator")), sample_weight), **options)


def target_of(y, task=None, sample_weight=None):
    table = read_table(np.random.default_rng(0).random((len(y), 1)))
    return as_target(y, table, task=task, weights=sample_weight)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.linspace(0, 1, 100), "regression"),
        (np.arange(100) % 2, "classification"),
        (np.array(["a", "b", "c", "d", "e"] * 20, dtype=object), "classification"),
        (np.arange(100) % 2 == 0, "classification"),
    ],
)
def test_the_task_is_told_from_y(y, task):
    choice = choose(y)
    assert target_of(y).task == task
    lasso, boosting, on_scores = choice.statistic.candidates
    assert (on_scores.estimator, on_scores.transform) == (lasso.estimator, normal_scores)
    assert "coefficients" in lasso.notes["importance"]
    assert lasso.rows == "in_sample"
    assert "swap" in boosting.notes["importance"]
    assert boosting.rows == "cross_fitted"


def test_the_default_score_of_a_model_does_not_saturate():
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
    from sklearn.svm import SVC

    classes = np.arange(50) % 2
    forest = choose(classes, estimator=RandomForestClassifier()).statistic
    assert (forest.rows, forest.options["loss"], forest.score) == ("cross_fitted", "log_loss", swap_integral)
    boosting = choose(np.linspace(0, 1, 50), estimator=GradientBoostingRegressor()).statistic
    assert (boosting.rows, boosting.options["loss"]) == ("cross_fitted", "squared_error")
    machine = choose(classes, estimator=SVC()).statistic
    assert (machine.options["loss"], machine.score) == ("accuracy", swap_score)
    own = choose(classes, estimator=RandomForestClassifier(), loss=lambda y, said: (y != said).astype(float))
    assert own.statistic.score is swap_score  # an integral of a loss of one's own is not exact
    # asked for by its name, it is that of the paper
    asked = choose(classes, estimator=RandomForestClassifier(), importance="swap_integral").statistic
    assert "loss" not in asked.options


def test_an_estimator_says_what_y_is():
    from sklearn.linear_model import LinearRegression

    assert task_for(None, LinearRegression()) == "regression"
    assert target_of(np.arange(50) % 2, task_for(None, LinearRegression())).kind == "number"
    with pytest.raises(InputError, match="task='binary', but estimator LinearRegression is made for regression"):
        task_for("binary", LinearRegression())


def test_an_estimator_without_scikit_learns_base_class_will_do():
    class Mean:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    assert task_for(None, Mean()) is None
    assert choose(np.linspace(0, 1, 50), estimator=Mean()).statistic.options == {"loss": "squared_error"}


def test_a_linear_model_of_our_own_is_known_as_an_object():
    from knockoffs.response.linear import LassoPathCV
    from knockoffs.response.plain import PlainLogistic

    number = choose(np.linspace(0, 1, 50), estimator=LassoPathCV())
    assert (number.statistic.rows, number.notes["importance"]) == (
        "in_sample",
        "importance='coefficients', the default for LassoPathCV",
    )
    classes = choose(np.arange(50) % 2, estimator=PlainLogistic())
    assert classes.statistic.rows == "in_sample"


def test_a_classifier_is_not_given_numbers():
    from sklearn.ensemble import RandomForestClassifier

    with pytest.raises(InputError, match="RandomForestClassifier is made for classification, but y holds numbers"):
        choose(np.arange(50) % 4 / 2, estimator=RandomForestClassifier())
    with pytest.raises(InputError, match="y holds numbers, for instance 0.0204.*, and classes were asked for"):
        choose(np.linspace(0, 1, 50), estimator=RandomForestClassifier())


def can_do(estimator, task):
    """Whether a model of y is made for a task; two are for one of them, and a new one may be."""
    try:
        make_estimator(estimator, task)
    except InputError:
        assert estimator not in ("lasso", "forest", "boosting", "neural")
        return False
    assert (estimator, task) not in [("logistic", "regression"), ("linear", "classification")]
    return True


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("importance", SCORES)
def test_a_model_and_a_score_work_together_or_are_refused_before_a_fit(importance, estimator, task):
    if estimator == "neural":
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X, X_tilde = rng.standard_normal((2, 40, 2))
    y = 2 * X[:, 0] + 0.1 * rng.standard_normal(40)
    target = target_of(y if task == "regression" else y > 0)
    needs = SCORES[importance].needs
    if not can_do(estimator, task) or not (needs is None or needs in ESTIMATORS[estimator].offers):
        with pytest.raises(InputError, match=f"estimator='{estimator}'"):
            defaults.choose(target, estimator=estimator, importance=importance, rows="in_sample")
        return
    statistic = defaults.choose(target, estimator=estimator, importance=importance, rows="in_sample").statistic
    small = {"forest": {"n_estimators": 5}, "boosting": {"max_iter": 5}}.get(estimator, {})
    statistic = replace(statistic, estimator=statistic.estimator.set_params(**small))
    scored = statistic(Pair(X, X_tilde, np.arange(2)), target, rng=np.random.default_rng(1), n_jobs=None)
    assert scored.scores.Z.shape == scored.scores.Z_tilde.shape == (2,)
    assert np.isfinite(scored.scores.Z).all() and np.isfinite(scored.scores.Z_tilde).all()
    if not estimator == "boosting":  # twenty rows in a leaf: it sees nothing here
        assert scored.scores.Z[0] > scored.scores.Z_tilde[0]
