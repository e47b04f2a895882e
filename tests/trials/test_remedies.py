"""Remedies that apply to a table, and the table of those that were tried."""

import numpy as np
import pandas as pd

from knockoffs import KnockoffSelector
from knockoffs.diagnostics.near_duplicates import Twin
from knockoffs.diagnostics.verdict import Outcomes
from knockoffs.table.table import read_table
from knockoffs.trials.remedies import possible_remedies

TRIAL = Outcomes(np.array([1.0, 1.0, 1.0, 0.0])).judge(0.1, ["one of b, c", "b", "grade", "a"])


def changes(frame, twins=(), **options):
    return possible_remedies(TRIAL, twins, read_table(frame), {**KnockoffSelector().options(), **options})


def numbers(rng):
    return pd.DataFrame(rng.standard_normal((60, 4)), columns=["a", "b", "c", "grade"])


def test_numbers_have_families_and_the_column_called_most_often(rng):
    frame = numbers(rng)
    assert changes(frame) == [{"feature_model": "mixture"}, {"drop": ["b"]}]
    assert changes(frame, feature_model="gaussian", drop="z") == [
        {"feature_model": "auto"},
        {"feature_model": "mixture"},
        {"drop": ["z", "b"]},
    ]


def test_codes_may_be_labels_and_twins_a_group_three_at_most(rng):
    frame = numbers(rng).assign(grade=rng.integers(1, 5, 60))
    asked = {"twins": [Twin(("a",), 0.99)], "kinds": {"a": "count"}}
    assert changes(frame, **asked) == [
        {"kinds": {"a": "count", "grade": "nominal"}},
        {"groups": "auto"},
        {"drop": ["b"]},
    ]
    assert len(changes(frame, **asked, feature_model="gaussian")) == 3


def test_given_knockoffs_cannot_be_changed(rng):
    assert changes(numbers(rng), knockoffs=np.zeros((60, 4))) == []
