from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.refusals import refuses

from knockoffs.errors import KnockoffWarning
from knockoffs.importance.accuracy_drop import swap_score
from knockoffs.importance.scores import Scores
from knockoffs.importance.statistic import ModelScore, draw_folds, warn_if_saturated
from knockoffs.response import predicts_classes
from knockoffs.sampling.pair import Pair
from knockoffs.table.target import Target


def fit_and_score(estimator, score, X, X_tilde, y, *, sample_weight=None, rng, n_jobs=None, **options):
    pair, target = Pair(X, X_tilde, np.arange(X.shape[1])), Target(np.asarray(y), sample_weight)
    return ModelScore(estimator, score, **options).scored(pair, target, rng=rng, n_jobs=n_jobs).scores


@pytest.fixture
def data():
    rng = np.random.default_rng(7)
    X, X_tilde = rng.normal(size=(2, 90, 4))
    return X, X_tilde, np.array(["no", "yes"])[(X[:, 0] + 0.5 * rng.normal(size=90) > 0).astype(int)]


class Remembering:
    def fit(self, XX, y):
        self.rows = XX[:, 0].astype(int)
        return self

    def predict_proba(self, XX):
        raise NotImplementedError


def numbered(n):
    X = np.repeat(np.arange(n, dtype=float)[:, None], 2, axis=1)
    return X, X, np.arange(n) % 3


@pytest.mark.parametrize(
    ("options", "n_jobs", "n_scored"),
    [({"rows": "held_out", "n_folds": 4}, 1, 50), ({"rows": "cross_fitted", "n_folds": 7, "n_fits": 2}, 14, 200)],
)
def test_rows_are_scored_by_a_model_that_never_saw_them(options, n_jobs, n_scored):
    X, X_tilde, y = numbered(200)
    jobs = []

    def score(model, X, X_tilde, y, **options):
        jobs.append((set(model.rows), set(X[:, 0].astype(int))))
        return Scores(np.zeros(2), np.zeros(2))

    fit_and_score(Remembering(), score, X, X_tilde, y, rows="in_sample", rng=np.random.default_rng(0))
    assert jobs.pop() == (set(range(200)), set(range(200)))
    fit_and_score(Remembering(), score, X, X_tilde, y, **options, rng=np.random.default_rng(0))
    assert len(jobs) == n_jobs
    for fitted, scored in jobs:
        assert not fitted & scored and len(fitted | scored) == 200
    assert len({row for _, scored in jobs[:7] for row in scored}) == n_scored
    assert n_jobs == 1 or jobs[0][1] != jobs[7][1]  # the second fit has folds of its own


def test_folds_are_weighted_by_their_rows():
    X, X_tilde, y = numbered(10)

    def score(model, X, X_tilde, y, **options):
        return Scores(np.array([X[:, 0].mean(), (X[:, 0] ** 2).mean()]), np.zeros(2))

    scores = fit_and_score(
        Remembering(), score, X, X_tilde, y, rows="cross_fitted", n_folds=3, rng=np.random.default_rng(0)
    )
    assert scores.Z == pytest.approx([4.5, 28.5])


def test_random_states_come_from_the_generator(data):
    X, X_tilde, y = data
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    def run(seed, model):
        return fit_and_score(
            model, partial(swap_score, loss="log_loss"), X, X_tilde, y, rng=np.random.default_rng(seed)
        ).Z

    free, nested = RandomForestClassifier(5), make_pipeline(StandardScaler(), RandomForestClassifier(5))
    fixed = RandomForestClassifier(5, random_state=4)
    for model in (free, nested):
        np.testing.assert_array_equal(run(0, model), run(0, model))
        assert np.any(run(0, model) != run(1, model))
    np.testing.assert_array_equal(run(0, fixed), run(1, fixed))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert not hasattr(free, "estimators_")  # what the user gave is left as it was


def test_folds_spread_every_class():
    labels = np.repeat(["a", "b", "c"], [60, 7, 2])
    fold_of = draw_folds(69, 5, np.random.default_rng(0), labels=labels)
    assert np.ptp(np.bincount(fold_of)) <= 1
    for name in "abc":
        counts = np.bincount(fold_of[labels == name], minlength=5)
        assert np.ptp(counts) <= 1
    for fold in range(5):
        assert set(labels[fold_of != fold]) == {"a", "b", "c"}


