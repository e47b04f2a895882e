"""Cox regression and boosting: the partial likelihood by definition, optimality, other packages' numbers."""

import numpy as np
import pandas as pd
import pytest

from knockoffs.errors import InputError
from knockoffs.response import make_boosting
from knockoffs.response.cox import CoxLoss, CoxPathCV, CoxSet, concordance, martingale_residuals
from knockoffs.response.cox_boosting import CoxBoosting, events_as_counts

TIED = np.array([1, 2, 2, -2, 3, -3, 3, 3, 4, -5, 6, 6.0])


def survival(n=80, d=5, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    time, censored = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1])), rng.exponential(2.0, n)
    y = np.where(time <= censored, time, -censored)
    return X, np.sign(y) * np.ceil(4 * np.abs(y)) if ties else y


def entered(y, seed=0):
    """Signed times and times of entry, some of them equal to times of events."""
    rng = np.random.default_rng(seed)
    return np.column_stack([y, np.where(rng.random(len(y)) < 0.5, np.floor(0.9 * rng.random(len(y)) * np.abs(y)), -1)])


def efron(y, eta, weights):
    """Minus the log partial likelihood, term by term."""
    total = 0.0
    y, entry = (y, np.full(len(y), -np.inf)) if y.ndim == 1 else y.T
    for t in np.unique(np.abs(y[(y > 0) & (weights > 0)])):
        tied, risk = (y == t) & (weights > 0), weights * np.exp(eta) * (np.abs(y) >= t) * (entry < t)
        d = tied.sum()
        total -= weights[tied] @ eta[tied]
        for l in range(d):  # noqa: E741
            total += weights[tied].mean() * np.log(risk.sum() - l / d * risk[tied].sum())
    return total


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_loss_residuals_and_hessian_are_those_of_the_definition(seed, truncated):
    rng = np.random.default_rng(seed)
    y, n = rng.permutation(TIED), len(TIED)
    event, y = y > 0, entered(y, seed) if truncated else y
    weights = rng.uniform(0.5, 2, n) * (rng.random(n) > 0.2)
    X, eta = rng.standard_normal((n, 3)), rng.standard_normal(n)
    loss, Y = CoxLoss(y, weights), event.astype(float)[None]

    def value(b, shift=0.0):
        return efron(y, eta + X @ b + shift, weights)

    assert weights @ loss.row_loss(Y, eta[None]) == pytest.approx(value(np.zeros(3)), rel=1e-13)
    assert value(np.zeros(3), shift=5.0) == pytest.approx(value(np.zeros(3)), rel=1e-12)
    M = loss.mean(eta[None])
    h, E = 1e-4, np.eye(3)
    slope = [(value(h * e) - value(-h * e)) / (2 * h) for e in E]
    np.testing.assert_allclose(-(weights * (Y - M))[0] @ X, slope, atol=1e-6)
    assert (weights * (Y - M)).sum() == pytest.approx(0, abs=1e-13)
    bend = [
        [(value(h * (a + b)) - value(h * (a - b)) - value(h * (b - a)) + value(-h * (a + b))) for b in E] for a in E
    ]
    H = loss.hessian([np.hstack([np.ones((n, 1)), X])], M, weights, eta[None])
    np.testing.assert_allclose(H[1:, 1:], np.array(bend) / (4 * h * h), atol=1e-5)
    assert not H[0].any() and not H[:, 0].any()


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("alpha", [0.2, 0.02, 1e-4])
def test_optimality_conditions_hold(ties, alpha):
    X, y = survival(ties=ties)
    X = X * [1, 10, 0.1, 1, 1] + 3
    model = CoxPathCV(alpha=alpha).fit(X, y)
    Xs = (X - X.mean(axis=0)) / X.std(axis=0)
    g = martingale_residuals(y, model.predict(X)) @ Xs / len(y)
    b = model.coef_ * X.std(axis=0)
    assert np.abs(g - alpha * np.sign(b))[b != 0].max(initial=0) <= 1e-10
    assert (np.abs(g)[b == 0] <= alpha + 1e-10).all()


def test_coefficients_are_those_of_lifelines_without_a_penalty_efron_ties():
    X, y = survival(ties=True)  # CoxPHFitter of lifelines 0.30.3, precision=1e-13
    theirs = [1.0569878231, -0.5377904867, -0.0997970269, -0.0436493574, -0.0265772329]
    np.testing.assert_allclose(CoxPathCV(alpha=1e-12).fit(X, y).coef_, theirs, atol=1e-8)


def test_coefficients_are_those_of_scikit_survival_with_a_penalty():
    X, y = survival()  # CoxnetSurvivalAnalysis of scikit-survival 0.28.0, alphas=[0.03], l1_ratio=1, tol=1e-14
    theirs = [0.8850204888, -0.4807989793, -0.0508065374, -0.0380525764, 0.0]
    np.testing.assert_allclose(CoxPathCV(alpha=0.03).fit(X, y).coef_ * X.std(axis=0), theirs, atol=1e-6)


