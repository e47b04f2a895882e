"""Survival times from end to end: tests and knockoffs, Python and the command line, report, record, what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from tests.refusals import refuses
from typer.testing import CliRunner

from knockoffs import KnockoffSelector
from knockoffs.cli.app import app
from knockoffs.conditional_tests.distil import choose_response, responses
from knockoffs.errors import InputError
from knockoffs.importance.accuracy_drop import swap_integral, swap_score
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.losses import LOSSES
from knockoffs.importance.paths.follow import BlackBoxPath, path_losses
from knockoffs.importance.paths.tree import TreePath
from knockoffs.plots.survival import kaplan_meier
from knockoffs.response import make_boosting
from knockoffs.response.cox import CoxPathCV, held_out_concordance, martingale_residuals
from knockoffs.response.cox_boosting import events_as_counts
from knockoffs.streaming.stream import fit_streamed


def table(n=300, d=8, n_true=2, seed=0, effect=0.8):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{j}" for j in range(d)])
    time, censored = rng.exponential(np.exp(-effect * X.iloc[:, :n_true].sum(axis=1))), rng.exponential(2, n)
    return X, np.minimum(time, censored), (time <= censored).astype(int)


# ---- answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [False, True])
def test_tests_find_what_matters(entry):
    X, time, event = table()
    y = (time, event, np.minimum(0.02, time / 2)) if entry else (time, event)
    fitted = KnockoffSelector(feature_model="gaussian", verdict=not entry, random_state=0).fit(X, y)
    assert fitted.selection_.method == "conditional_test" and fitted.target_.kind == "survival"
    assert set(fitted.selection_.selected_names) == {"x0", "x1"}
    assert "events, " in fitted.selection_.notes["task"]


def test_every_format_gives_the_same_answer():
    X, time, event = table(400)
    frame = pd.DataFrame({"days": time, "died": event})
    records = np.array(list(zip(event == 1, time, strict=True)), dtype=[("died", bool), ("days", float)])
    options = {"feature_model": "gaussian", "random_state": 0, "resolution": "columns", "verdict": False}
    found = [KnockoffSelector(**options).fit(X, y).p_values_ for y in ((time, event), frame, records)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("estimator", [None, "lasso", "boosting"])
def test_knockoffs_find_what_matters(estimator):
    X, time, event = table(500, 40, 14, effect=1.0)
    options = {"feature_model": "gaussian", "estimator": estimator, "verdict": False}
    fitted = KnockoffSelector(0.2, method="knockoffs", random_state=0, **options).fit(X, (time, event))
    chosen = fitted.selection_.selected
    assert chosen[:14].sum() >= (10 if estimator == "boosting" else 13) and chosen[14:].sum() <= 5
    if estimator is None:
        assert "minus the log partial likelihood" in fitted.selection_.notes["estimator"]


# ---- exact -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pair():
    X, time, event = table(200, 8)
    return X.to_numpy()[:, :4], X.to_numpy()[:, 4:], np.where(event, time, -time)


@pytest.mark.parametrize("truncated", [False, True])
def test_w_of_the_cox_lasso_changes_its_sign_with_its_columns(pair, truncated):
    X, X_tilde, y = pair
    y = np.column_stack([y, np.full(200, 1e-5)]) if truncated else y
    swapped = np.array([True, False, True, True])
    W = []
    for a, b in ((X, X_tilde), (np.where(swapped, X_tilde, X), np.where(swapped, X, X_tilde))):
        model = CoxPathCV(random_state=0).fit(np.hstack([a, b]), y)
        scores = coefficient_magnitude(model, a, b, y, feature_of=np.arange(4))
        W.append(scores.Z - scores.Z_tilde)
    np.testing.assert_allclose(W[1], np.where(swapped, -W[0], W[0]), atol=1e-9)
    assert np.abs(W[0]).max() > 0.1


@pytest.mark.parametrize("score", [swap_score, swap_integral])
def test_w_of_boosting_changes_its_sign_with_the_tables(pair, score):
    X, X_tilde, y = pair
    model = make_boosting("survival", random_state=0, max_iter=20).fit(np.hstack([X, X_tilde]), y)

    class Model:
        def __init__(self, order):
            self.order = order

        def predict(self, XX):
            return model.predict(XX[:, self.order])

    here, there = Model([0, 1, 2, 3, 4, 5, 6, 7]), Model([4, 5, 6, 7, 0, 1, 2, 3])
    scores = score(here, X, X_tilde, y, rng=None, loss="partial_likelihood")
    swapped = score(there, X_tilde, X, y, rng=None, loss="partial_likelihood")
    np.testing.assert_array_equal(scores.Z - scores.Z_tilde, swapped.Z_tilde - swapped.Z)
    assert scores.Z[:2].min() > np.abs(scores.Z_tilde).max() > 0


def test_trees_are_followed_by_the_deviance_they_were_fitted_by(pair):
    X, X_tilde, y = pair
    XX, fake = np.hstack([X, X_tilde]), np.hstack([X_tilde, X])
    model = make_boosting("survival", random_state=0, max_iter=20).fit(XX, y)
    path = path_losses(model, XX, fake, y, "partial_likelihood")
    assert isinstance(path, TreePath)
    ratio, weights = events_as_counts(y)
    losses = LOSSES["poisson_deviance"](ratio, np.exp(model.predict(XX)))
    assert path.unmoved() == pytest.approx(weights @ losses / weights.sum(), rel=1e-9)


def test_moves_of_a_black_box_are_risk_sets_of_their_own(pair):
    X, X_tilde, y = pair
    XX, fake = np.hstack([X, X_tilde]), np.hstack([X_tilde, X])
    model = CoxPathCV(alpha=0.01).fit(XX, y)
    path = path_losses(model, XX, fake, y, "partial_likelihood")
    assert isinstance(path, BlackBoxPath)
    moved = XX.copy()
    moved[:, 2] = fake[:, 2]
    expected = LOSSES["partial_likelihood"](y, model.predict(moved)).mean()
    assert path.at(np.array([0.0, 1.0]))[2] == pytest.approx([path.unmoved(), expected], rel=1e-12)


def test_residuals_of_the_tests_are_martingale_residuals(pair):
    X, _, y = pair
    response = choose_response(X, y, "survival", "lasso")
    distilled = response.distil(X)
    model = CoxPathCV(alpha=response.estimator.alpha).fit(X, y)
    expected = martingale_residuals(y, model.predict(X))
    np.testing.assert_allclose(distilled.weights[:, 0], expected - expected.mean(), atol=1e-9)
    assert expected.sum() == pytest.approx(0, abs=1e-10)
    np.testing.assert_array_equal(responses(y, "survival")[:, 0], martingale_residuals(y))


def test_boosting_is_chosen_where_hazards_are_not_linear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = rng.exponential(np.exp(-1.5 * X[:, 0] ** 2)) * np.where(rng.random(600) < 0.8, 1, -1)
    assert choose_response(X, y, "survival").name == "boosting"
    linear = rng.exponential(np.exp(-X[:, 0])) * np.where(rng.random(600) < 0.8, 1, -1)
    assert choose_response(X, linear, "survival").name == "lasso"


def test_kaplan_meier_with_ties_and_late_entries_is_that_of_the_definition():
    y = np.array([[1, 0], [2, 0], [2, 1], [-2, 0], [3, 2], [-4, 0], [5, 3.5]])
    times, share = kaplan_meier(y)
    at_risk = [((np.abs(y[:, 0]) >= t) & (y[:, 1] < t)).sum() for t in (1, 2, 3, 5)]
    expected = np.cumprod(1 - np.array([1, 2, 1, 1]) / at_risk)
    np.testing.assert_allclose(share[1:-1], expected)
    assert times.tolist() == [0, 1, 2, 3, 5, 5]


def test_concordance_of_noise_is_near_a_half_and_of_signal_above():
    X, time, event = table(400)
    y = np.where(event, time, -time)
    assert held_out_concordance(X.to_numpy(), y) > 0.7
    assert abs(held_out_concordance(X.to_numpy()[:, 2:], y) - 0.5) < 0.1


# ---- the command line and the report -----------------------------------------------------------------------------


def test_command_line_report_and_rerun(select_and_rerun):
    X, time, event = table()
    frame = X.drop(columns="x1").assign(sex=np.where(X["x1"] > 0, "f", "m"), days=time, died=2 * event)
    options = ["--time", "days", "--event", "died=2", "--estimator", "lasso", "--no-verdict"]
    record, page = select_and_rerun(frame, *options)
    assert (record["parameters"]["time"], record["parameters"]["event"]) == ("days", "died=2")
    assert {f["name"] for f in record["features"] if f["selected"]} == {"x0", "sex"}
    assert "held-out concordance of 0.7" in page and "<figcaption>Share of rows without the event over time, by" in page
    assert "--time days --event died=2" in page


def test_the_first_screen_names_the_time(tmp_path):
    X, time, event = table()
    X.assign(days=time, died=event).to_csv(tmp_path / "t.csv", index=False)
    options = ["--time", "days", "--event", "died", "--feature-model", "gaussian", "--no-verdict"]
    said = CliRunner().invoke(app, ["select", str(tmp_path / "t.csv"), *options]).output
    assert "features for days (" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Missing option '--target'"),
        (["--time", "days"], "Missing option '--event'"),
        (["--event", "died"], "Missing option '--time'"),
        (["--target", "days", "--event", "died"], "Leave out --target"),
        (["--time", "dais", "--event", "died"], "'dais' is not a column of the table. Did you mean 'days'?"),
        (["--time", "days", "--event", "dead"], "--event 'dead' is not a column of the table. Did you mean 'died'?"),
        (["--time", "days", "--event", "died=3"], "--event died=3: no row has '3' in 'died'. It has '0', '1'."),
        (["--time", "days", "--event", "died", "--weights", "died"], "'died' is the target"),
        (["--time", "days", "--event", "died", "--covariates", "days"], "'days' is the target"),
        (["--time", "days", "--event", "died", "--stream", "always"], "not supported in batches"),
    ],
)
def test_calls_that_are_refused(tmp_path, options, message):
    X, time, event = table(40, 3)
    X.assign(days=time, died=event).to_csv(tmp_path / "t.csv", index=False)
    found = CliRunner().invoke(app, ["select", str(tmp_path / "t.csv"), *options])
    assert found.exit_code != 0 and message in found.output + str(found.exception)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "forest"}, "estimator='forest' has no version for survival times"),
        ({"task": "classification"}, "task='classification', but y is a survival time"),
        ({"importance_options": {"loss": "squared_error"}, "importance": "swap"}, "use 'partial_likelihood'"),
    ],
)
def test_refused(options, message):
    X, time, event = table(60, 3)
    refuses(message, KnockoffSelector(feature_model="gaussian", **options).fit, X, (time, event))


def test_partial_likelihood_is_for_survival_times():
    X, time, _ = table(60, 3)
    with pytest.raises(InputError, match="'partial_likelihood' is not for regression"):
        KnockoffSelector(importance="swap", importance_options={"loss": "partial_likelihood"}).fit(X, time)


def test_batches_are_refused(tmp_path):
    X, time, event = table(60, 3)
    X.assign(y=time).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="survival times are not supported in batches"):
        fit_streamed(KnockoffSelector(task="survival"), tmp_path / "t.parquet", "y")


def test_a_model_of_ones_own_takes_signed_times():
    class Hazard(RandomForestRegressor):
        def fit(self, X, y):
            return super().fit(X, martingale_residuals(y))

    X, time, event = table(200, 6)
    options = {"estimator": Hazard(20, random_state=0), "importance": "swap", "verdict": False}
    fitted = KnockoffSelector(0.5, feature_model="gaussian", method="knockoffs", **options).fit(X, (time, event))
    assert fitted.W_[0] > 0 and fitted.W_[1] > 0
