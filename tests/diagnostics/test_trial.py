"""From outcomes of trials to a rate, an interval and a word."""

import json

import numpy as np
import pytest

from knockoffs.diagnostics.verdict import Outcomes, most_called


@pytest.mark.parametrize(
    "called, n, dispersion, word",
    [
        (12, 120, 1.0, "good"),
        (40, 240, 1.0, "doubtful"),
        (60, 240, 1.0, "broken"),
        (40, 240, 10.0, "good"),  # 24 trials that are independent
        (7, 20, 0.2, "broken"),
    ],
)
def test_the_word_follows_from_rate_and_number(called, n, dispersion, word):
    trial = Outcomes(np.repeat([1.0, 0.0], [called, n - called]), dispersion).judge(0.1, ["x"] * n)
    assert trial.word == word and trial.low < trial.rate < trial.high


def test_the_rule_has_its_error_rates(rng):
    """Rounds of 60 until decided, four at most: 400 runs, so that 1 of 10^4 seeds fails by chance."""

    def word(rate):
        values = np.empty(0)
        for _ in range(4):
            values = np.append(values, rng.random(60) < rate)
            if Outcomes(values).decided(0.1):
                break
        return Outcomes(values).judge(0.1, ["x"] * len(values)).word

    assert np.mean([word(0.12) != "good" for _ in range(400)]) < 0.05 + 0.04
    assert np.mean([word(0.2) != "good" for _ in range(400)]) > 0.9 - 0.06
    assert np.mean([word(0.1) == "broken" for _ in range(400)]) == 0


def test_a_trial_goes_to_json_with_its_worst_columns():
    trial = Outcomes(np.array([1.0, 0.0, 1.0])).judge(0.1, "aba")
    assert json.loads(json.dumps(trial.to_dict()))["worst"] == [{"name": "a", "called": 2, "n": 2}]
    assert most_called([("a", 0.0)]) == ()
