"""Verdicts: what dependent rows cost, and remedies that were tried."""

import numpy as np
import pytest
from scipy.signal import lfilter

from knockoffs import KnockoffSelector, KnockoffWarning
from knockoffs.diagnostics.verdict import Outcomes, Verdict
from knockoffs.errors import InputError
from knockoffs.table.table import read_table
from knockoffs.trials.remedies import try_remedies

OPTIONS = {"feature_model": "gaussian", "estimator": "lasso", "resolution": "columns", "random_state": 0}


def test_rows_in_time_cost_and_the_word_says_so(rng):
    slow = lfilter([1], [1, -0.9], rng.standard_normal((500, 6)), axis=0)
    y = slow[:, 0] + slow[:, 5]
    with pytest.warns(KnockoffWarning, match="order="):
        found = KnockoffSelector(**OPTIONS).fit(slow[:, :5], y).verdict_
    assert found.row_trial.word == found.word == "broken"
    assert found.row_trial.low > found.trial.rate and found.rows_cost
    assert "order= (--order)" in found.next_step and found.to_dict()["row_trial"]["n"] == found.row_trial.n


def test_copies_of_a_few_rows_cost_nothing(rng):
    """A remark, no word: 12 rows of 300 are there twice."""
    X = rng.standard_normal((300, 5))
    y = X[:, 0] + rng.standard_normal(300)
    X[:12], y[:12] = X[12:24], y[12:24]
    with pytest.warns(KnockoffWarning, match="12 of 300 rows equal"):
        found = KnockoffSelector(**OPTIONS).fit(X, y).verdict_
    assert found.word == found.trial.word == "good" and "12 of 300 rows" in found.say()


def test_remedies_are_tried_where_the_word_is_not_good(rng):
    X = rng.standard_normal((300, 4))
    X[:, 2:] = 0.9 * (X[:, :2] ** 2 - 1) / np.sqrt(2) + 0.4 * X[:, 2:]
    y = (X[:, :2] ** 2 + X[:, :2]).sum(axis=1) + rng.standard_normal(300)
    found = KnockoffSelector(**OPTIONS, verdict="full").fit(X, y).verdict_
    assert found.word != "good" and 2 <= len(found.remedies) <= 3
    assert [one.python for one in found.remedies][:2] == ["feature_model='auto'", "feature_model='mixture'"]
    rates = {one.python: one.trial.rate for one in found.remedies}
    again = KnockoffSelector(**{**OPTIONS, "feature_model": "auto"}).fit(X, y).verdict_
    assert rates["feature_model='auto'"] == again.trial.rate
    assert "--feature-model mixture" in found.say()


def test_a_remedy_that_is_refused_is_left_out_and_one_that_is_determined_says_by_how_much(rng):
    X = rng.standard_normal((200, 4))
    X[:, 3] = X[:, 0] + X[:, 1] + 0.05 * rng.standard_normal(200)
    trial = Outcomes(np.ones(9)).judge(0.1, ["x3"] * 9)
    options = KnockoffSelector().options()

    def judge(change):
        if "drop" not in change:
            raise InputError("no")
        return Verdict("good", 200, Outcomes(np.zeros(60)).judge(0.1, ["x0"] * 60))

    (tried,) = try_remedies(Verdict("broken", 200, trial), read_table(X), options, judge).remedies
    assert tried.python == "drop=['x3']" and tried.trial.word == "good"
    assert tried.why.startswith("(determined by the others: R2 = 0.99")
    other = Outcomes(np.ones(9)).judge(0.1, ["x2"] * 9)
    (tried,) = try_remedies(Verdict("broken", 200, other), read_table(X), options, judge).remedies
    assert tried.why == ""
