"""Of several models of y, the one that predicts held-out rows best: which it is, and that swaps do not change it."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from knockoffs import KnockoffSelector
from knockoffs.choices import choose
from knockoffs.errors import InputError
from knockoffs.importance.accuracy_drop import swap as swap_score
from knockoffs.importance.best import ROWS, BestOf, Candidate, choose_best
from knockoffs.importance.evaluation import draw_folds
from knockoffs.procedure import select_features
from knockoffs.sampling.swap import swap


def tables(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, d))
    return X, X_tilde, rng


def candidate(name, estimator):
    return Candidate(name, estimator, partial(swap_score, loss="log_loss"), "cross_fitted", {"importance": name})


CLASSIFIERS = BestOf((candidate("logistic", LogisticRegression()), candidate("bayes", GaussianNB())), "log_loss")


@pytest.mark.parametrize(("signal", "winner"), [("sum", "logistic"), ("squares", "bayes")])
def test_the_model_that_predicts_is_chosen(signal, winner):
    X, X_tilde, rng = tables()
    y = X.sum(axis=1) > 0 if signal == "sum" else (X**2).sum(axis=1) > 4
    chosen, losses = choose_best(CLASSIFIERS, np.hstack([X, X_tilde]), y, rng=rng)
    assert chosen.name == winner
    assert losses[winner] == min(losses.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_those_of_folds_counted_by_hand(weighted):
    X, X_tilde, rng = tables(n=120)
    XX, y = np.hstack([X, X_tilde]), (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    weights = rng.uniform(0.5, 2, size=120) if weighted else np.ones(120)
    fold_of = draw_folds(120, 3, np.random.default_rng(5), labels=y)
    total = 0.0
    for fold in range(3):
        held = fold_of == fold
        model = GaussianNB().fit(XX[~held], y[~held], sample_weight=weights[~held])
        total += weights[held].sum() * log_loss(y[held], model.predict_proba(XX[held]), sample_weight=weights[held])
    _, losses = choose_best(
        CLASSIFIERS, XX, y, n_folds=3, sample_weight=weights if weighted else None, rng=np.random.default_rng(5)
    )
    assert losses["bayes"] == pytest.approx(total / weights.sum(), rel=1e-12)


def test_a_swap_of_columns_changes_neither_losses_nor_choice():
    X, X_tilde, rng = tables()
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    S = np.array([True, False, True, False])
    found = [
        choose_best(CLASSIFIERS, np.hstack(pair), y, rng=np.random.default_rng(1))
        for pair in ((X, X_tilde), swap(X, X_tilde, S))
    ]
    assert found[0][0].name == found[1][0].name
    for name, loss in found[0][1].items():
        assert found[1][1][name] == pytest.approx(loss, rel=1e-6)


class Counting(ClassifierMixin, BaseEstimator):
    """A classifier that says how many rows it was fitted on."""

    fits: tuple[int, ...] = ()

    def fit(self, XX, y):
        type(self).fits = (*self.fits, len(XX))
        self.classes_ = np.unique(y)
        return self

    def predict(self, XX):
        return np.zeros(len(XX), dtype=int)

    def predict_proba(self, XX):
        return np.full((len(XX), 2), 0.5)


@pytest.mark.parametrize(("n", "n_fits"), [(100, 5), (ROWS, 5), (2 * ROWS, 3), (5 * ROWS, 1), (8 * ROWS, 1)])
def test_a_large_table_needs_few_folds(n, n_fits):
    Counting.fits = ()
    best = BestOf((candidate("counting", Counting()),), "log_loss")
    choose_best(best, np.zeros((n, 2)), np.arange(n) % 2, rng=np.random.default_rng(0))
    assert Counting.fits == (n - n // 5,) * n_fits


def test_the_answer_does_not_depend_on_the_number_of_jobs():
    X, X_tilde, _ = tables()
    y = X[:, 0] > 0
    XX = np.hstack([X, X_tilde])
    best = BestOf((candidate("forest", RandomForestClassifier(3)), *CLASSIFIERS.candidates), "brier")
    runs = [choose_best(best, XX, y, rng=np.random.default_rng(2), n_jobs=jobs) for jobs in (1, 2)]
    assert runs[0][1] == runs[1][1]


def test_the_chosen_model_is_scored_by_its_own_score_and_the_notes_say_why():
    X, X_tilde, rng = tables()
    y = (X**2).sum(axis=1) > 4
    selection = select_features(
        X,
        y,
        feature_model=None,
        knockoffs=X_tilde,
        estimator=CLASSIFIERS,
        importance=None,
        fdr=0.5,
        notes={"task": "told"},
        rng=rng,
    )
    assert list(selection.notes) == ["task", "estimator", "importance"]
    assert selection.notes["importance"] == "bayes"
    assert selection.notes["estimator"].startswith(
        "estimator='bayes', because it predicts held-out rows best: log-loss 0.3"
    )
    assert "(logistic 0.6" in selection.notes["estimator"]
    assert selection.W.min() > 0


def test_by_default_products_go_to_boosting_and_sums_to_the_lasso():
    X, X_tilde, rng = tables(n=600, d=6)
    products = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=600)
    sums = X.sum(axis=1) + rng.normal(size=600)
    for y, name in ((products, "boosting"), (products > 0, "boosting"), (sums, "lasso"), (sums > 0, "lasso")):
        selector = KnockoffSelector(0.3, knockoffs=X_tilde, random_state=0).fit(X, y)
        assert selector.selection_.notes["estimator"].startswith(f"estimator={name!r}, because it predicts")
        again = KnockoffSelector(0.3, knockoffs=X_tilde, random_state=0, estimator=name).fit(X, y)
        # the same streams, so the same W as if that model had been asked for
        np.testing.assert_array_equal(selector.W_, again.W_)


def test_lasso_stands_alone_where_boosting_cannot():
    y = np.arange(60) % 3
    for importance in ("coefficients", "integrated-gradients"):
        choice = choose(y, importance=importance)
        assert type(choice.estimator).__name__ == "LogisticPathCV"
        assert importance in choice.notes["estimator"]
    assert "of your own" in choose(y, importance=lambda *a, **k: None).notes["estimator"]
    assert isinstance(choose(y, importance=partial(swap_score, loss="brier")).estimator, BestOf)
    lonely = np.append(y, 7)
    assert "class '7' has a single row" in choose(lonely).notes["estimator"]
    assert choose(lonely).evaluation == "in_sample"


def test_every_candidate_gets_what_was_asked_for():
    best = choose(np.arange(60) % 3, estimator="best", importance="swap-integral", evaluation="held-out").estimator
    assert [(c.name, c.evaluation) for c in best.candidates] == [("lasso", "held_out"), ("boosting", "held_out")]
    assert best.loss == "log_loss"
    assert choose(np.linspace(0, 1, 60)).estimator.loss == "squared_error"


def test_out_of_bag_is_refused_and_best_is_among_the_names():
    with pytest.raises(InputError, match="use it with estimator='forest'"):
        choose(np.arange(60) % 2, evaluation="out-of-bag")
    with pytest.raises(InputError, match="best"):
        choose(np.arange(60) % 2, estimator="bset")
