"""Trials of knockoffs: coins are fair under the right P^X, and loaded under a wrong one."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from knockoffs import KnockoffSelector
from knockoffs.features.gaussian import gaussian_features
from knockoffs.importance.coefficients import coefficient_magnitude
from knockoffs.importance.statistic import ModelScore
from knockoffs.response import make_boosting
from knockoffs.response.linear import make_lasso
from knockoffs.trials.verdict import affordable_statistic

OPTIONS = {"method": "knockoffs", "estimator": "lasso"}


def test_coins_are_fair_under_the_right_law(rng):
    """Odds of 20 tables, whose mean is within 5 standard errors of 1: false in 1 of 12,000."""
    law, shares = gaussian_features(np.zeros(30), np.eye(30)), []
    for _ in range(20):
        X = rng.standard_normal((150, 30))
        y = X[:, :20].sum(axis=1) + rng.standard_normal(150)
        trial = KnockoffSelector(feature_model=law, **OPTIONS, random_state=0).fit(X, y).verdict_.trial
        shares.append(trial.rate / (0.1 + trial.rate))
    assert abs(np.mean(shares) - 0.5) < 5 * np.std(shares) / np.sqrt(len(shares))


def test_a_wrong_law_is_not_good_and_the_seed_is_no_matter(rng):
    X = rng.standard_normal((1000, 40))
    X[:, 20:] = 0.8 * (X[:, :20] ** 2 - 1) / np.sqrt(2) + 0.6 * X[:, 20:]
    y = (X[:, :20] ** 2 + X[:, :20]).sum(axis=1) + 3 * rng.standard_normal(1000)
    found = [
        KnockoffSelector(feature_model="gaussian", **OPTIONS, random_state=seed).fit(X, y).verdict_ for seed in (0, 1)
    ]
    assert found[0].word != "good" and found[0].trial == found[1].trial
    assert found[0].checks and "beat their knockoffs" in found[0].say()


def test_a_trial_takes_the_statistic_of_the_selection_where_its_fits_cost_little():
    lasso = ModelScore(make_lasso("regression"), coefficient_magnitude)
    assert affordable_statistic(lasso, "number") == (lasso, 10)
    boosting = ModelScore(make_boosting("regression"), coefficient_magnitude, rows="cross_fitted")
    assert affordable_statistic(boosting, "number") == (boosting, 1)
    forest = ModelScore(RandomForestClassifier(), coefficient_magnitude, rows="cross_fitted")
    instead, n_rounds = affordable_statistic(forest, "binary")
    assert type(instead.estimator) is type(make_lasso("classification")) and n_rounds == 10