@pytest.mark.parametrize(
    ("ties", "theirs"),  # CoxPHFitter of lifelines 0.30.3 with entry_col, precision=1e-13
    [
        (False, [1.0790851752, -0.4828576783, -0.1098628067, -0.1072817258, 0.0206695747]),
        (True, [0.9425866505, -0.4321628753, -0.0923925971, -0.0616079414, 0.0077648565]),
    ],
)
def test_coefficients_of_rows_that_enter_late_are_those_of_lifelines(ties, theirs):
    X, y = survival(ties=ties)
    y = np.column_stack([y, np.where(np.arange(80) % 2, np.abs(y) / 3, 0.0)])
    np.testing.assert_allclose(CoxPathCV(alpha=1e-12).fit(X, y).coef_, theirs, atol=1e-8)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_coefficients_are_those_of_lifelines_where_it_is_installed(ties, late):
    lifelines = pytest.importorskip("lifelines", reason="lifelines is not installed: the stored values stand for it")
    X, y = survival(300, 6, seed=1, ties=ties)
    frame = pd.DataFrame(X).assign(time=np.abs(y), event=y > 0, entry=np.where(np.arange(300) % 2, np.abs(y) / 3, 0.0))
    columns = frame if late else frame.drop(columns="entry")
    theirs = lifelines.CoxPHFitter().fit(
        columns, "time", "event", entry_col="entry" if late else None, fit_options={"precision": 1e-13}
    )
    mine = CoxPathCV(alpha=1e-12).fit(X, np.column_stack([y, frame["entry"]]) if late else y)
    np.testing.assert_allclose(mine.coef_, theirs.params_, atol=1e-6)


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.01])
def test_coefficients_are_those_of_scikit_survival_where_it_is_installed(alpha):
    models = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed: see stored values")
    X, y = survival(300, 6, seed=1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = np.array(list(zip(y > 0, np.abs(y), strict=True)), dtype=[("event", bool), ("time", float)])
    theirs = models.CoxnetSurvivalAnalysis(alphas=[alpha], l1_ratio=1, tol=1e-14, max_iter=10**7).fit(X, rows)
    np.testing.assert_allclose(CoxPathCV(alpha=alpha).fit(X, y).coef_, theirs.coef_[:, 0], atol=1e-6)


def test_martingale_residuals_are_those_of_lifelines_and_add_up_to_zero():
    X, y = survival()  # compute_residuals(..., "martingale") of lifelines 0.30.3
    residuals = martingale_residuals(y, CoxPathCV(alpha=1e-12).fit(X, y).predict(X))
    theirs = [0.3510718961, 0.948324967, 0.0673865398, -0.8788295786, 0.2759695847]
    np.testing.assert_allclose(residuals[:5], theirs, atol=1e-8)
    assert residuals.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("ties", "theirs"), [(False, 0.7031324157570005), (True, 0.709741550695825)])
def test_concordance_is_that_of_scikit_survival(ties, theirs):  # and of lifelines; hazards are tied
    X, y = survival(ties=ties)
    assert concordance(y, np.round(X[:, 0]), rows_at_once=7) == pytest.approx(theirs, abs=1e-14)


def test_concordance_of_rows_that_enter_late_is_that_of_all_pairs():
    X, y = survival(ties=True)
    y = entered(y)
    time, event, pairs = np.abs(y[:, 0]), y[:, 0] > 0, []
    for i in np.flatnonzero(event):
        for j in range(80):
            if y[j, 1] < time[i] and (time[j] > time[i] or (time[j] == time[i] and not event[j])):
                pairs.append((X[i, 0] > X[j, 0]) + 0.5 * (X[i, 0] == X[j, 0]))
    assert concordance(y, X[:, 0]) == pytest.approx(np.mean(pairs), abs=1e-14)


def test_events_as_counts_have_the_gradient_of_the_partial_likelihood_at_zero():
    """Of a stump, a split at zero: the first step of boosting is the same as that of Cox regression."""
    X, y = survival(ties=True)
    ratio, weights = events_as_counts(y)
    np.testing.assert_allclose(weights * (ratio - 1), martingale_residuals(y), atol=1e-13)
    assert ratio @ weights == pytest.approx((y > 0).sum())


@pytest.mark.parametrize("truncated", [False, True])
def test_boosting_predicts_a_log_hazard(truncated):
    X, y = survival(3000, 3)
    entry = np.random.default_rng(1).uniform(0, 0.5, 3000) if truncated else np.zeros(3000)
    seen = np.flatnonzero(np.abs(y) > entry)[:2000]
    X, y = X[seen], np.column_stack([y, entry])[seen] if truncated else y[seen]
    model = make_boosting("survival", random_state=0, max_iter=60).fit(X[:1000], y[:1000])
    assert isinstance(model, CoxBoosting)
    eta = model.predict(X[1000:])
    truth = X[1000:, 0] - 0.5 * X[1000:, 1]
    assert concordance(y[1000:], eta) > concordance(y[1000:], truth) - 0.05
    assert np.corrcoef(eta, truth)[0, 1] > 0.8


def test_weights_are_copies_of_rows_when_no_events_are_tied():
    X, y = survival()
    copies = np.where(y < 0, 2, 1)  # of censored rows, which no event ties with
    weighted = CoxPathCV(alpha=0.03).fit(X, y, sample_weight=copies).coef_
    np.testing.assert_allclose(weighted, CoxPathCV(alpha=0.03).fit(X.repeat(copies, 0), y.repeat(copies)).coef_, 1e-9)


def test_held_out_loss_is_the_loss_of_all_rows_less_that_of_the_training_rows():
    X, y = survival(ties=True)
    weights = np.ones(80)
    train = np.where(np.arange(80) < 20, 0, 1 / 60)
    fold = CoxSet(X, y, train, slice(0, 20), weights)
    eta = X[:, 0]
    expected = efron(y, eta, weights) - efron(y[20:], eta[20:], weights[20:])
    assert fold.held_out_loss(eta[None], np.empty(0)) == pytest.approx(expected, rel=1e-12)


def test_censored_rows_alone_are_refused():
    X, y = survival()
    with pytest.raises(InputError, match="no event"):
        CoxPathCV().fit(X, -np.abs(y))


def test_folds_without_events_in_training_are_walked():
    X, y = survival(40)
    model = CoxPathCV(folds=(y > 0).astype(int)).fit(X, y)
    assert np.isfinite(model.cross_validation_.losses).all()
