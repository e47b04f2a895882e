"""Of several models of y, the one that predicts held-out rows best: which it is, and that swaps do not change it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from knockoffs import KnockoffSelector, defaults
from knockoffs.defaults import task_for
from knockoffs.features.given import GivenKnockoffs
from knockoffs.importance import Score
from knockoffs.importance import model_choice as best_of
from knockoffs.importance.accuracy_drop import swap_score
from knockoffs.importance.model_choice import ROWS, BestOf, choose_best
from knockoffs.importance.normal_scores import scores_of_target
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, draw_folds
from knockoffs.procedure import select_features
from knockoffs.response.linear import LassoPathCV, LogisticPathCV
from knockoffs.sampling.pair import Pair
from knockoffs.table.table import read_table
from knockoffs.table.target import Target, as_target


def choose(y, *, task=None, sample_weight=None, **options):
    """Statistic of a target that is read as a selection reads it."""
    table = read_table(np.random.default_rng(0).random((len(y), 1)))
    task = task_for(task, options.get("estimator"))
    return defaults.choose(as_target(y, table, task=task, weights=sample_weight), **options)


def tables(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X, X_tilde = rng.normal(size=(2, n, d))
    return X, X_tilde, rng


def candidate(name, estimator, n_folds=5):
    options = {"name": name, "n_folds": n_folds, "notes": {"importance": name}}
    return ModelScore(estimator, swap_score, {"loss": "log_loss"}, "cross_fitted", **options)


def pair_of(X, X_tilde):
    return Pair(X, X_tilde, np.arange(X.shape[1]))


def linear(name):
    return ModelScore(LinearRegression(), swap_score, {"loss": "squared_error"}, "cross_fitted", name=name)


CLASSIFIERS = BestOf((candidate("logistic", LogisticRegression()), candidate("bayes", GaussianNB())), "log_loss")


@pytest.mark.parametrize(("signal", "winner"), [("sum", "logistic"), ("squares", "bayes")])
def test_the_model_that_predicts_is_chosen(signal, winner):
    X, X_tilde, rng = tables()
    y = X.sum(axis=1) > 0 if signal == "sum" else (X**2).sum(axis=1) > 4
    chosen, losses, *_ = choose_best(CLASSIFIERS, pair_of(X, X_tilde), Target(y), rng=rng)
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
    three = BestOf(tuple(replace(candidate, n_folds=3) for candidate in CLASSIFIERS.candidates), "log_loss")
    target = Target(y, weights if weighted else None)
    _, losses, *_ = choose_best(three, pair_of(X, X_tilde), target, rng=np.random.default_rng(5))
    assert losses["bayes"] == pytest.approx(total / weights.sum(), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("path", "loss"), [(LassoPathCV, "squared_error"), (LogisticPathCV, "log_loss")])
def test_a_fold_is_predicted_with_the_penalty_that_is_best_for_the_others(path, loss, weighted):
    X, X_tilde, rng = tables(n=150)
    XX, y = np.hstack([X, X_tilde]), X[:, 0] + X[:, 1] + 3 * rng.normal(size=150)
    y = (y > 0).astype(int) if loss == "log_loss" else y
    weights = rng.uniform(0.5, 2, size=150) if weighted else np.ones(150)
    labels = y if loss == "log_loss" else None
    fold_of = draw_folds(150, 3, np.random.default_rng(5), labels=labels)
    walked = path(folds=fold_of).fit(XX, y, sample_weight=weights).cross_validation_
    total, penalties = 0.0, []
    for fold in range(3):
        held = fold_of == fold
        shares = [weights[fold_of == other].sum() for other in range(3) if other != fold]
        mean = np.average(np.delete(walked.losses, fold, axis=0), axis=0, weights=shares)
        penalties.append(walked.alphas[np.argmin(mean)])
        model = path(alpha=penalties[-1]).fit(XX[~held], y[~held], sample_weight=weights[~held])
        if loss == "log_loss":
            total += weights[held].sum() * log_loss(y[held], model.predict_proba(XX[held]), sample_weight=weights[held])
        else:
            total += weights[held] @ (y[held] - model.predict(XX[held])) ** 2 / y.var()
    assert len(set(penalties)) > 1  # they differ, so that the wrong fold's would be seen
    alone = BestOf((candidate("path", path(), n_folds=3),), loss)
    target = Target(y, weights if weighted else None)
    _, losses, *_ = choose_best(alone, pair_of(X, X_tilde), target, rng=np.random.default_rng(5))
    assert losses["path"] == pytest.approx(total / weights.sum(), rel=1e-9)


class Drawn(GaussianNB):
    """A classifier that is another one with every seed."""

    def __init__(self, random_state=None):
        super().__init__()
        self.random_state = random_state

    def fit(self, XX, y, sample_weight=None):
        kept = np.random.default_rng(self.random_state).random(len(y)) < 0.7
        return super().fit(XX[kept], np.asarray(y)[kept])


def shaken(model, X, X_tilde, y, *, feature_of, rng, sample_weight):
    """A score that draws, and that depends on the model."""
    d = X.shape[1]
    return Scores(*(np.abs(model.theta_[:, half].sum(axis=0)) + rng.random(d) for half in (slice(d), slice(d, None))))


@pytest.mark.parametrize("rows", ["cross_fitted", "held_out", "in_sample"])
@pytest.mark.parametrize(("n", "n_fits"), [(300, 1), (3000, 1), (300, 2)])
def test_the_winner_has_the_scores_that_it_would_have_alone(rows, n, n_fits):
    X, X_tilde, rng = tables(n=n)
    y = (X**2).sum(axis=1) > 4
    drawn = ModelScore(Drawn(), shaken, rows=rows, n_fits=n_fits, name="drawn")
    best = BestOf((candidate("logistic", LogisticRegression()), drawn), "log_loss")
    pair = pair_of(X, X_tilde)
    together = best(pair, Target(y), rng=np.random.default_rng(7))
    alone = drawn(pair, Target(y), rng=np.random.default_rng(7))
    assert together.used.name == "drawn"
    np.testing.assert_array_equal(together.scores.Z, alone.scores.Z)
    np.testing.assert_array_equal(together.scores.Z_tilde, alone.scores.Z_tilde)


def test_a_swap_of_columns_changes_neither_losses_nor_choice():
    X, X_tilde, rng = tables()
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0
    S = np.array([True, False, True, False])
    found = [
        choose_best(CLASSIFIERS, pair, Target(y), rng=np.random.default_rng(1))
        for pair in (pair_of(X, X_tilde), pair_of(X, X_tilde).swap(S))
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
    choose_best(best, pair_of(*np.zeros((2, n, 1))), Target(np.arange(n) % 2), rng=np.random.default_rng(0))
    assert Counting.fits == (n - n // 5,) * n_fits


def test_of_many_cells_candidates_are_compared_on_some_rows_and_all_of_a_rare_class(monkeypatch):
    """600 of 2000 rows (1200 cells, two a row), and the four of class 2."""
    monkeypatch.setattr(best_of, "MOST_CELLS", 1200)
    monkeypatch.setattr(best_of, "FEWEST", 0)
    Counting.fits, n = (), 2000
    y = np.arange(n) % 2
    y[:4] = 2
    best = BestOf((candidate("counting", Counting()),), "accuracy")
    pair = pair_of(*np.zeros((2, n, 1)))
    choose_best(best, pair, Target(y), rng=np.random.default_rng(0))
    assert len(Counting.fits) == 4 and all(600 * 4 // 5 <= fitted <= 604 * 4 // 5 + 1 for fitted in Counting.fits)
    some = best_of._some_rows(n, 600, y, np.random.default_rng(0))
    assert set(range(4)) <= set(some.tolist()) and len(some) <= 604
    assert best_of._some_rows(600, 600, y[:600], np.random.default_rng(0)) is None


def test_where_some_rows_show_nothing_all_are_asked(monkeypatch):
    X, X_tilde, rng = tables(n=2000, d=1)
    noise = rng.standard_normal(2000)
    best, seen, compare = BestOf((linear("lasso"),), "squared_error", flexible="lasso"), [], best_of._compare

    def watched(best, pair, *rest):
        seen.append(len(pair))
        return compare(best, pair, *rest)

    monkeypatch.setattr(best_of, "_compare", watched)
    monkeypatch.setattr(best_of, "FEWEST", 0)
    for y, most, expected in ((noise, 10**6, [2000]), (noise, 400, [200, 2000]), (X[:, 0] + noise, 400, [200])):
        monkeypatch.setattr(best_of, "MOST_CELLS", most)
        seen.clear()
        choose_best(best, pair_of(X, X_tilde), Target(y), rng=np.random.default_rng(0))
        assert seen == expected


def test_in_a_large_table_boosting_is_fitted_once_by_default():
    n = defaults.MOST_CELLS // 200 + 1
    y = np.arange(n) % 2
    for n_columns, rows in ((99, "cross_fitted"), (101, "held_out")):
        statistic = choose(y, estimator="boosting", n_columns=n_columns).statistic
        assert statistic.rows == rows
        assert (
            choose(y, estimator="boosting", n_columns=n_columns, rows="cross_fitted").statistic.rows == "cross_fitted"
        )


def test_the_chosen_model_is_scored_by_its_own_score_and_the_notes_say_why():
    X, X_tilde, rng = tables()
    y = (X**2).sum(axis=1) > 4
    selection = select_features(
        X, y, knockoffs=GivenKnockoffs(X_tilde), statistic=CLASSIFIERS, fdr=0.5, notes={"task": "told"}, rng=rng
    )
    assert list(selection.notes) == ["task", "knockoffs", "estimator", "importance"]
    assert selection.notes["importance"] == "bayes"
    assert selection.notes["estimator"].startswith(
        "estimator='bayes', because it predicts held-out rows best: log-loss 0.3"
    )
    assert "(logistic 0.6" in selection.notes["estimator"]
    assert selection.W.min() > 0


class Recorder(GaussianNB):
    """A classifier that keeps the means of the columns it was fitted on."""

    seen: tuple[tuple[int, ...], ...] = ()

    def fit(self, XX, y):
        type(self).seen = (*self.seen, tuple(np.round(XX.mean(axis=0)).astype(int).tolist()))
        return super().fit(XX, y)


def test_the_choice_sees_the_columns_in_the_order_of_the_fit():
    # a column says by its mean which it is, and the random swap of the procedure must come before the choice
    X, X_tilde, rng = tables(n=60)
    X, X_tilde = 0.01 * X + np.arange(4), 0.01 * X_tilde + 10 + np.arange(4)
    y = rng.random(60) < 0.5
    best = BestOf((candidate("one", Recorder()), candidate("two", Recorder())), "log_loss")
    orders = set()
    for seed in range(8):
        Recorder.seen = ()
        select_features(
            X, y, knockoffs=GivenKnockoffs(X_tilde), statistic=best, fdr=0.5, rng=np.random.default_rng(seed)
        )
        assert len(Recorder.seen) == 10  # two candidates on five folds each: what was compared is scored
        assert len(set(Recorder.seen)) == 1
        orders.add(Recorder.seen[0])
    assert len(orders) > 4


def test_rows_of_weight_zero_are_not_there():
    X, X_tilde, rng = tables()
    pair, y = pair_of(X, X_tilde), np.where(X[:, 0] > 0, "b", "a").astype(object)
    y[:3], weights = "never", np.ones(400)
    weights[:3] = 0
    weights[3:] = rng.uniform(0.5, 2, size=397)
    found = [
        choose_best(
            CLASSIFIERS, pair.rows(rows), Target(y[rows].astype(str), weights[rows]), rng=np.random.default_rng(3)
        )
        for rows in (slice(None), slice(3, None))
    ]
    assert found[0][1] == found[1][1]
    selector = KnockoffSelector(0.3, knockoffs=X_tilde, verdict=False).fit(X, y, sample_weight=weights)
    assert "because it predicts" in selector.selection_.notes["estimator"]


def test_numbers_are_compared_in_units_of_their_own():
    X, X_tilde, rng = tables()
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=400)
    best, pair = choose(y).statistic, pair_of(X, X_tilde)
    losses = [
        choose_best(best, pair, Target(scale * y), rng=np.random.default_rng(0))[1] for scale in (1.0, 1e150, 1e-200)
    ]
    for other in losses[1:]:
        assert other == pytest.approx(losses[0], rel=1e-6)
    assert losses[0]["boosting"] < losses[0]["lasso"] < 1.2  # about the variance, for a model that sees nothing


@pytest.mark.parametrize("n", [99, 100])
def test_with_few_rows_there_is_no_choice(n):
    choice = choose(np.arange(n) % 2)
    assert isinstance(choice.statistic, BestOf) == (n == 100)
    assert n == 100 or "99 rows are few for boosting" in choice.notes["estimator"]
    weights = np.where(np.arange(200) < n, 1.0, 0.0)
    assert isinstance(choose(np.arange(200) % 2, sample_weight=weights).statistic, BestOf) == (n == 100)


def test_a_rare_class_in_a_large_table_does_not_stop_the_default():
    rng = np.random.default_rng(0)
    X, X_tilde = rng.normal(size=(2, 12_800, 4))
    y = (X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] > 0).astype(int)
    y[:3] = 2
    notes = KnockoffSelector(0.3, knockoffs=X_tilde, verdict=False).fit(X, y).selection_.notes
    assert notes["estimator"].startswith("estimator='boosting'")


def test_by_default_products_go_to_boosting_and_sums_to_the_lasso():
    X, X_tilde, rng = tables(n=600, d=6)
    products = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.normal(size=600)
    sums = X.sum(axis=1) + rng.normal(size=600)
    for y, name in ((products, "boosting"), (products > 0, "boosting"), (sums, "lasso"), (sums > 0, "lasso")):
        selector = KnockoffSelector(0.3, knockoffs=X_tilde, verdict=False).fit(X, y)
        assert selector.selection_.notes["estimator"].startswith(f"estimator={name!r}, because it predicts")
        again = KnockoffSelector(0.3, knockoffs=X_tilde, verdict=False, estimator=name).fit(X, y)
        # the same streams, so the same W as if that model had been asked for
        np.testing.assert_array_equal(selector.W_, again.W_)


def test_lasso_stands_alone_where_boosting_cannot():
    y = np.arange(120) % 3
    for importance in ("coefficients", "integrated-gradients"):
        choice = choose(y, importance=importance)
        assert type(choice.statistic.estimator).__name__ == "LogisticPathCV"
        assert importance.replace("-", "_") in choice.notes["estimator"]
    assert "of your own" in choose(y, importance=lambda *a, **k: None).notes["estimator"]
    assert isinstance(choose(y, importance=Score(partial(swap_score, loss="brier"))).statistic, BestOf)
    assert isinstance(choose(y, importance=swap_score, loss="brier").statistic, BestOf)
    lonely = np.append(y, 7)
    assert "class '7' has a single row" in choose(lonely, task="classification").notes["estimator"]
    assert choose(lonely, task="classification").statistic.rows == "in_sample"


def test_every_candidate_gets_what_was_asked_for():
    best = choose(np.arange(120) % 3, estimator="best", importance="swap-integral", rows="held-out").statistic
    assert [(c.name, c.rows) for c in best.candidates] == [
        (name, "held_out") for name in ("lasso", "boosting", "lasso on normal scores")
    ]
    assert best.loss == "log_loss"
    assert choose(np.linspace(0, 1, 120)).statistic.loss == "squared_error"


def test_a_candidate_that_would_see_what_another_sees_takes_no_part(rng):
    """Normal columns: the lasso on normal scores is the lasso, and is not fitted; on their exponentials it wins."""
    X, X_tilde = rng.standard_normal((2, 300, 6))
    y = X @ np.array([1.0, 1, 1, 0, 0, 0]) + rng.standard_normal(300)
    best = choose(y).statistic
    plain, heavy = Pair(X, X_tilde, np.arange(6)), Pair(np.exp(3 * X), np.exp(3 * X_tilde), np.arange(6))
    target = as_target(y, read_table(X))
    chosen, losses, *_ = choose_best(best, plain, target, rng=np.random.default_rng(0))
    assert chosen.name == "lasso" and set(losses) == {"lasso", "boosting"}
    chosen, losses, *_ = choose_best(best, heavy, target, rng=np.random.default_rng(0))
    assert chosen.name == "lasso on normal scores" and len(losses) == 3


class Fixed(Counting):
    """A classifier whose probability of the second class is a fixed function of the first column."""

    slope = 0.0

    def predict_proba(self, XX):
        p = 1 / (1 + np.exp(-self.slope * XX[:, 0]))
        return np.column_stack([1 - p, p])


class Steep(Fixed):
    slope = 3.0


class Alike(Fixed):
    slope = 3.1


class Flat(Fixed):
    slope = 0.001


TWO = (("flat", Flat()), ("steep", Steep()))


def race(y, X, *, flexible="", candidates=TWO):
    made = tuple(candidate(name, model) for name, model in candidates)
    for _, model in candidates:
        type(model).fits = ()
    pair = pair_of(X[:, None], np.zeros_like(X[:, None]))
    chosen, losses, *_ = choose_best(
        BestOf(made, "log_loss", flexible=flexible), pair, Target(y), rng=np.random.default_rng(0)
    )
    return chosen.name, losses, [len(type(model).fits) for _, model in candidates]


def test_more_rows_are_asked_where_the_first_do_not_decide():
    rng = np.random.default_rng(0)
    X = rng.standard_normal(10 * ROWS)
    y = (rng.random(len(X)) < 1 / (1 + np.exp(-3 * X))).astype(int)
    name, _, fits = race(y, X)
    assert (name, fits) == ("steep", [1, 1])  # one fold of five decides
    _, losses, fits = race(y, X, candidates=(("flat", Flat()), ("steep", Steep()), ("alike", Alike())))
    assert fits == [1, 5, 5]  # the other four folds for those that are close
    assert max(losses["steep"], losses["alike"]) < losses["flat"]
    whole = -np.log(np.where(y == 1, 1 / (1 + np.exp(-3 * X)), 1 - 1 / (1 + np.exp(-3 * X))))
    assert losses["steep"] == pytest.approx(whole.mean())


class Shifted(LinearRegression):
    """Linear model that is wrong by a constant, and counts its fits."""

    fits = 0

    def __init__(self, by=0.0):
        self.by = by
        super().__init__()

    def fit(self, X, y):
        Shifted.fits += 1
        return super().fit(X, y)

    def predict(self, X):
        return super().predict(X) + self.by


@pytest.mark.parametrize(("by", "n_fits"), [(9.0, 1), (0.0, 5)])
def test_the_flexible_one_is_left_out_as_soon_as_it_is_surely_behind(by, n_fits):
    """Loss told: that of the one that is ahead, on all folds, and what the other was behind it on the first."""
    X, X_tilde, rng = tables(n=400)
    y = X[:, 0] + rng.normal(size=400)
    plain, shifted = linear("plain"), replace(linear("shifted"), estimator=Shifted(by))
    race = BestOf((plain, shifted), "squared_error", flexible="shifted")
    Shifted.fits = 0
    chosen, losses, *_ = choose_best(race, pair_of(X, X_tilde), Target(y), rng=np.random.default_rng(0))
    assert chosen.name == "plain"
    assert Shifted.fits == n_fits
    fold_of, XX = draw_folds(400, 5, np.random.default_rng(0)), np.hstack([X, X_tilde])
    errors = np.empty(400)
    for fold in range(5):
        held = fold_of == fold
        errors[held] = y[held] - LinearRegression().fit(XX[~held], y[~held]).predict(XX[held])
    first = errors[fold_of == 0]
    assert losses["plain"] == pytest.approx((errors**2).mean() / y.var())
    gap = ((first - by) ** 2).mean() - (first**2).mean()
    assert losses["shifted"] == pytest.approx(losses["plain"] + gap / y.var())


def test_where_nothing_predicts_the_flexible_one_is_taken():
    rng = np.random.default_rng(1)
    X = rng.standard_normal(2 * ROWS)
    noise, signal = rng.integers(2, size=len(X)), (rng.random(len(X)) < 1 / (1 + np.exp(-3 * X))).astype(int)
    assert race(noise, X)[0] == "flat"
    assert race(noise, X, flexible="steep")[0] == "steep"
    assert race(signal, X, flexible="flat")[0] == "steep"
    assert race(noise, X, flexible="no such candidate")[0] == "flat"


def heavy(n=400, seed=3):
    """Pair and a number with a linear mean and noise that a few rows have most of."""
    X, X_tilde, rng = tables(n, 6, seed)
    y = X[:, 0] - X[:, 1] + np.exp(1.5 * X[:, 2]) * rng.normal(size=n)
    return pair_of(X, X_tilde), y


def test_a_number_with_heavy_tails_is_scored_by_its_normal_scores():
    pair, y = heavy()
    statistic = choose(y).statistic
    found = statistic(pair, Target(y), rng=np.random.default_rng(1))
    assert "normal scores, because its tails are heavy" in found.notes["target"]
    ranked = statistic(pair, scores_of_target(Target(y)), rng=np.random.default_rng(1))
    assert "target" not in ranked.notes  # normal scores are normal
    asked = choose(y, loss="squared_error").statistic(pair, Target(y), rng=np.random.default_rng(1))
    assert "target" not in asked.notes  # a loss that was asked for is of y as it is
    assert found.used.name == ranked.used.name == "lasso"
    np.testing.assert_array_equal(found.scores.Z, ranked.scores.Z)
    np.testing.assert_array_equal(found.scores.Z_tilde, ranked.scores.Z_tilde)


def test_a_number_stays_as_it_is_where_it_is_nearly_normal_or_more_of_it_is_explained(monkeypatch):
    X, X_tilde, rng = tables(400, 6)
    near = X[:, 0] + rng.normal(size=400)
    wide = X * np.exp(rng.normal(size=(400, 1)))  # heavy tails that the columns have themselves
    for features, y in ((X, near), (wide, wide[:, 0] - wide[:, 1] + 0.1 * rng.normal(size=400))):
        pair, statistic = pair_of(features, X_tilde), choose(y).statistic
        found = statistic(pair, Target(y), rng=np.random.default_rng(1))
        with monkeypatch.context() as without:
            without.setattr(best_of, "scores_of_target", lambda target: None)
            plain = statistic(pair, Target(y), rng=np.random.default_rng(1))
        assert found.notes == plain.notes and "target" not in found.notes
        np.testing.assert_array_equal(found.scores.Z, plain.scores.Z)
    assert scores_of_target(Target(near)) is None and scores_of_target(Target(y)) is not None


def race_of(losses, chosen, *, predicts=True, constant=1.0):
    able = {name: candidate(name, LogisticRegression()) for name in losses}
    return best_of.Race(able[chosen], losses, predicts, {}, list(able.values()), constant)


@pytest.mark.parametrize(
    ("losses", "chosen", "predicts", "also"),
    [
        ({"lasso": 0.6801, "trees": 0.6}, "trees", True, None),  # explains 0.3199 of 0.4
        ({"lasso": 0.6799, "trees": 0.6}, "trees", True, "lasso"),
        (
            {"lasso": 0.6799, "trees": 0.6, "on scores": 0.65},
            "trees",
            True,
            "on scores",
        ),  # the better of the simple ones
        ({"lasso": 0.6, "trees": 0.61}, "lasso", True, None),
        ({"lasso": 0.999, "trees": 0.999}, "trees", False, None),
        ({"trees": 0.5}, "trees", True, None),
    ],
)
def test_who_has_a_say_beside_the_flexible_one(losses, chosen, predicts, also):
    found = BestOf((), "log_loss", flexible="trees").also(race_of(losses, chosen, predicts=predicts))
    assert (found.name if found else None) == also


def test_added_scores_change_their_signs_as_the_two_do(rng):
    first, second = (Scores(*rng.normal(size=(2, 6))) for _ in range(2))
    W = [scores.Z - scores.Z_tilde for scores in (first, second)]
    both = best_of.added(first, second)
    own = np.abs(W[0]).max()
    np.testing.assert_allclose(both.Z - both.Z_tilde, own * sum(w / np.abs(w).max() for w in W))
    larger = [Scores(4 * scores.Z, 4 * scores.Z_tilde) for scores in (first, second)]  # in other units
    np.testing.assert_array_equal(best_of.added(first, larger[1]).stacked, both.stacked)
    np.testing.assert_array_equal(best_of.added(larger[0], second).stacked, 4 * both.stacked)
    for S in np.eye(6, dtype=bool):
        swapped, expected = best_of.added(first.swap(S), second.swap(S)), both.swap(S)
        np.testing.assert_array_equal(swapped.stacked, expected.stacked)
    nothing = Scores(np.zeros(6), np.zeros(6))  # a model that uses no column has no say
    np.testing.assert_array_equal(best_of.added(nothing, nothing).stacked, 0)


def test_a_linear_model_that_explains_nearly_as_much_is_added_to_boosting():
    rng = np.random.default_rng(2)
    X, X_tilde = rng.normal(size=(2, 1500, 6))
    y = X[:, :3].sum(axis=1) + 2 * X[:, 3] * (X[:, 4] > 0) + rng.normal(size=1500)
    pair, target = Pair(X, X_tilde, np.arange(6)), as_target(y, read_table(X))
    best = choose(y).statistic
    scored = best(pair, target, rng=np.random.default_rng(0))
    assert scored.used.name == "boosting"
    assert scored.notes["estimator"].endswith("'lasso' explains at least 0.8 of what it does: scores of both are added")
    stream, _ = (again := np.random.default_rng(0)).spawn(2)
    (lasso,) = (c for c in best.candidates if c.name == "lasso")
    parts = [
        scored.used.scored(pair, target, rng=stream).scores,
        lasso.scored(pair, target, rng=again.spawn(1)[0]).scores,
    ]
    np.testing.assert_allclose(scored.scores.stacked, best_of.added(*parts).stacked)
    for key, word in (("importance", "coefficients"), ("rows", "in_sample")):  # of either model
        assert scored.notes[key] == f"{scored.used.notes[key]}; '{word}', the default for LassoPathCV"
    path = best.along_lambda()(pair, target, rng=np.random.default_rng(0))  # a path is that of one model
    assert path.scores.Z.ndim == 2
    assert "added" not in path.notes["estimator"]


def fixed(name, Z, **more):
    """Model score whose Z is given, and Z_tilde zero."""
    scores = Scores(np.array(Z), np.zeros(len(Z)))
    return ModelScore(LinearRegression(), lambda *_, **__: scores, name=name, **more)


@pytest.fixture
def sum_of(monkeypatch):
    """Scores of trees and of a simpler model that explains as much, added: W of three features."""

    def W_of(pair, trees, simple):
        race = best_of.Race(trees, {"trees": 0.5, "simple": 0.5}, True, {}, [trees, simple], 1.0)
        monkeypatch.setattr(best_of, "choose_best", lambda *_, **__: race)
        best = BestOf((trees, simple), "squared_error", flexible="trees")
        scores = best(pair, Target(np.arange(20.0)), rng=np.random.default_rng(0)).scores
        return scores.Z - scores.Z_tilde

    return W_of


def test_a_feature_that_is_its_own_knockoff_does_not_set_the_units_of_added_scores(rng, sum_of):
    X, X_tilde = rng.normal(size=(2, 20, 3))
    X_tilde[:, 0] = X[:, 0]  # trees may give all of it to either of the two
    W = sum_of(pair_of(X, X_tilde), fixed("trees", [8.0, 2.0, 1.0]), fixed("simple", [0.0, 1.0, 4.0]))
    np.testing.assert_array_equal(W, [0.0, 2.5, 3.0])


def test_a_sparse_model_beside_the_flexible_one_is_not_warned_of(rng, sum_of):
    trees, simple = fixed("trees", [2.0, 1.0, 4.0], saturates=True), fixed("simple", [0.0, 0.0, 1.0], saturates=True)
    W = sum_of(pair_of(*rng.normal(size=(2, 20, 3))), trees, simple)  # a warning would be an error here
    np.testing.assert_array_equal(W, [2.0, 1.0, 8.0])