def test_input_that_cannot_be_used(data):
    X, X_tilde, y = data
    run = partial(fit_and_score, KNeighborsClassifier(), swap_score, X, X_tilde, rng=np.random.default_rng(0))
    refuses("rows='cross_fit' is not known. Did you mean 'cross_fitted'", run, y, rows="cross_fit")
    refuses("n_folds=1: use between 2 and the number of rows, 90", run, y, rows="cross_fitted", n_folds=1)
    refuses("n_fits=0", run, y, n_fits=0)
    refuses("class 'rare' of y has a single row", run, np.where(np.arange(90) == 5, "rare", y), rows="cross_fitted")
    refuses("KNeighborsClassifier.fit takes no sample_weight", run, y, sample_weight=np.ones(90))


def test_weights_reach_fit_and_score(data):
    X, X_tilde, y = data
    seen = []

    def score(model, X, X_tilde, y, *, sample_weight, **options):
        seen.append((model.coef_.copy(), sample_weight))
        return Scores(np.zeros(4), np.zeros(4))

    weight = np.where(np.arange(90) < 45, 0.5 + np.arange(90), 0.0)  # rows of weight 0 are not there
    model = LinearRegression()
    fit_and_score(model, score, X, X_tilde, X[:, 0], sample_weight=weight, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(seen[0][1], weight[:45])
    half = model.fit(np.hstack([X, X_tilde])[:45], X[:45, 0], sample_weight=weight[:45]).coef_
    np.testing.assert_allclose(seen[0][0], half, atol=1e-10)


def test_saturation_is_reported(data):
    def stuck(model, X, X_tilde, y, **options):
        return Scores(np.array([0.0, 2.0, 0.5, 1.0]), np.array([0.0, 2.0, 0.5, 0.0]))

    X, X_tilde, y = data
    pair = Pair(X, X_tilde, np.arange(4))
    statistic = ModelScore(KNeighborsClassifier(), stuck, saturates=True)
    with pytest.warns(KnockoffWarning, match="W is exactly 0 for 3 of 4 features.*rows='cross_fitted'"):
        statistic(pair, Target(y), rng=np.random.default_rng(0))
    # coefficients of a lasso are sparse by design
    replace(statistic, saturates=False)(pair, Target(y), rng=np.random.default_rng(0))
    warn_if_saturated(Scores(np.array([0.0, 1.0]), np.zeros(2)))


def test_what_predicts_classes():
    assert predicts_classes(LogisticRegression()) and predicts_classes(Remembering())
    assert not predicts_classes(LinearRegression())
    assert predicts_classes(make_pipeline(StandardScaler(), LogisticRegression()))


def test_an_estimator_is_copied_for_every_fit_and_left_as_it_was(data):
    """What a fit left behind must not reach the next fold, whether or not scikit-learn can clone the model."""
    X, X_tilde, y = data

    class Once(Remembering):
        def fit(self, XX, y):
            assert not hasattr(self, "rows")
            return super().fit(XX, y)

    def nothing(model, X, X_tilde, y, **options):
        return Scores(np.zeros(4), np.zeros(4))

    for estimator in (Once(), KNeighborsClassifier(3)):
        before = dict(vars(estimator))
        for rows in ("in_sample", "cross_fitted"):
            fit_and_score(estimator, nothing, X, X_tilde, y, rows=rows, n_fits=2, rng=np.random.default_rng(0))
        assert vars(estimator) == before


def test_every_score_draws_from_a_stream_of_its_own(data):
    X, X_tilde, y = data
    drawn = []

    def draws(model, X, X_tilde, y, *, rng, **options):
        drawn.append(rng.random())
        return Scores(np.zeros(4), np.zeros(4))

    for seed in (0, 0, 1):
        fit_and_score(
            KNeighborsClassifier(3),
            draws,
            X,
            X_tilde,
            y,
            rows="cross_fitted",
            n_folds=3,
            n_fits=2,
            rng=np.random.default_rng(seed),
        )
    assert drawn[:6] == drawn[6:12]
    assert len(set(drawn)) == 12
